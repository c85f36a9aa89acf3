"""The store: the evidence log, queries with leases, tree snapshots. SQLAlchemy Core on SQLite or PostgreSQL.

`Store.open(url)` is the only entry point; results are the frozen records, and errors are the exceptions
of `errors`. Nothing of SQLAlchemy or of a driver leaves this package.
"""

if __name__ != "quercus.storage":  # by another name every class would exist twice
    raise ImportError(f"import quercus.storage, not {__name__}")

from quercus.labelling.event import Event, EventKind
from quercus.storage.access import Access, AuditRecord, TokenRecord
from quercus.storage.changes import Change
from quercus.storage.checks import comment as check_comment
from quercus.storage.errors import (
    AlreadyExists,
    BeyondLog,
    ConflictingRows,
    CorruptStore,
    FailedPrecondition,
    Fenced,
    InconsistentHistory,
    NewerSchema,
    NoSpace,
    NotFound,
    ReadOnlyStore,
    ReadOnlyUntilRestart,
    Stale,
    StorageError,
    StoreBusy,
    StoreError,
)
from quercus.storage.grouping import GroupWork
from quercus.storage.growers import Fence, GrowerRecord
from quercus.storage.log.statements import (
    CombinedStatement,
    Join,
    StatementBatch,
    StatementPlan,
    StatementRecord,
)
from quercus.storage.queries.answers import AmendContext, AmendRule, AnswerChange
from quercus.storage.queries.claims import LeaseClaim
from quercus.storage.queries.details import QueryDetails
from quercus.storage.queries.leases import Eviction, LeaseRequest
from quercus.storage.queries.pending import CombinedAnswer, PendingContext, PendingRule
from quercus.storage.queries.policies import check_policy as check_policy
from quercus.storage.queries.records import (
    AnswerOutcome,
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
from quercus.storage.queries.submitted import AnswerContext, AnswerRule, SubmittedAnswer
from quercus.storage.records import (
    AgendaEntry,
    AppendedBatch,
    EventSelection,
    InstanceColumns,
    LogSegment,
    ModelRecord,
    NewValue,
    Push,
    Snapshot,
)
from quercus.storage.sqlite.store_file import file_url
from quercus.storage.store import Store
from quercus.storage.urls import is_url, shown_url, without_secrets

__all__ = [
    "Access",
    "AgendaEntry",
    "AlreadyExists",
    "AmendContext",
    "AmendRule",
    "AnswerChange",
    "AnswerContext",
    "AnswerOutcome",
    "AnswerRule",
    "AppendedBatch",
    "AuditRecord",
    "BeyondLog",
    "Change",
    "CombinedAnswer",
    "CombinedStatement",
    "ConflictingRows",
    "Corrections",
    "CorruptStore",
    "Event",
    "EventKind",
    "EventSelection",
    "Eviction",
    "FailedPrecondition",
    "Fence",
    "Fenced",
    "GroupWork",
    "GrowerRecord",
    "HistoryRow",
    "Idle",
    "InconsistentHistory",
    "InstanceColumns",
    "Join",
    "LabellerCounts",
    "LeaseClaim",
    "LeaseRequest",
    "Leased",
    "LogSegment",
    "ModelRecord",
    "NewValue",
    "NewerSchema",
    "NoSpace",
    "NotFound",
    "PendingContext",
    "PendingRule",
    "Policy",
    "Push",
    "QueryDetails",
    "QueryRecord",
    "QueryState",
    "ReadOnlyStore",
    "ReadOnlyUntilRestart",
    "Reliability",
    "Snapshot",
    "Stale",
    "StatementBatch",
    "StatementPlan",
    "StatementRecord",
    "Step",
    "StorageError",
    "Store",
    "StoreBusy",
    "StoreError",
    "SubmittedAnswer",
    "TokenRecord",
    "check_comment",
    "check_policy",
    "file_url",
    "is_url",
    "shown_url",
    "without_secrets",
]
