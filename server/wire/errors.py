"""Conversion of domain exceptions to gRPC statuses with ``google.rpc`` details."""

from __future__ import annotations

import errno
import math
import re
from dataclasses import dataclass, replace
from typing import Any, Final

import grpc
from google.protobuf import any_pb2
from google.protobuf.message import DecodeError, EncodeError, Message
from google.rpc import code_pb2, error_details_pb2, status_pb2

from quercus.belief.errors import InvalidInput
from quercus.labelling.errors import UnreadableLabel
from quercus.server.wire.limits import MAX_ERROR_BYTES
from quercus.server.wire.snapshots import UnreadableSnapshotError
from quercus.storage import (
    AlreadyExists,
    BeyondLog,
    CorruptStore,
    FailedPrecondition,
    NoSpace,
    NotFound,
    ReadOnlyStore,
    ReadOnlyUntilRestart,
    Stale,
    StorageError,
    UnknownSchema,
)
from quercus.v1 import instance_pb2

_CODES: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}
DETAILS_KEY = "grpc-status-details-bin"
PUSHBACK_KEY = "grpc-retry-pushback-ms"
NO_MEMORY: Final = "the server has no memory left for this: send it again, or less at once"
MEMORY_RETRY_S: Final = 1.0
WRITE_RETRY_S: Final = 1.0
_NO_MEMORY: Final = re.compile(r"Arena alloc|[Oo]ut of memory|can't start new thread")
"""Messages of protobuf and of threads when memory runs out."""


class Unavailable(Exception):  # noqa: N818 - named after the status
    """The request is valid and may be sent again, for example because the tree has not grown far enough yet."""


class Unauthenticated(Exception):  # noqa: N818 - named after the status
    """The call has no token, or an invalid one."""


class PermissionDenied(Exception):  # noqa: N818 - named after the status
    """The token does not allow the call; the message says what would."""


class ResourceExhausted(Exception):  # noqa: N818 - named after the status
    """A limit does not allow the call at this moment.

    Attributes
    ----------
    retry_s : seconds after which another attempt makes sense; None if something else must change first.
    """

    def __init__(self, reason: str, retry_s: float | None) -> None:
        super().__init__(reason)
        self.retry_s = retry_s


class BadStart(Exception):  # noqa: N818 - reads as what happened
    """A program cannot start, for example because its configuration is invalid; the message is for the user."""


@dataclass(frozen=True)
class GrpcStatus:
    """A status as gRPC sends it.

    Attributes
    ----------
    code : the status code.
    message : one sentence for people, at most ``MAX_ERROR_BYTES`` long.
    metadata : trailing metadata with the serialised ``google.rpc.Status``.
    """

    code: grpc.StatusCode
    message: str
    metadata: tuple[tuple[str, str | bytes], ...]


def to_failure(error: BaseException) -> GrpcStatus | None:
    """Return the status of a domain exception; None for an unexpected one, which is a bug."""
    if is_out_of_memory(error):
        return _exhausted_status(ResourceExhausted(NO_MEMORY, MEMORY_RETRY_S))
    match error:
        case InvalidInput():
            return grpc_status(
                code_pb2.INVALID_ARGUMENT, str(error), _bad_request(error), *_refused_row(error)
            )
        case NotFound():
            return grpc_status(code_pb2.NOT_FOUND, str(error), _resource_info(error))
        case AlreadyExists():
            return grpc_status(
                code_pb2.ALREADY_EXISTS, str(error), _resource_info(error), *_refused_row(error)
            )
        case BeyondLog():
            reason = InvalidInput(error.field, error.reason.removeprefix(f"{error.field}: "))
            return grpc_status(code_pb2.FAILED_PRECONDITION, str(error), _bad_request(reason))
        case ReadOnlyUntilRestart():
            return grpc_status(code_pb2.FAILED_PRECONDITION, str(error))
        case ReadOnlyStore():  # the server tries to write again after this time
            return grpc_status(code_pb2.FAILED_PRECONDITION, str(error), _retry_in(WRITE_RETRY_S))
        case FailedPrecondition() | UnknownSchema():
            return grpc_status(code_pb2.FAILED_PRECONDITION, str(error))
        case NoSpace():  # the server tries to write again after this time
            return _exhausted_status(ResourceExhausted(str(error), WRITE_RETRY_S))
        case CorruptStore() | UnreadableLabel():
            return grpc_status(code_pb2.DATA_LOSS, str(error))
        case DecodeError():  # from a stored message, since requests are read elsewhere
            return grpc_status(code_pb2.DATA_LOSS, f"stored data cannot be read ({error})")
        case Stale():
            return grpc_status(
                code_pb2.ABORTED, "the model's nominal values changed meanwhile: send it again"
            )
        case ResourceExhausted():
            return _exhausted_status(error)
        case Unauthenticated():
            return grpc_status(code_pb2.UNAUTHENTICATED, str(error))
        case PermissionDenied():
            return grpc_status(code_pb2.PERMISSION_DENIED, str(error))
        case UnreadableSnapshotError():
            return grpc_status(
                code_pb2.UNAVAILABLE,
                f"{error}; the newest tree is grown again soon, older ones cannot be read any more",
            )
        case Unavailable() | StorageError():
            return grpc_status(code_pb2.UNAVAILABLE, str(error))
        case _:
            return None


def error_fields(error: Exception) -> dict[str, Any] | None:
    """Return ``code``, ``message`` and ``field`` of an error, for messages that contain one; None for a bug."""
    failure = to_failure(error)
    if failure is None:
        return None
    field = error.field if isinstance(error, InvalidInput) else ""
    return {"code": failure.code.value[0], "message": failure.message, "field": field}


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception, or one of its causes, means that memory ran out."""
    told: BaseException | None = error
    while told is not None:
        if isinstance(told, MemoryError) or (isinstance(told, OSError) and told.errno == errno.ENOMEM):
            return True
        if isinstance(told, DecodeError | EncodeError | RuntimeError) and _NO_MEMORY.search(str(told)):
            return True
        told = told.__cause__
    return False


def _exhausted_status(error: ResourceExhausted) -> GrpcStatus:
    """Return a status that says when to try again, as a detail and as the pushback that gRPC clients obey."""
    if error.retry_s is None:
        return grpc_status(code_pb2.RESOURCE_EXHAUSTED, str(error))
    text = f"{error}; try again in {error.retry_s:.2g} s"
    found = grpc_status(code_pb2.RESOURCE_EXHAUSTED, text, _retry_in(error.retry_s))
    return replace(found, metadata=(*found.metadata, (PUSHBACK_KEY, str(math.ceil(1000 * error.retry_s)))))


def _retry_in(seconds: float) -> error_details_pb2.RetryInfo:
    info = error_details_pb2.RetryInfo()
    info.retry_delay.FromMilliseconds(math.ceil(1000 * seconds))
    return info


def grpc_status(code: int, message: str, *details: Message) -> GrpcStatus:
    """Build a ``GrpcStatus`` from a ``google.rpc.Code`` number, a message and its details."""
    text = shorten_text(message)
    status = status_pb2.Status(code=code, message=text)
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    return GrpcStatus(_CODES[code], text, ((DETAILS_KEY, status.SerializeToString()),))


def _bad_request(error: InvalidInput) -> error_details_pb2.BadRequest:
    violation = error_details_pb2.BadRequest.FieldViolation(
        field=shorten_text(error.field), description=shorten_text(error.reason)
    )
    return error_details_pb2.BadRequest(field_violations=[violation])


def _refused_row(error: Exception) -> list[instance_pb2.RefusedRow]:
    """Return the row because of which a batch is refused, if it is a single one."""
    row = getattr(error, "row", None)
    return [] if row is None else [instance_pb2.RefusedRow(row=row)]


def _resource_info(error: NotFound | AlreadyExists) -> error_details_pb2.ResourceInfo:
    return error_details_pb2.ResourceInfo(
        resource_type=error.resource,
        resource_name=shorten_text(error.name),
        description=shorten_text(str(error)),
    )


def shorten_text(text: str, most: int = MAX_ERROR_BYTES) -> str:
    """Cut a text to ``most`` bytes of UTF-8, which halves of surrogate pairs do not have: they are escaped."""
    data = text.encode(errors="backslashreplace")
    if len(data) <= most:
        return data.decode()
    return data[: most - 3].decode(errors="ignore") + "…"
