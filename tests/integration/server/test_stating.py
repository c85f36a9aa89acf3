"""Labels stated unasked: what they cost, what becomes of queries, what all say together, the tree; on live servers."""

import signal
import sqlite3
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from quercus.belief.errors import InvalidInput
from quercus.client import Client
from quercus.client.plugins import to_proto
from quercus.labelling.crowds import CrowdAnswers, estimate_crowd
from quercus.server.transfer.stored_contents import StoredModel
from quercus.specification.attributes import Nominal
from quercus.storage import Store, file_url
from quercus.storage.admin.verify import verify_store
from quercus.trees import C45, E2m
from quercus.trees.growth.abc45 import induce
from quercus.trees.learners.learner import fit
from quercus.trees.learners.table import Table
from quercus.trees.tree.flat import FlatTree
from quercus.v1 import instance_pb2, model_pb2, query_pb2, values_pb2

CLASSES = ("o", "s", "x")
EVERYTHING = frozenset(CLASSES)
State = query_pb2.QueryState


def label(*names: str) -> values_pb2.Label:
    return values_pb2.Label(class_set=values_pb2.ClassSet(classes=names))


def said(instance: str, labeller: str, *names: str, **fields: Any) -> instance_pb2.Statement:
    given = label(*names) if names else None
    return instance_pb2.Statement(instance_id=instance, labeller=labeller, label=given, **fields)


def state(
    api: Any, model: str, *statements: Any, request: str = "r", **fields: Any
) -> instance_pb2.StateEvidenceResponse:
    return api.instances.StateEvidence(
        instance_pb2.StateEvidenceRequest(
            model=f"models/{model}", statements=statements, request_id=request, **fields
        ),
        timeout=60,
    )


def instance(api: Any, model: str, name: str) -> instance_pb2.Instance:
    request = instance_pb2.GetInstanceRequest(name=f"models/{model}/instances/{name}")
    return api.instances.GetInstance(request)


def known(api: Any, model: str, name: str) -> list[float]:
    return list(instance(api, model, name).contour.plausibilities)


def queries(api: Any, model: str, *states: int) -> list[query_pb2.Query]:
    request = query_pb2.ListQueriesRequest(model=f"models/{model}", states=states, page_size=1000)
    return list(api.queries.ListQueries(request).queries)


@pytest.fixture
def asking(api: Any, tools: Any, request: pytest.FixtureRequest) -> str:
    """A model of table T that asks; its name is the test's."""
    model = request.node.name.removeprefix("test_").replace("_", "-")[:60]
    api.create(model, budget=12)
    api.push(tools.table_t(model))
    api.grown(model, 21)
    return model


@pytest.fixture(scope="session")
def stated(api: Any, tools: Any) -> str:
    """A model of table T of which nothing is stated."""
    api.create("stated-of")
    api.push(tools.table_t("stated-of"))
    return "stated-of"


def test_a_statement_counts_costs_nothing_and_withdraws_the_open_query(api: Any, asking: str) -> None:
    (asked,) = queries(api, asking, State.QUERY_STATE_OPEN)[:1]
    row = asked.instance.rpartition("/")[2]
    before = api.get(asking)
    done = state(api, asking, said(row, "ann", "s", comment="I was there"))
    assert (done.statements_stored, done.statements_known) == (1, 0)
    assert done.committed_sequence == before.sequence_committed + 2
    after = api.get(asking)
    assert (after.queries_answered, after.queries_leased) == (0, 0)
    assert known(api, asking, row) == [0, 1, 0]
    assert asked.name in {each.name for each in queries(api, asking, State.QUERY_STATE_WITHDRAWN)}
    history = instance(api, asking, row).history
    assert [each.kind for each in history] == [
        instance_pb2.LogEvent.KIND_INSTANCE,
        instance_pb2.LogEvent.KIND_STATEMENT,
        instance_pb2.LogEvent.KIND_CORRECTION,
    ]
    assert (history[1].author, history[1].comment) == ("ann", "I was there")
    assert api.grown(asking, done.committed_sequence).as_of >= done.committed_sequence
    assert row not in {each.instance.rpartition("/")[2] for each in queries(api, asking, 1, 2)}


def test_the_same_request_and_the_same_words_count_once(api: Any, asking: str, tools: Any) -> None:
    first = state(api, asking, said("row1", "ann", "s"), said("row2", "bob", "o", "x"))
    again = state(api, asking, said("row1", "ann", "s"), said("row2", "bob", "o", "x"))
    assert (again.statements_stored, again.statements_known) == (0, 2)
    other = state(api, asking, said("row1", "ann", "s"), said("row3", "ann", "s"), request="another")
    assert (other.statements_stored, other.statements_known) == (1, 1)
    assert again.committed_sequence == first.committed_sequence < other.committed_sequence
    with tools.refused(grpc.StatusCode.ALREADY_EXISTS, "request", "with other statements"):
        state(api, asking, said("row1", "ann", "x"))


def test_a_crowd_is_weighed_by_its_agreement(api: Any, asking: str) -> None:
    policy = query_pb2.LabellingPolicy(reliability=query_pb2.RELIABILITY_SOURCE_ESTIMATED)
    api.queries.UpdateLabellingPolicy(
        query_pb2.UpdateLabellingPolicyRequest(model=f"models/{asking}", policy=policy)
    )
    truth = {f"row{i}": CLASSES[i % 3] for i in range(1, 21)}
    statements = [said(row, who, name) for row, name in truth.items() for who in ("ann", "bob", "cleo")]
    statements += [said(row, "liar", CLASSES[(CLASSES.index(name) + 1) % 3]) for row, name in truth.items()]
    state(api, asking, *statements)
    weights = {each.author: each.reliability for each in instance(api, asking, "row1").history[1:-1]}
    assert weights["ann"] > 0.9
    assert weights["liar"] < 0.4
    table = query_pb2.ListLabellersRequest(model=f"models/{asking}")
    labellers = {each.name: each for each in api.queries.ListLabellers(table).labellers}
    assert {name: each.stated for name, each in labellers.items()} == dict.fromkeys(
        ("ann", "bob", "cleo", "liar"), 20
    )
    assert labellers["ann"].reliability > 0.9 > labellers["liar"].reliability
    assert 0 < labellers["ann"].reliability_deviation < 0.1
    assert 0 < labellers["liar"].agreement_deviation < 0.1


def test_who_always_says_the_same_says_nothing(api: Any, asking: str) -> None:
    """Each label counts as its labeller's confusion matrix says, one with a reliability of its own as it is sent."""
    policy = query_pb2.LabellingPolicy(reliability=query_pb2.RELIABILITY_SOURCE_ESTIMATED)
    api.queries.UpdateLabellingPolicy(
        query_pb2.UpdateLabellingPolicyRequest(model=f"models/{asking}", policy=policy)
    )
    truth = {i: i % 3 for i in range(20)}
    words = [(i, j, klass if j < 3 else 0) for i, klass in truth.items() for j in range(4)]
    words.append((20, 3, 0))
    sent = [said(f"row{i + 1}", f"w{j}", CLASSES[c]) for i, j, c in words]
    state(api, asking, *sent)
    instances, labellers, classes = np.array(words).T
    crowd = estimate_crowd(CrowdAnswers.of(instances, labellers, np.eye(3)[classes]))
    alone = crowd.answer_evidence(3, np.eye(3)[0])
    assert alone.min() > 0.85  # "o" of somebody who says nothing else
    assert known(api, asking, "row21") == pytest.approx(after_pushed("row21", alone), abs=2e-3)
    together = np.prod([crowd.answer_evidence(j, np.eye(3)[1 if j < 3 else 0]) for j in range(4)], axis=0)
    assert known(api, asking, "row2") == pytest.approx(after_pushed("row2", together), abs=2e-3)
    state(api, asking, said("row21", "judge", "s", reliability=0.6), request="more")
    assert known(api, asking, "row21") == pytest.approx(
        after_pushed("row21", alone * [0.4, 1.0, 0.4]), abs=0.05
    )  # not quite: now that two speak of it, this row tells more of the one who says "o"


@pytest.mark.parametrize(
    ("statements", "fields", "field", "words"),
    [
        ([], {}, "statements", "are 0, must be 1 to 10,000"),
        ([said("row1", "ann", "s")], {"request": ""}, "request_id", "has 0 characters"),
        ([said("row1", "", "s")], {}, "statements[0].labeller", "must be 1 to 100"),
        ([said("row1", "ann", "s"), said("row1", "bob", "q")], {}, "statements[1].label.class_set", "'q'"),
        ([said("row1", "ann")], {}, "statements[0].label", "is missing"),
        ([said("row1", "ann", "s", retract=True)], {}, "statements[0].label", "retract takes back"),
        ([said("row1", "ann", "s", reliability=1.5)], {}, "statements[0].reliability", "1.5"),
        ([said("", "ann", "s")], {}, "statements[0].instance_id", "has 0 characters"),
        ([said("row1", "ann", "s", comment="c" * 2001)], {}, "statements[0].comment", "at most 2000"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_stored(
    statements: Any, fields: Any, field: str, words: str, api: Any, tools: Any, stated: str
) -> None:
    with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, words, field=field):
        state(api, stated, *statements, **fields)
    assert api.get(stated).sequence_committed == 21


def test_rows_that_are_not_there_are_counted_and_named(api: Any, asking: str, tools: Any) -> None:
    missing = [said(f"no{i}", "ann", "s") for i in range(8)]
    words = ("'no0', 'no1', 'no2', 'no3', 'no4' and 3 more", "8 of 9 are not there")
    with tools.refused(grpc.StatusCode.NOT_FOUND, *words):
        state(api, asking, said("row1", "ann", "s"), *missing)
    assert api.get(asking).sequence_committed == 21


def test_a_policy_without_corrections_holds_for_statements(api: Any, asking: str, tools: Any) -> None:
    policy = query_pb2.LabellingPolicy(corrections=query_pb2.CORRECTION_PERMISSION_NOBODY)
    api.queries.UpdateLabellingPolicy(
        query_pb2.UpdateLabellingPolicyRequest(model=f"models/{asking}", policy=policy)
    )
    state(api, asking, said("row1", "ann", "s"))
    with tools.refused(grpc.StatusCode.FAILED_PRECONDITION, "ann has stated a different label", "'row1'"):
        state(api, asking, said("row1", "ann", "x"), request="other")


TABLE = [
    *[(.8, .3, .3), (.2, 1, .7), (.1, .1, 1), (.3, 0, 1), (.7, 1, .7), (.5, 1, 0), (.7, 1, .3), (1, 1, 1)],
    *[(0, 1, 0), (0, 1, 0), (0, 1, 0), (.4, 1, 0), (.2, .2, 1), (0, 0, 1), (.3, 0, 1), (0, 0, 1)],
    *[(.6, .6, 1), (1, 0, 0), (1, .2, 0), (.5, .8, .4), (.7, .3, 0)],
]  # fmt: skip
TABLE = [tuple(value / max(row) for value in row) for row in TABLE]


def dempster(answers: list[tuple[set[str], float]]) -> np.ndarray:
    """Contour of answers combined by Dempster's rule, by enumeration: each counts or not, all cases."""
    contour = np.zeros(3)
    for counted in product((True, False), repeat=len(answers)):
        weight, left = 1.0, EVERYTHING
        for (names, reliability), is_counted in zip(answers, counted, strict=True):
            weight *= reliability if is_counted else 1 - reliability
            left = left & names if is_counted else left
        contour += weight * np.array([name in left for name in CLASSES])
    return contour / contour.max()


def after_pushed(row: str, together: np.ndarray) -> list[float]:
    contour = np.array(TABLE[int(row[3:]) - 1]) * together
    return (contour / contour.max()).tolist()


ROWS, ARITIES, ALPHA = 40, (3, 2), 0.9


class Crowd:
    """Labellers who state, take back, answer, correct and undo at random, and what should be known after that."""

    def __init__(self, api: Any, model: str, seed: int) -> None:
        self.api, self.model = api, model
        self.rng = np.random.default_rng(seed)
        self.codes = np.column_stack([self.rng.integers(0, arity, ROWS) for arity in ARITIES])
        self.pushed = np.ones((ROWS, 3))
        self.stated: dict[int, dict[str, tuple[set[str], float]]] = {row: {} for row in range(ROWS)}
        self.answered: dict[int, tuple[str, set[str], float, query_pb2.Query]] = {}
        self.calls = 0

    def create(self, tools: Any, **fields: Any) -> None:
        attributes = [tools.nominal(f"A{k}", [str(i) for i in range(n)]) for k, n in enumerate(ARITIES)]
        self.api.create(self.model, attributes=attributes, alpha=ALPHA, budget=100, **fields)
        half = self.rng.random(ROWS) < 0.5
        self.pushed[half] = np.eye(3)[(self.codes[half].sum(axis=1)) % 3]
        labels = values_pb2.Labels(contours=values_pb2.PackedContours(plausibilities=self.pushed.ravel()))
        ids = [f"row{i}" for i in range(ROWS)]
        self.api.push(tools.batch(self.model, self.codes, labels=labels, ids=ids))

    def live(self, turns: int) -> None:
        for _ in range(turns):
            getattr(
                self, str(self.rng.choice(["state", "state", "take_back", "answer", "correct", "undo"]))
            )()

    def words(self) -> tuple[set[str], float]:
        names = {str(name) for name in self.rng.choice(CLASSES, self.rng.integers(1, 3), replace=False)}
        return names, float(self.rng.choice([0.6, 0.8, 1.0]))

    def send(self, *statements: Any) -> None:
        self.calls += 1
        state(self.api, self.model, *statements, request=f"call{self.calls}")

    def state(self) -> None:
        batch = {}
        for _ in range(int(self.rng.integers(1, 5))):
            batch[int(self.rng.integers(ROWS)), str(self.rng.choice(["ann", "bob", "cleo"]))] = self.words()
        self.send(*(said(f"row{i}", who, *n, reliability=r) for (i, who), (n, r) in batch.items()))
        for (row, who), words in batch.items():
            self.stated[row][who] = words

    def take_back(self) -> None:
        for row, found in self.stated.items():
            if found:
                self.send(said(f"row{row}", next(iter(found)), retract=True))
                del found[next(iter(found))]
                return

    def answer(self) -> None:
        self.api.grown(self.model, self.api.get(self.model).sequence_committed)
        for query in self.api.lease(self.model, "dora", wait_s=0).queries:
            row, (names, reliability) = int(query.instance.rpartition("/row")[2]), self.words()
            if self.rng.random() < 0.5:  # somebody else is quicker
                self.send(said(f"row{row}", "ann", "s", reliability=0.7))
                self.stated[row]["ann"] = {"s"}, 0.7
            self.api.answer(query, label=label(*names), reliability=reliability)
            self.answered[row] = "dora", names, reliability, query

    def correct(self) -> None:
        for row, (who, _, _, query) in self.answered.items():
            names, reliability = self.words()
            request = query_pb2.CorrectAnswerRequest(
                name=query.name, labeller=who, label=label(*names), reliability=reliability
            )
            self.api.queries.CorrectAnswer(request)
            self.answered[row] = who, names, reliability, query
            return

    def undo(self) -> None:
        for row, (who, _, _, query) in self.answered.items():
            self.api.queries.UndoAnswer(query_pb2.UndoAnswerRequest(name=query.name, labeller=who))
            del self.answered[row]
            return

    def contours(self) -> np.ndarray:
        return np.array([self.contour(row) for row in range(ROWS)])

    def contour(self, row: int) -> np.ndarray:
        voices = dict(self.stated[row])
        if row in self.answered:
            who, *words, _ = self.answered[row]
            voices[who] = (words[0], words[1])
        pushed = self.pushed[row]
        if not voices:
            return pushed
        several = len(voices) > 1
        weights = [(names, min(r, 0.99) if several else r) for names, r in voices.values()]
        alone = next(iter(voices.values()))
        if not several and len(alone[0]) == 1 and alone[1] == 1.0:  # certain: it replaces what was known
            return dempster(weights)
        together = dempster(weights)
        contour = pushed * together
        return contour / contour.max() if contour.any() else together


def assert_batch(crowd: Crowd, api: Any, model: str) -> None:
    """The model's tree is the one that batch induction grows from what should be known."""
    offline = FlatTree.of(induce(crowd.codes, ARITIES, crowd.contours(), alpha=ALPHA).tree)
    nodes = api.grown(model, api.get(model).sequence_committed).nodes
    for row in range(ROWS):
        assert known(api, model, f"row{row}") == pytest.approx(crowd.contour(row).tolist()), row
    assert list(nodes.parents) == offline.parent.tolist()
    assert list(nodes.attributes) == offline.attribute.tolist()
    assert list(nodes.class_indices) == offline.klass.tolist()
    assert list(nodes.counts) == offline.count.tolist()
    assert list(nodes.theta) == pytest.approx(offline.theta.ravel().tolist(), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_tree_is_that_of_batch_induction(seed: int, api: Any, tools: Any) -> None:
    crowd = Crowd(api, f"crowd{seed}", seed)
    crowd.create(tools)
    crowd.live(60)
    assert len(crowd.answered) + sum(map(len, crowd.stated.values())) > 10
    assert_batch(crowd, api, crowd.model)


@pytest.mark.parametrize(
    ("name", "wire", "learner"),
    [
        ("e2m", to_proto("e2m"), E2m()),
        (
            "informed",  # learned again from all evidence
            to_proto({"name": "e2m", "informed_only": True}),
            E2m(informed_only=True),
        ),
        ("c45", to_proto("c45"), C45()),
    ],
)
def test_other_learners_learn_what_all_say_together(
    name: str, wire: model_pb2.Plugin, learner: Any, api: Any, tools: Any
) -> None:
    crowd = Crowd(api, f"crowd-{name}", 11)
    crowd.create(tools, learner=wire)
    crowd.live(40)
    assert len(crowd.answered) + sum(map(len, crowd.stated.values())) > 10
    attributes = [Nominal(f"A{k}", tuple(map(str, range(arity)))) for k, arity in enumerate(ARITIES)]
    table = Table.of_contours(crowd.codes.astype(float), attributes, crowd.contours())
    wanted = fit(learner, table).predict(crowd.codes.astype(float))
    api.grown(crowd.model, api.get(crowd.model).sequence_committed)
    with Client(api.address) as client:
        served = client.classify(crowd.model, [[str(code) for code in row] for row in crowd.codes])
    np.testing.assert_allclose(served.theta, wanted.theta, atol=1e-9)
    assert len(np.unique(served.theta, axis=0)) > 1, "a tree of one leaf shows nothing"


@pytest.mark.slow
def test_a_crash_and_an_export_change_nothing(
    start_child: Callable[..., Any], tools: Any, tmp_path: Path
) -> None:
    store = tmp_path / "store.db"
    child = start_child(store)
    crowd = Crowd(child.api, "m", 7)
    crowd.create(tools)
    crowd.live(8)
    child.finish(signal.SIGKILL)
    child = start_child(store)
    crowd.api = child.api
    crowd.live(8)
    assert_batch(crowd, child.api, "m")
    child.finish(signal.SIGTERM)
    assert not verify_store(file_url(store))
    with Store.open(file_url(store)) as opened:
        lines = list(opened.dump("m"))
        opened.load(lines, "again", StoredModel())
        assert list(opened.dump("again"))[1:] == lines[1:]  # of which the tree is a function
        apart = [line for line in lines if '"kind":5' not in line]
        apart[0] = apart[0].replace(f'"events":{len(lines) - 1}', f'"events":{len(apart) - 1}')
        with pytest.raises(InvalidInput, match="line"):
            opened.load(apart, "apart", StoredModel())
    assert not verify_store(file_url(store))
    with sqlite3.connect(store) as raw:  # a statement that nothing follows is noticed
        raw.execute("DELETE FROM log WHERE kind = 5 AND query IS NULL")
    raw.close()
    assert any(
        "no later event combines it with the others" in str(fault) for fault in verify_store(file_url(store))
    )
