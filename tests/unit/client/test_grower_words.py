"""The grower describes what it does, in the status and in the log."""

import logging
from typing import Any

import pytest

from quercus.client.results import Status
from quercus.server import app
from quercus.v1 import admin_pb2

STATES = admin_pb2.GrowerStatus


def status(uptime_s: int = 20, **grower: Any) -> Status:
    message = admin_pb2.GetStatusResponse(grower=STATES(**grower))
    message.uptime.FromSeconds(uptime_s)
    return Status.from_message(message)


@pytest.mark.parametrize(
    ("grower", "words"),
    [
        ({"state": STATES.STATE_RUNNING}, "running"),
        ({"state": STATES.STATE_SILENT, "at": "wine"}, "silent: it makes no progress, at model wine"),
        (
            {"state": STATES.STATE_RESTARTING, "restarts": 2},
            "restarting: it ended, and starts again soon, started again 2 times",
        ),
        ({"state": STATES.STATE_OFF}, "off: this server grows no trees"),
    ],
)
def test_what_the_grower_does(grower: dict[str, Any], words: str) -> None:
    assert words in status(**grower).grower_text


@pytest.mark.parametrize(
    ("grower", "level", "words"),
    [
        (STATES(state=STATES.STATE_SILENT, at="wine"), logging.WARNING, "makes no progress at model wine"),
        (STATES(state=STATES.STATE_RESTARTING), logging.WARNING, "ended, and is started again"),
        (STATES(state=STATES.STATE_RUNNING), logging.INFO, "the grower runs"),
    ],
)
def test_the_log_says_what_the_grower_does(
    grower: admin_pb2.GrowerStatus, level: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        app.log_grower(grower)
    (record,) = caplog.records
    assert record.levelno == level
    assert words in record.getMessage()
    assert "not well" not in record.getMessage()
