"""The store: the evidence log, queries with leases, tree snapshots. SQLAlchemy Core on SQLite or PostgreSQL.

`Store.open(url)` is the entry point; results are the frozen records, and errors are those of `errors`. Neither
SQLAlchemy nor a driver shows outside this package.
"""

if __name__ != "quercus.storage":  # by another name every class would exist twice
    raise ImportError(f"import quercus.storage, not {__name__}")

from quercus.labelling.adjudication import Adjudication, AdjudicationOutcome
from quercus.labelling.answers import Amendment, AnswerOutcome, Words
from quercus.labelling.checks import comment as check_comment
from quercus.labelling.event import Event, EventKind
from quercus.labelling.gold import Mark
from quercus.labelling.leasing import Idle
from quercus.labelling.lifecycle import QueryState, Step
from quercus.labelling.policy import Corrections, Policy, Reliability
from quercus.labelling.statements import Statement, StatementBatch, StatementPlan
from quercus.storage.access import Access, AuditRecord, TokenRecord
from quercus.storage.changes import Change
from quercus.storage.errors import (
    AlreadyExists,
    BeyondLog,
    ConflictingRows,
    CorruptStore,
    FailedPrecondition,
    Fenced,
    InconsistentHistory,
    ModelReplaced,
    NoSpace,
    NotFound,
    ReadOnlyStore,
    ReadOnlyUntilRestart,
    Stale,
    StorageError,
    StoreBusy,
    StoreError,
    UnknownSchema,
)
from quercus.storage.grouping import GroupCall
from quercus.storage.growers import Fence, GrowerRecord
from quercus.storage.models import Extension
from quercus.storage.queries.desk import AnswerRequest, KnownModel, LeaseClaim, LeaseRequest
from quercus.storage.queries.details import QueryDetails
from quercus.storage.queries.leases import Eviction
from quercus.storage.queries.policies import check_policy as check_policy
from quercus.storage.queries.records import HistoryRow, LabellerCounts, Leased, QueryRecord
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
    growth_mark,
)
from quercus.storage.sqlite.store_file import file_url
from quercus.storage.store import Store
from quercus.storage.urls import is_url, shown_url, without_secrets

__all__ = [
    "Access",
    "Adjudication",
    "AdjudicationOutcome",
    "AgendaEntry",
    "AlreadyExists",
    "Amendment",
    "AnswerOutcome",
    "AnswerRequest",
    "AppendedBatch",
    "AuditRecord",
    "BeyondLog",
    "Change",
    "ConflictingRows",
    "Corrections",
    "CorruptStore",
    "Event",
    "EventKind",
    "EventSelection",
    "Eviction",
    "Extension",
    "FailedPrecondition",
    "Fence",
    "Fenced",
    "GroupCall",
    "GrowerRecord",
    "HistoryRow",
    "Idle",
    "InconsistentHistory",
    "InstanceColumns",
    "KnownModel",
    "LabellerCounts",
    "LeaseClaim",
    "LeaseRequest",
    "Leased",
    "LogSegment",
    "Mark",
    "ModelRecord",
    "ModelReplaced",
    "NewValue",
    "NoSpace",
    "NotFound",
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
    "Statement",
    "StatementBatch",
    "StatementPlan",
    "Step",
    "StorageError",
    "Store",
    "StoreBusy",
    "StoreError",
    "TokenRecord",
    "UnknownSchema",
    "Words",
    "check_comment",
    "check_policy",
    "file_url",
    "growth_mark",
    "is_url",
    "shown_url",
    "without_secrets",
]
