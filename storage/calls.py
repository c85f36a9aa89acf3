"""The base class of the calls of an open store."""

from sqlalchemy import Connection

from quercus.storage.clocks import Clock, StoreClock
from quercus.storage.engine import Database


class StoreCalls:
    """Calls on one database; see `Store`."""

    def __init__(self, database: Database, clocks: StoreClock) -> None:
        self._database = database
        self._clocks = clocks

    def _clock_of(self, connection: Connection) -> Clock:
        """Return the clock of a transaction, to be read once the model is locked."""
        return Clock(self._clocks, connection)
