"""The workers of one server: the place of each, and the numbers that they share in memory that all of them map.

Each worker changes its own cells only, and reads those of all. So no lock is needed, and a worker that is killed leaves
nothing half-written: the parent clears its cells.
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
"""Bytes of a cell, which the processor writes at once."""

OF_WORKERS: Final = ("alive", "under_way", "calls", "strangers", "memory", "waiting", "changes", "beats")
"""Numbers that each worker has: whether it runs, calls under way, those of them that are bounded, those of callers
without a token, bytes of memory, writes that wait, changes of models that it has made, and beats of its event loop."""

OF_ALL: Final = ("started", "grower_well", "writable", "level")
"""Numbers of the whole server: nanoseconds of the monotonic clock at its start; and, which the keeper writes, whether
grower and writes are well, and the log level."""

ROWS: Final = 4
WIDTH: Final = 4096
"""Cells of callers: each caller has one in each row, at unpredictable places. Two callers that share a cell in one row
rarely share one in another, so the least of a caller's cells counts."""


class Tally:
    """A number of each worker: this process changes its own and reads the sum.

    Parameters
    ----------
    cells : one for each worker; None: this process is alone.
    mine : the place of this process's number among them.
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
    descriptor : file in memory that the parent has made; None: of this process alone.
    mine : the place of this process; the parent has none of its own, and may be any.
    key : secret of the server, from which the cells of callers follow.
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
        """Return how often the event loop of a worker has shown that it turns."""
        return self._numbers[len(OF_ALL) + OF_WORKERS.index("beats") * self.count + worker]

    def get(self, name: str) -> int:
        """Return a number of `OF_ALL`."""
        return self._numbers[OF_ALL.index(name)]

    def set(self, name: str, value: int) -> None:
        """Set a number of `OF_ALL`."""
        self._numbers[OF_ALL.index(name)] = value

    def clear(self, worker: int) -> None:
        """Forget what a worker that ended has counted; its changes stay, because they were made."""
        for name in OF_WORKERS:
            if name != "changes":
                self._numbers[len(OF_ALL) + OF_WORKERS.index(name) * self.count + worker] = 0
        first = self._callers_at + worker * ROWS * WIDTH
        self._numbers[first : first + ROWS * WIDTH] = memoryview(bytes(ROWS * WIDTH * CELL)).cast("q")

    @property
    def level(self) -> str | None:
        """The log level that a worker has given to all; None: the configured one holds."""
        number = self.get("level")
        return LOG_LEVELS[number - 1] if number else None

    def give_level(self, level: str) -> None:
        """Set the log level of this process now, and that of the other workers at their next look."""
        logs.set_level(level)
        self.set("level", LOG_LEVELS.index(level) + 1)  # 0: the configured one holds

    def take_level(self) -> None:
        """Set the log level of this process to that which a worker has given."""
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
        """Return how many streams a caller has open in other workers."""
        others = [
            self._callers_at + worker * ROWS * WIDTH for worker in range(self.count) if worker != self._mine
        ]
        return min(sum(self._numbers[first + place] for first in others) for place in self._places(caller))

    def caller_time(self, caller: str) -> float:
        """Return the time that was kept for a caller last; 0: none."""
        return min(self._times[place] for place in self._places(caller))

    def keep_caller_time(self, caller: str, time: float) -> None:
        """Keep a time for a caller, which only grows."""
        for place in self._places(caller):
            self._times[place] = max(self._times[place], time)


KEEPER: Final = 0
"""The worker that has what exists once: the grower, the metrics page, the thread that writes a store in a file."""


@dataclass(frozen=True)
class Post:
    """A worker among others; or, with `Post.alone`, a server of one process.

    Attributes
    ----------
    index : number of this worker.
    board : numbers that the workers share.
    folder : private folder of the sockets by which workers call each other; None: there is one worker only.
    """

    index: int
    board: Board
    folder: Path | None

    @classmethod
    def alone(cls) -> Post:
        """Return the place of a process that is the whole server."""
        return cls(KEEPER, Board(1), None)

    @property
    def shared_board(self) -> Board | None:
        """The board, if there are others with whom it is shared."""
        return self.board if self.folder is not None else None

    @property
    def is_keeper(self) -> bool:
        """True if this process has what exists once."""
        return self.index == KEEPER

    @property
    def others(self) -> list[int]:
        """The numbers of the other workers."""
        return [each for each in range(self.board.count) if each != self.index]

    def socket_of(self, worker: int) -> str:
        """Return the address at which a worker takes calls of other workers."""
        return f"unix:{self._path(str(worker))}"

    @property
    def line(self) -> str:
        """The path of the keeper's socket for small calls."""
        return self._path("line")

    def _path(self, name: str) -> str:
        assert self.folder is not None  # noqa: S101 - nobody calls a process that is alone
        return str(self.folder / name)
