"""The workers of one server, and the numbers that they share in mapped memory.

Each worker changes only its own cells, and reads those of all. So no lock is needed, and a worker that is killed leaves
nothing half-written; the parent clears its cells.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from quercus.server.telemetry import logs
from quercus.specification.server import LOG_LEVELS

CELL: Final = 8
"""Bytes of a cell, which the processor writes atomically."""

OF_WORKERS: Final = ("alive", "under_way", "calls", "strangers", "memory", "waiting", "changes", "beats")
"""Numbers of each worker: whether it runs, calls under way, those of them that count for the limit, streams of callers
without a token, bytes of memory, waiting writes, changes of models that it has made, and beats of its event loop."""

OF_ALL: Final = ("started", "grower_well", "writable", "level")
"""Numbers of the whole server: its start, in nanoseconds of the monotonic clock; whether grower and writes are well,
which the keeper sets; and the log level."""

ROWS: Final = 4
WIDTH: Final = 4096
"""Cells of callers (a count-min sketch): each caller has one in each row, at unpredictable places. Two callers that
share a cell in one row rarely share one in another, so the least of a caller's cells counts."""


class Tally:
    """A number of each worker: this process changes its own, and reads the sum.

    Parameters
    ----------
    cells : a cell for each worker; None if this is the only process.
    mine : position of this process's cell.
    """

    def __init__(self, cells: memoryview[int] | None = None, mine: int = 0) -> None:
        self._cells: memoryview[int] | list[int] = [0] if cells is None else cells
        self._mine = mine

    @property
    def own(self) -> int:
        """The number of this process."""
        return self._cells[self._mine]

    @property
    def elsewhere(self) -> int:
        """The sum of the other workers' numbers."""
        return sum(self._cells) - self._cells[self._mine]

    @property
    def total(self) -> int:
        """The sum of all workers' numbers."""
        return sum(self._cells)

    def add(self, count: int) -> None:
        """Add to the number of this process."""
        self._cells[self._mine] += count

    def set(self, value: int) -> None:
        """Set the number of this process."""
        self._cells[self._mine] = value


class Board:
    """The shared numbers.

    Parameters
    ----------
    count : number of workers.
    descriptor : file in memory that the parent created; None if this is the only process.
    mine : number of this worker; any for the parent, which has no cells.
    key : secret of the server, by which callers are assigned to cells.
    """

    def __init__(self, count: int, descriptor: int | None = None, mine: int = 0, key: bytes = b"") -> None:
        self.count, self._mine = count, mine
        cells = len(OF_ALL) + count * len(OF_WORKERS) + count * ROWS * WIDTH + ROWS * WIDTH
        buffer: mmap.mmap | bytearray
        if descriptor is None:
            buffer = bytearray(cells * CELL)
        else:
            if os.fstat(descriptor).st_size < cells * CELL:
                os.ftruncate(descriptor, cells * CELL)
            buffer = mmap.mmap(descriptor, cells * CELL)
        view = memoryview(buffer)
        self._numbers = view.cast("q")
        self._callers_at = len(OF_ALL) + count * len(OF_WORKERS)
        times_at = self._callers_at + count * ROWS * WIDTH
        self._times = view[times_at * CELL :].cast("d")
        self._places = lru_cache(maxsize=10_000)(self._find_places)
        self._key = key
        if not self.get("started"):
            self.set("started", time.monotonic_ns())

    def tally(self, name: str) -> Tally:
        """Return the numbers of all workers under a name of `OF_WORKERS`."""
        first = len(OF_ALL) + OF_WORKERS.index(name) * self.count
        return Tally(self._numbers[first : first + self.count], self._mine)

    def beats_of(self, worker: int) -> int:
        """Return the number of beats of a worker's event loop."""
        return self._numbers[len(OF_ALL) + OF_WORKERS.index("beats") * self.count + worker]

    def get(self, name: str) -> int:
        """Return a number of `OF_ALL`."""
        return self._numbers[OF_ALL.index(name)]

    def set(self, name: str, value: int) -> None:
        """Set a number of `OF_ALL`."""
        self._numbers[OF_ALL.index(name)] = value

    def clear(self, worker: int) -> None:
        """Clear the numbers of a worker that ended, except for its changes, which were made."""
        for name in OF_WORKERS:
            if name != "changes":
                self._numbers[len(OF_ALL) + OF_WORKERS.index(name) * self.count + worker] = 0
        first = self._callers_at + worker * ROWS * WIDTH
        self._numbers[first : first + ROWS * WIDTH] = memoryview(bytes(ROWS * WIDTH * CELL)).cast("q")

    @property
    def level(self) -> str | None:
        """The log level that a worker set for all; None for the configured one."""
        number = self.get("level")
        return LOG_LEVELS[number - 1] if number else None

    def give_level(self, level: str) -> None:
        """Set the log level of this process, and of the other workers when they next call `take_level`."""
        logs.set_level(level)
        self.set("level", LOG_LEVELS.index(level) + 1)  # 0 stands for the configured one

    def take_level(self) -> None:
        """Set the log level of this process to the one that a worker set for all."""
        if (level := self.level) is not None and logs.current_level() != level:
            logs.set_level(level)

    # Callers

    def _find_places(self, caller: str) -> tuple[int, ...]:
        digest = hashlib.blake2b(
            caller.encode(errors="replace"), digest_size=4 * ROWS, key=self._key
        ).digest()
        return tuple(
            row * WIDTH + int.from_bytes(digest[4 * row : 4 * row + 4]) % WIDTH for row in range(ROWS)
        )

    def count_stream(self, caller: str, change: int) -> None:
        """Change the number of streams that a caller has open in this worker."""
        first = self._callers_at + self._mine * ROWS * WIDTH
        for place in self._places(caller):
            self._numbers[first + place] += change

    def streams_elsewhere(self, caller: str) -> int:
        """Return the number of streams that a caller has open in other workers."""
        others = [
            self._callers_at + worker * ROWS * WIDTH for worker in range(self.count) if worker != self._mine
        ]
        return min(sum(self._numbers[first + place] for first in others) for place in self._places(caller))

    def caller_time(self, caller: str) -> float:
        """Return the time that was stored for a caller; 0 if none was."""
        return min(self._times[place] for place in self._places(caller))

    def keep_caller_time(self, caller: str, time: float) -> None:
        """Store a time for a caller, unless a later one is stored."""
        for place in self._places(caller):
            self._times[place] = max(self._times[place], time)


KEEPER: Final = 0
"""The worker that runs what exists only once: the grower, the metrics page, and the writer of a store in a file."""


@dataclass(frozen=True)
class Post:
    """A worker among others; or, with `Post.alone`, a server of one process.

    Attributes
    ----------
    index : number of this worker.
    board : numbers that the workers share.
    folder : private folder of the sockets by which workers call each other; None if there is only one process.
    """

    index: int
    board: Board
    folder: Path | None

    @classmethod
    def alone(cls) -> Post:
        """Return the post of a process that is the whole server."""
        return cls(KEEPER, Board(1), None)

    @property
    def shared_board(self) -> Board | None:
        """The board, if there are other workers that share it."""
        return self.board if self.folder is not None else None

    @property
    def is_keeper(self) -> bool:
        """True if this process is the keeper."""
        return self.index == KEEPER

    @property
    def others(self) -> list[int]:
        """The numbers of the other workers."""
        return [each for each in range(self.board.count) if each != self.index]

    def socket_of(self, worker: int) -> str:
        """Return the address of a worker's socket for calls of other workers."""
        return f"unix:{self._path(str(worker))}"

    @property
    def line(self) -> str:
        """The path of the keeper's socket for small calls."""
        return self._path("line")

    def _path(self, name: str) -> str:
        assert self.folder is not None  # noqa: S101 - nobody calls a process that is alone
        return str(self.folder / name)
