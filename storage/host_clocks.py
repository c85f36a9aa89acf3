"""The lease clock of a store that one machine uses.

The clock never jumps. It is the machine's clock since boot, which all processes of the machine share, plus an offset,
which the store keeps with the id of the boot. In another boot (after a restart, or on a host to which the store was
moved or restored), the clock continues from the latest time in the log and in the history of queries. The uptime of the
machine cannot be added, because the store may have been used elsewhere until a moment ago. So the clock stands still
until a server of the new boot runs, and leases end late, never early.

If the system has no ids of boots, the name of the machine takes their place. After a restart, the clock then advances
by the uptime at most.
"""

import platform
import threading
import time
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, delete, func, select

from quercus.storage.clocks import Timestamps
from quercus.storage.engine import Database
from quercus.storage.inserts import insert_rows
from quercus.storage.schema import lease_clock, log, model, query_history

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
MAX_BOOT = 64  # characters that the store keeps


def since_boot() -> float:
    """Return the seconds since the machine was started, including sleep if the system counts it."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def boot_id() -> str:
    """Return the id of this boot of the machine, or one made of its name if the system has no such ids."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return f"of {platform.node()}"[:MAX_BOOT]


class HostClocks:
    """The clocks of a store that one machine uses; safe for threads.

    Parameters
    ----------
    wall : callable
        Returns seconds since 1970.
    steady : callable
        Returns seconds since boot; never goes back.
    offset : float
        Difference of the lease clock and `steady`, in seconds.
    """

    def __init__(self, wall: Callable[[], float], steady: Callable[[], float], offset: float) -> None:
        self._wall = wall
        self._steady = steady
        self._offset = offset
        self._lock = threading.Lock()
        self._latest = -float("inf")

    @classmethod
    def of(
        cls, database: Database, wall: Callable[[], float], steady: Callable[[], float], boot: str
    ) -> "HostClocks":
        """Return the clocks of a store, with its stored offset, or a new one if that is of another boot."""
        with database.read() as connection:
            offset = _remembered_offset(connection, boot, steady())
            if offset is None and database.dialect.read_only:
                offset = _offset_of_new_boot(connection, wall(), steady())
        if offset is None:

            def ensure_offset(connection: Connection) -> float:
                known = _remembered_offset(connection, boot, steady())
                return _write_offset(connection, boot, wall(), steady()) if known is None else known

            offset = database.write_when_full(ensure_offset)  # a server must start even on a full disk
        return cls(wall, steady, offset)

    def now(self, _: Connection | None = None) -> Timestamps:
        """Return the time of both clocks."""
        with self._lock:
            self._latest = max(self._latest, self._offset + self._steady())
            return Timestamps(self._latest, self._wall())


def _latest_written(connection: Connection) -> float | None:
    """Return the latest time of the lease clock in the log and in the history of queries."""
    newest = (log.c.model_id == model.c.id) & (log.c.sequence == model.c.sequence_committed)
    latest = (select(func.max(query_history.c.clock)), select(func.max(log.c.clock)).join(model, newest))
    found = (connection.execute(each).scalar() for each in latest)
    return max((float(each) for each in found if each is not None), default=None)


def _remembered_offset(connection: Connection, boot: str, steady: float) -> float | None:
    row = connection.execute(select(lease_clock)).one_or_none()
    if row is None or row.boot != boot:
        return None
    # Without ids of boots, a clock that is behind the latest stored time shows that the machine was restarted.
    behind = row.offset + steady < (_latest_written(connection) or row.offset)
    return None if behind else float(row.offset)


def _offset_of_new_boot(connection: Connection, wall: float, steady: float) -> float:
    """Return the offset for a boot of which the store has none."""
    fresh = connection.execute(select(lease_clock)).one_or_none() is None
    # The lease clock of a new store starts with the wall clock's time.
    latest = None if fresh else _latest_written(connection)
    return (wall if latest is None else latest) - steady


def _write_offset(connection: Connection, boot: str, wall: float, steady: float) -> float:
    offset = _offset_of_new_boot(connection, wall, steady)
    connection.execute(delete(lease_clock))
    insert_rows(connection, lease_clock, ["id", "boot", "offset"], [(1, boot, offset)])
    return offset
