"""The status codes of each RPC, and their causes. The reference is made from them; tests compare them with servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from grpc import StatusCode

Reasons = Mapping[StatusCode, str]

ANY_CALL: Final[Reasons] = {
    StatusCode.INVALID_ARGUMENT: "A field is wrong, or the message cannot be read; `BadRequest` names the field.",
    StatusCode.UNAUTHENTICATED: "There is no token, or none that counts.",
    StatusCode.PERMISSION_DENIED: "Role or models of the token do not allow it, or it speaks for somebody else.",
    StatusCode.RESOURCE_EXHAUSTED: "A bound on calls, streams or memory; `RetryInfo` says when to try again.",
    StatusCode.UNAVAILABLE: "The server stops, or the store is busy: try again.",
    StatusCode.DATA_LOSS: "Stored data are damaged: tell the operator.",
    StatusCode.INTERNAL: "A fault of the server; the text has a reference to its log.",
    StatusCode.CANCELLED: "The client left, or its deadline passed (which the client sees as DEADLINE_EXCEEDED).",
}
"""Status codes of any call."""

LIBRARY: Final[Reasons] = {
    StatusCode.UNAVAILABLE: (
        "No server answers, the connection broke, the server has `max_connections` of them, or this one has more than "
        "100 calls: try again."
    ),
    StatusCode.CANCELLED: "20,000 calls wait for the server, and this one was not begun: try again.",
    StatusCode.RESOURCE_EXHAUSTED: "The message has more than `max_message_bytes`, or the metadata more than 16 KiB.",
    StatusCode.DEADLINE_EXCEEDED: "The deadline of the client passed.",
    StatusCode.UNIMPLEMENTED: "The server does not know the call: it is of another version.",
}
"""Status codes that gRPC gives itself, before or after any code of Quercus runs."""

ANY_WRITE: Final[Reasons] = {
    StatusCode.FAILED_PRECONDITION: "The store can only be read.",
    StatusCode.RESOURCE_EXHAUSTED: "The disk is full; or a bound of any call.",
}
"""Further status codes of a call that writes."""

_NO_MODEL: Final = "No such model."
_NO_QUERY: Final = "No such model or query."
_REPLACED: Final = "Another model has the name by now."
_NO_TREE: Final = "The model has no tree yet"
_BEYOND: Final = "The log ends before `min_sequence`"
_LEASE: Final = (
    "The token does not belong to this query, or the lease expired and another labeller holds the query"
)
_NOT_YET: Final = "The newest tree is older than `min_sequence`, or any call: try again."
_GONE: Final[Reasons] = {StatusCode.NOT_FOUND: _NO_MODEL}
_WRITE: Final[Reasons] = {**ANY_WRITE}
_WRITE_GONE: Final[Reasons] = {**ANY_WRITE, **_GONE}
_PUSH: Final[Reasons] = {
    **_WRITE_GONE,
    StatusCode.ALREADY_EXISTS: "The id of a row is known with other content.",
    StatusCode.FAILED_PRECONDITION: f"{_REPLACED} {ANY_WRITE[StatusCode.FAILED_PRECONDITION]}",
    StatusCode.ABORTED: "Several servers learned nominal values at the same moment: send it again.",
}
_LEASING: Final[Reasons] = {
    **_WRITE_GONE,
    StatusCode.FAILED_PRECONDITION: f"{_BEYOND}, or the store can only be read.",
}
_TREE: Final[Reasons] = {
    StatusCode.NOT_FOUND: "No such model, or no such version of its tree.",
    StatusCode.FAILED_PRECONDITION: f"{_NO_TREE}.",
}
_NEWEST: Final[Reasons] = {
    StatusCode.NOT_FOUND: "No such model, or another version of its tree than the newest.",
}
_CLASSIFY: Final[Reasons] = {
    **_GONE,
    StatusCode.FAILED_PRECONDITION: f"{_NO_TREE}, or its log ends before `min_sequence`.",
    StatusCode.UNAVAILABLE: _NOT_YET,
}


def _write_query(precondition: str) -> Reasons:
    told = f"{precondition}, or the store can only be read."
    return {**ANY_WRITE, StatusCode.NOT_FOUND: _NO_QUERY, StatusCode.FAILED_PRECONDITION: told}


OWN: Final[dict[str, Reasons]] = {
    "ModelService/CreateModel": {
        **_WRITE,
        StatusCode.ALREADY_EXISTS: "The name is taken.",
        StatusCode.RESOURCE_EXHAUSTED: "There are `max_models` models; the disk is full; or any call.",
    },
    "ModelService/GetModel": _GONE,
    "ModelService/ListModels": {},
    "ModelService/UpdateModel": {
        **_WRITE_GONE,
        StatusCode.FAILED_PRECONDITION: "The budget is below what is spent and leased, or the store can only be read.",
    },
    "ModelService/DeleteModel": _WRITE_GONE,
    "InstanceService/PushInstances": _PUSH,
    "InstanceService/PushBatch": _PUSH,
    "InstanceService/ListInstances": _GONE,
    "InstanceService/GetInstance": {StatusCode.NOT_FOUND: "No such model or instance."},
    "InstanceService/StateEvidence": {
        **_WRITE,
        StatusCode.NOT_FOUND: "No such model or instance.",
        StatusCode.ALREADY_EXISTS: "The `request_id` is known with other statements.",
        StatusCode.FAILED_PRECONDITION: (
            "The labeller stated something else before and the policy allows no corrections; there is nothing to take "
            "back; another model has the name by now; or the store can only be read."
        ),
    },
    "InstanceService/WatchEvents": {
        **_GONE,
        StatusCode.FAILED_PRECONDITION: "The log ends before `after_sequence`, or another model has the name.",
    },
    "QueryService/LeaseQueries": _LEASING,
    "QueryService/StreamQueries": {
        **_LEASING,
        StatusCode.FAILED_PRECONDITION: f"{_BEYOND}, another model has the name by now, or the store can only be read.",
    },
    "QueryService/AnswerQuery": _write_query(
        f"{_LEASE}, the query is answered otherwise, or the budget is spent"
    ),
    "QueryService/RefuseQuery": _write_query(f"{_LEASE}, or the query is answered"),
    "QueryService/ExtendLease": _write_query("The lease has ended"),
    "QueryService/ReturnQuery": _write_query(_LEASE),
    "QueryService/ReleaseLease": _write_query("Nobody, or another labeller, holds the query"),
    "QueryService/CorrectAnswer": _write_query(
        "It is not answered, not by this labeller, or the policy forbids it"
    ),
    "QueryService/UndoAnswer": _write_query(
        "It is not answered, not by this labeller, or the policy forbids it"
    ),
    "QueryService/ListNeighbours": {
        StatusCode.NOT_FOUND: _NO_QUERY,
        StatusCode.FAILED_PRECONDITION: f"{_NO_TREE}, the lease has ended, or the presentation withholds neighbours.",
    },
    "QueryService/ListQueries": _GONE,
    "QueryService/ListQueryHistory": {StatusCode.NOT_FOUND: _NO_QUERY},
    "QueryService/StreamAnswers": {
        StatusCode.NOT_FOUND: "No such model or instance; or another model took the name meanwhile."
    },
    "QueryService/ListLabellers": _GONE,
    "QueryService/GetLabellingPolicy": _GONE,
    "QueryService/UpdateLabellingPolicy": _WRITE_GONE,
    "ClassifyService/Classify": _CLASSIFY,
    "ClassifyService/ClassifyStream": _CLASSIFY,
    "TreeService/GetTree": _TREE,
    "TreeService/WatchTree": {**_GONE, StatusCode.FAILED_PRECONDITION: _REPLACED},
    "TreeService/RenderTree": _TREE,
    "AdminService/GetStatus": {},
    "AdminService/GetCaller": {},
    "AdminService/SetLogLevel": {},
    "GRPCInferenceService/ServerLive": {},
    "GRPCInferenceService/ServerReady": {},
    "GRPCInferenceService/ServerMetadata": {},
    "GRPCInferenceService/ModelReady": _NEWEST,
    "GRPCInferenceService/ModelMetadata": _NEWEST,
    "GRPCInferenceService/ModelInfer": {
        **_CLASSIFY,
        **_NEWEST,
    },
}
"""Status codes of an RPC beyond those of any call, or with another cause."""


def statuses_of(method: str) -> dict[StatusCode, str]:
    """Return the status codes of an RPC with their causes, in the order of their numbers.

    Parameters
    ----------
    method : ``Service/Method``.

    Examples
    --------
    >>> [code.name for code in statuses_of("ModelService/GetModel") if code not in ANY_CALL]
    ['NOT_FOUND']
    """
    found = {**ANY_CALL, **OWN[method]}
    return dict(sorted(found.items(), key=lambda each: int(each[0].value[0])))
