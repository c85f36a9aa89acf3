"""Classes and attributes that come later: rows, labels, leases, trees and clients of before go on."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

from quercus.server.config import Config
from quercus.server.wire.models import extension_of
from quercus.storage import Store
from quercus.v1 import classify_pb2, instance_pb2, model_pb2, query_pb2, values_pb2


def extend(api: Any, model: str, request_id: str = "r1", **fields: Any) -> model_pb2.Model:
    request = model_pb2.ExtendModelRequest(name=f"models/{model}", request_id=request_id, **fields)
    return api.models.ExtendModel(request, timeout=60)


def contours(api: Any, model: str) -> dict[str, list[float]]:
    page = api.instances.ListInstances(instance_pb2.ListInstancesRequest(model=f"models/{model}"), timeout=60)
    return {each.name.rpartition("/")[2]: list(each.contour.plausibilities) for each in page.instances}


def number(name: str) -> model_pb2.Attribute:
    return model_pb2.Attribute(name=name, numeric=model_pb2.NumericAttribute(edges=[0.5]))


@pytest.mark.parametrize("learner", ["active-forest", "abc45", "e2m", "c45", "averaging"])
def test_a_class_that_comes_later_is_possible_for_rows_of_which_nothing_was_known(
    api: Any, tools: Any, learner: str
) -> None:
    model = f"ext-{learner}"
    api.create(model, learner=learner, strategy=None)
    labels = values_pb2.Labels(
        list=values_pb2.LabelList(
            labels=[
                values_pb2.Label(vacuous=values_pb2.Vacuous()),
                values_pb2.Label(class_name="o"),
                values_pb2.Label(class_set=values_pb2.ClassSet(classes=["o", "s"])),
                values_pb2.Label(contour=values_pb2.Contour(plausibilities=[1, 0.5, 0.2])),
                values_pb2.Label(mass=values_pb2.MassFunction(focal_sets=[1, 7], masses=[0.6, 0.4])),
            ]
        )
    )
    ids = ["nothing", "one", "set", "graded", "mass"]
    rows = [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]]
    api.push(tools.batch(model, rows, labels=labels, ids=ids))
    api.grown(model, 5)
    made = extend(api, model, classes=["rust"])
    assert list(made.specification.classes) == ["o", "s", "x", "rust"]
    assert [(e.sequence, list(e.classes)) for e in made.extensions] == [(6, ["rust"])]
    found = contours(api, model)
    assert found["nothing"] == [1, 1, 1, 1]
    assert found["one"] == [1, 0, 0, 0]
    assert found["set"] == [1, 1, 0, 0]
    assert found["graded"] == [1, 0.5, 0.2, 0]
    assert found["mass"] == pytest.approx([1, 0.4, 0.4, 0])
    (ack,) = api.push(
        tools.batch(
            model, [[2, 1]], ids=["new"], labels=values_pb2.Labels(sets=values_pb2.SetLabels(masks=[8]))
        )
    )
    assert ack.committed_sequence == 7
    tree = api.grown(model, 7)
    assert list(tree.classes) == ["o", "s", "x", "rust"]
    said = api.classifier.Classify(
        classify_pb2.ClassifyRequest(model=f"models/{model}", rows=tools.packed([[2, 1]]), min_sequence=7),
        timeout=60,
    )
    assert len(said.theta) == 4


def test_rows_and_labels_of_clients_that_know_the_model_as_it_was_are_taken(api: Any, tools: Any) -> None:
    api.create("ext-old")
    first = tools.batch("ext-old", [[0, 0], [1, 1]], ids=["a", "b"])
    api.push(first)
    extend(api, "ext-old", classes=["rust"], attributes=[number("humidity"), tools.nominal("Z", "pq")])

    def rows(values: list[float], width: int) -> values_pb2.Rows:
        return values_pb2.Rows(packed=values_pb2.PackedRows(values=values, width=width))

    again = instance_pb2.PushInstancesRequest(
        model="models/ext-old", rows=rows([0, 0, 1, 1], 2), ids=["a", "b"]
    )
    (ack,) = api.push(again)
    assert (ack.rows_stored, ack.rows_known) == (0, 2)
    graded = values_pb2.Labels(contours=values_pb2.PackedContours(plausibilities=[1, 0.5, 0]))
    old = instance_pb2.PushInstancesRequest(
        model="models/ext-old", rows=rows([2, 1], 2), ids=["c"], labels=graded
    )
    new = instance_pb2.PushInstancesRequest(model="models/ext-old", rows=rows([2, 1, 0.7, 1], 4), ids=["d"])
    assert [ack.rows_stored for ack in api.push(old, new)] == [1, 1]
    page = api.instances.ListInstances(instance_pb2.ListInstancesRequest(model="models/ext-old"), timeout=60)
    values = {each.name.rpartition("/")[2]: each.values.values for each in page.instances}
    assert [values["c"][name].WhichOneof("kind") for name in ("X", "humidity", "Z")] == [
        "nominal",
        None,
        None,
    ]
    assert (values["d"]["humidity"].number, values["d"]["Z"].nominal) == (0.7, "q")
    assert contours(api, "ext-old")["c"] == [1, 0.5, 0, 0]
    with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, "4 attributes", field="rows.packed.width"):
        api.push(instance_pb2.PushInstancesRequest(model="models/ext-old", rows=rows([1, 2, 3], 3)))
    api.grown("ext-old", 5)
    said = api.classifier.Classify(
        classify_pb2.ClassifyRequest(model="models/ext-old", rows=rows([2, 1], 2), min_sequence=5), timeout=60
    )
    assert len(said.theta) == 4


def test_leases_of_before_are_answered_in_the_old_words_and_in_the_new(api: Any, tools: Any) -> None:
    api.create("ext-asked", budget=3)
    sets = values_pb2.Labels(sets=values_pb2.SetLabels(masks=[1, 2, 4, 7, 7, 7]))
    api.push(tools.batch("ext-asked", [[0, 0], [1, 0], [2, 1], [0, 1], [1, 1], [2, 0]], labels=sets))
    api.grown("ext-asked", 6)

    def lease() -> query_pb2.Query:
        request = query_pb2.LeaseQueriesRequest(model="models/ext-asked", labeller="ann", max_queries=1)
        request.wait.FromSeconds(20)
        return api.queries.LeaseQueries(request, timeout=60).queries[0]

    def answer(query: query_pb2.Query, label: values_pb2.Label) -> query_pb2.AnswerQueryResponse:
        request = query_pb2.AnswerQueryRequest(name=query.name, lease_token=query.lease_token, label=label)
        return api.queries.AnswerQuery(request, timeout=60)

    held = [lease(), lease()]
    extend(api, "ext-asked", classes=["rust"])
    graded = values_pb2.Label(contour=values_pb2.Contour(plausibilities=[1, 0.5, 0]))
    assert answer(held[0], graded).committed_sequence == 8
    assert answer(held[1], values_pb2.Label(class_name="rust")).committed_sequence == 9
    assert [contours(api, "ext-asked")[each.instance.rpartition("/")[2]] for each in held] == [
        [1, 0.5, 0, 0],
        [0, 0, 0, 1],
    ]
    api.grown("ext-asked", 9)
    assert answer(lease(), values_pb2.Label(class_name="rust")).committed_sequence == 10


def test_the_same_request_extends_once(api: Any, tools: Any) -> None:
    api.create("ext-once")
    first = extend(api, "ext-once", "r", classes=["rust"], attributes=[number("humidity")])
    again = extend(api, "ext-once", "r", classes=["rust"], attributes=[number("humidity")])
    assert again.sequence_committed == first.sequence_committed == 1
    with tools.refused(grpc.StatusCode.ALREADY_EXISTS, "other classes or attributes"):
        extend(api, "ext-once", "r", classes=["mould"])
    extend(api, "ext-once", "s", classes=["mould"])
    late = extend(api, "ext-once", "r", classes=["rust"], attributes=[number("humidity")])
    assert list(late.specification.classes) == ["o", "s", "x", "rust", "mould"]


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({}, "classes", "none"),
        ({"classes": ["o"]}, "classes[0]", "'o'"),
        ({"classes": ["new", "new"]}, "classes[1]", "'new'"),
        ({"classes": [" "]}, "classes[3]", "blank"),
        ({"classes": [f"c{i}" for i in range(62)]}, "classes", "65"),
        ({"attributes": [number("X")]}, "attributes[0].name", "'X'"),
        ({"attributes": [number("a"), number("a")]}, "attributes[1].name", "'a'"),
        (
            {"attributes": [model_pb2.Attribute(name="a", numeric=model_pb2.NumericAttribute(), missing=2)]},
            "attributes[0].missing",
            "reject",
        ),
        (
            {"attributes": [model_pb2.Attribute(name="a", numeric=model_pb2.NumericAttribute(bins=1))]},
            "attributes[0].numeric.bins",
            "1",
        ),
        ({"classes": ["fine"], "request_id": ""}, "request_id", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_added_is_named(
    api: Any, tools: Any, fields: dict[str, Any], field: str, reason: str
) -> None:
    with suppress(grpc.RpcError):  # another case has made it
        api.create("ext-bad")
    with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, reason, field=field):
        extend(api, "ext-bad", **{"request_id": "r"} | fields)
    assert api.get("ext-bad").sequence_committed == 0


def test_a_server_that_has_not_seen_the_extension_yet_loses_nothing(
    start_live: Callable[..., Any], tools: Any, tmp_path: Path
) -> None:
    """Another server of the store extends the model; what this one encoded for the model as it was is encoded anew."""
    live = start_live(tmp_path / "store.db", grower=False)
    api, sizes = live.api, Config().message_limits
    api.create("ext-two")
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as other:
        for turn in range(6):
            rows = values_pb2.Rows(packed=values_pb2.PackedRows(values=[0, 1], width=2))
            known = instance_pb2.PushInstancesRequest(
                model="models/ext-two", rows=rows, ids=[f"known-{turn}"]
            )
            api.push(known)
            request = model_pb2.ExtendModelRequest(classes=[f"new {turn}"], attributes=[number(f"n{turn}")])
            other.extend_model(
                "ext-two", lambda data, r=request: extension_of(data, r, sizes), f"r{turn}", lambda *_: True
            )
            late = instance_pb2.PushBatchRequest(model="models/ext-two", rows=rows, ids=[f"late-{turn}"])
            ack = api.instances.PushBatch(late, timeout=60)  # a stream would read the model first
            assert ack.rows_stored == 1
            statement = instance_pb2.Statement(
                instance_id=f"late-{turn}", label=values_pb2.Label(vacuous=values_pb2.Vacuous())
            )
            api.instances.StateEvidence(
                instance_pb2.StateEvidenceRequest(
                    model="models/ext-two", request_id=f"s{turn}", labeller="ann", statements=[statement]
                ),
                timeout=60,
            )
    found = contours(api, "ext-two")
    assert len(found) == 12
    assert all(contour == [1.0] * 9 for contour in found.values())  # of none a class is excluded
