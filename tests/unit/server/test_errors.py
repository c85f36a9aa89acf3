"""Every exception of the domain has one status, with details; a bug has none."""

import errno
from base64 import b64encode
from urllib.parse import quote

import grpc
import pytest
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from quercus.belief.errors import InvalidInput, field_prefix
from quercus.server.wire.errors import Unavailable, to_failure
from quercus.storage import errors as storage

CASES = [
    (InvalidInput("alpha", "is 2, must lie in [0, 1]"), grpc.StatusCode.INVALID_ARGUMENT),
    (storage.NotFound("model", "m"), grpc.StatusCode.NOT_FOUND),
    (storage.AlreadyExists("instance", "i"), grpc.StatusCode.ALREADY_EXISTS),
    (storage.FailedPrecondition("already answered"), grpc.StatusCode.FAILED_PRECONDITION),
    (storage.BeyondLog("min_sequence", 9, "m", 3), grpc.StatusCode.FAILED_PRECONDITION),
    (storage.Stale("old"), grpc.StatusCode.ABORTED),
    (storage.CorruptStore("damaged"), grpc.StatusCode.DATA_LOSS),
    (storage.StoreBusy("busy"), grpc.StatusCode.UNAVAILABLE),
    (storage.ReadOnlyStore("read-only"), grpc.StatusCode.FAILED_PRECONDITION),
    (storage.ReadOnlyUntilRestart("opened read-only"), grpc.StatusCode.FAILED_PRECONDITION),
    (storage.InconsistentHistory("remarks"), grpc.StatusCode.UNAVAILABLE),
    (storage.UnknownSchema("q.db", "9", "1"), grpc.StatusCode.FAILED_PRECONDITION),
    (storage.NoSpace("disk full"), grpc.StatusCode.RESOURCE_EXHAUSTED),
    (storage.StoreError("disk gone"), grpc.StatusCode.UNAVAILABLE),
    (DecodeError("Wire format was corrupt"), grpc.StatusCode.DATA_LOSS),
    (Unavailable("later"), grpc.StatusCode.UNAVAILABLE),
]


@pytest.mark.parametrize(("error", "code"), CASES)
def test_codes(error: Exception, code: grpc.StatusCode) -> None:
    failure = to_failure(error)
    assert failure is not None
    assert failure.code is code
    (key, data), *_ = failure.metadata
    status = status_pb2.Status.FromString(data)
    assert (key, status.message) == ("grpc-status-details-bin", failure.message)
    assert status.code == code.value[0]


NO_ARENA = "Error parsing message with type 'quercus.v1.Tree': Arena alloc failed"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        DecodeError(NO_ARENA),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        storage.NoSpace("disk full"),
    ],
)
def test_what_there_is_no_room_for_may_be_tried_again(error: Exception) -> None:
    failure = to_failure(error)
    assert failure is not None
    assert failure.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    retry = error_details_pb2.RetryInfo()
    assert status_pb2.Status.FromString(failure.metadata[0][1]).details[0].Unpack(retry)
    assert retry.retry_delay.ToSeconds() == 1


def test_a_store_that_may_not_be_written_is_tried_again_too() -> None:
    failure = to_failure(storage.ReadOnlyStore("read-only"))
    assert failure is not None
    retry = error_details_pb2.RetryInfo()
    assert status_pb2.Status.FromString(failure.metadata[0][1]).details[0].Unpack(retry)


def test_what_stays_read_only_is_not_tried_again() -> None:
    failure = to_failure(storage.ReadOnlyUntilRestart("opened read-only"))
    assert failure is not None
    assert not status_pb2.Status.FromString(failure.metadata[0][1]).details


def test_every_storage_error_is_mapped() -> None:
    met_by_no_call = {storage.Fenced, storage.ConflictingRows, storage.ModelReplaced}
    mapped = {type(error) for error, _ in CASES} | met_by_no_call
    pending = storage.StorageError.__subclasses__()
    while pending:
        kind = pending.pop()
        assert kind in mapped, kind
        pending += kind.__subclasses__()


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), RuntimeError("x"), AssertionError("x")])
def test_bugs_have_no_status_of_their_own(error: Exception) -> None:
    assert to_failure(error) is None


def test_field_violation() -> None:
    failure = to_failure(InvalidInput("rows.packed.values[17]", "is inf, must be finite"))
    assert failure is not None
    detail = error_details_pb2.BadRequest()
    assert status_pb2.Status.FromString(failure.metadata[0][1]).details[0].Unpack(detail)
    (violation,) = detail.field_violations
    assert (violation.field, violation.description) == ("rows.packed.values[17]", "is inf, must be finite")


def test_resource() -> None:
    failure = to_failure(storage.NotFound("model", "wine"))
    assert failure is not None
    detail = error_details_pb2.ResourceInfo()
    assert status_pb2.Status.FromString(failure.metadata[0][1]).details[0].Unpack(detail)
    assert (detail.resource_type, detail.resource_name) == ("model", "wine")


@pytest.mark.parametrize("letter", ["a", "é", "中", "🎄"])
def test_messages_stay_below_the_limit_of_metadata(letter: str) -> None:
    for error in (
        InvalidInput(letter * 100_000, letter * 100_000),
        storage.NotFound("model", letter * 100_000),
    ):
        failure = to_failure(error)
        assert failure is not None
        sent = len(quote(failure.message, safe="")) + len(b64encode(failure.metadata[0][1]))
        assert sent < 8000
        assert failure.message.endswith("…")
        assert len(failure.message.encode()) >= 790


def test_prefix() -> None:
    with pytest.raises(InvalidInput, match=r"^a\.b: c$"), field_prefix("a"):
        raise InvalidInput("b", "c")
