"""A batch pushed by a call of its own: stored, acknowledged and refused as on a stream."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from quercus.v1 import instance_pb2, model_pb2, values_pb2


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
        with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, "rows[0].X"):
            next(call)
        assert dict(call.trailing_metadata())["quercus-batch-id-bin"] == number.encode()


def test_rows_are_refused_one_by_one_where_the_client_asks_for_that(api: Any, tools: Any) -> None:
    """Faults are found before the commit (a value, a label) or by it (an id); a retry of the messages says the same."""
    api.create("goes-on")

    def batch(name: str, rows: Any, **fields: Any) -> instance_pb2.PushInstancesRequest:
        return instance_pb2.PushInstancesRequest(rows=tools.packed(rows), batch_id=name, **fields)

    def contours(*values: float) -> values_pb2.Labels:
        return values_pb2.Labels(contours=values_pb2.PackedContours(plausibilities=values))

    taken = [[0, 0], [1, 1], [1, 1], [1, 0]]
    requests = [
        batch("wrong", [[0, 0], [1, 9], [0.5, 0], [2, 0]], model="models/goes-on", continue_on_error=True),
        batch("right", [[0, 0]], ids=["r"]),
        batch("taken", taken, ids=["r", "r", "t", "t"]),
        batch("half", [[0, 0, 0]]),
        batch("label", [[0, 0], [1, 1], [2, 0]], labels=contours(1, 1.5, 1, 0, 0, 0, 0, 1, 0)),
        batch("last", [[2, 1], [2, 0], [7, 0]], ids=["a/b", "a\nb", "a\nb"]),
        batch("all", [[9, 9]]),
    ]
    stored, known = [2, 1, 1, 0, 1, 1, 0], [0, 0, 1, 0, 0, 0, 0]
    for expected in (
        zip(stored, known, strict=True),
        ((0, s + k) for s, k in zip(stored, known, strict=True)),
    ):
        told = api.push(*requests)
        assert [each.batch_id for each in told] == [each.batch_id for each in requests]
        assert [(each.rows_stored, each.rows_known) for each in told] == list(expected)
        refused = {each.batch_id: [(row.row, row.field) for row in each.refused] for each in told}
        assert refused == {
            "wrong": [(1, "rows[1].Y"), (2, "rows[2].X")],
            "right": [],
            "taken": [(1, "ids[1]"), (3, "ids[3]")],
            "half": [],
            "label": [(0, "labels[0]"), (1, "labels[1]")],
            "last": [(1, "ids[1]"), (2, "ids[2]")],
            "all": [(0, "rows[0].X")],
        }
        reasons = [row.message for each in told for row in each.refused]
        assert reasons[0].startswith("is 9.0, must be an index into its 2 values")
        assert reasons[2] == "instance r already exists in model goes-on with other values"
        assert reasons[4] == "is 1.5 for class 's', must lie in [0, 1]"
        codes = {row.code for row in told[2].refused} | {told[0].refused[0].code}
        assert codes == {grpc.StatusCode.ALREADY_EXISTS.value[0], grpc.StatusCode.INVALID_ARGUMENT.value[0]}
        (error,) = (each.error for each in told if each.HasField("error"))
        assert (error.code, error.field) == (grpc.StatusCode.INVALID_ARGUMENT.value[0], "rows.packed.values")
    listed = api.instances.ListInstances(instance_pb2.ListInstancesRequest(model="models/goes-on"))
    ids = ["wrong-0", "wrong-3", "r", "t", "label-2", "a%2Fb"]
    assert [each.name.split("/")[-1] for each in listed.instances] == ids
    assert (told[-1].committed_sequence, api.get("goes-on").instance_count) == (6, 6)


def test_a_batch_by_itself_is_refused_row_by_row_too(api: Any, tools: Any) -> None:
    """New nominal values come only with rows that are stored."""
    api.create("pb-rows")

    def named(**values: Any) -> values_pb2.NamedRow:
        kinds = {name: "number" if isinstance(value, float) else "nominal" for name, value in values.items()}
        row = values_pb2.NamedRow()
        for name, value in values.items():
            row.values[name].CopyFrom(values_pb2.NamedValue(**{kinds[name]: value}))
        return row

    rows = [
        named(X="new", Y="u"),
        named(X="lost", Y="a\nb"),
        named(X="unlabelled", Y="u"),
        named(X="newer", Y="v"),
    ]
    labels = values_pb2.LabelList(
        labels=[values_pb2.Label(class_name=name) for name in ("o", "o", "none", "s")]
    )
    request = instance_pb2.PushBatchRequest(
        model="models/pb-rows",
        rows=values_pb2.Rows(named=values_pb2.NamedRows(rows=rows)),
        labels=values_pb2.Labels(list=labels),
        batch_id="b",
    )
    with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, field="labels[2].class_name"):
        api.instances.PushBatch(request, timeout=60)
    request.continue_on_error = True
    for expected in ((2, 0), (0, 2)):
        told = api.instances.PushBatch(request, timeout=60)
        assert (told.rows_stored, told.rows_known, told.committed_sequence) == (*expected, 2)
        assert [(each.row, each.field) for each in told.refused] == [
            (1, "rows[1].Y"),
            (2, "labels[2].class_name"),
        ]
    learned = api.get("pb-rows").specification.attributes[0].nominal.values
    assert list(learned) == ["a", "b", "c", "new", "newer"]
    with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, field="ids"):
        request.ids.append("one of four")
        api.instances.PushBatch(request, timeout=60)


def test_the_list_of_refused_rows_is_bounded(api: Any, tools: Any) -> None:
    """Every position is told, however many there are: gRPC's own bound on a message is 4 MiB."""
    api.create("pb-many")
    request = alone(tools, "pb-many", [[0, 0]] * 10_000, ids=["é" * 100 + "\n" * 100] * 10_000)
    request.continue_on_error = True
    told = api.instances.PushBatch(request, timeout=60)
    assert [each.row for each in told.refused] == list(range(10_000))
    assert told.refused[-1].message.startswith("has the line end U+000A")
    assert told.ByteSize() < 2 * 1024 * 1024


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
