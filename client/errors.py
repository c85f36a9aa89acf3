"""One small hierarchy of errors: every exception of a call is a :class:`QuercusError`.

Attributes and prunings check themselves when they are created. They raise `quercus.belief.errors.InvalidInput`, which,
like :class:`InvalidArgument`, is a ``ValueError``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from quercus import __version__
from quercus.client.unreachable import explain, is_rejected, is_transport
from quercus.v1 import instance_pb2

if TYPE_CHECKING:
    from quercus.client.unseen import PushReport
    from quercus.client.values import Value
    from quercus.specification.written_labels import Label


@dataclass(frozen=True)
class FieldViolation:
    """One invalid field of a request.

    Parameters
    ----------
    field
        Path of the field, as in ``specification.alpha``.
    reason
        The fault, with the value and the bound.
    """

    field: str
    reason: str


class QuercusError(Exception):
    """Any failure of a call.

    Parameters
    ----------
    message
        Description of the error for people.
    violations
        The invalid fields, if the server (or the client, before sending) can name them.

    Attributes
    ----------
    report : PushReport or None
        On errors of ``push``: the progress when it failed.
    row : int or None
        On errors of ``push``: the position of the refused row, counted from 0 in the given order.
    retry_s : float or None
        Seconds after which to retry, if the server did nothing and suggests another attempt.
    is_permanent : bool
        Whether retrying cannot help until the server is changed: its store is damaged, or it does not know the call.
    """

    def __init__(self, message: str, violations: tuple[FieldViolation, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.violations = violations
        self.report: PushReport | None = None
        self.row: int | None = None
        self.retry_s: float | None = None
        self.is_permanent = False

    def __str__(self) -> str:
        parts = [self.message]
        parts += [f"{v.field}: {v.reason}" for v in self.violations if v.reason not in self.message]
        if self.report is not None:
            parts.append(self.report.acknowledged_text)
        return "; ".join(parts)


@dataclass(frozen=True)
class RejectedRow:
    """A row that was not stored, with the reason.

    Attributes
    ----------
    position : counted from 0 in the given order; ``None`` if an outbox sent the row later.
    id : its id; empty if none was given, or it is not text.
    error : the error; it names the position, the attribute, the value and the bound.
    values : the values by attribute, as sent; ``None`` if the row could not be sent.
    label : its label, as sent.
    """

    position: int | None
    id: str
    error: QuercusError
    values: Mapping[str, Value] | None = None
    label: Label = None

    @property
    def reason(self) -> str:
        """The fault, with the attribute but without the position."""
        if not self.error.violations:
            return self.error.message
        fault = self.error.violations[0]
        name = fault.field.partition("].")[2]
        return f"{name}: {fault.reason}" if name else fault.reason


@dataclass(frozen=True)
class RejectedRows:
    """Rows that were not stored, although the others of their message were."""

    rows: tuple[RejectedRow, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[RejectedRow]:
        return iter(self.rows)


class InvalidArgument(QuercusError, ValueError):  # noqa: N818  (the name of the status code)
    """A request, a row or a label is wrong; sending it again will not help."""


class NotFound(QuercusError):  # noqa: N818
    """No such model, instance, query or tree version."""


class AlreadyExists(QuercusError):  # noqa: N818
    """The name is taken, or the id exists with other content."""


class FailedPrecondition(QuercusError):  # noqa: N818
    """Right in form, but not now: an expired lease, an answered query, no tree yet."""


class Unauthenticated(QuercusError):  # noqa: N818
    """The server requires a token, and the call has none, or an invalid one."""


class PermissionDenied(QuercusError):  # noqa: N818
    """The token does not allow the call."""


class ResourceExhausted(QuercusError):  # noqa: N818
    """The call exceeds a limit, which the message names."""


class BufferFull(QuercusError):  # noqa: N818
    """The buffer of rows that wait for the server is full; none of the new rows was added."""


class Unavailable(QuercusError):  # noqa: N818
    """No server answers at the address, or it cannot answer yet."""


class DeadlineExceeded(QuercusError):  # noqa: N818
    """No answer within the time given."""


class Cancelled(QuercusError):  # noqa: N818
    """The call was cancelled, by this side or by a server that stops."""


class ServerError(QuercusError):
    """The server failed (INTERNAL, UNKNOWN), its store is damaged (DATA_LOSS), or it does not know the call."""


_BY_CODE: dict[grpc.StatusCode, type[QuercusError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgument,
    grpc.StatusCode.OUT_OF_RANGE: InvalidArgument,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExists,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPrecondition,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhausted,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.ABORTED: Unavailable,  # something changed concurrently: the same call may succeed
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.CANCELLED: Cancelled,
}

_BY_NUMBER = {code.value[0]: code for code in grpc.StatusCode}
_TOO_LARGE = "message larger than max"
"""gRPC's words for a message beyond a bound, on either side."""
_LASTING = frozenset({grpc.StatusCode.DATA_LOSS, grpc.StatusCode.UNIMPLEMENTED})


def invalid(field: str, reason: str) -> InvalidArgument:
    """Return an :class:`InvalidArgument` about one field, raised before anything is sent."""
    return InvalidArgument(f"{field}: {reason}", (FieldViolation(field, reason),))


def from_code(number: int, message: str, field: str) -> QuercusError:
    """Return the exception for a ``google.rpc.Code`` within a message."""
    violations = (FieldViolation(field, message),) if field else ()
    failed = kind_of_code(number)(message, violations)
    failed.is_permanent = _BY_NUMBER.get(number) in _LASTING
    return failed


def kind_of_code(number: int) -> type[QuercusError]:
    """Return the class of the exceptions for a ``google.rpc.Code``."""
    code = _BY_NUMBER.get(number)
    return ServerError if code is None else _BY_CODE.get(code, ServerError)


def refused_row(
    kind: type[QuercusError], field: str, reason: str, row: int, position: int | None
) -> QuercusError:
    """Return the exception for a row of a message.

    Parameters
    ----------
    kind
        Its class.
    field, reason
        The invalid field of the message, such as ``rows[7].pressure``, and its fault.
    row
        Position of the row in the message.
    position
        Position in the given order, which the exception names instead; ``None`` if unknown.
    """
    place = field.replace(f"[{row}]", "" if position is None else f"[{position}]", 1)
    failed = kind(f"{place}: {reason}", (FieldViolation(place, reason),))
    failed.row = position
    return failed


def from_rpc(error: grpc.RpcError, address: str) -> QuercusError:
    """Return the exception for a failed call (synchronous or asyncio).

    Parameters
    ----------
    error
        The error that grpc raised.
    address
        The server's address, named in the error if no server answers there.
    """
    call: Any = error
    code, details = call.code(), call.details() or "no details"
    if code is grpc.StatusCode.UNAVAILABLE and is_transport(details):
        details = explain(details, address)
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        details = f"{address} did not answer in time ({details})"
    kind = _BY_CODE.get(code, ServerError)
    if code is grpc.StatusCode.CANCELLED and is_rejected(details):
        kind, details = Unavailable, f"{address} has too many waiting calls: call again later"
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and _TOO_LARGE in details:
        kind = InvalidArgument  # the message itself is at fault, and would always be refused
    if code is grpc.StatusCode.UNIMPLEMENTED:
        details = (
            f"{address} does not know this call: its version differs from this client's ({__version__}), or it is no "
            f"quercus server at all ({details})"
        )
    elif kind is ServerError:
        details = f"the server failed: {code.name} {details}"
    failed = kind(details)
    failed.is_permanent = code in _LASTING
    _read_details(call, failed)
    return failed


def _read_details(call: Any, failed: QuercusError) -> None:
    """Read the invalid fields, the row, and the seconds after which to try again."""
    try:
        status = rpc_status.from_call(call)
    except ValueError:  # details that contradict the status are not ours: keep the code and the message
        return
    violations: list[FieldViolation] = []
    for detail in status.details if status is not None else ():
        bad, retry, refused = (
            error_details_pb2.BadRequest(),
            error_details_pb2.RetryInfo(),
            instance_pb2.RefusedRow(),
        )
        if detail.Unpack(bad):
            violations += [FieldViolation(v.field, v.description) for v in bad.field_violations]
        elif detail.Unpack(retry):
            failed.retry_s = retry.retry_delay.ToMilliseconds() / 1000
        elif detail.Unpack(refused):
            failed.row = refused.row
    failed.violations = tuple(violations)
