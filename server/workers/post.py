"""The place of a process among the workers of a server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quercus.server.workers.board import Board

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
