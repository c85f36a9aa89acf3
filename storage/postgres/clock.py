"""The clock of a store that several machines use: the database's.

It is asked within the transaction, when the model is held, and never tells less than what was written before: a
database server that takes over from another may be behind it. A store that was moved goes on where its clock stood:
`lease_clock` says by how much it is ahead.
"""

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection, text

from quercus.storage.clocks import DATABASE, Timestamps

# The newest step that anybody has committed: of a model that is held, all steps are.
_MOMENT: Final = text(
    f"SELECT greatest(now + coalesce((SELECT \"offset\" FROM lease_clock WHERE boot = '{DATABASE}'), 0), "  # noqa: S608
    "(SELECT max(clock) FROM query_history)) AS clock, now AS wall "
    "FROM (SELECT extract(epoch FROM clock_timestamp())::float8 AS now) AS told"
)
LARGE_LAG_S: Final = 3600.0
"""The clocks of a standby and of the server that it takes over from differ by less, in seconds."""

_GO_ON: Final = text(
    'UPDATE lease_clock SET "offset" = newest.clock - newest.wall '  # noqa: S608 - constants of ours
    "FROM (SELECT max(clock) AS clock, extract(epoch FROM clock_timestamp())::float8 AS wall "
    "FROM query_history) AS newest "
    f"WHERE boot = '{DATABASE}' AND newest.wall + \"offset\" < newest.clock - {LARGE_LAG_S}"
)


def resume_clock(connection: Connection) -> None:
    """Let the lease clock run where it would stand still for long, because the database's was far ahead once.

    Else no lease would end, and no grower count as dead, until the database's clock is there again: years, maybe.
    """
    connection.execute(_GO_ON)


class DatabaseClock:
    """The clocks of a database; safe for threads.

    Parameters
    ----------
    wall : callable, optional
        Seconds since 1970, for times that are shown; None: the database's.
    """

    def __init__(self, wall: Callable[[], float] | None = None) -> None:
        self._wall = wall

    def now(self, connection: Connection) -> Timestamps:
        """Return the time of both clocks."""
        clock, wall = connection.execute(_MOMENT).one()
        return Timestamps(clock, wall if self._wall is None else self._wall())
