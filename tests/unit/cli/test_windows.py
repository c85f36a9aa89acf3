"""Windows has the client, files and estimators; a server is refused in words."""

import sys

import pytest
from typer.testing import CliRunner

from quercus.cli.main import app


def test_a_server_on_windows_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    result = CliRunner().invoke(app, ["serve", "--port", "0"])
    assert "runs on Linux and macOS, not on Windows" in str(result.exception)
