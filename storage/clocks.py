"""Two clocks: the wall clock, for people and for the expiry of tokens, and the lease clock, for leases.

The wall clock may be set, stepped or wrong. The lease clock never goes back: it follows the machine's clock since boot
if a single machine uses the store (`host_clocks`), and the database's clock if several may (`postgres.clock`).
"""

from dataclasses import dataclass
from typing import Final, Protocol

from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Timestamps:
    """The time on both clocks, in seconds; `wall` since 1970 (UTC)."""

    clock: float
    wall: float

    def on_wall(self, clock: float) -> float:
        """Return the wall time of a moment of the lease clock, by the present difference between the clocks."""
        return self.wall + (clock - self.clock)


DATABASE: Final = "database"
"""The value of `lease_clock.boot` if the lease clock is the database's."""


class StoreClock(Protocol):
    """The clocks of an open store; safe for threads."""

    def now(self, connection: Connection, /) -> Timestamps:
        """Return the time of both clocks; `connection` is that of the transaction."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of a transaction.

    A writer reads it only once it has locked the model, so the times of successive writers are in order.
    """

    clocks: StoreClock
    connection: Connection

    def __call__(self) -> Timestamps:
        """Return the time of both clocks."""
        return self.clocks.now(self.connection)
