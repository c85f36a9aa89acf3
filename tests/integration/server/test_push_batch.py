"""A batch pushed by a call of its own: stored, acknowledged and refused as on a stream."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from quercus.proto.v1 import instance_pb2, model_pb2


def alone(tools: Any, model: str, rows: Any, **fields: Any) -> instance_pb2.PushBatchRequest:
    return instance_pb2.PushBatchRequest(model=f"models/{model}", rows=tools.packed(rows), **fields)


def test_it_is_stored_and_known_again(api: Any, tools: Any) -> None:
    api.create("pb-alone")
    push = api.instances.PushBatch
    first = push(alone(tools, "pb-alone", [[0, 0], [1, 1]], batch_id="b"), timeout=60)
    assert (first.batch_id, first.committed_sequence, first.rows_stored, first.rows_known) == ("b", 2, 2, 0)
    again = push(alone(tools, "pb-alone", [[0, 0], [1, 1]], batch_id="b"), timeout=60)
    assert (again.committed_sequence, again.rows_stored, again.rows_known) == (2, 0, 2)
    (streamed,) = api.push(tools.batch("pb-alone", [[0, 0], [1, 1]], batch_id="b"))
    assert (streamed.rows_known, streamed.model_uid) == (2, again.model_uid)
    with tools.refused(grpc.StatusCode.ALREADY_EXISTS, "b-0"):
        push(alone(tools, "pb-alone", [[1, 0], [1, 1]], batch_id="b"), timeout=60)
    with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, field="rows.packed.values"):
        push(alone(tools, "pb-alone", [[0, 0, 0]]), timeout=60)
    with tools.refused(grpc.StatusCode.NOT_FOUND, "pb-nobody"):
        push(alone(tools, "pb-nobody", [[0, 0]]), timeout=60)


def test_new_values_of_many_at_once_all_get_their_number(api: Any, tools: Any) -> None:
    from quercus.proto.v1 import values_pb2

    api.create("pb-words")

    def push(word: str) -> int:
        row = values_pb2.NamedRow(values={"X": values_pb2.NamedValue(nominal=word)})
        rows = values_pb2.Rows(named=values_pb2.NamedRows(rows=[row]))
        request = instance_pb2.PushBatchRequest(model="models/pb-words", rows=rows, ids=[word])
        return api.instances.PushBatch(request, timeout=60).rows_stored

    words = [f"w{number}" for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(push, words)) == len(words)
    learned = list(api.get("pb-words").specification.attributes[0].nominal.values)
    assert learned[:3] == ["a", "b", "c"]
    assert sorted(learned[3:]) == sorted(words)


def test_rows_of_a_model_that_is_gone_are_refused(api: Any, tools: Any) -> None:
    uid = api.create("pb-gone").uid
    request = alone(tools, "pb-gone", [[0, 0]], model_uid=uid)
    assert api.instances.PushBatch(request, timeout=60).model_uid == uid
    api.models.DeleteModel(model_pb2.DeleteModelRequest(name="models/pb-gone"), timeout=60)
    other = api.create("pb-gone", attributes=[tools.nominal("P", "cba"), tools.nominal("Q", "ed")])
    assert other.uid != uid
    with tools.refused(grpc.StatusCode.FAILED_PRECONDITION, "pb-gone", "another has its name"):
        api.instances.PushBatch(request, timeout=60)
    with tools.refused(grpc.StatusCode.FAILED_PRECONDITION, "pb-gone", "another has its name"):
        api.push(tools.batch("pb-gone", [[0, 0]], model_uid=uid))
    assert api.get("pb-gone").sequence_committed == 0
    request.model_uid = other.uid
    assert api.instances.PushBatch(request, timeout=60).committed_sequence == 1


def test_it_goes_to_the_model_that_another_server_made_anew(
    start_live: Any, tools: Any, tmp_path: Path
) -> None:
    """The server does not use its memory of the first model for the second."""
    second = start_live(tmp_path / "store.db", grower=False).api
    slow = start_live(tmp_path / "store.db", poll_ms=10_000, grower=False)  # it notices nothing by itself
    second.create("m")
    assert slow.api.instances.PushBatch(alone(tools, "m", [[2, 1]]), timeout=60).rows_stored == 1
    second.models.DeleteModel(model_pb2.DeleteModelRequest(name="models/m"), timeout=60)
    second.create("m", attributes=[tools.nominal("Z", "ab")])
    stored = slow.api.instances.PushBatch(alone(tools, "m", [[0], [1]]), timeout=60)
    assert (stored.committed_sequence, stored.model_uid) == (2, second.get("m").uid)


def test_many_who_push_a_row_share_commits(start_live: Any, tools: Any, tmp_path: Path) -> None:
    live = start_live(tmp_path / "store.db", grower=False)
    live.api.create("m", budget=0)
    commits = live.server.core.writer.commits
    gate = threading.Barrier(32)

    def push(number: int) -> int:
        request = alone(tools, "m", [[0, 0]], ids=[f"r{number}"])
        gate.wait(60)
        return live.api.instances.PushBatch(request, timeout=60).rows_stored

    with ThreadPoolExecutor(32) as pool:
        assert sum(pool.map(push, range(32))) == 32
    assert live.server.core.writer.commits - commits < 32


def test_the_error_of_a_stream_names_its_batch(api: Any, tools: Any) -> None:
    """The acknowledgements before it come; of a batch without an id the name is empty."""
    api.create("named-batch")
    for number, bad in (("b-2", tools.packed([[9, 0]])), ("é-2", tools.packed([[0.5, 0]]))):
        requests = [
            instance_pb2.PushInstancesRequest(
                model="models/named-batch", rows=tools.packed([[0, 0]]), batch_id=f"{number}-0"
            ),
            instance_pb2.PushInstancesRequest(rows=bad, batch_id=number),
            instance_pb2.PushInstancesRequest(rows=tools.packed([[1, 0]]), batch_id="later"),
        ]
        call = api.instances.PushInstances(iter(requests), timeout=60)
        assert next(call).batch_id == f"{number}-0"
        with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, "rows.packed.values[0]"):
            next(call)
        assert dict(call.trailing_metadata())["quercus-batch-id-bin"] == number.encode()


def test_a_stream_goes_on_after_a_wrong_batch_where_the_client_asks_for_that(api: Any, tools: Any) -> None:
    """Errors are found before the commit (a value) or by it (an id), and arrive in order."""
    api.create("goes-on")

    def batch(name: str, rows: Any, **fields: Any) -> instance_pb2.PushInstancesRequest:
        return instance_pb2.PushInstancesRequest(rows=tools.packed(rows), batch_id=name, **fields)

    first = batch("wrong", [[0, 0], [1, 9]], model="models/goes-on", continue_on_error=True)
    others = [
        batch("right", [[0, 0]], ids=["r"]),
        batch("taken", [[1, 1]], ids=["r"]),
        batch("half", [[0, 0, 0]]),
        batch("last", [[2, 1]], ids=["s"]),
    ]
    told = api.push(first, *others)
    assert [each.batch_id for each in told] == ["wrong", "right", "taken", "half", "last"]
    assert [(each.rows_stored, each.committed_sequence) for each in told] == [
        *((0, 0), (1, 1), (0, 0), (0, 0), (1, 2))
    ]
    errors = {each.batch_id: each.error for each in told if each.HasField("error")}
    invalid = grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert (errors["wrong"].code, errors["wrong"].field) == (invalid, "rows.packed.values[3]")
    assert "9" in errors["wrong"].message
    assert (errors["taken"].code, errors["taken"].field) == (grpc.StatusCode.ALREADY_EXISTS.value[0], "")
    assert (errors["half"].code, errors["half"].field) == (invalid, "rows.packed.values")
    assert api.get("goes-on").instance_count == 2


def test_what_is_wrong_with_a_whole_stream_ends_it(api: Any, tools: Any) -> None:
    """Another model, and a wish that comes after the first message."""
    api.create("whole")
    first = tools.batch("whole", [[0, 0]], batch_id="a", continue_on_error=True)
    for model in ("other", "whole"):
        second = tools.batch(model, [[9, 0]], batch_id="b", continue_on_error=True)
        call = api.instances.PushInstances(iter([first, second]), timeout=60)
        assert next(call).batch_id == "a"
        with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, field="model" if model == "other" else None):
            next(call)
        first.continue_on_error = False
    with tools.refused(grpc.StatusCode.NOT_FOUND, "nobody"):
        api.push(tools.batch("nobody", [[0, 0]], continue_on_error=True))
