"""The lease clock of a store that several machines use: the database's clock.

It is read within the transaction, once the model is locked. It never goes back behind a time that was written, although
the clock of a standby that takes over may be behind. A store that was moved continues where its clock stood:
`lease_clock` has the offset.
"""

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection, text

from quercus.storage.clocks import DATABASE, Timestamps

# The maximum covers all committed steps, and those are all steps of a locked model.
_MOMENT: Final = text(
    f"SELECT greatest(now + coalesce((SELECT \"offset\" FROM lease_clock WHERE boot = '{DATABASE}'), 0), "  # noqa: S608
    "(SELECT max(clock) FROM query_history)) AS clock, now AS wall "
    "FROM (SELECT extract(epoch FROM clock_timestamp())::float8 AS now) AS told"
)
LARGE_LAG_S: Final = 3600.0
"""More than the clocks of a standby and of its primary differ, in seconds."""

_GO_ON: Final = text(
    'UPDATE lease_clock SET "offset" = newest.clock - newest.wall '  # noqa: S608 - constants of ours
    "FROM (SELECT max(clock) AS clock, extract(epoch FROM clock_timestamp())::float8 AS wall "
    "FROM query_history) AS newest "
    f"WHERE boot = '{DATABASE}' AND newest.wall + \"offset\" < newest.clock - {LARGE_LAG_S}"
)


def resume_clock(connection: Connection) -> None:
    """Advance the offset of the lease clock if the database's clock was once far ahead.

    Otherwise no lease would end, and no grower would count as dead, until the database's clock gets there again, maybe
    after years.
    """
    connection.execute(_GO_ON)


class DatabaseClock:
    """The clocks of a database; safe for threads.

    Parameters
    ----------
    wall : callable, optional
        Returns seconds since 1970, for times that people see; None for the database's clock.
    """

    def __init__(self, wall: Callable[[], float] | None = None) -> None:
        self._wall = wall

    def now(self, connection: Connection) -> Timestamps:
        """Return the time of both clocks."""
        clock, wall = connection.execute(_MOMENT).one()
        return Timestamps(clock, wall if self._wall is None else self._wall())
