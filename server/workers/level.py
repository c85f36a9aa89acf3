"""The log level, which one worker changes for all."""

from __future__ import annotations

from quercus.server.telemetry import logs
from quercus.server.workers.board import Board
from quercus.specification.server import LOG_LEVELS


def give_level(board: Board, level: str) -> None:
    """Set the log level of this process now, and that of the other workers at their next look."""
    logs.set_level(level)
    board.set("level", LOG_LEVELS.index(level) + 1)  # 0: the configured one holds


def given_level(board: Board) -> str | None:
    """Return the log level that a worker has given; None: the configured one holds."""
    number = board.get("level")
    return LOG_LEVELS[number - 1] if number else None


def take_level(board: Board) -> None:
    """Set the log level of this process to that which a worker has given."""
    level = given_level(board)
    if level is not None and logs.current_level() != level:
        logs.set_level(level)
