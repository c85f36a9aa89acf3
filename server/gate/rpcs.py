"""The RPCs as the ``.proto`` files describe them: permitted roles, properties, and possible statuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.descriptor import MethodDescriptor
from google.rpc import code_pb2
from grpc import StatusCode

from quercus.inference import open_inference_pb2
from quercus.v1 import options_pb2
from quercus.v1.calls import METHODS, is_reading, methods_of, traits_of

ROLES: Final = tuple(
    role.name.removeprefix("ROLE_").lower() for role in options_pb2.Role.DESCRIPTOR.values[1:]
)
READER, SENSOR, LABELLER, CORRECTOR, OPERATOR = ROLES

Causes = Mapping[StatusCode, str]

ANY_CALL: Final[Causes] = {
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

LIBRARY: Final[Causes] = {
    StatusCode.UNAVAILABLE: (
        "No server answers, the connection broke, the server has `max_connections` of them, or this one has more than "
        "100 calls: try again."
    ),
    StatusCode.CANCELLED: "20,000 calls wait for the server, and this one was not begun: try again.",
    StatusCode.RESOURCE_EXHAUSTED: "The message has more than `max_message_bytes`, or the metadata more than 16 KiB.",
    StatusCode.DEADLINE_EXCEEDED: "The deadline of the client passed.",
    StatusCode.UNIMPLEMENTED: "The server does not know the call: it is of another version.",
}
"""Status codes that gRPC itself returns, before or after any code of Quercus runs."""

ANY_WRITE: Final[Causes] = {
    StatusCode.FAILED_PRECONDITION: "The store can only be read.",
    StatusCode.RESOURCE_EXHAUSTED: "The disk is full; or a bound of any call.",
}
"""Further status codes of a call that writes to the store."""


@dataclass(frozen=True)
class Rpc:
    """One RPC.

    Attributes
    ----------
    name : ``Service/Method``.
    roles : the roles that may call it.
    reads : whether it only reads.
    audited : whether it is recorded in the audit log.
    whole_server : whether it concerns the whole server and not a model.
    unrestricted : whether tokens for some models may not call it, even if it only reads.
    light : whether it is admitted even if memory is short.
    waits : whether a request can make it wait.
    causes : status codes that not every call has, or with a different cause.
    """

    name: str
    roles: frozenset[str] = frozenset({OPERATOR})
    reads: bool = False
    audited: bool = False
    whole_server: bool = False
    unrestricted: bool = False
    light: bool = False
    waits: bool = False
    causes: Causes = field(default_factory=dict)

    @property
    def statuses(self) -> dict[StatusCode, str]:
        """All status codes with their causes, by number."""
        found = {**ANY_CALL, **self.causes}
        return dict(sorted(found.items(), key=lambda each: int(each[0].value[0])))

    @property
    def is_unrestricted(self) -> bool:
        """True if tokens for some models may not call it."""
        return self.unrestricted or (self.whole_server and not self.reads)


def _described(method: MethodDescriptor) -> Rpc:
    traits = traits_of(method)
    reads = is_reading(method)
    own = {StatusCode[code_pb2.Code.Name(each.code)]: each.cause for each in traits.statuses}
    return Rpc(
        f"{method.containing_service.name}/{method.name}",
        frozenset({OPERATOR, *(ROLES[role - 1] for role in traits.roles)}),
        reads,
        traits.audited,
        traits.whole_server,
        traits.unrestricted,
        traits.light,
        traits.waits,
        own if reads or traits.whole_server else {**ANY_WRITE, **own},
    )


RPCS: Final[Mapping[str, Rpc]] = {
    path: _described(method)
    for path, method in {**METHODS, **methods_of(open_inference_pb2.DESCRIPTOR)}.items()
}
"""The RPCs by their paths, ``/{service}/{method}``."""


def rpc_of(path: str) -> Rpc:
    """Return the description of a method; a method without one is for operators only."""
    return RPCS.get(path) or Rpc(path.rpartition(".")[2])
