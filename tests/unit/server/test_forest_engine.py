"""The forest of many memories as the grower holds it: of a log one forest, and reasons that are true."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from quercus.belief.codec import encode
from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.belief.label import Label, precise, vacuous
from quercus.client.plugins import to_proto
from quercus.labelling.event import Event, EventKind
from quercus.server.growth.engines import ForestEngine, learns_again, tree_engine
from quercus.server.growth.saved_columns import SavedEngine, read_columns, write_columns
from quercus.server.wire import snapshots
from quercus.server.wire.agenda import encode_asked, encode_reasons
from quercus.server.wire.models import complete_specification
from quercus.server.wire.trees import TreeClassifier
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.model import Specification
from quercus.specification.reasons import SIMILAR_ROWS
from quercus.storage.records import InstanceColumns, Snapshot
from quercus.trees import ActiveForest
from quercus.trees.ask.query import QueryPosition
from quercus.trees.ask.reasons import similar_rows
from quercus.trees.learners.cells import UncertainValues
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.memory_forest.strategies import MEMORIES_DISAGREE
from quercus.trees.tree.encoding import Parts
from quercus.v1 import model_pb2, query_pb2

FRAME = Frame(("a", "b", "c"))
ATTRIBUTES = (Numeric("x"), Numeric("y"), Nominal("z", ("red", "green")))
SPECIFICATION = Specification(
    ATTRIBUTES, FRAME, budget=500, learner=ActiveForest(trees=8, seed=3), prediction_level=0.75
)
ROWS = 240
ENTROPY = "entropy of the leaf, in bits"
PARTS = {
    "class_indices": 1,
    "class_sets": 1,
    "nodes": 1,
    "theta": 3,
    "pignistic": 3,
    "belief": 3,
    "plausibility": 3,
}


def said(label: Label) -> bytes:
    return encode(label)


def world() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    values = np.column_stack([rng.normal(size=(ROWS, 2)), rng.integers(0, 3, ROWS)])
    klass = (values[:, 0] > 0).astype(int) + (values[:, 1] > 0.5)
    values[rng.random(ROWS) < 0.1, 1] = np.nan
    return values, klass


def log() -> list[InstanceColumns | Event]:
    """Rows, most without labels; answers, refusals, corrections and what takes answers back."""
    values, klass = world()
    rng = np.random.default_rng(5)
    labels = [said(precise(FRAME, FRAME.classes[c]) if rng.random() < 0.3 else vacuous(FRAME)) for c in klass]
    parts: list[InstanceColumns | Event] = [InstanceColumns(1, values, labels)]
    asked = encode_asked(QueryPosition((), None, None, ()))
    for at in range(150):
        row = int(rng.integers(ROWS))
        kind = rng.choice([EventKind.ANSWER, EventKind.ANSWER, EventKind.REFUSAL, EventKind.CORRECTION])
        label = None
        if kind is EventKind.ANSWER or (kind is EventKind.CORRECTION and rng.random() < 0.7):
            label = said(precise(FRAME, FRAME.classes[int(rng.integers(3))]))
        reliability = float(rng.choice([1.0, 0.8]))
        parts.append(event(ROWS + 1 + at, kind, row + 1, label, reliability, asked))
    return parts


def event(
    sequence: int, kind: EventKind, instance: int, label: bytes | None, reliability: float, asked: bytes
) -> Event:
    return Event(
        sequence=sequence,
        kind=kind,
        instance=instance,
        id=f"i{instance}",
        values=None,
        label=label,
        author="ann",
        reliability=reliability,
        asked=asked,
        conflict=False,
        specification=None,
        created_at=0.0,
    )


def grown_of(parts: list[InstanceColumns | Event], looks: bool = False) -> ForestEngine:
    engine = tree_engine(SPECIFICATION)
    assert isinstance(engine, ForestEngine)
    for part in parts:
        engine.fold_events([part])
        if looks:
            engine.choose_queries(3)
            engine.grown_trees({2: ("blue",)})
    return engine


def cut(rows: InstanceColumns, at: list[int]) -> list[InstanceColumns | Event]:
    ends = [0, *at, len(rows.labels)]
    return [
        InstanceColumns(
            rows.first + a,
            rows.values[a:b],
            rows.labels[a:b],
            {(row - a, k): ranges for (row, k), ranges in rows.parts.items() if a <= row < b},
        )
        for a, b in pairwise(ends)
    ]


def agenda_of(engine: ForestEngine) -> list[tuple[int, bytes]]:
    splits = engine.named_splits({2: ("blue",)})
    queries = engine.choose_queries(20)
    reasons = encode_reasons((query for _, query in queries), splits, engine.strategy_name)
    return [(i, reason) for (i, _), reason in zip(queries, reasons, strict=True)]


def test_of_one_log_one_forest_whatever_the_batches_and_the_looks() -> None:
    """The stored trees and the queries are the same to the byte: so a restart changes nothing."""
    rows, *events = log()
    assert isinstance(rows, InstanceColumns)
    at_once = tree_engine(SPECIFICATION)
    assert isinstance(at_once, ForestEngine)
    at_once.fold_events([rows, *events])
    in_parts = grown_of([*cut(rows, [1, 7, 60, 200]), *events], looks=True)
    assert in_parts.grown_trees({2: ("blue",)}).encode() == at_once.grown_trees({2: ("blue",)}).encode()
    assert agenda_of(in_parts) == agenda_of(at_once)


def test_the_forest_that_is_served_is_the_estimators_forest() -> None:
    """After a log without corrections: rows, then what each answered row is known to be."""
    values, klass = world()
    nothing = [said(vacuous(FRAME))] * ROWS
    asked = encode_asked(QueryPosition((), None, None, ()))
    labelled = [3, 9, 77, 5, 200, 31, 32, 33]
    answers = [
        event(
            ROWS + 1 + i,
            EventKind.ANSWER,
            row + 1,
            said(precise(FRAME, FRAME.classes[klass[row]])),
            1.0,
            asked,
        )
        for i, row in enumerate(labelled)
    ]
    engine = grown_of([InstanceColumns(1, values, nothing), *answers])
    forest = MemoryForest(np.array([False, False, True]), 3, trees=8, seed=3, level=0.75)
    forest.observe(values, np.ones((ROWS, 3)))
    for row in labelled:
        forest.replace_contour(row, np.eye(3)[klass[row]])
    expected = forest.predict(values)
    stored = Snapshot(1, 9, engine.grown_trees({2: ("blue",)}).encode(), 0.0)
    classifier = TreeClassifier.of(1, stored, SPECIFICATION)
    response = classifier.classify(UncertainValues(values), want_paths=True)
    np.testing.assert_allclose(np.reshape(response.theta, (ROWS, 3)), expected.theta, atol=1e-12)
    np.testing.assert_allclose(np.reshape(response.belief, (ROWS, 3)), expected.belief, atol=1e-12)
    np.testing.assert_allclose(
        np.reshape(response.plausibility, (ROWS, 3)), expected.plausibility, atol=1e-12
    )
    assert len(response.paths) == ROWS  # in the tree beside it
    for at in range(0, ROWS, 3):  # a row alone takes another way to the same bits
        single = classifier.classify(UncertainValues(values[at : at + 1]))
        for part, size in PARTS.items():
            assert getattr(single, part) == getattr(response, part)[size * at : size * at + size]
        assert (single.tree_version, single.as_of, single.classes) == (1, 9, response.classes)
    either = classifier.classify(UncertainValues(values[:1], {(0, 2): ((0.0, 0.0), (1.0, 1.0))}))
    alone = [forest.predict(np.array([[values[0, 0], values[0, 1], z]])).theta[0] for z in (0.0, 1.0)]
    np.testing.assert_allclose(either.theta, np.mean(alone, axis=0), atol=1e-12)
    names = tuple((float(z), float(z)) for z in range(600))
    with pytest.raises(InvalidInput, match=r"rows\[0\]: has 5,400 combinations of values, at most 4,096"):
        classifier.classify(UncertainValues(values[:1], {(0, 0): ((0.0, 1.0),), (0, 2): names}))


def test_a_reason_names_the_contested_node_or_the_leaf_and_what_members_think() -> None:
    engine = grown_of(log())
    found = []
    for _, data in agenda_of(engine):
        reason = query_pb2.Reason.FromString(data)
        assert reason.strategy == "margin"
        facts = {fact.name: fact for fact in reason.facts}
        if reason.rivals:  # of a single one the rival is not to split
            assert all(rival.lower <= rival.upper for rival in reason.rivals)
            assert ENTROPY not in (fact.name for fact in reason.facts)
        else:
            assert 0.0 <= facts[ENTROPY].interval.lower <= facts[ENTROPY].interval.upper <= np.log2(3) + 1e-9
        assert facts["estimate"].shares.who == "The model"
        assert sum(facts["estimate"].shares.theta) == pytest.approx(1.0)
        assert 0.0 <= facts["disagreement"].number <= 1.0
        assert 0 <= facts[SIMILAR_ROWS].count < ROWS
        assert reason.sentence == similar_rows(facts[SIMILAR_ROWS].count + 1)[0]
        found.append(facts["disagreement"].number)
    assert len(found) == 20
    assert any(disagreement > 0.05 for disagreement in found)


def test_nothing_is_asked_without_a_budget_nor_of_who_refused() -> None:
    values, _ = world()
    asked = encode_asked(QueryPosition((), None, None, ()))
    refusals = [event(6 + i, EventKind.REFUSAL, i + 1, None, 1.0, asked) for i in range(4)]
    engine = grown_of([InstanceColumns(1, values[:5], [said(vacuous(FRAME))] * 5), *refusals])
    assert [instance for instance, _ in engine.choose_queries(9)] == [5]
    poor = tree_engine(Specification(ATTRIBUTES, FRAME, budget=0, learner=ActiveForest()))
    poor.fold_events([InstanceColumns(1, values[:5], [said(vacuous(FRAME))] * 5)])
    assert poor.choose_queries(9) == ()


def test_the_tree_beside_it_may_have_a_memory_and_the_forest_asks_as_before() -> None:
    parts = log()
    remembering = tree_engine(replace(SPECIFICATION, memory_rows=30))
    for part in parts:
        remembering.fold_events([part])
        remembering.choose_queries(3)
    at_once = tree_engine(replace(SPECIFICATION, memory_rows=30))
    at_once.fold_events(parts)
    whole = grown_of(parts)
    assert [row for row, _ in remembering.choose_queries(20)] == [row for row, _ in whole.choose_queries(20)]
    trees = [
        engine.grown_trees({2: ("blue",)}).model.flat_trees[0] for engine in (whole, remembering, at_once)
    ]
    assert trees[0].count[0] == ROWS
    assert trees[1].count[0] == trees[2].count[0] < ROWS
    assert trees[1].attribute.tolist() == trees[2].attribute.tolist()
    assert all(query.node_count <= trees[1].count[0] for _, query in remembering.choose_queries(20))


def test_an_empty_log_is_served() -> None:
    engine = grown_of([])
    data = engine.grown_trees({}).encode()
    assert snapshots.read_snapshot(data).form.kind == "active-forest"
    response = TreeClassifier.of(1, Snapshot(1, 0, data, 0.0), SPECIFICATION).classify(
        UncertainValues(np.zeros((1, 3)))
    )
    assert list(response.theta) == pytest.approx([1 / 3] * 3)
    assert list(response.class_sets) == [7]


def test_it_follows_the_log() -> None:
    assert not learns_again(SPECIFICATION)


def test_it_asks_by_the_strategy_in_force_and_a_query_names_it() -> None:
    """Whoever changes the strategy asks as if it had been that one from the beginning; so does a restart."""
    parts = log()
    assert isinstance(parts[0], InstanceColumns)
    other = replace(SPECIFICATION, strategy="memory-disagreement")
    always = tree_engine(other)
    always.fold_events(parts)
    assert isinstance(always, ForestEngine)
    changed = grown_of(parts)
    before = agenda_of(changed)
    message = complete_specification(
        model_pb2.Specification(
            attributes=[
                model_pb2.Attribute(name="x", numeric=model_pb2.NumericAttribute()),
                model_pb2.Attribute(name="y", numeric=model_pb2.NumericAttribute()),
                model_pb2.Attribute(name="z", nominal=model_pb2.NominalAttribute(values=["red", "green"])),
            ],
            classes=FRAME.classes,
            budget=500,
            strategy=to_proto("memory-disagreement", "strategy"),
            learner=to_proto({"name": "active-forest", "trees": 8, "seed": 3}),
        )
    )
    respecified = replace(
        event(900, EventKind.SPECIFICATION, 1, None, 1.0, b""),
        instance=None,
        specification=message.SerializeToString(),
    )
    changed.fold_events([respecified])
    found = agenda_of(changed)
    assert [row for row, _ in found] == [row for row, _ in agenda_of(always)]
    assert [row for row, _ in found] != [row for row, _ in before]
    reasons = [query_pb2.Reason.FromString(data) for _, data in found]
    assert {reason.strategy for reason in reasons} == {"memory-disagreement"}
    for reason in reasons:
        facts = {fact.name: fact for fact in reason.facts}
        apart, theta = facts["disagreement"].number, facts["estimate"].shares.theta
        assert reason.sentence.startswith(MEMORIES_DISAGREE) == (apart >= 0.05 and max(theta) <= 0.995)
    assert all(0.0 <= reason.score <= 2.05 for reason in reasons)
    changed.grown_trees({2: ("blue",)})
    saved = changed.saved_state()
    assert saved is not None
    again = tree_engine(SPECIFICATION)
    again.restore_state(SavedEngine(json.loads(json.dumps(saved.head)), saved.columns))
    assert isinstance(again, ForestEngine)
    assert agenda_of(again) == found


@pytest.mark.parametrize("memory_rows", [None, 30])
@pytest.mark.parametrize("uncertain", [False, True])
def test_a_restart_changes_no_byte_of_forest_tree_and_queries(
    memory_rows: int | None, uncertain: bool, tmp_path: Path
) -> None:
    specification = replace(SPECIFICATION, memory_rows=memory_rows)
    rows, *events = log()
    assert isinstance(rows, InstanceColumns)
    if uncertain:
        cells: Parts = {(row, 0): ((-0.5, 0.5), (2.0, 3.0)) for row in range(0, ROWS, 7)}
        cells |= {(row, 2): ((0.0, 0.0), (2.0, 2.0)) for row in range(5, ROWS, 11)}
        for cell in cells:
            rows.values[cell] = np.nan
        rows = replace(rows, parts=cells)
    parts = [*cut(rows, [1, 60, 200]), *events]
    whole = tree_engine(specification)
    whole.fold_events(parts)
    expected = whole.grown_trees({2: ("blue",)}).encode()
    for at in (1, 2, 4, 5, 80, len(parts)):
        first, second = tree_engine(specification), tree_engine(specification)
        first.fold_events(parts[:at])
        assert at == len(parts) or first.saved_state() is None  # it is to be grown first
        first.grown_trees({})
        saved = first.saved_state()
        assert saved is not None
        write_columns(path := tmp_path / f"{at}.growth", saved.head, saved.columns, saved.growing)
        second.restore_state(SavedEngine(*read_columns(path)))
        second.fold_events(parts[at:])
        assert second.grown_trees({2: ("blue",)}).encode() == expected, at
        assert second.accuracy == whole.accuracy
        assert isinstance(second, ForestEngine)
        assert isinstance(whole, ForestEngine)
        assert agenda_of(second) == agenda_of(whole)
