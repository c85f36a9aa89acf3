"""Heartbeats of the grower: lines of JSON on a pipe, which its server reads.

The grower's loop writes one before each step of a model, unless it wrote one for the same model within the last second,
and one each second while there is nothing to do. So the last heartbeat of a hanging grower names the model.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

BEAT_S: Final = 1.0
MOST_NAMES: Final = 10
MOST_REASON: Final = 300  # characters: a line is one write to a pipe


@dataclass(frozen=True)
class Heartbeat:
    """A heartbeat of the grower.

    Attributes
    ----------
    at : the model of the present step; empty between two steps.
    learning : models that are being learned or grown in separate processes.
    waiting : models that wait for such a process, in order; at most `MOST_NAMES`.
    waiting_count : number of all waiting models.
    damaged : models that cannot be read, each with the reason; at most `MOST_NAMES`.
    """

    at: str = ""
    learning: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    waiting_count: int = 0
    damaged: tuple[tuple[str, str], ...] = ()

    def encode(self) -> bytes:
        """Return the heartbeat as a line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def decode(cls, line: bytes) -> Heartbeat:
        """Read a line; raise ``ValueError`` if it is not a heartbeat."""
        read: Any = json.loads(line)
        if not isinstance(read, dict) or not {field.name for field in fields(cls)}.issuperset(read):
            raise ValueError("it is not a heartbeat")
        named: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in read.items()
        }
        return cls(**named)


@dataclass(frozen=True)
class LearningQueue:
    """Models that are being learned or grown in separate processes, and models that wait for one."""

    learning: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


class HeartbeatWriter:
    """Writes heartbeats; to be used only by the grower's loop.

    Parameters
    ----------
    descriptor : file descriptor to write to; it never blocks.
    line : returns the models that are learned in other processes, and those that wait.
    """

    def __init__(self, descriptor: int, line: Callable[[], LearningQueue] = LearningQueue) -> None:
        self._descriptor = descriptor
        self._line = line
        self._last = Heartbeat()
        self._written_at = 0.0
        os.set_blocking(descriptor, False)

    def report_model(self, model: str) -> None:
        """Report the model whose step begins, if it is another one, and once a second; "" stands for none."""
        now = time.monotonic()
        begins_another = model not in {"", self._last.at}
        if begins_another or now - self._written_at >= BEAT_S:
            self._written_at = now
            line = self._line()
            first, count = line.waiting[:MOST_NAMES], len(line.waiting)
            told: dict[str, Any] = {"learning": line.learning, "waiting": first, "waiting_count": count}
            self._write_changed(at=model, **told)

    def report_damage(self, model: str, reason: str) -> None:
        """Report a model that cannot be read; an empty reason means that it can be read again, or is gone."""
        others = [each for each in self._last.damaged if each[0] != model]
        found = [*others, (model, reason[:MOST_REASON])] if reason else others
        self._write_changed(damaged=tuple(found[-MOST_NAMES:]))

    def _write_changed(self, **changed: Any) -> None:
        """Write the last heartbeat again, with changes."""
        self._last = replace(self._last, **changed)
        with contextlib.suppress(BlockingIOError):
            os.write(self._descriptor, self._last.encode())
