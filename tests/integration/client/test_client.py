"""The synchronous client against a live server."""

import itertools
import math
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from integration.client.serving import Serving

from quercus.client import (
    AlreadyExists,
    Client,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    Model,
    Nominal,
    NotFound,
    Numeric,
    Pruning,
    PushReport,
    RejectedRow,
    RejectedRows,
    Specification,
    Unavailable,
)
from quercus.client.query_calls import LONGEST_POLL_S
from quercus.specification.strategies import MARGIN

ROWS: list[dict[str, object]] = [{"X": "a", "y": 0.5}, {"X": "b", "y": 1.5}, {"X": "a"}, {"X": "b", "y": 2.5}]


def test_models_are_created_read_changed_and_deleted(client: Client, name: str) -> None:
    given = Specification(
        [
            Nominal("X", ["a", "b"], "reject"),
            Numeric("y", 5),
            Numeric("z", edges=[0.0, 1.0]),
            Numeric("w", cuts=9),
        ],
        ["o", "s", "x"],
        alpha=0.5,
        budget=7,
        min_instances=3,
        max_depth=4,
        warmup_rows=50,
        pruning=Pruning("likelihood", 0.01),
    )
    created = client.create_model(name, given)
    assert (created.name, created.budget, created.instance_count) == (name, 7, 0)
    held = created.specification
    assert held.attributes[:2] == given.attributes[:2]
    assert held.attributes[2].edges == (0.0, 1.0)  # type: ignore[union-attr]
    assert held.attributes[3] == given.attributes[3]
    assert (held.pruning, held.strategy) == (given.pruning, {"name": MARGIN})
    assert (held.classes, held.alpha, held.max_depth) == (("o", "s", "x"), 0.5, 4)
    kept = client.update_model(name, pruning=Pruning("chi-square")).specification
    assert (kept.pruning, kept.alpha) == (Pruning("chi-square", 0.05), 0.5)
    changed = client.update_model(name, budget=9, max_depth=None, pruning=None)
    assert changed.specification.pruning is None
    assert (changed.budget, changed.specification.max_depth, changed.specification.alpha) == (9, None, 0.5)
    assert name in [each.name for each in client.models()]
    client.delete_model(name)
    with pytest.raises(NotFound, match=name):
        client.get_model(name)


def test_errors_of_the_server_arrive_with_their_fields(client: Client, model: Model) -> None:
    with pytest.raises(AlreadyExists, match=model.name):
        client.create_model(model.name, model.specification)
    with pytest.raises(InvalidArgument) as caught:
        client.create_model("bad-model", Specification([Numeric("y")], ["o", "s"], alpha=1.5))
    assert [violation.field for violation in caught.value.violations] == ["specification.alpha"]
    assert "1.5" in str(caught.value)


FORMS = {
    "dicts": ROWS,
    "sequences": [["a", 0.5], ["b", 1.5], ["a", None], ["b", 2.5]],
    "numbers": np.array([[0, 0.5], [1, 1.5], [0, np.nan], [1, 2.5]]),
    "frame": pd.DataFrame({"X": ["a", "b", "a", "b"], "y": [0.5, 1.5, None, 2.5]}),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_every_form_arrive_the_same(client: Client, model: Model, form: str) -> None:
    report = client.push(model.name, FORMS[form], batch_rows=3)
    assert (report.rows, report.stored, report.known, report.batches) == (4, 4, 0, 2)
    values = [dict(each.values) for each in client.instances(model.name)]
    assert [v.get("X") for v in values] == ["a", "b", "a", "b"]
    assert [v.get("y") for v in values] == [0.5, 1.5, None, 2.5]


def test_labels_of_every_form_arrive(client: Client, model: Model) -> None:
    labels = ["o", {"o", "s"}, {"o": 0.25, "s": 1.0}, {frozenset({"s"}): 0.5, frozenset({"o", "s"}): 0.5}]
    client.push(model.name, ROWS, labels, ids=["p", "q", "r", "t"])
    assert client.get_instance(model.name, "p").contour == (1.0, 0.0)
    assert client.get_instance(model.name, "q").contour == (1.0, 1.0)
    assert client.get_instance(model.name, "r").contour == (0.25, 1.0)
    last = client.get_instance(model.name, "t")
    assert last.contour == (0.5, 1.0)
    assert last.history[0].label == labels[3]


def test_a_push_may_be_repeated(client: Client, model: Model) -> None:
    client.push(model.name, ROWS, ids=list("pqrt"))
    again = client.push(model.name, ROWS, ids=list("pqrt"))
    assert (again.stored, again.known) == (0, 4)
    with pytest.raises(AlreadyExists) as caught:
        client.push(model.name, [{"X": "b", "y": None}], ids=["p"])
    assert caught.value.report is not None
    assert caught.value.report.rows == 0


def test_progress_is_reported_and_values_seen_later_become_known(client: Client, model: Model) -> None:
    seen: list[PushReport] = []
    rows = ([f"v{i // 50}", float(i)] for i in range(500))
    report = client.push(model.name, rows, batch_rows=20, on_progress=seen.append)
    assert report.rows == 500
    assert [each.rows for each in seen] == list(range(20, 501, 20))
    attribute = client.get_model(model.name).specification.attributes[0]
    assert tuple(attribute.values) == ("a", "b", *(f"v{i}" for i in range(10)))  # type: ignore[union-attr]


def test_a_bad_row_stops_the_push_after_what_came_before_it(client: Client, model: Model) -> None:
    rows = [["a", 1.0]] * 25 + [["a", "much"]]
    with pytest.raises(InvalidArgument, match=r"rows\[25\].y") as caught:
        client.push(model.name, rows, batch_rows=10)
    assert caught.value.report is not None
    assert caught.value.report.rows == 20
    assert client.get_model(model.name).instance_count == 20


def test_the_error_of_a_refused_row_counts_the_accepted_rows(client: Client, model: Model) -> None:
    rows = np.array([[0, 1.0]] * 10 + [[0, np.inf]])
    with pytest.raises(InvalidArgument, match="10 rows had been acknowledged") as caught:
        client.push(model.name, rows, batch_rows=5)
    assert caught.value.violations
    assert client.get_model(model.name).instance_count == 10


@pytest.mark.parametrize("batch_rows", [2, 1000])
def test_a_push_goes_on_where_somebody_takes_what_is_refused(
    client: Client, model: Model, batch_rows: int
) -> None:
    """Row by row, whether the client finds the fault (a text) or the server (an id), on a stream or in one call."""
    client.push(model.name, ROWS[:1], ids=["q"])
    refused: list[RejectedRow] = []
    seen: list[PushReport] = []
    rows = [*ROWS[:2], *ROWS[1:], *ROWS[:1], {"X": "b", "y": "much"}, *ROWS[1:3]]
    ids = ["p", "p2", "q", "q2", "r", "r2", "s", "a/b", "a/b"]
    report = client.push(
        model.name, rows, ids=ids, batch_rows=batch_rows, on_progress=seen.append, on_rejected=refused.extend
    )
    assert (report.rows, report.stored, report.rejected) == (6, 6, 3)
    found = {each.id: each for each in refused}
    assert {each.id: (each.position, type(each.error), each.error.row) for each in refused} == {
        "q": (2, AlreadyExists, 2),
        "s": (6, InvalidArgument, 6),
        "a/b": (8, AlreadyExists, 8),
    }
    assert str(found["q"].error).startswith("ids[2]: instance q already exists")
    assert str(found["s"].error) == "rows[6].y: the attribute is numeric, got the text 'much'"
    assert (found["q"].values, found["s"].values) == (ROWS[1], None)
    assert (seen[-1].rows, seen[-1].rejected) == (6, 3)
    assert client.get_instance(model.name, "a/b").id == "a/b"
    alone: list[RejectedRow] = []
    assert client.push(model.name, ROWS[1:2], ids=["q"], on_rejected=alone.extend).rejected == 1
    assert [(each.position, each.id) for each in alone] == [(0, "q")]


def test_a_push_ends_at_the_first_refused_row_and_stores_what_is_before_its_message(
    client: Client, model: Model
) -> None:
    client.push(model.name, ROWS[:1], ids=["q"])
    given = [f"r{row}" for row in range(40)]
    given[25] = "q"
    with pytest.raises(
        AlreadyExists, match=r"^ids\[25\]: instance q already .*; 20 rows had been ack"
    ) as caught:
        client.push(model.name, [ROWS[1]] * 40, ids=given, batch_rows=10)
    assert (caught.value.row, caught.value.report and caught.value.report.rows) == (25, 20)
    stored = {each.id for each in client.instances(model.name)}
    assert stored >= set(given[:20])
    assert stored.isdisjoint(set(given[20:30]) - {"q"})
    with pytest.raises(AlreadyExists, match=r"^ids\[1\]: instance q") as caught:
        client.push(model.name, [ROWS[1]] * 2, ids=["new", "q"])
    assert caught.value.row == 1
    # rows 30 to 39, which were on their way when row 25 was refused, may be stored by now
    assert "new" not in {each.id for each in client.instances(model.name)}


def test_a_taker_of_refused_rows_that_fails_gets_them_again(client: Client, model: Model) -> None:
    client.push(model.name, ROWS[:1], ids=["q"])
    refused: list[RejectedRow] = []

    def take(rows: RejectedRows) -> None:
        refused.extend(rows)
        if len(refused) == 1:
            raise Unavailable("the place for refused rows is away")

    report = client.push(model.name, ROWS[1:], ids=["q", "p", "r"], batch_rows=1, on_rejected=take)
    assert (report.rejected, report.rows, [each.id for each in refused]) == (1, 2, ["q", "q"])


def test_an_exception_of_the_rows_own_is_theirs(client: Client, model: Model) -> None:
    def rows() -> Iterator[list[float]]:
        yield from [[0.0, 1.0]] * 7
        raise KeyError("sensor unplugged")

    with pytest.raises(KeyError, match="sensor unplugged") as caught:
        client.push(model.name, ([("a", "b")[int(x)], y] for x, y in rows()), batch_rows=5)
    assert caught.value.__notes__ == ["5 rows had been acknowledged"]
    assert client.get_model(model.name).instance_count == 5


def test_a_slow_sensor_learns_of_its_acknowledgements_on_the_way(client: Client, model: Model) -> None:
    seen: list[PushReport] = []
    seen_at: list[int] = []

    def sensor() -> Iterator[list[object]]:
        for i in range(12):
            while i > 1 and client.get_model(model.name).instance_count < i - 1:
                pass  # each call goes there and back: no busy loop
            seen_at.append(len(seen))
            yield ["a", float(i)]

    client.push(model.name, sensor(), batch_rows=1, window=100, on_progress=seen.append)
    assert seen_at[-1] > 0  # although the window never filled
    assert len(seen) == 12


def test_queries_end_at_once_when_the_budget_is_spent(client: Client, model: Model) -> None:
    client.update_model(model.name, budget=1)
    client.push(model.name, ROWS * 3)
    for query in client.queries(model.name, "ann", idle_s=None):
        client.answer(query, "o")
        answered = time.monotonic()
    assert list(client.queries(model.name, "ann", idle_s=None)) == []
    assert time.monotonic() - answered < LONGEST_POLL_S


def test_nothing_to_push_and_nothing_to_classify(client: Client, model: Model) -> None:
    assert client.push(model.name, []).rows == 0
    answers = client.classify(model.name, [])
    assert (len(answers), answers.theta.shape, answers.labels) == (0, (0, 2), [])


def test_queries_are_asked_answered_and_end_with_the_budget(client: Client, model: Model) -> None:
    client.push(model.name, ROWS * 5)
    asked = []
    for query in client.queries(model.name, "ann", idle_s=None):
        assert query.labeller == "ann"
        assert query.classes == ("o", "s")
        assert query.contour == (1.0, 1.0)
        assert {rival.attribute for rival in query.reason.rivals} == {"X", "y"}
        assert query.reason.node_count == 20
        asked.append(query)
        report = client.answer(query, "o" if query.values["X"] == "a" else {"s"})
        assert not report.conflict
    assert len(asked) == len({query.instance for query in asked}) == 3
    assert [query.number for query in client.list_queries(model.name, ["answered"])] == [
        q.number for q in asked
    ]
    assert client.get_model(model.name).queries_answered == 3


def test_own_writes_are_read(client: Client, model: Model) -> None:
    client.push(model.name, ROWS * 5)
    lease = client.lease(model.name, "ann", wait_s=30.0)  # waits for the tree that has seen this push
    assert lease.queries
    assert client.tree(model.name).as_of >= 20


def test_a_refusal_excludes_the_instance(client: Client, model: Model) -> None:
    client.push(model.name, ROWS[:2], ids=["p", "q"])
    refused = []
    for query in client.queries(model.name, "ann", idle_s=1.0):
        client.refuse(query)
        refused.append(query.instance)
    assert sorted(refused) == ["p", "q"]
    now = client.get_model(model.name)
    assert (now.queries_refused, now.queries_answered) == (2, 0)


def test_an_answer_twice_is_one_and_another_answer_is_refused(client: Client, model: Model) -> None:
    client.push(model.name, ROWS * 3)
    query = client.lease(model.name, "ann", wait_s=30.0).queries[0]
    assert client.answer(query, "o") == client.answer(query, "o")
    with pytest.raises(FailedPrecondition):
        client.answer(query, "s")
    with pytest.raises(InvalidArgument, match="'z' is not a class; the classes are o, s"):
        client.answer(query, "z")
    with pytest.raises(InvalidArgument, match="reliability"):
        client.answer(client.lease(model.name, "ann", wait_s=30.0).queries[0], "s", reliability=2.0)


def test_leases_are_extended_while_the_labeller_thinks(client: Client, model: Model) -> None:
    client.update_model(model.name, budget=1)
    client.push(model.name, ROWS * 3)
    with Client(client.address) as other:
        for query in client.queries(model.name, "ann", lease_s=2.0):
            # Twice as long as the lease: without extensions the other would get the query.
            assert not other.lease(model.name, "bob", wait_s=4.0).queries
            client.answer(query, "o")
    assert client.get_model(model.name).queries_answered == 1


def test_an_abandoned_query_goes_back_soon(client: Client, model: Model) -> None:
    client.update_model(model.name, budget=1)
    client.push(model.name, ROWS * 3)
    queries = client.queries(model.name, "ann", lease_s=600.0)
    held = next(queries)
    queries.close()
    started = time.monotonic()
    with Client(client.address) as other:
        lease = other.lease(model.name, "bob", wait_s=30.0)
    assert [query.number for query in lease.queries] == [held.number]
    assert time.monotonic() - started < 20.0


def test_classification_names_classes_bounds_paths_and_version(client: Client, model: Model) -> None:
    client.push(model.name, ROWS * 10, ["o", "s"] * 20)
    grown = client.wait_grown(model.name)
    answers = client.classify(model.name, ROWS, want_paths=True)
    assert answers.labels == ["o", "s", "o", "s"]
    assert answers.version == grown.tree_version
    assert (answers.belief <= answers.theta + 1e-9).all()
    assert (answers.theta <= answers.plausibility + 1e-9).all()
    np.testing.assert_allclose(answers.theta.sum(axis=1), 1.0)
    assert answers[1].path == (("X", "b"),)
    assert [each.label for each in answers] == answers.labels
    unseen = client.classify(model.name, [["never seen", 0.5]])
    assert unseen.classes == ("o", "s")


def test_many_rows_are_classified_in_several_requests(client: Client, model: Model) -> None:
    client.push(model.name, ROWS * 10, ["o", "s"] * 20)
    client.wait_grown(model.name)
    rows = np.tile([[0, 0.5], [1, 0.5]], (12_500, 1))
    answers = client.classify(model.name, rows)
    assert answers.indices.tolist() == [0, 1] * 12_500
    assert set(answers.versions) == {answers.version}


def test_trees_of_any_version_and_drawings(client: Client, model: Model) -> None:
    first = client.wait_grown(model.name).tree_version
    client.push(model.name, ROWS * 10, ["o", "s"] * 20)
    client.wait_grown(model.name)
    tree = client.tree(model.name)
    assert tree.root.attribute == "X"
    assert [(leaf.branch, leaf.class_name, leaf.count) for leaf in tree.leaves] == [
        ("a", "o", 20),
        ("b", "s", 20),
    ]
    assert tree.path(tree.nodes[2]) == (("X", "b"),)
    assert (tree.depth, tree.undecided, len(client.tree(model.name, first).nodes)) == (1, (), 1)
    assert tree.to_dict()["children"]["b"]["class"] == "s"
    assert client.render(model.name).count("\n") >= 2
    assert client.render(model.name, "dot").startswith("digraph")
    assert "<svg" in client.render(model.name, "svg")
    with pytest.raises(NotFound):
        client.tree(model.name, 10_000)


def test_waiting_for_growth_that_does_not_come_ends(client: Client, model: Model) -> None:
    with pytest.raises(DeadlineExceeded, match=r"had grown to event 0 of 1000 after 0\.5 s"):
        client.wait_grown(model.name, 1000, timeout_s=0.5)


@pytest.mark.parametrize("timeout_s", [1e12, math.inf])
def test_a_limit_beyond_all_clocks_is_none(client: Client, model: Model, timeout_s: float) -> None:
    """gRPC takes such a deadline for one that has passed."""
    client.push(model.name, FORMS["dicts"])
    client.wait_grown(model.name, timeout_s=timeout_s)
    assert next(iter(client.watch(model.name, timeout_s=timeout_s))).tree.version >= 1
    with Client(client.address, timeout_s=timeout_s) as patient:
        assert patient.get_model(model.name).instance_count == 4


def test_rows_that_the_server_returns_are_rows_to_classify_and_to_push(client: Client, name: str) -> None:
    """Also those without a value, and with one that the model does not keep, wherever they are returned."""
    attributes = [Nominal("X", ["a"], max_values=1), Numeric("y", edges=[1.0])]
    client.create_model(name, Specification(attributes, ["o", "s"], budget=9))
    rows = [["a", None], [None, None], ["b", None], ["a", 0.5]]
    client.push(name, rows, [None, None, None, "s"], ids=["1", "2", "3", "4"])
    client.wait_grown(name)
    wanted = {
        "1": {"X": "a", "y": None},
        "2": {"X": None, "y": None},
        "3": {"X": "(other names)", "y": None},
        "4": {"X": "a", "y": 0.5},
    }
    assert {each.id: each.values for each in client.instances(name)} == wanted
    assert client.get_instance(name, "2").values == wanted["2"]
    with closing(client.queries(name, "ann", idle_s=60.0)) as asked:
        query = next(asked)
        assert query.values == wanted[query.instance]
        client.answer(query, "o")
    events = itertools.islice(client.watch_events(name, kinds=["instance"], with_values=True), 4)
    assert [each.values for each in events] == list(wanted.values())
    refused: list[RejectedRow] = []
    client.push(name, [["a", None], ["b", 0.5]], ["s", "o"], ids=["4", "4"], on_rejected=refused.extend)
    assert [each.values for each in refused] == [wanted["1"], {"X": "b", "y": 0.5}]
    answers = {each.instance: each.values for each in client.answers(name, with_values=True)}
    assert answers
    assert all(values == wanted[instance] for instance, values in answers.items())
    for i, values in enumerate(wanted.values()):
        assert client.classify(name, [values]).labels
        client.push(name, [values], ids=[f"again-{i}"])
    assert [each.values for each in client.instances(name)][4:] == list(wanted.values())


def test_no_server() -> None:
    with Client("127.0.0.1:9", timeout_s=5.0) as client:
        with pytest.raises(Unavailable, match=r"no server answers at 127\.0\.0\.1:9"):
            client.get_model("m")
        with pytest.raises(Unavailable, match=r"no server answers at 127\.0\.0\.1:9 after 0\.2 s"):
            client.wait_ready(0.2)


def test_a_push_survives_a_killed_server(tmp_path: Path, model: Model, name: str) -> None:
    first = Serving(tmp_path, grower=False)
    servers = [first]

    def restart_at(report: PushReport) -> None:
        if report.rows >= 500 and len(servers) == 1:
            first.kill()
            servers.append(Serving(tmp_path, first.port, grower=False))

    try:
        with Client(first.address) as client:
            client.create_model(name, model.specification)
            report = client.push(name, ROWS * 500, batch_rows=50, on_progress=restart_at)
            assert len(servers) == 2
            assert report.rows == 2000
            assert client.get_model(name).instance_count == 2000
    finally:
        for server in servers:
            server.stop()
