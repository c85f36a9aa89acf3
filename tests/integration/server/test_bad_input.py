"""Every bad input gets its status, its field and a message that names value and bound."""

import math
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from quercus.client.plugins import to_proto
from quercus.v1 import (
    classify_pb2,
    instance_pb2,
    model_pb2,
    query_pb2,
    tree_pb2,
    values_pb2,
)

INVALID, NOT_FOUND = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
NAN, INF = math.nan, math.inf
MODEL = "bad"
TOKEN = "never given"


@pytest.fixture(scope="module")
def bad(api: Any, tools: Any) -> Any:
    """X in {a, b, c} and a number N that may not be missing."""
    reject = model_pb2.MISSING_POLICY_REJECT
    api.create(MODEL, attributes=[tools.nominal("X", "abc"), tools.numeric("N", missing=reject)])
    return api


def rows(*values: float) -> values_pb2.Rows:
    return values_pb2.Rows(packed=values_pb2.PackedRows(values=values))


def named(**values: str | float) -> values_pb2.Rows:
    row = values_pb2.NamedRow()
    for name, value in values.items():
        if isinstance(value, str):
            row.values[name].nominal = value
        else:
            row.values[name].number = value
    return values_pb2.Rows(named=values_pb2.NamedRows(rows=[row]))


BAD_ROWS = {
    "none": (values_pb2.Rows(), "rows", ["missing"]),
    "no row": (rows(), "rows", ["0 rows", "1 to 10000"]),
    "attribute count": (rows(1, 2, 3), "rows.packed.values", ["3 values", "multiple of the 2 attributes"]),
    "index too large": (rows(0, 1, 3, 1), "rows[1].X", ["is 3.0", "0 to 2"]),
    "index negative": (rows(-1, 1), "rows[0].X", ["is -1.0", "0 to 2"]),
    "index not whole": (rows(0.5, 1), "rows[0].X", ["is 0.5", "index"]),
    "infinite index": (rows(INF, 1), "rows[0].X", ["is inf", "index"]),
    "NaN where rejected": (rows(0, NAN), "rows[0].N", ["nan", "missing"]),
    "infinite number": (rows(0, 1, 0, -INF), "rows[1].N", ["-inf", "finite"]),
    "unknown attribute": (
        named(X="a", Z=1.0),
        "rows[0].Z",
        ["not an attribute", "'X', 'N'"],
    ),
    "infinite name": (named(X=INF, N=1.0), "rows[0].X", ["nominal", "inf is not a name"]),
    "text for a number": (named(X="a", N="one"), "rows[0].N", ["'one'", "number"]),
    "named NaN rejected": (named(X="a", N=NAN), "rows[0].N", ["missing"]),
    "named missing rejected": (named(X="a"), "rows[0].N", ["missing"]),
    "named infinite": (named(X="a", N=INF), "rows[0].N", ["inf", "finite"]),
    "long new value": (named(X="v" * 101, N=1.0), "rows[0].X", ["1 to 100 characters"]),
    "too many rows": (rows(*[0.0] * 20_002), "rows", ["10001 rows", "10000"]),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_rows_pushed(name: str, bad: Any, tools: Any) -> None:
    given, field, words = BAD_ROWS[name]
    before = bad.get(MODEL).sequence_committed
    with tools.refused(INVALID, *words, field=field):
        bad.push(instance_pb2.PushInstancesRequest(model="models/bad", rows=given))
    assert bad.get(MODEL).sequence_committed == before


@pytest.mark.parametrize("name", [name for name in BAD_ROWS if "new value" not in name])
def test_rows_classified(name: str, bad: Any, tools: Any) -> None:
    given, field, words = BAD_ROWS[name]
    bad.grown(MODEL, 0)
    with tools.refused(INVALID, *words, field=field):
        bad.classifier.Classify(classify_pb2.ClassifyRequest(model="models/bad", rows=given))


def one(**kind: Any) -> values_pb2.Labels:
    return values_pb2.Labels(list=values_pb2.LabelList(labels=[values_pb2.Label(**kind)]))


def contour(*values: float) -> values_pb2.Labels:
    return values_pb2.Labels(contours=values_pb2.PackedContours(plausibilities=values))


def mass(sets: list[int], masses: list[float]) -> values_pb2.Labels:
    return one(mass=values_pb2.MassFunction(focal_sets=sets, masses=masses))


def sets(*masks: int) -> values_pb2.Labels:
    return values_pb2.Labels(sets=values_pb2.SetLabels(masks=masks))


BAD_LABELS = {
    "plausibility above 1": (contour(1, 1.5, 0), "labels[0]", ["1.5 for class 's'", "[0, 1]"]),
    "plausibility below 0": (contour(-0.5, 1, 0), "labels[0]", ["-0.5", "[0, 1]"]),
    "plausibility NaN": (contour(1, 1, NAN), "labels[0]", ["nan", "[0, 1]"]),
    "all-zero contour": (contour(0, 0, 0), "labels[0]", ["zero for every class"]),
    "contour length": (contour(1, 1), "labels.contours.plausibilities", ["2 values", "1 rows x 3 classes"]),
    "empty set": (sets(0), "labels[0]", ["0x0", "0x7"]),
    "set outside": (sets(8), "labels[0]", ["0x8", "0x7"]),
    "set count": (sets(1, 1), "labels.sets.masks", ["2 entries", "1 rows"]),
    "label count": (
        values_pb2.Labels(list=values_pb2.LabelList()), "labels.list.labels", ["0 entries", "1 rows"],
    ),
    "no kind": (one(), "labels[0]", ["missing"]),
    "unknown class": (one(class_name="z"), "labels[0].class_name", ["'z'", "'o', 's', 'x'"]),
    "unknown class in a set": (
        one(class_set=values_pb2.ClassSet(classes=["o", "q"])), "labels[0].class_set", ["'q'"],
    ),
    "no class in a set": (
        one(class_set=values_pb2.ClassSet()), "labels[0].class_set", ["empty set"],
    ),
    "single plausibility": (
        one(contour=values_pb2.Contour(plausibilities=[1, 2, 0])),
        "labels[0].contour.plausibilities[1]",
        ["2.0", "[0, 1]"],
    ),
    "single contour zero": (
        one(contour=values_pb2.Contour(plausibilities=[0, 0, 0])),
        "labels[0].contour.plausibilities",
        ["zero for every class"],
    ),
    "masses that do not sum to 1": (mass([1, 7], [0.5, 0.4]), "labels[0].mass", ["0.9", "1"]),
    "negative mass": (mass([1, 7], [-0.5, 1.5]), "labels[0].mass", ["-0.5"]),
    "mass on the empty set": (mass([0, 7], [0.5, 0.5]), "labels[0].mass", ["empty"]),
    "mass outside the frame": (mass([8], [1.0]), "labels[0].mass", ["0x8", "0x7"]),
    "a set twice": (mass([1, 1], [0.5, 0.5]), "labels[0].mass", ["second time"]),
    "mass count": (mass([1, 7], [1.0]), "labels[0].mass.masses", ["1 values", "2 focal sets"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_LABELS)
def test_labels(name: str, bad: Any, tools: Any) -> None:
    labels, field, words = BAD_LABELS[name]
    with pytest.raises(grpc.RpcError) as caught:
        bad.push(instance_pb2.PushInstancesRequest(model="models/bad", rows=rows(0, 1), labels=labels))
    assert caught.value.code() is INVALID, caught.value
    found, description = tools.violation(caught.value)
    assert found == field or found.startswith((field + ".", field + "["))
    assert all(word in description for word in words), description
    assert caught.value.details() == f"{found}: {description}"


BAD_BATCHES = {
    "id count": ({"ids": ["a", "b"]}, "ids", ["2 entries", "1 rows"]),
    "empty id": ({"ids": [""]}, "ids[0]", ["0 characters", "1 to 200"]),
    "id with a line end": ({"ids": ["a\nb"]}, "ids[0]", ["U+000A at position 2"]),
    "id that turns the writing": ({"ids": ["a\u202eb"]}, "ids[0]", ["U+202E at position 2"]),
    "long id": ({"ids": ["i" * 201]}, "ids[0]", ["201 characters", "200"]),
    "long batch id": ({"batch_id": "i" * 200}, "batch_id", ["202 characters", "200"]),
    "no model": ({"model": ""}, "model", ["models/{model}"]),
    "bad model name": ({"model": "bad"}, "model", ["'bad'", "models/{model}"]),
    "bad model id": ({"model": "models/Bad"}, "model", ["'Bad'", "[a-z0-9_-]"]),
}


@pytest.mark.parametrize("name", BAD_BATCHES)
def test_batches(name: str, bad: Any, tools: Any) -> None:
    fields, field, words = BAD_BATCHES[name]
    request = instance_pb2.PushInstancesRequest(**({"model": "models/bad", "rows": rows(0, 1)} | fields))
    with tools.refused(INVALID, *words, field=field):
        bad.push(request)


def test_same_id_twice_in_a_batch(bad: Any, tools: Any) -> None:
    """As in two batches: the same row is known, and another one is refused."""
    before = bad.get(MODEL).sequence_committed
    ids = ["twice", "twice"]
    same = instance_pb2.PushInstancesRequest(model="models/bad", rows=rows(0, 1, 0, 1), ids=ids)
    (told,) = bad.push(same)
    assert (told.rows_stored, told.rows_known, told.committed_sequence) == (1, 1, before + 1)
    other = instance_pb2.PushInstancesRequest(model="models/bad", rows=rows(0, 1, 1, 1), ids=["new", "new"])
    with tools.refused(grpc.StatusCode.ALREADY_EXISTS, "new", "other values"):
        bad.push(other)
    assert bad.get(MODEL).sequence_committed == before + 1


def test_model_may_not_change_within_a_stream(bad: Any, tools: Any) -> None:
    first = instance_pb2.PushInstancesRequest(model="models/bad", rows=rows(0, 1), batch_id="same")
    other = instance_pb2.PushInstancesRequest(model="models/other", rows=rows(0, 1))
    with tools.refused(INVALID, "models/other", "models/bad", field="model"):
        bad.push(first, other)


def test_empty_streams(bad: Any, tools: Any) -> None:
    nothing: list[Any] = []
    with tools.refused(INVALID, "empty", field="stream"):
        bad.push()
    with tools.refused(INVALID, "empty", field="stream"):
        list(bad.classifier.ClassifyStream(iter(nothing)))
    with tools.refused(INVALID, "empty", field="stream"):
        list(bad.queries.StreamQueries(iter(nothing)))


def test_unknown_model(bad: Any, tools: Any) -> None:
    name = "models/nowhere"
    calls: list[Any] = [
        lambda: bad.get("nowhere"),
        lambda: bad.push(instance_pb2.PushInstancesRequest(model=name, rows=rows(1, 1))),
        lambda: bad.classifier.Classify(classify_pb2.ClassifyRequest(model=name, rows=rows(1, 1))),
        lambda: list(bad.classifier.ClassifyStream(iter([classify_pb2.ClassifyRequest(model=name)]))),
        lambda: bad.queries.LeaseQueries(query_pb2.LeaseQueriesRequest(model=name, labeller="a")),
        lambda: list(
            bad.queries.StreamQueries(iter([query_pb2.StreamQueriesRequest(model=name, labeller="a")]))
        ),
        lambda: bad.queries.ListQueries(query_pb2.ListQueriesRequest(model=name)),
        lambda: bad.queries.RefuseQuery(
            query_pb2.RefuseQueryRequest(name=name + "/queries/1", lease_token=TOKEN)
        ),
        lambda: bad.trees.GetTree(tree_pb2.GetTreeRequest(name=name + "/trees/latest")),
        lambda: list(bad.trees.WatchTree(tree_pb2.WatchTreeRequest(model=name))),
        lambda: bad.trees.RenderTree(tree_pb2.RenderTreeRequest(name=name + "/trees/1", format=1)),
        lambda: bad.instances.ListInstances(instance_pb2.ListInstancesRequest(model=name)),
        lambda: bad.instances.GetInstance(instance_pb2.GetInstanceRequest(name=name + "/instances/i")),
        lambda: bad.models.DeleteModel(model_pb2.DeleteModelRequest(name=name)),
        lambda: bad.models.UpdateModel(
            model_pb2.UpdateModelRequest(name=name, update_mask=FieldMask(paths=["alpha"]))
        ),
    ]
    for call in calls:
        with tools.refused(NOT_FOUND, "nowhere"):
            call()


def test_unknown_instance_query_and_version(bad: Any, tools: Any) -> None:
    bad.grown(MODEL, 0)
    with tools.refused(NOT_FOUND, "instance", "nobody"):
        bad.instances.GetInstance(instance_pb2.GetInstanceRequest(name="models/bad/instances/nobody"))
    with tools.refused(NOT_FOUND, "query", "77"):
        bad.answer(query_pb2.Query(name="models/bad/queries/77", lease_token=TOKEN))
    with tools.refused(NOT_FOUND, "tree version", "99999"):
        bad.trees.GetTree(tree_pb2.GetTreeRequest(name="models/bad/trees/99999"))


BAD_NAMES = [
    *(
        "",
        "models/bad",
        "models/bad/trees/",
        "models/bad/trees/0",
        "models/bad/trees/-1",
        "models/bad/trees/x",
    ),
    *("models//trees/1", "models/bad/queries/1", "models/bad/trees/1/2", "models/bad/trees/" + "9" * 30),
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_tree_names(name: str, bad: Any, tools: Any) -> None:
    with tools.refused(INVALID, "models/{model}/trees/", field="name"):
        bad.trees.GetTree(tree_pb2.GetTreeRequest(name=name))


def test_pages(bad: Any, tools: Any) -> None:
    for size in (-1, 1001):
        with tools.refused(INVALID, str(size), "1000", field="page_size"):
            bad.models.ListModels(model_pb2.ListModelsRequest(page_size=size))
    for token in ("nonsense", "!!", "bW9kZWxzOg"):
        with tools.refused(INVALID, token, field="page_token"):
            bad.models.ListModels(model_pb2.ListModelsRequest(page_token=token))
        with tools.refused(INVALID, token, field="page_token"):
            bad.instances.ListInstances(
                instance_pb2.ListInstancesRequest(model="models/bad", page_token=token)
            )
        with tools.refused(INVALID, token, field="page_token"):
            bad.queries.ListQueries(query_pb2.ListQueriesRequest(model="models/bad", page_token=token))


def specification(**changes: Any) -> model_pb2.Specification:
    nominal = model_pb2.Attribute(name="X", nominal=model_pb2.NominalAttribute(values="ab"))
    return model_pb2.Specification(**({"attributes": [nominal], "classes": ["o", "s"]} | changes))


def attribute(**fields: Any) -> list[model_pb2.Attribute]:
    return [model_pb2.Attribute(**({"name": "X"} | fields))]


def numeric(**fields: Any) -> list[model_pb2.Attribute]:
    return attribute(numeric=model_pb2.NumericAttribute(**fields))


BAD_SPECIFICATIONS = {
    "duplicate class": ({"classes": ["o", "o"]}, "classes[1]", ["'o'", "distinct"]),
    "one class": ({"classes": ["o"]}, "classes", ["1 name", "2 to 64"]),
    "65 classes": ({"classes": [f"c{i}" for i in range(65)]}, "classes", ["65", "64"]),
    "blank class": ({"classes": ["o", " "]}, "classes[1]", ["blank"]),
    "alpha above 1": ({"alpha": 1.5}, "alpha", ["1.5", "[0, 1]"]),
    "alpha below 0": ({"alpha": -0.1}, "alpha", ["-0.1", "[0, 1]"]),
    "alpha NaN": ({"alpha": NAN}, "alpha", ["nan", "[0, 1]"]),
    "budget": ({"budget": 4_294_967_295}, "budget", ["4294967295", "1000000"]),
    "min_instances": ({"min_instances": 0}, "min_instances", ["0", "[1, "]),
    "max_depth": ({"max_depth": 4_294_967_295}, "max_depth", ["4294967295"]),
    "warmup_rows": ({"warmup_rows": 0}, "warmup_rows", ["0", "[1, "]),
    "strategy": ({"strategy": {"name": "magic"}}, "strategy.name", ["'magic'", "margin"]),
    "parameter of a strategy": (
        {"learner": {"name": "abc45"}, "strategy": to_proto({"name": "committee", "cover": 2}, "strategy")},
        "strategy.cover", ["is 2", "[0, 1]"],
    ),
    "no parameter of the strategy": (
        {"strategy": to_proto({"name": "margin", "cover": 0.1}, "strategy")},
        "strategy.cover", ["is not a parameter of margin", "its parameters are none"],
    ),
    "base of a strategy": (
        {"strategy": to_proto({"name": "margin", "base": "margin"}, "strategy")},
        "strategy.base.name", ["'margin'", "margin has no base"],
    ),
    "no kind of pruning": ({"pruning": model_pb2.Pruning()}, "pruning.kind", ["0"]),
    "level of pruning": (
        {"pruning": model_pb2.Pruning(kind="PRUNING_KIND_LIKELIHOOD", level=1)}, "pruning.level", ["1.0", "(0, 1)"],
    ),
    "cuts": ({"attributes": numeric(cuts=256)}, "attributes[0].numeric.cuts", ["256", "[1, 255]"]),
    "cuts and edges": (
        {"attributes": numeric(cuts=3, edges=[1, 2])}, "attributes[0].numeric.cuts", ["3", "2 edges"],
    ),
    "no attribute": ({"attributes": []}, "attributes", ["0", "1 to 1000"]),
    "attribute without a kind": ({"attributes": attribute()}, "attributes[0].kind", ["'X'"]),
    "attribute without a name": (
        {"attributes": [model_pb2.Attribute(numeric=model_pb2.NumericAttribute())]},
        "attributes[0].name", ["empty"],
    ),
    "same attribute twice": ({"attributes": numeric() * 2}, "attributes[1]", ["'X'", "distinct"]),
    "same value twice": (
        {"attributes": attribute(nominal=model_pb2.NominalAttribute(values="aba"))},
        "attributes[0].values[2]", ["'a'", "distinct"],
    ),
    "one bin": ({"attributes": numeric(bins=1)}, "attributes[0].numeric.bins", ["1", "[2, 256]"]),
    "too many bins": ({"attributes": numeric(bins=257)}, "attributes[0].numeric.bins", ["257", "256"]),
    "edges not increasing": (
        {"attributes": numeric(edges=[2.0, 1.0])}, "attributes[0].numeric.edges[1]", ["1.0", "2.0"],
    ),
    "edge NaN": ({"attributes": numeric(edges=[NAN])}, "attributes[0].numeric.edges[0]", ["nan", "finite"]),
    "bins against edges": (
        {"attributes": numeric(edges=[1.0], bins=5)}, "attributes[0].numeric.bins", ["5", "2 bins"],
    ),
    "missing policy": ({"attributes": attribute(missing=9, numeric=model_pb2.NumericAttribute())},
                       "attributes[0].missing", ["9"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_SPECIFICATIONS)
def test_specifications(name: str, bad: Any, tools: Any) -> None:
    changes, field, words = BAD_SPECIFICATIONS[name]
    request = model_pb2.CreateModelRequest(model_id="worse", specification=specification(**changes))
    with tools.refused(INVALID, *words, field="specification." + field):
        bad.models.CreateModel(request)
    with tools.refused(NOT_FOUND, "worse"):
        bad.get("worse")


@pytest.mark.parametrize("model", ["", "A", "9a", "a" * 64, "a/b", "é", "a b"])
def test_model_ids(model: str, bad: Any, tools: Any) -> None:
    with tools.refused(INVALID, "1 to 63 characters", field="model_id"):
        bad.models.CreateModel(model_pb2.CreateModelRequest(model_id=model, specification=specification()))


def test_model_that_exists(bad: Any, tools: Any) -> None:
    with tools.refused(grpc.StatusCode.ALREADY_EXISTS, "model", "bad"):
        bad.create(MODEL)


def test_masks(bad: Any, tools: Any) -> None:
    def update(*paths: str, **fields: Any) -> None:
        changes = model_pb2.Specification(**fields)
        bad.models.UpdateModel(
            model_pb2.UpdateModelRequest(
                name="models/bad", specification=changes, update_mask=FieldMask(paths=paths)
            )
        )

    with tools.refused(INVALID, "empty", field="update_mask"):
        update()
    with tools.refused(INVALID, "'classes'", "alpha, budget", field="update_mask.paths[1]"):
        update("alpha", "classes")
    with tools.refused(INVALID, "2.0", field="specification.alpha"):
        update("alpha", alpha=2.0)


def test_message_that_is_too_large_says_so(bad: Any, tools: Any) -> None:
    big = instance_pb2.PushInstancesRequest(model="models/bad", rows=rows(*[0.0] * 2_200_000))
    with tools.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "message larger than max", "16777216"):
        bad.push(big)


def test_leases(bad: Any, tools: Any) -> None:
    def lease(**fields: Any) -> None:
        request = query_pb2.LeaseQueriesRequest(**({"model": "models/bad", "labeller": "ann"} | fields))
        bad.queries.LeaseQueries(request)

    with tools.refused(INVALID, "''", "1 to 100", field="labeller"):
        lease(labeller="")
    with tools.refused(INVALID, "100", field="labeller"):
        lease(labeller="l" * 101)
    for count in (-1, 101):
        with tools.refused(INVALID, str(count), "[0, 100]", field="max_queries"):
            lease(max_queries=count)
    for seconds in (0, -5, 3601):
        with tools.refused(INVALID, f"{seconds} s", "[1 s, 3600 s]", field="lease_duration"):
            lease(lease_duration={"seconds": seconds})
    for seconds in (-1, 61):
        with tools.refused(INVALID, f"{seconds} s", "[0 s, 60 s]", field="wait"):
            lease(wait={"seconds": seconds})
    with tools.refused(INVALID, "-1", field="min_sequence"):
        lease(min_sequence=-1)


def test_streams_of_queries(bad: Any, tools: Any) -> None:
    def stream(*requests: dict[str, Any]) -> None:
        first = {"model": "models/bad", "labeller": "ann"}
        messages: Iterator[Any] = (
            query_pb2.StreamQueriesRequest(**(first | fields if i == 0 else fields))
            for i, fields in enumerate(requests)
        )
        list(bad.queries.StreamQueries(messages))

    with tools.refused(INVALID, "-1", "[0, 100]", field="credits"):
        stream({"credits": -1})
    with tools.refused(INVALID, "60", "100", field="credits"):
        stream({"credits": 60}, {"credits": 60})
    with tools.refused(INVALID, "'bob'", "'ann'", field="labeller"):
        stream({}, {"labeller": "bob"})
    with tools.refused(INVALID, "models/{model}", field="model"):
        stream({"model": ""})


def test_states_and_formats(bad: Any, tools: Any) -> None:
    with tools.refused(INVALID, "9", field="states[1]"):
        bad.queries.ListQueries(query_pb2.ListQueriesRequest(model="models/bad", states=[1, 9]))
    with tools.refused(INVALID, "0", field="format"):
        bad.trees.RenderTree(tree_pb2.RenderTreeRequest(name="models/bad/trees/latest"))


def test_tokens_that_were_never_given(bad: Any, tools: Any) -> None:
    name = "models/bad/queries/1"
    with tools.refused(INVALID, "missing", field="lease_token"):
        bad.answer(query_pb2.Query(name=name))
    with tools.refused(INVALID, "missing", field="lease_token"):
        bad.queries.RefuseQuery(query_pb2.RefuseQueryRequest(name=name))
    with tools.refused(INVALID, "missing", field="lease_token"):
        bad.queries.ExtendLease(query_pb2.ExtendLeaseRequest(name=name))
