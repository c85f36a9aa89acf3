"""The client.

A library (:class:`Client`, :class:`quercus.client.aio.Client`) and the command line ``quercus``.
"""

from quercus.client.client import Client
from quercus.client.errors import (
    AlreadyExists,
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
from quercus.client.results import (
    AnswerReport,
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
)
from quercus.client.treeview import Tree, TreeNode, TreeUpdate

__all__ = [
    "AlreadyExists",
    "AnswerReport",
    "Cancelled",
    "Classification",
    "Classifications",
    "Client",
    "DeadlineExceeded",
    "Evidence",
    "FailedPrecondition",
    "FieldViolation",
    "Instance",
    "InvalidArgument",
    "Lease",
    "Model",
    "Nominal",
    "NotFound",
    "Numeric",
    "PermissionDenied",
    "Pruning",
    "PushReport",
    "QuercusError",
    "Query",
    "Reason",
    "ResourceExhausted",
    "Rival",
    "ServerError",
    "Specification",
    "Tree",
    "TreeNode",
    "TreeUpdate",
    "Unauthenticated",
    "Unavailable",
]
