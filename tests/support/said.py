"""The log messages of one part of Quercus: servers of other tests in the same process log too."""

import logging

import pytest


def said(caplog: pytest.LogCaptureFixture, module: str, level: int = logging.INFO) -> list[str]:
    """Return the messages of a module's logger from a level on."""
    records = (record for record in caplog.records if record.name == module and record.levelno >= level)
    return [record.getMessage() for record in records]
