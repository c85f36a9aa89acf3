"""Two clocks: the wall's, for people and for the expiry of tokens, and the lease clock, by which leases end.

The wall clock may be set, stepped or wrong. The lease clock never goes back. Where one machine uses a store it follows
the machine's clock since boot (`host_clocks`), and where several may, the database's (`postgres.clock`).
"""

from dataclasses import dataclass
from typing import Final, Protocol

from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Timestamps:
    """Now, on both clocks, in seconds; `wall` since 1970 (UTC)."""

    clock: float
    wall: float

    def on_wall(self, clock: float) -> float:
        """Wall time of a moment of the lease clock, as far as today's wall clock can tell."""
        return self.wall + (clock - self.clock)


DATABASE: Final = "database"
"""Stands for the boot of a machine where the lease clock is the database's."""


class StoreClock(Protocol):
    """The clocks of an open store; safe for threads."""

    def now(self, connection: Connection, /) -> Timestamps:
        """Return the time of both clocks; `connection` is of the transaction that asks."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of a transaction.

    A writer reads it only once it holds the model, so the times of successive holders are in order.
    """

    clocks: StoreClock
    connection: Connection

    def __call__(self) -> Timestamps:
        """Return the time of both clocks."""
        return self.clocks.now(self.connection)
