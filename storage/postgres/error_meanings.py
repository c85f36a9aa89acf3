"""The meaning of errors of PostgreSQL and its driver for a user."""

from typing import Final

import psycopg
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from quercus.belief.errors import InvalidInput
from quercus.storage.errors import CorruptStore, NoSpace, ReadOnlyStore, StoreBusy, StoreError

DRIVER_ERRORS: Final = (SQLAlchemyError, psycopg.Error)

_BUSY: Final = (StoreBusy, "was locked by another process for longer than the busy timeout: try again")
_LOST: Final = (StoreError, "cannot be reached: does the database server run, and is its address right?")
_PLACE: Final = (StoreError, "may not be used: are user and password right, and does pg_hba.conf allow them?")
# By SQLSTATE, or by its first three or two characters.
_MEANINGS: Final[dict[str, tuple[type[StoreError], str]]] = {
    "55P03": _BUSY,
    "40P01": (StoreBusy, "waited in a circle with another process: try again"),
    "40001": (StoreBusy, "was changed by another process at the same moment: try again"),
    "57014": (StoreBusy, "took too long, and the database server ended the statement: try again"),
    "25P03": (
        StoreBusy,
        "was left idle within a transaction, which the database server ended: try again",
    ),
    "25006": (
        ReadOnlyStore,
        "may not be written: the database server is a standby, or read-only by its settings",
    ),
    "42501": (
        ReadOnlyStore,
        "may not be written by this user: make it the owner of the database (ALTER DATABASE … OWNER TO …)",
    ),
    "3D000": (StoreError, "does not exist: create it with createdb"),
    "53": (NoSpace, "cannot grow: the database server has no disk space, memory or connections left"),
    "53300": (
        StoreError,
        "has no connection left: raise max_connections of the database server, or start fewer servers",
    ),
    "08": _LOST,
    "57P": _LOST,
    "28": _PLACE,
    "XX": (CorruptStore, "is damaged: see the log of the database server, and restore a dump"),
}


def meant_error(error: Exception, store: str) -> Exception:
    """Return the error for the user in place of a driver's or SQLAlchemy's exception."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    said = " ".join(str(cause).split())
    if isinstance(cause, psycopg.DataError):
        if "NUL" in said:
            return InvalidInput("text", "has a NUL character, which cannot be stored")
        if cause.sqlstate == "22003":
            return InvalidInput("number", "an integer does not fit into 64 bits")
    if not isinstance(cause, psycopg.Error):
        return StoreError(f"{store}: {said}")
    state = cause.sqlstate or ""
    meaning = _MEANINGS.get(state) or _MEANINGS.get(state[:3]) or _MEANINGS.get(state[:2])
    if meaning is None:
        meaning = _meaning_without_state(cause, said) if not state else (StoreError, "cannot be used")
    kind, says = meaning
    return kind(f"{store} {says} ({said})")


def _meaning_without_state(cause: psycopg.Error, said: str) -> tuple[type[StoreError], str]:
    """Return the meaning of an error of the driver itself: a connection failed, or was lost."""
    if not isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreError, "cannot be used"
    if "does not exist" in said and "database" in said:
        return _MEANINGS["3D000"]
    if any(word in said for word in ("password", "pg_hba.conf", "authentication", "role")):
        return _PLACE
    return _LOST
