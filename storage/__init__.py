"""The store: the evidence log, queries with leases, tree snapshots. SQLAlchemy Core on SQLite.

`Store.open(url)` is the only door; what comes out are the frozen records, what goes wrong are the exceptions
of `errors`. Nothing of SQLAlchemy or of a driver leaves this package.
"""

if __name__ != "quercus.storage":  # by another name every class would exist twice
    raise ImportError(f"import quercus.storage, not {__name__}")

from quercus.storage.access import Access, AuditRecord, TokenRecord
from quercus.storage.errors import (
    AlreadyExists,
    CorruptStore,
    FailedPrecondition,
    NewerSchema,
    NoSpace,
    NotFound,
    Questionable,
    ReadOnlyStore,
    ReadOnlyUntilRestart,
    Stale,
    StorageError,
    StoreBusy,
    StoreError,
)
from quercus.storage.queries.answers import Amendment, Combined
from quercus.storage.queries.records import (
    Answered,
    Corrections,
    HistoryRow,
    Idle,
    LabellerCounts,
    Leased,
    Policy,
    QueryRecord,
    QueryState,
    Reliability,
    Step,
)
from quercus.storage.records import (
    AgendaEntry,
    Appended,
    Event,
    EventKind,
    ModelRecord,
    NewValue,
    Push,
    Rows,
    Snapshot,
    Stretch,
)
from quercus.storage.sqlite.dialect import file_url
from quercus.storage.store import Store

__all__ = [
    "Access",
    "AgendaEntry",
    "AlreadyExists",
    "Amendment",
    "Answered",
    "Appended",
    "AuditRecord",
    "Combined",
    "Corrections",
    "CorruptStore",
    "Event",
    "EventKind",
    "FailedPrecondition",
    "HistoryRow",
    "Idle",
    "LabellerCounts",
    "Leased",
    "ModelRecord",
    "NewValue",
    "NewerSchema",
    "NoSpace",
    "NotFound",
    "Policy",
    "Push",
    "QueryRecord",
    "QueryState",
    "Questionable",
    "ReadOnlyStore",
    "ReadOnlyUntilRestart",
    "Reliability",
    "Rows",
    "Snapshot",
    "Stale",
    "Step",
    "StorageError",
    "Store",
    "StoreBusy",
    "StoreError",
    "Stretch",
    "TokenRecord",
    "file_url",
]
