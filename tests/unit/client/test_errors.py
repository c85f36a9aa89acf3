"""Statuses become exceptions that say what happened; nothing of the wire shows."""

from typing import Any

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from quercus.client import errors
from quercus.client.retrying import is_transient


class Failed(grpc.RpcError):
    """An error of grpc, as far as the client reads it."""

    def __init__(
        self, code: grpc.StatusCode, details: str | None, fields: dict[str, str] | None = None
    ) -> None:
        super().__init__()
        self.status, self.said, self._metadata = code, details, None
        if fields is not None:
            bad = error_details_pb2.BadRequest()
            for name, reason in fields.items():
                bad.field_violations.add(field=name, description=reason)
            packed = any_pb2.Any()
            packed.Pack(bad)
            status = status_pb2.Status(code=code.value[0], message=details or "", details=[packed])
            self._metadata = (("grpc-status-details-bin", status.SerializeToString()),)

    def code(self) -> grpc.StatusCode:
        return self.status

    def details(self) -> str | None:
        return self.said

    def trailing_metadata(self) -> Any:
        return self._metadata


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, errors.InvalidArgument),
        (grpc.StatusCode.NOT_FOUND, errors.NotFound),
        (grpc.StatusCode.ALREADY_EXISTS, errors.AlreadyExists),
        (grpc.StatusCode.FAILED_PRECONDITION, errors.FailedPrecondition),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors.ResourceExhausted),
        (grpc.StatusCode.UNAVAILABLE, errors.Unavailable),
        (grpc.StatusCode.ABORTED, errors.Unavailable),
        (grpc.StatusCode.DEADLINE_EXCEEDED, errors.DeadlineExceeded),
        (grpc.StatusCode.CANCELLED, errors.Cancelled),
        (grpc.StatusCode.INTERNAL, errors.ServerError),
        (grpc.StatusCode.DATA_LOSS, errors.ServerError),
        (grpc.StatusCode.UNIMPLEMENTED, errors.ServerError),
    ],
)
def test_each_status_has_its_exception(code: grpc.StatusCode, kind: type[errors.QuercusError]) -> None:
    error = errors.from_rpc(Failed(code, "what happened"), "host:1")
    assert type(error) is kind
    assert "what happened" in str(error)


def test_field_violations_are_read_and_shown() -> None:
    failed = Failed(grpc.StatusCode.INVALID_ARGUMENT, "bad model", {"alpha": "is 2", "budget": "is -1"})
    error = errors.from_rpc(failed, "host:1")
    assert [(v.field, v.reason) for v in error.violations] == [("alpha", "is 2"), ("budget", "is -1")]
    assert str(error) == "bad model; alpha: is 2; budget: is -1"
    assert isinstance(error, ValueError)


def test_a_server_that_is_not_there_is_named() -> None:
    details = "failed to connect to all addresses; last error: UNKNOWN: Connection refused"
    error = errors.from_rpc(Failed(grpc.StatusCode.UNAVAILABLE, details), "example:50051")
    assert str(error) == "no server answers at example:50051"


def test_a_message_that_is_too_large_is_no_bound_that_passes() -> None:
    details = "SERVER: Received message larger than max (20000000 vs. 16777216)"
    error = errors.from_rpc(Failed(grpc.StatusCode.RESOURCE_EXHAUSTED, details), "host:1")
    assert (type(error), str(error)) == (errors.InvalidArgument, details)
    assert not is_transient(error)


def test_details_that_contradict_the_status_are_left_alone() -> None:
    failed = Failed(grpc.StatusCode.NOT_FOUND, "no such model", {"name": "x"})
    failed.said = "another message"
    assert errors.from_rpc(failed, "host:1").violations == ()
