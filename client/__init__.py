"""The Python client of the service.

Start with :class:`Client`, or :class:`quercus.client.aio.Client` for asyncio. The command line is in `quercus.cli`.
"""

if __name__ != "quercus.client":  # under another name every class would exist twice
    raise ImportError(f"import quercus.client, not {__name__}")

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quercus.client.answers import AnswerFilter, Statement
    from quercus.client.classifications import (
        Classification,
        Classifications,
        CoverageBasis,
        PredictionSets,
    )
    from quercus.client.client import Client
    from quercus.client.errors import (
        AlreadyExists,
        BufferFull,
        Cancelled,
        DeadlineExceeded,
        FailedPrecondition,
        FieldViolation,
        InvalidArgument,
        NotFound,
        PermissionDenied,
        QuercusError,
        RejectedRow,
        RejectedRows,
        ResourceExhausted,
        ServerError,
        Unauthenticated,
        Unavailable,
    )
    from quercus.client.filters import ANY, Filter
    from quercus.client.outbox import Outbox
    from quercus.client.results import (
        AccuracyBlock,
        Answer,
        AnswerReport,
        AuditEntry,
        AverageConfidence,
        Caller,
        Evidence,
        Example,
        GrowerMember,
        Instance,
        Labeller,
        LabellingPolicy,
        Learner,
        Lease,
        LogEvent,
        Model,
        Neighbour,
        NewToken,
        Query,
        QueryStep,
        Reason,
        RecentAccuracy,
        Rival,
        RowAnswer,
        RowChange,
        RowExplanation,
        RowPrediction,
        StatementReport,
        Status,
        Token,
        Tree,
        TreeUpdate,
    )
    from quercus.client.row_filter import RowFilter, RowPage
    from quercus.client.specifications import Specification
    from quercus.client.tree_nodes import TreeNode
    from quercus.client.treeview import TreeVersion
    from quercus.client.unseen import PushReport
    from quercus.client.values import Between
    from quercus.specification.attributes import Nominal, Numeric
    from quercus.specification.display import LinkItem, MediaItem, SeriesItem, TextItem
    from quercus.specification.guidance import ClassExample, Guidance
    from quercus.specification.learners import Pruning
    from quercus.specification.presentation import AttributeView, MediaTemplate, Presentation, SeriesView
    from quercus.specification.reasons import Fact, Shares

__all__ = [
    "ANY",
    "AccuracyBlock",
    "AlreadyExists",
    "Answer",
    "AnswerFilter",
    "AnswerReport",
    "AttributeView",
    "AuditEntry",
    "AverageConfidence",
    "Between",
    "BufferFull",
    "Caller",
    "Cancelled",
    "ClassExample",
    "Classification",
    "Classifications",
    "Client",
    "CoverageBasis",
    "DeadlineExceeded",
    "Evidence",
    "Example",
    "Fact",
    "FailedPrecondition",
    "FieldViolation",
    "Filter",
    "GrowerMember",
    "Guidance",
    "Instance",
    "InvalidArgument",
    "Labeller",
    "LabellingPolicy",
    "Learner",
    "Lease",
    "LinkItem",
    "LogEvent",
    "MediaItem",
    "MediaTemplate",
    "Model",
    "Neighbour",
    "NewToken",
    "Nominal",
    "NotFound",
    "Numeric",
    "Outbox",
    "PermissionDenied",
    "PredictionSets",
    "Presentation",
    "Pruning",
    "PushReport",
    "QuercusError",
    "Query",
    "QueryStep",
    "Reason",
    "RecentAccuracy",
    "RejectedRow",
    "RejectedRows",
    "ResourceExhausted",
    "Rival",
    "RowAnswer",
    "RowChange",
    "RowExplanation",
    "RowFilter",
    "RowPage",
    "RowPrediction",
    "SeriesItem",
    "SeriesView",
    "ServerError",
    "Shares",
    "Specification",
    "Statement",
    "StatementReport",
    "Status",
    "TextItem",
    "Token",
    "Tree",
    "TreeNode",
    "TreeUpdate",
    "TreeVersion",
    "Unauthenticated",
    "Unavailable",
]

_HOMES = {
    "..specification.learners": ("Pruning",),
    "..specification.attributes": ("Nominal", "Numeric"),
    "..specification.display": ("LinkItem", "MediaItem", "SeriesItem", "TextItem"),
    "..specification.guidance": ("ClassExample", "Guidance"),
    "..specification.presentation": ("AttributeView", "MediaTemplate", "Presentation", "SeriesView"),
    "..specification.reasons": ("Fact", "Shares"),
    ".answers": ("AnswerFilter", "Statement"),
    ".classifications": ("Classification", "Classifications", "CoverageBasis", "PredictionSets"),
    ".client": ("Client",),
    ".errors": (
        "AlreadyExists",
        "BufferFull",
        "Cancelled",
        "DeadlineExceeded",
        "FailedPrecondition",
        "FieldViolation",
        "InvalidArgument",
        "NotFound",
        "PermissionDenied",
        "QuercusError",
        "RejectedRow",
        "RejectedRows",
        "ResourceExhausted",
        "ServerError",
        "Unauthenticated",
        "Unavailable",
    ),
    ".filters": ("ANY", "Filter"),
    ".outbox": ("Outbox",),
    ".results": (
        "AccuracyBlock",
        "Answer",
        "AnswerReport",
        "AuditEntry",
        "AverageConfidence",
        "Caller",
        "Evidence",
        "Example",
        "GrowerMember",
        "Instance",
        "Labeller",
        "LabellingPolicy",
        "Learner",
        "Lease",
        "LogEvent",
        "Model",
        "Neighbour",
        "NewToken",
        "Query",
        "QueryStep",
        "Reason",
        "RecentAccuracy",
        "Rival",
        "RowAnswer",
        "RowChange",
        "RowExplanation",
        "RowPrediction",
        "StatementReport",
        "Status",
        "Token",
        "Tree",
        "TreeUpdate",
    ),
    ".row_filter": ("RowFilter", "RowPage"),
    ".specifications": ("Specification",),
    ".tree_nodes": ("TreeNode",),
    ".treeview": ("TreeVersion",),
    ".unseen": ("PushReport",),
    ".values": ("Between",),
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, because importing gRPC and NumPy takes half a second."""
    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
