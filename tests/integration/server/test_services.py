"""Each RPC on a live server, on table T of theory §3.7."""

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from quercus.client import Client, Filter, Nominal, Specification
from quercus.specification.strategies import RECOMMENDED
from quercus.v1 import admin_pb2, classify_pb2, instance_pb2, model_pb2, query_pb2, tree_pb2, values_pb2

RPCS = {
    "ModelService": {
        *("CreateModel", "GetModel", "ListModels", "ListLearners", "UpdateModel", "ExtendModel", "DeleteModel"),
    },
    "InstanceService": {
        *("PushInstances", "PushBatch", "ListInstances", "ListExamples", "GetInstance", "StateEvidence", "WatchEvents"),
    },
    "QueryService": {
        *("LeaseQueries", "StreamQueries", "AnswerQuery", "RefuseQuery", "ExtendLease", "ReturnQuery"),
        *("CorrectAnswer", "UndoAnswer", "ListQueries", "ListQueryHistory", "ListLabellers", "StreamAnswers"),
        "ListNeighbours",
        *("GetLabellingPolicy", "UpdateLabellingPolicy", "ReleaseLease"),
        *("ListDisputes", "GetDispute", "Adjudicate", "GetAgreement"),
        *("MarkGold", "ListGold"),
    },
    "ClassifyService": {"Classify", "ClassifyStream"},
    "TreeService": {"GetTree", "WatchTree", "RenderTree", "ExplainRow"},
    "AdminService": {
        *("GetStatus", "GetCaller", "SetLogLevel", "ListAuditEntries"),
        *("CreateToken", "ListTokens", "RevokeToken"),
    },
}  # fmt: skip


def label(name: str) -> values_pb2.Label:
    return values_pb2.Label(class_name=name)


# ModelService


def test_model_is_created_with_every_default_written_out(api: Any, tools: Any) -> None:
    made = api.create(
        "defaults",
        attributes=[tools.nominal("X", "ab"), tools.numeric("N")],
        alpha=None,
        budget=None,
        strategy=None,
    )
    specification = made.specification
    assert specification.strategy.name == RECOMMENDED
    assert (specification.alpha, specification.budget, specification.min_instances) == (0.8, 0, 2)
    assert specification.warmup_rows == 100
    assert not specification.HasField("max_depth")
    assert [each.missing for each in specification.attributes] == [model_pb2.MISSING_POLICY_BRANCH] * 2
    assert specification.attributes[1].numeric.bins == 4
    assert (made.name, made.sequence_committed, made.tree_version) == ("models/defaults", 0, 0)
    assert api.get("defaults").specification == specification


def test_declared_edges_set_the_bins(api: Any, tools: Any) -> None:
    made = api.create("edges", attributes=[tools.numeric("N", edges=[1.0, 2.0])])
    assert made.specification.attributes[0].numeric.bins == 3
    tree = api.grown("edges", 0)
    assert list(tree.attributes[0].branches) == ["< 1", "[1, 2)", "≥ 2", "?"]
    assert list(tree.attributes[0].edges) == [1.0, 2.0]
    assert tree.attributes[0].numeric


def test_empty_model_has_a_tree_of_one_leaf(api: Any) -> None:
    api.create("empty")
    tree = api.grown("empty", 0)
    assert (tree.name, tree.version, tree.as_of, len(tree.nodes.parents)) == ("models/empty/trees/1", 1, 0, 1)
    assert list(tree.nodes.theta) == pytest.approx([1 / 3] * 3)
    assert (tree.nodes.parents, tree.nodes.attributes) == ([-1], [-1])


def test_models_are_listed_in_pages(api: Any) -> None:
    for model in ("page-c", "page-a", "page-b"):
        api.create(model)
    names, token = [], ""
    while True:
        page = api.models.ListModels(model_pb2.ListModelsRequest(page_size=2, page_token=token))
        assert len(page.models) <= 2
        names += [model.name for model in page.models]
        token = page.next_page_token
        if not token:
            break
    assert names == sorted(set(names))
    assert {"models/page-a", "models/page-b", "models/page-c"} <= set(names)


def test_update_without_effect_is_no_event(api: Any) -> None:
    api.create("same")
    change = model_pb2.UpdateModelRequest(
        name="models/same",
        specification=model_pb2.Specification(alpha=0.9),
        update_mask=FieldMask(paths=["alpha"]),
    )
    assert api.models.UpdateModel(change).sequence_committed == 0


def test_deleted_model_is_gone_and_its_name_free(api: Any, tools: Any) -> None:
    api.create("gone")
    api.push(tools.table_t("gone"))
    api.grown("gone", 21)
    rows = tools.packed([[0, 0]])
    api.classifier.Classify(classify_pb2.ClassifyRequest(model="models/gone", rows=rows))
    api.models.DeleteModel(model_pb2.DeleteModelRequest(name="models/gone"))
    with tools.refused(grpc.StatusCode.NOT_FOUND, "gone"):
        api.classifier.Classify(classify_pb2.ClassifyRequest(model="models/gone", rows=rows))
    api.create("gone", attributes=[tools.nominal("Z", "pq")], classes=["m", "n"])
    assert len(api.grown("gone", 0).nodes.theta) == 2
    (ack,) = api.push(tools.batch("gone", [[1], [0]]))
    assert ack.committed_sequence == 2


# InstanceService


def test_batch_id_makes_ids(api: Any, tools: Any) -> None:
    api.create("batchid")
    request = tools.batch("batchid", [[0, 0], [1, math.nan]], batch_id="b")
    assert [(ack.rows_stored, ack.rows_known) for ack in api.push(request, request)] == [(2, 0), (0, 2)]
    listed = api.instances.ListInstances(instance_pb2.ListInstancesRequest(model="models/batchid"))
    assert [each.name for each in listed.instances] == [f"models/batchid/instances/b-{i}" for i in range(2)]
    missing, known = values_pb2.NamedValue(), values_pb2.NamedValue(nominal="b")
    assert dict(listed.instances[1].values.values) == {"X": known, "Y": missing}


def test_model_is_named_once_a_stream(api: Any, tools: Any) -> None:
    api.create("once")
    second = instance_pb2.PushInstancesRequest(rows=tools.packed([[1, 1]]), batch_id="second")
    acks = api.push(tools.batch("once", [[0, 0]], batch_id="first"), second)
    assert [(ack.batch_id, ack.committed_sequence) for ack in acks] == [("first", 1), ("second", 2)]


LABELS = [
    values_pb2.Label(vacuous=values_pb2.Vacuous()),
    values_pb2.Label(class_name="s"),
    values_pb2.Label(class_set=values_pb2.ClassSet(classes=["o", "x"])),
    values_pb2.Label(contour=values_pb2.Contour(plausibilities=[0.25, 1.0, 0.0])),
    values_pb2.Label(mass=values_pb2.MassFunction(focal_sets=[1, 6, 7], masses=[0.5, 0.25, 0.25])),
]
CONTOURS = [[1, 1, 1], [0, 1, 0], [1, 0, 1], [0.25, 1, 0], [0.75, 0.5, 0.5]]


def test_labels_come_back_unchanged(api: Any, tools: Any) -> None:
    api.create("labels")
    labels = values_pb2.Labels(list=values_pb2.LabelList(labels=LABELS))
    api.push(tools.batch("labels", [[0, 0]] * 5, ids=list("abcde"), labels=labels))
    listed = api.instances.ListInstances(instance_pb2.ListInstancesRequest(model="models/labels"))
    assert [each.history[0].label for each in listed.instances] == LABELS
    assert [list(each.contour.plausibilities) for each in listed.instances] == CONTOURS
    assert [each.history[0].author for each in listed.instances] == ["source"] * 5


def test_label_columns_mean_the_same(api: Any, tools: Any) -> None:
    api.create("columns")
    rows = [[0, 0]] * 2
    sets = values_pb2.Labels(sets=values_pb2.SetLabels(masks=[7, 2]))
    contours = values_pb2.Labels(contours=values_pb2.PackedContours(plausibilities=[1, 1, 1, 0, 1, 0]))
    everything = values_pb2.Labels(all_vacuous=values_pb2.Vacuous())
    acks = api.push(
        tools.batch("columns", rows, labels=sets, ids=["a", "b"]),
        tools.batch("columns", rows, labels=contours, ids=["c", "d"]),
        tools.batch("columns", rows, labels=everything, ids=["e", "f"]),
        tools.batch("columns", rows, ids=["g", "h"]),
    )
    assert acks[-1].committed_sequence == 8
    found = {
        name: list(
            api.instances.GetInstance(
                instance_pb2.GetInstanceRequest(name=f"models/columns/instances/{name}")
            ).contour.plausibilities
        )
        for name in "abcdefgh"
    }
    vacuous, precise = [1, 1, 1], [0, 1, 0]
    assert found == dict.fromkeys("acefgh", vacuous) | dict.fromkeys("bd", precise)


def test_instances_are_listed_in_pages(api: Any, tools: Any) -> None:
    api.create("pages")
    api.push(tools.table_t("pages"))
    names, token = [], ""
    for _ in range(10):
        request = instance_pb2.ListInstancesRequest(model="models/pages", page_size=8, page_token=token)
        page = api.instances.ListInstances(request)
        names += [each.name.rpartition("/")[2] for each in page.instances]
        token = page.next_page_token
        if not token:
            break
    assert names == [f"row{i}" for i in range(1, 22)]


def named(*rows: dict[str, Any]) -> values_pb2.Rows:
    message = values_pb2.Rows()
    for row in rows:
        values = message.named.rows.add().values
        for name, value in row.items():
            if isinstance(value, str):
                values[name].nominal = value
            else:
                values[name].number = value
    return message


def test_new_nominal_values_are_learned(api: Any, tools: Any) -> None:
    api.create("learn")
    rows = named({"X": "a", "Y": "d"}, {"X": "new", "Y": "d"}, {"Y": "other"}, {"X": "newer"}, {"X": "new"})
    (ack,) = api.push(instance_pb2.PushInstancesRequest(model="models/learn", rows=rows, ids=list("abcde")))
    assert ack.rows_stored == 5
    attributes = api.get("learn").specification.attributes
    assert list(attributes[0].nominal.values) == ["a", "b", "c", "new", "newer"]
    assert list(attributes[1].nominal.values) == ["d", "e", "other"]
    listed = api.instances.ListInstances(instance_pb2.ListInstancesRequest(model="models/learn"))
    back = [{name: value.nominal for name, value in each.values.values.items()} for each in listed.instances]
    assert back == [
        {"X": "a", "Y": "d"},
        {"X": "new", "Y": "d"},
        {"X": "", "Y": "other"},
        {"X": "newer", "Y": ""},
        {"X": "new", "Y": ""},
    ]
    api.push(tools.batch("learn", [[4, 2]]))  # learned values by index from now on
    tree = api.grown("learn", 6)
    assert list(tree.attributes[0].branches) == ["a", "b", "c", "?", "new", "newer"]
    with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, "0 to 4"):
        api.push(tools.batch("learn", [[5, 0]]))


# QueryService


def test_answers_are_kept_in_the_history(api: Any, tools: Any) -> None:
    api.create("history")
    api.push(tools.table_t("history"))
    (query,) = api.lease("history", "ann").queries
    said = values_pb2.Label(contour=values_pb2.Contour(plausibilities=[0.0, 1.0, 0.5]))
    done = api.answer(query, label=said, reliability=0.5)
    assert (done.committed_sequence, done.conflict, done.name) == (22, False, query.name)
    found = api.instances.GetInstance(instance_pb2.GetInstanceRequest(name=query.instance))
    source, answer = found.history
    assert (source.sequence, source.author, source.reliability) == (1, "source", 1.0)
    assert (answer.sequence, answer.author, answer.reliability, answer.label) == (22, "ann", 0.5, said)
    known = [0.8 * 0.5, 0.3 * 1.0, 0.3 * 0.75]  # row 1 of table T, discounted: r pl + 1 - r
    assert list(found.contour.plausibilities) == pytest.approx([each / max(known) for each in known])
    listed = api.queries.ListQueries(
        query_pb2.ListQueriesRequest(model="models/history", states=[query_pb2.QUERY_STATE_ANSWERED])
    )
    assert [each.name for each in listed.queries] == [query.name]
    assert not listed.queries[0].lease_token


def test_answer_that_contradicts_the_source_wins_and_is_reported(api: Any, tools: Any) -> None:
    api.create("conflict")
    api.push(tools.table_t("conflict"))
    query = next(each for each in api.lease("conflict", count=5).queries if 0 in each.contour.plausibilities)
    impossible = list(query.contour.plausibilities).index(0)
    said = label(query.classes[impossible])
    assert api.answer(query, label=said).conflict
    assert api.answer(query, label=said).conflict  # said again: the same answer
    found = api.instances.GetInstance(instance_pb2.GetInstanceRequest(name=query.instance))
    assert found.conflict
    assert list(found.contour.plausibilities) == [float(c == impossible) for c in range(3)]
    assert api.get("conflict").conflicts == 1


def test_an_answer_needs_a_label(api: Any, tools: Any) -> None:
    api.create("unlabelled")
    api.push(tools.table_t("unlabelled"))
    (query,) = api.lease("unlabelled").queries
    with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, "missing", field="label"):
        api.answer(query, label=None)


def test_lease_is_extended(api: Any, tools: Any) -> None:
    api.create("extend")
    api.push(tools.table_t("extend"))
    (query,) = api.lease("extend", lease_duration={"seconds": 1}).queries
    request = query_pb2.ExtendLeaseRequest(name=query.name, lease_token=query.lease_token)
    request.lease_duration.FromSeconds(600)
    extended = api.queries.ExtendLease(request)
    assert extended.lease_expire_time.seconds - query.lease_expire_time.seconds >= 590
    (listed,) = api.queries.ListQueries(
        query_pb2.ListQueriesRequest(model="models/extend", states=[query_pb2.QUERY_STATE_LEASED])
    ).queries
    # what is shown is wall time, made of the lease's own clock whenever somebody looks
    shown, told = (each.lease_expire_time.ToNanoseconds() / 1e9 for each in (listed, extended))
    assert (shown, listed.labeller) == (pytest.approx(told, rel=0, abs=0.1), "ann")


def test_queries_are_listed_in_pages(api: Any, tools: Any) -> None:
    api.create("qpages", budget=10)
    api.push(tools.table_t("qpages"))
    api.lease("qpages")
    numbers, token = [], ""
    for _ in range(20):
        page = api.queries.ListQueries(
            query_pb2.ListQueriesRequest(model="models/qpages", page_size=3, page_token=token)
        )
        numbers += [int(each.name.rpartition("/")[2]) for each in page.queries]
        token = page.next_page_token
        if not token:
            break
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) == 10


# ClassifyService


def test_classification_names_its_version_and_path(api: Any, tools: Any) -> None:
    api.create("classify")
    api.push(tools.table_t("classify"))
    tree = api.grown("classify", 21)
    rows = tools.packed([[2, 1], [0, math.nan], [math.nan, math.nan]])
    request = classify_pb2.ClassifyRequest(
        model="models/classify", rows=rows, want_paths=True, min_sequence=21
    )
    found = api.classifier.Classify(request)
    assert (found.tree_version, found.as_of, list(found.classes)) == (tree.version, 21, ["o", "s", "x"])
    for i, number in enumerate(found.nodes[:2]):
        part, of_node = slice(3 * i, 3 * i + 3), slice(3 * number, 3 * number + 3)
        assert found.class_indices[i] == tree.nodes.class_indices[number]
        assert found.theta[part] == found.pignistic[part] == tree.nodes.theta[of_node]
        assert found.belief[part] == tree.nodes.belief[of_node]
        assert found.plausibility[part] == tree.nodes.plausibility[of_node]
    assert found.nodes[2] == 0  # no missing value was seen: unknown ones go down every branch, by weight
    leaves = [at for at, attribute in enumerate(tree.nodes.attributes) if attribute < 0]
    theta = np.array(tree.nodes.theta).reshape(-1, 3)
    np.testing.assert_allclose(
        found.theta[6:], np.average(theta[leaves], axis=0, weights=[tree.nodes.counts[at] for at in leaves])
    )
    first = found.paths[0].steps[0]
    assert (first.attribute, first.value) in {("X", "c"), ("Y", "e")}
    assert not found.paths[2].steps


def test_unseen_value_takes_the_parents_estimate_and_is_not_recorded(api: Any, tools: Any) -> None:
    api.create("unseen")
    api.push(tools.table_t("unseen"))
    api.grown("unseen", 21)
    request = classify_pb2.ClassifyRequest(model="models/unseen", rows=named({"X": "never", "Y": "never"}))
    assert list(api.classifier.Classify(request).nodes) == [0]
    assert list(api.get("unseen").specification.attributes[0].nominal.values) == ["a", "b", "c"]


def test_classification_stream_answers_in_order(api: Any, tools: Any) -> None:
    api.create("cstream")
    api.push(tools.table_t("cstream"))
    api.grown("cstream", 21)
    rows = [[x, y] for x in range(3) for y in range(2)]
    single = [
        list(
            api.classifier.Classify(
                classify_pb2.ClassifyRequest(model="models/cstream", rows=tools.packed(row))
            ).nodes
        )
        for row in rows
    ]
    requests = (classify_pb2.ClassifyRequest(model="models/cstream", rows=tools.packed(row)) for row in rows)
    assert [list(each.nodes) for each in api.classifier.ClassifyStream(requests)] == single


def test_classification_by_a_tree_that_is_not_grown_yet(start_live: Any, tools: Any, tmp_path: Path) -> None:
    with_grower = start_live(tmp_path / "store.db")
    with_grower.api.create("notyet")
    with_grower.api.grown("notyet", 0)
    with_grower.close()
    api = start_live(tmp_path / "store.db", grower=False).api
    api.push(tools.batch("notyet", [[0, 0]] * 10))
    request = classify_pb2.ClassifyRequest(
        model="models/notyet", rows=tools.packed([[0, 0]]), min_sequence=10
    )
    with tools.refused(grpc.StatusCode.UNAVAILABLE, "sequence 0", "10"):
        api.classifier.Classify(request)


# TreeService


def test_any_version_of_a_tree_may_be_read(api: Any, tools: Any) -> None:
    api.create("versions")
    first = api.grown("versions", 0)
    api.push(tools.table_t("versions"))
    newest = api.grown("versions", 21)
    assert api.trees.GetTree(tree_pb2.GetTreeRequest(name=first.name)) == first
    assert api.trees.GetTree(tree_pb2.GetTreeRequest(name="models/versions/trees/latest")) == newest
    assert newest.version > first.version


def test_a_model_that_nobody_grew_says_that_it_has_no_tree(
    start_live: Callable[..., Any], tools: Any, tmp_path: Path
) -> None:
    api = start_live(tmp_path / "store.db", grower=False).api
    api.create("m")
    api.push(tools.table_t("m"))
    row = classify_pb2.ClassifyRequest(model="models/m", rows=tools.packed([[0, 0]]))
    with tools.refused(grpc.StatusCode.FAILED_PRECONDITION, "model m has no tree yet"):
        api.classifier.Classify(row)
    with tools.refused(grpc.StatusCode.FAILED_PRECONDITION, "model m has no tree yet"):
        api.trees.GetTree(tree_pb2.GetTreeRequest(name="models/m/trees/latest"))


def test_watch_sends_newer_versions_only(api: Any, tools: Any) -> None:
    api.create("watch")
    watch = api.trees.WatchTree(tree_pb2.WatchTreeRequest(model="models/watch"), timeout=60)
    versions = [next(watch).tree.version]
    for i in range(5):
        (ack,) = api.push(tools.batch("watch", [[i % 3, i % 2]]))
        for response in watch:
            versions.append(response.tree.version)
            if response.tree.as_of >= ack.committed_sequence:
                break
    watch.cancel()
    assert versions == sorted(set(versions))
    assert len(versions) >= 6


@pytest.mark.parametrize(
    ("form", "media_type", "start"),
    [
        (1, "text/plain; charset=utf-8", "s  n=21"),
        (2, "text/vnd.graphviz", "digraph"),
        (3, "image/svg+xml", "<svg"),
    ],
)
def test_drawings(form: int, media_type: str, start: str, api: Any, tools: Any) -> None:
    model = f"draw{form}"
    api.create(model)
    api.push(tools.table_t(model))
    api.grown(model, 21)
    drawn = api.trees.RenderTree(
        tree_pb2.RenderTreeRequest(name=f"models/{model}/trees/latest", format=form), timeout=60
    )
    assert drawn.media_type == media_type
    assert start in drawn.content[:500]


# Standard services


def test_health(api: Any, tools: Any) -> None:
    stub = health_pb2_grpc.HealthStub(api.channel)
    for service in ("", *(f"quercus.v1.{name}" for name in RPCS)):
        assert stub.Check(health_pb2.HealthCheckRequest(service=service)).status == 1
    with tools.refused(grpc.StatusCode.NOT_FOUND):
        stub.Check(health_pb2.HealthCheckRequest(service="nothing"))


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_describes_every_service(version: str, api: Any) -> None:
    """Both versions are the same on the wire."""
    own = f"grpc.reflection.{version}.ServerReflection"
    ask = api.channel.stream_stream(
        f"/{own}/ServerReflectionInfo",
        reflection_pb2.ServerReflectionRequest.SerializeToString,
        reflection_pb2.ServerReflectionResponse.FromString,
    )
    (response,) = ask(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
    names = {each.name for each in response.list_services_response.service}
    assert {own, "inference.GRPCInferenceService", *(f"quercus.v1.{name}" for name in RPCS)} <= names
    asked = [reflection_pb2.ServerReflectionRequest(file_containing_symbol=name) for name in sorted(names)]
    described = b"".join(
        b"".join(each.file_descriptor_response.file_descriptor_proto) for each in ask(iter(asked))
    )
    for name in names:
        assert name.rpartition(".")[2].encode() in described


def test_no_rpc_is_missing(api: Any) -> None:
    files = (admin_pb2, model_pb2, instance_pb2, query_pb2, classify_pb2, tree_pb2)
    declared = {
        service.name: {method.name for method in service.methods}
        for file in files
        for service in file.DESCRIPTOR.services_by_name.values()
    }
    assert declared == RPCS


@pytest.mark.slow
def test_models_that_are_deleted_meanwhile_are_not_listed(
    start_live: Callable[..., Any], tmp_path: Path
) -> None:
    live = start_live(tmp_path / "store.db", grower=False)
    specification = Specification([Nominal("X", "ab")], ["o", "s"])
    ended = threading.Event()

    def come_and_go() -> None:
        try:
            with Client(live.server.address) as client:
                for _ in range(40):
                    for name in "abc":
                        client.create_model(name, specification)
                    for name in "abc":
                        client.delete_model(name)
        finally:
            ended.set()

    with Client(live.server.address) as client, ThreadPoolExecutor(1) as pool:
        client.create_model("stays", specification)
        done = pool.submit(come_and_go)
        while not ended.is_set():
            names = [model.name for model in client.models()]
            assert names[-1] == "stays"
            lease = client.lease("-", "ann", only=Filter(tags=["red"]))
            assert not lease.queries
        done.result()


def test_queries_of_table_t_in_the_order_of_the_paper(api: Any, tools: Any) -> None:
    api.create("order")
    api.push(tools.table_t("order"))
    asked, reasons = [], []
    for _ in range(5):
        (query,) = api.lease("order").queries
        row = int(query.instance.rpartition("/row")[2])
        asked.append(row)
        reasons.append(query.reason)
        assert list(query.classes) == ["o", "s", "x"]
        assert list(query.contour.plausibilities) == tools.rows_t[row - 1, 2:].tolist()
        api.answer(query, label=label(tools.truth_t[row - 1]))
    assert asked == [1, 8, 12, 20, 6]
    assert [(reason.attribute, reason.value) for reason in reasons[:2]] == [("X", "a"), ("X", "b")]
    assert [rival.attribute for rival in reasons[0].rivals] == ["X", "Y"]
    assert (list(reasons[0].path), reasons[0].node_count) == ([], 21)
    spent = api.lease("order")
    assert (len(spent.queries), spent.idle, spent.budget_left) == (
        0,
        query_pb2.LeaseQueriesResponse.IDLE_BUDGET_SPENT,
        0,
    )
    text = api.trees.RenderTree(
        tree_pb2.RenderTreeRequest(
            name="models/order/trees/latest", format=tree_pb2.RenderTreeRequest.FORMAT_TEXT
        )
    ).content
    assert text.splitlines()[0].endswith("by X")
    nodes = api.grown("order", 26).nodes
    assert (nodes.interval_counts[0], nodes.interval_attributes[:2]) == (2, [0, 1])
    assert nodes.interval_lowers[:2] == pytest.approx([0.51625, 0.08069], abs=1e-5)
    assert nodes.interval_uppers[:2] == pytest.approx([0.77791, 0.47016], abs=1e-5)
