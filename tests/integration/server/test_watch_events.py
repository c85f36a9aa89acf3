"""Events of a log: in order behind a number, and then as they are written."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from quercus.v1 import instance_pb2, model_pb2, values_pb2

Kind = instance_pb2.LogEvent.Kind


@contextmanager
def watched(api: Any, model: str, **fields: Any) -> Iterator[Any]:
    call = api.instances.WatchEvents(
        instance_pb2.WatchEventsRequest(model=f"models/{model}", **fields), timeout=60
    )
    try:
        yield call
    finally:
        call.cancel()


def take(call: Any, sequence: int) -> list[instance_pb2.LogEvent]:
    """Events up to a number, over as many messages as they take."""
    events: list[instance_pb2.LogEvent] = []
    for page in call:
        events += page.events
        if page.sequence >= sequence:
            return events
    raise AssertionError("the watch ended before")


def state(api: Any, model: str, instance: str) -> None:
    statement = instance_pb2.Statement(instance_id=instance, label=values_pb2.Label(class_name="s"))
    api.instances.StateEvidence(
        instance_pb2.StateEvidenceRequest(
            model=f"models/{model}", labeller="ann", request_id=f"r-{instance}", statements=[statement]
        ),
        timeout=60,
    )


def test_every_event_comes_once_in_order_and_then_as_it_is_written(api: Any, tools: Any) -> None:
    api.create("we-order")
    api.push(tools.table_t("we-order"))
    with watched(api, "we-order", include_values=True) as call:
        before = take(call, 21)
        assert [event.evidence.sequence for event in before] == list(range(1, 22))
        assert {event.kind for event in before} == {Kind.KIND_INSTANCE}
        assert (before[0].instance_id, before[0].values.values["X"].nominal) == ("row1", "a")
        query = api.lease("we-order").queries[0]
        api.answer(query, comment="sure")
        (answer,) = take(call, 22)
        assert (answer.kind, answer.evidence.author, answer.evidence.comment) == (
            Kind.KIND_ANSWER,
            "ann",
            "sure",
        )
        assert (answer.evidence.query, answer.evidence.label.class_name) == (query.name, "s")
        api.refuse(api.lease("we-order").queries[0])
        (refusal,) = take(call, 23)
        assert (refusal.kind, refusal.evidence.refused) == (Kind.KIND_REFUSAL, True)
        state(api, "we-order", "row3")
        stated = take(call, 25)
        assert [event.kind for event in stated] == [Kind.KIND_STATEMENT, Kind.KIND_CORRECTION]
    with watched(api, "we-order", after_sequence=22) as call:
        assert [event.evidence.sequence for event in take(call, 25)] == [23, 24, 25]


def test_only_the_wanted_kinds_come_and_the_number_moves_on_all_the_same(api: Any, tools: Any) -> None:
    """The kind excludes all 600 rows, and two messages report where they end."""
    api.create("we-kinds")
    api.push(tools.batch("we-kinds", [[0, 0]] * 600))
    change = model_pb2.UpdateModelRequest(name="models/we-kinds")
    change.specification.alpha = 0.7
    change.update_mask.paths.append("alpha")
    api.models.UpdateModel(change, timeout=60)
    with watched(api, "we-kinds", kinds=[Kind.KIND_SPECIFICATION, Kind.KIND_ANSWER]) as call:
        first, second = next(call), next(call)
        assert (len(first.events), first.sequence) == (0, 500)
        (event,) = second.events
        assert (event.kind, event.instance_id, event.evidence.sequence) == (Kind.KIND_SPECIFICATION, "", 601)
        assert second.model_uid == api.get("we-kinds").uid


def test_values_that_were_learned_meanwhile_have_their_names(api: Any) -> None:
    api.create("we-words")
    with watched(api, "we-words", include_values=True) as call:
        for number, word in enumerate(["new", "newer"], 1):
            row = values_pb2.NamedRow(values={"X": values_pb2.NamedValue(nominal=word)})
            rows = values_pb2.Rows(named=values_pb2.NamedRows(rows=[row]))
            api.instances.PushBatch(
                instance_pb2.PushBatchRequest(model="models/we-words", rows=rows, ids=[word]), timeout=60
            )
            (event,) = take(call, number)
            assert event.values.values["X"].nominal == word


def test_a_number_of_another_log_is_refused(api: Any, tools: Any) -> None:
    uid = api.create("we-gone").uid
    api.push(tools.batch("we-gone", [[0, 0]]))
    bad: list[tuple[grpc.StatusCode, dict[str, Any], str]] = [
        (grpc.StatusCode.FAILED_PRECONDITION, {"after_sequence": 2}, "after_sequence"),
        (grpc.StatusCode.INVALID_ARGUMENT, {"after_sequence": -1}, "after_sequence"),
        (grpc.StatusCode.INVALID_ARGUMENT, {"kinds": [1, 99]}, "kinds[1]"),
        (grpc.StatusCode.FAILED_PRECONDITION, {"model_uid": "other"}, "another has its name"),
    ]
    for code, fields, word in bad:
        with watched(api, "we-gone", **fields) as call, tools.refused(code, word):
            next(call)
    with watched(api, "nobody") as call, tools.refused(grpc.StatusCode.NOT_FOUND, "nobody"):
        next(call)
    with watched(api, "we-gone") as call:
        take(call, 1)
        api.models.DeleteModel(model_pb2.DeleteModelRequest(name="models/we-gone"), timeout=60)
        api.create("we-gone")
        with pytest.raises(grpc.RpcError) as caught:
            next(call)
        assert caught.value.code() in {grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.NOT_FOUND}
    with (
        watched(api, "we-gone", model_uid=uid) as call,
        tools.refused(grpc.StatusCode.FAILED_PRECONDITION, "another"),
    ):
        next(call)
