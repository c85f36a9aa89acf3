"""The client.

A library (:class:`Client`, :class:`quercus.client.aio.Client`) and the command line ``quercus``.
"""

if __name__ != "quercus.client":  # by another name every class would exist twice
    raise ImportError(f"import quercus.client, not {__name__}")

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
    ResourceExhausted,
    ServerError,
    Unauthenticated,
    Unavailable,
)
from quercus.client.labelling_results import ANY, Filter, Labeller, LabellingPolicy, QueryStep
from quercus.client.outbox import Outbox
from quercus.client.results import (
    AnswerReport,
    Between,
    Classification,
    Classifications,
    Evidence,
    Instance,
    Lease,
    Model,
    Nominal,
    Numeric,
    Pruning,
    PushReport,
    Query,
    Reason,
    Rival,
    Specification,
    Status,
)
from quercus.client.treeview import Tree, TreeNode, TreeUpdate

__all__ = [
    "ANY",
    "AlreadyExists",
    "AnswerReport",
    "Between",
    "BufferFull",
    "Cancelled",
    "Classification",
    "Classifications",
    "Client",
    "DeadlineExceeded",
    "Evidence",
    "FailedPrecondition",
    "FieldViolation",
    "Filter",
    "Instance",
    "InvalidArgument",
    "Labeller",
    "LabellingPolicy",
    "Lease",
    "Model",
    "Nominal",
    "NotFound",
    "Numeric",
    "Outbox",
    "PermissionDenied",
    "Pruning",
    "PushReport",
    "QuercusError",
    "Query",
    "QueryStep",
    "Reason",
    "ResourceExhausted",
    "Rival",
    "ServerError",
    "Specification",
    "Status",
    "Tree",
    "TreeNode",
    "TreeUpdate",
    "Unauthenticated",
    "Unavailable",
]
