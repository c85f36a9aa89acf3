"""The store: the evidence log, queries with leases, tree snapshots. SQLAlchemy Core on SQLite.

`Store.open(url)` is the only door; what comes out are the frozen records, what goes wrong are the exceptions
of `errors`. Nothing of SQLAlchemy or of a driver leaves this package.
"""

from quercus.storage.access import Access, AuditRecord, TokenRecord
from quercus.storage.dialect import file_url
from quercus.storage.errors import (
    AlreadyExists,
    CorruptStore,
    FailedPrecondition,
    NewerSchema,
    NotFound,
    ReadOnlyStore,
    Stale,
    StorageError,
    StoreBusy,
    StoreError,
)
from quercus.storage.records import (
    AgendaEntry,
    Answered,
    Appended,
    Event,
    EventKind,
    Idle,
    Leased,
    ModelRecord,
    NewValue,
    Push,
    QueryRecord,
    QueryState,
    Rows,
    Snapshot,
    Stretch,
)
from quercus.storage.snapshots import KEPT_VERSIONS
from quercus.storage.store import Store

__all__ = [
    "KEPT_VERSIONS",
    "Access",
    "AgendaEntry",
    "AlreadyExists",
    "Answered",
    "Appended",
    "AuditRecord",
    "CorruptStore",
    "Event",
    "EventKind",
    "FailedPrecondition",
    "Idle",
    "Leased",
    "ModelRecord",
    "NewValue",
    "NewerSchema",
    "NotFound",
    "Push",
    "QueryRecord",
    "QueryState",
    "ReadOnlyStore",
    "Rows",
    "Snapshot",
    "Stale",
    "StorageError",
    "Store",
    "StoreBusy",
    "StoreError",
    "Stretch",
    "TokenRecord",
    "file_url",
]
