"""The lease clock of a store that one machine uses.

It never jumps: it runs with the machine's clock since boot, which all processes of the machine share, and the store
remembers by how much it is ahead of it, and in which boot. In any other boot (after a restart of the machine, or on the
host to which a store was moved or restored) it goes on from the last moment that the log and the history of the
queries know, and from nothing later. How long this machine has been up says nothing: the store may have lived
elsewhere until a moment ago. So the clock stands still for as long as no server of this boot has run, and leases end
late, never early.

A system that does not name its boots is known by the name of its machine. There the clock runs on through a restart by
what the machine has been up since, and no further.
"""

import platform
import threading
import time
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, delete, func, insert, select

from quercus.storage.clocks import Timestamps
from quercus.storage.engine import Database
from quercus.storage.schema import lease_clock, log, model, query_history

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
MAX_BOOT = 64  # characters that the store keeps


def since_boot() -> float:
    """Seconds since the machine was started, sleep included where the system can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def boot_id() -> str:
    """Name of this boot of the machine; of the machine alone where the system does not name its boots."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return f"of {platform.node()}"[:MAX_BOOT]


class HostClocks:
    """The clocks of a store that one machine uses; safe for threads.

    Parameters
    ----------
    wall : callable
        Seconds since 1970.
    steady : callable
        Seconds since boot: never goes back.
    offset : float
        By how much the lease clock is ahead of `steady`.
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
        """The clocks of a store: as it remembers them, or set anew where it was another boot that it remembers."""
        with database.read() as connection:
            offset = _remembered_offset(connection, boot, steady())
            if offset is None and database.dialect.read_only:
                offset = _offset_of_new_boot(connection, wall(), steady())
        if offset is None:

            def ensure_offset(connection: Connection) -> float:
                known = _remembered_offset(connection, boot, steady())
                return _write_offset(connection, boot, wall(), steady()) if known is None else known

            offset = database.write_when_full(ensure_offset)  # a server starts on a full disk, too
        return cls(wall, steady, offset)

    def now(self, _: Connection | None = None) -> Timestamps:
        """Return the time of both clocks."""
        with self._lock:
            self._latest = max(self._latest, self._offset + self._steady())
            return Timestamps(self._latest, self._wall())


def _latest_written(connection: Connection) -> float | None:
    """Latest moment of the lease clock that anything was written at."""
    newest = (log.c.model_id == model.c.id) & (log.c.sequence == model.c.sequence_committed)
    latest = (select(func.max(query_history.c.clock)), select(func.max(log.c.clock)).join(model, newest))
    found = (connection.execute(each).scalar() for each in latest)
    return max((float(each) for each in found if each is not None), default=None)


def _remembered_offset(connection: Connection, boot: str, steady: float) -> float | None:
    row = connection.execute(select(lease_clock)).one_or_none()
    if row is None or row.boot != boot:
        return None
    # Where boots have no names, a clock behind what was reached tells that there was another.
    behind = row.offset + steady < (_latest_written(connection) or row.offset)
    return None if behind else float(row.offset)


def _offset_of_new_boot(connection: Connection, wall: float, steady: float) -> float:
    """Return the offset of the lease clock from now on, if the store remembers none of this boot."""
    fresh = connection.execute(select(lease_clock)).one_or_none() is None
    # A new store starts with the wall's time.
    latest = None if fresh else _latest_written(connection)
    return (wall if latest is None else latest) - steady


def _write_offset(connection: Connection, boot: str, wall: float, steady: float) -> float:
    offset = _offset_of_new_boot(connection, wall, steady)
    connection.execute(delete(lease_clock))
    connection.execute(insert(lease_clock).values(id=1, boot=boot, offset=offset))
    return offset
