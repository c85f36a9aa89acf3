"""The limits of gRPC: each is an option that the installed library has, and is set once."""

from pathlib import Path

from grpc._cython import cygrpc  # type: ignore[attr-defined]

from quercus.server.gate.grpc_limits import GRPC_LIMITS, grpc_options


def test_the_library_knows_every_option() -> None:
    """It ignores others without a word, and has no call that names them: its file holds the names."""
    library = Path(cygrpc.__file__).read_bytes()
    assert [each.option for each in GRPC_LIMITS if each.option.encode() + b"\0" not in library] == []


def test_every_option_is_set_once_and_has_a_reason() -> None:
    options = dict(grpc_options(max_message_bytes=5, max_connections=7))
    assert list(options) == [each.option for each in GRPC_LIMITS]
    assert {options[each.option] for each in GRPC_LIMITS if each.value is None} == {5, 7, 0}
    assert all(each.reason.endswith(".") for each in GRPC_LIMITS)


def test_no_call_is_rejected_at_random() -> None:
    """Between a soft and a hard limit gRPC draws lots."""
    options = dict(grpc_options(1, 1))
    for soft, hard in (
        ("grpc.server.max_pending_requests", "grpc.server.max_pending_requests_hard_limit"),
        ("grpc.max_metadata_size", "grpc.absolute_max_metadata_size"),
    ):
        assert options[soft] == options[hard]
