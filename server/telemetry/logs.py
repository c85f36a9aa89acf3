"""Logs to standard error, for people or as JSON, in UTC; every line about a call has the id of its request."""

from __future__ import annotations

import logging
import time
from contextvars import ContextVar
from typing import Final

from pythonjsonlogger.json import JsonFormatter

_HUMAN: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_FIELDS: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"

_request_id: ContextVar[str] = ContextVar("quercus_request_id", default="")


def request_id() -> str:
    """Return the id of the present request; empty outside calls."""
    return _request_id.get()


def set_request_id(value: str) -> None:
    """Set the id of the present request, in the task of its call."""
    _request_id.set(value)


class _WithRequest(logging.Filter):
    """Adds the id of the request to every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "request_id") and _request_id.get():
            record.request_id = _request_id.get()
        return True


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        found = getattr(record, "request_id", "")
        return f"{text} [{found}]" if found else text


def set_up_logging(level: str, form: str = "human") -> None:
    """Log to standard error: messages of Quercus from `level` on, and warnings and errors of libraries.

    Parameters
    ----------
    level : one of `quercus.specification.server.LOG_LEVELS`.
    form : one of `quercus.specification.server.LOG_FORMATS`.
    """
    handler = logging.StreamHandler()
    renamed = {"asctime": "time", "levelname": "level", "name": "logger"}
    formatter = JsonFormatter(_FIELDS, rename_fields=renamed) if form == "json" else _TextFormatter(_HUMAN)
    formatter.converter = time.gmtime
    formatter.default_time_format = "%Y-%m-%dT%H:%M:%S"
    formatter.default_msec_format = "%s.%03dZ"
    handler.setFormatter(formatter)
    handler.addFilter(_WithRequest())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    set_level(level)


def set_level(level: str) -> None:
    """Set the lowest level that Quercus logs."""
    logging.getLogger("quercus").setLevel(level.upper())


def current_level() -> str:
    """Return the lowest level that Quercus logs."""
    return logging.getLevelName(logging.getLogger("quercus").getEffectiveLevel()).lower()
