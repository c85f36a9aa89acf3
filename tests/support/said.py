"""What one part of Quercus logged: servers of other tests in the same process log too."""

import logging

import pytest


def said(caplog: pytest.LogCaptureFixture, module: str, level: int = logging.INFO) -> list[str]:
    """Messages of the logger of a module from a level on."""
    records = (record for record in caplog.records if record.name == module and record.levelno >= level)
    return [record.getMessage() for record in records]
