"""Bounds of a server that is running, and what a caller is told who passes them."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from quercus.client import Client, InvalidArgument, Nominal, Numeric, ResourceExhausted, Specification
from quercus.server.gate import throttle
from quercus.v1 import model_pb2, query_pb2, tree_pb2

SPECIFICATION = Specification([Nominal("X", "ab")], ["o", "s"])


def test_calls_of_one_caller_are_bounded(start_live: Callable[..., Any], tmp_path: Path, tools: Any) -> None:
    live = start_live(tmp_path / "store.db", calls_per_s=5.0, grower=False)
    live.api.create("m")
    with tools.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "more than 5 calls a second; try again in"):
        [live.api.get("m") for _ in range(20)]
    with Client(live.server.address) as client:  # waits as long as it is told, and calls again
        assert [client.get_model("m").name for _ in range(8)] == ["m"] * 8


def test_a_caller_beyond_its_rate_cannot_fill_the_audit_log(
    start_live: Callable[..., Any], tmp_path: Path
) -> None:
    live = start_live(tmp_path / "store.db", calls_per_s=2.0, grower=False)
    for _ in range(40):
        with pytest.raises(grpc.RpcError):
            live.api.models.DeleteModel(model_pb2.DeleteModelRequest(name="models/none"))
    found = [each.outcome for each in live.server.core.store.access.audit()]
    assert "RESOURCE_EXHAUSTED" in found
    assert len(found) < 20, found


def test_messages_of_a_stream_count_as_calls(
    start_live: Callable[..., Any], tmp_path: Path, tools: Any
) -> None:
    live = start_live(tmp_path / "store.db", calls_per_s=5.0, grower=False)
    live.api.create("m", attributes=[tools.nominal("X", "ab")])
    batches = [tools.batch("m", [[0]], ids=[str(i)]) for i in range(30)]
    with tools.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "more than 5 calls a second"):
        live.api.push(*batches)
    assert 0 < live.server.core.store.get_model("m").instance_count < 30


def test_streams_of_one_caller_are_bounded(
    start_live: Callable[..., Any], tmp_path: Path, tools: Any
) -> None:
    live = start_live(tmp_path / "store.db", max_streams=3)
    live.api.create("m")
    watches = [live.api.trees.WatchTree(tree_pb2.WatchTreeRequest(model="models/m")) for _ in range(3)]
    for watch in watches:
        next(watch)
    with tools.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "has 3 streams open, at most 3 are allowed"):
        next(live.api.trees.WatchTree(tree_pb2.WatchTreeRequest(model="models/m")))
    assert live.api.get("m").name == "models/m"
    for watch in watches:
        watch.cancel()


def test_models_are_bounded(start_live: Callable[..., Any], tmp_path: Path) -> None:
    live = start_live(tmp_path / "store.db", max_models=2, grower=False)
    with Client(live.server.address) as client:
        for name in "ab":
            client.create_model(name, SPECIFICATION)
        with pytest.raises(ResourceExhausted, match="there are 2 models, the most allowed: delete one"):
            client.create_model("c", SPECIFICATION)
        client.delete_model("a")
        client.create_model("c", SPECIFICATION)


def test_work_is_refused_while_memory_is_short_and_status_is_not(
    start_live: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used, looks = [2], threading.Semaphore(0)

    def resident() -> int:
        looks.release()
        return used[0]

    monkeypatch.setattr(throttle, "resident_bytes", resident)
    monkeypatch.setattr(throttle, "MEMORY_POLL_S", 0.01)
    live = start_live(tmp_path / "store.db", max_memory_bytes=1, grower=False)

    def await_look() -> None:
        for _ in range(2):  # the first may have begun before
            assert looks.acquire(timeout=30)

    await_look()
    with Client(live.server.address, outage_s=1) as client:
        with pytest.raises(ResourceExhausted, match=r"max_memory_bytes: .*try again in 1 s"):
            client.create_model("m", SPECIFICATION)
        assert client.status().memory_bytes > 1
        used[0] = 0
        client.create_model("m", SPECIFICATION)  # again after a second, if nobody looked yet


def _refused(live: Any, specification: Specification, text: str) -> None:
    with Client(live.server.address) as client, pytest.raises(InvalidArgument, match=text):
        client.create_model("refused", specification)


def test_what_a_model_holds_is_bounded(start_live: Callable[..., Any], tmp_path: Path) -> None:
    live = start_live(
        tmp_path / "store.db",
        max_attributes=2,
        max_values=3,
        max_classes=3,
        max_name_characters=4,
        grower=False,
    )
    two = ["o", "s"]
    _refused(
        live,
        Specification([Numeric(n) for n in "abc"], two),
        r"attributes: has 3 entries, at most 2 are allowed \(max_attributes\)",
    )
    _refused(
        live, Specification([Numeric("a")], list("abcd")), r"classes: has 4 entries.* 3 .*\(max_classes\)"
    )
    _refused(
        live, Specification([Nominal("a", list("pqrs"))], two), r"values: has 4 values.* 3 .*\(max_values\)"
    )
    for specification in (
        Specification([Numeric("abcde")], two),
        Specification([Nominal("a", ["abcde"])], two),
        Specification([Numeric("a")], ["o", "abcde"]),
    ):
        _refused(live, specification, r"has 5 characters, at most 4 are allowed \(max_name_characters\)")
    with Client(live.server.address) as client:
        nominal = Nominal("a", ["p", "q"], overflow="refuse")
        client.create_model("m", Specification([nominal, Numeric("b")], ["o", "s", "x"]))
        client.push("m", [["r", 1.0]])
        with pytest.raises(InvalidArgument, match="has 3 values, the most it may"):
            client.push("m", [["s", 1.0]])
        with pytest.raises(InvalidArgument, match="must be a value of 1 to 4 characters"):
            client.push("m", [["abcde", 1.0]])


TOTAL = {"name": "total-uncertainty", "folds": 1000}
FOREST = {"name": "forest", "trees": 1000}


@pytest.mark.parametrize(
    ("learner", "classes", "words"),
    [
        (
            FOREST | {"base": TOTAL},
            2,
            r"base\.folds: makes the learner grow 11,000 trees to learn once .1,000 for its trees",
        ),
        (
            TOTAL,
            3,
            r"specification\.learner\.folds: .* 30,003 trees .*\(max_learning_cost\)",
        ),
        (
            FOREST | {"base": TOTAL | {"lam": 0.5}},
            11,
            r"specification\.learner\.trees: .* 11,000 trees to learn once \(11,000 for its trees\)",
        ),
        (FOREST | {"base": "total-uncertainty"}, 3, ""),  # large, and not too large
        ({"name": "forest", "base": "total-uncertainty"}, 64, ""),
    ],
)
def test_what_a_learner_may_cost_is_bounded(learner: Any, classes: int, words: str, live: Any) -> None:
    specification = Specification(
        [Numeric("a")], [f"c{k}" for k in range(classes)], learner=_combining_means(learner)
    )
    if words:
        _refused(live, specification, words)
        return
    with Client(live.server.address) as client:
        client.create_model("costly", specification)
        client.delete_model("costly")


def _combining_means(learner: Any) -> Any:
    """Dempster's rule is refused above 16 classes."""
    if learner["name"] == "total-uncertainty":
        return learner | {"combine": "mean"}
    base = learner["base"] if isinstance(learner["base"], dict) else {"name": learner["base"]}
    return learner | {"base": _combining_means(base)}


def test_rows_of_a_batch_are_bounded(start_live: Callable[..., Any], tmp_path: Path) -> None:
    live = start_live(tmp_path / "store.db", max_batch_rows=5)
    with Client(live.server.address) as client:
        client.create_model("m", SPECIFICATION)
        with pytest.raises(InvalidArgument, match=r"has 6 rows, must have 1 to 5 \(max_batch_rows\)"):
            client.push("m", [["a"]] * 6)
        assert client.push("m", [["a"]] * 6, batch_rows=5).rows == 6
        client.wait_grown("m")
        assert len(client.classify("m", [["a"]] * 5).labels) == 5
        with pytest.raises(InvalidArgument, match=r"has 6 rows, must have 1 to 5 \(max_batch_rows\)"):
            client.classify("m", [["a"]] * 6)


def test_queries_of_one_call_or_stream_are_bounded(
    start_live: Callable[..., Any], tmp_path: Path, tools: Any
) -> None:
    live = start_live(tmp_path / "store.db", max_leases=2, grower=False)
    live.api.create("m")
    request = query_pb2.LeaseQueriesRequest(model="models/m", labeller="ann", max_queries=3)
    with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, "is 3, must lie in [0, 2]"):
        live.api.queries.LeaseQueries(request)
    grants = [query_pb2.StreamQueriesRequest(model="models/m", labeller="ann", credits=c) for c in (1, 2)]
    with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, "adds 2 to 1, must not exceed 2 in all"):
        list(live.api.queries.StreamQueries(iter(grants)))


def test_a_push_goes_on_however_small_its_window_is(start_live: Callable[..., Any], tmp_path: Path) -> None:
    live = start_live(tmp_path / "store.db", push_window=1, grower=False)
    with Client(live.server.address) as client:
        client.create_model("m", SPECIFICATION)
        assert client.push("m", [["a"]] * 100, batch_rows=1).stored == 100
