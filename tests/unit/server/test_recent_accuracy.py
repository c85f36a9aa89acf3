"""The accuracy over the recent past, as the grower measures it: labels that come after their prediction, each once."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.published import published_tree

from quercus.belief.codec import encode, encode_sets
from quercus.belief.frame import Frame
from quercus.belief.label import ClassSet
from quercus.client.plugins import to_proto
from quercus.server.growth.engines import tree_engine
from quercus.server.growth.grower import Grower
from quercus.server.growth.relearning import LearningTask, learn_model
from quercus.server.wire.models import complete_specification
from quercus.server.wire.reports import accuracy_in
from quercus.specification.attributes import Numeric
from quercus.storage import (
    AgendaEntry,
    Event,
    EventKind,
    InstanceColumns,
    KnownModel,
    Statement,
    StatementBatch,
    Store,
    Words,
)
from quercus.trees import AccuracyBlock
from quercus.v1 import model_pb2

BINS = model_pb2.NumericAttribute(edges=[-1.0, 0.0, 1.0])
CUTS = model_pb2.NumericAttribute(edges=[-1.0, 0.0, 1.0], cuts=3)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as opened:
        yield opened


def create(
    store: Store, kind: model_pb2.NumericAttribute, learner: model_pb2.Plugin, budget: int = 0
) -> None:
    attributes = [model_pb2.Attribute(name=f"x{k}", numeric=kind) for k in range(2)]
    message = model_pb2.Specification(attributes=attributes, classes=["p", "q"], learner=learner)
    store.create_model(
        "m", complete_specification(message).SerializeToString(deterministic=True), budget=budget
    )


def push(store: Store, rows: int, *, told: bool = True, lie: bool = False) -> None:
    """Rows whose class is whether x0 is positive, or is not."""
    first = store.get_model("m").instance_count
    values = np.random.default_rng(first).normal(size=(rows, 2))
    masks = 1 << ((values[:, 0] > 0) ^ lie) if told else np.full(rows, 3)
    store.append_instances(
        "m", [f"i{first + i}" for i in range(rows)], values, encode_sets(masks.astype(np.uint64))
    )


def grow(grower: Grower, store: Store) -> AccuracyBlock:
    """Grow up to the end of the log; return the sum of the blocks that are reported."""
    while grower.run_round() or store.get_model("m").sequence_grown < store.get_model("m").sequence_committed:
        pass
    return sum(accuracy_in(store.get_model("m").report), AccuracyBlock())


@pytest.mark.parametrize("kind", [BINS, CUTS])
def test_a_tree_is_judged_by_the_labels_after_it_and_a_restart_goes_on(
    store: Store, kind: model_pb2.NumericAttribute
) -> None:
    create(store, kind, to_proto("abc45"))
    grower = Grower(store, interval_s=0.0)
    push(store, 120)
    first = grow(grower, store)
    assert first.rows in {0, 120}  # the tree of nothing, if one was grown before the rows came
    push(store, 40, told=False)
    assert grow(grower, store) == first
    push(store, 60)
    found = grow(grower, store)
    assert (found.rows - first.rows, found.right - first.right) == (60, 60)
    again = Grower(store, interval_s=0.0)
    push(store, 30, lie=True)
    grow(again, store)  # nobody remembers the tree that predicted these
    push(store, 50, lie=True)
    later = grow(again, store)
    assert later.rows == found.rows + 50
    assert later.right < found.right + 10


def test_an_answer_counts_once_for_its_row() -> None:
    frame = Frame(("p", "q"))
    engine = tree_engine(published_tree((Numeric("x", edges=(0.0,)),), frame))
    values = np.linspace(-1.0, 1.0, 21)[:, np.newaxis]
    labels = [encode(ClassSet(1 << int(x > 0))) for x in values[:20, 0]]
    engine.fold_events([InstanceColumns(1, values, [*labels, encode(ClassSet(3))])])
    engine.grown_trees({})
    for sequence, mask in ((22, 3), (23, 2), (24, 1), (25, None), (26, 2)):
        engine.fold_events([correction(sequence, mask)])
        engine.grown_trees({})
    assert engine.accuracy == (AccuracyBlock(2, 2, 2, 2.0, 2, 2.0, ((1, 1, 2),)),)


def correction(sequence: int, mask: int | None) -> Event:
    """Return a correction of the last row's class; None takes it back, and the row may be labelled again."""
    return Event(
        sequence=sequence,
        kind=EventKind.CORRECTION,
        instance=21,
        id="i21",
        values=None,
        label=None if mask is None else encode(ClassSet(mask)),
        author="ann",
        reliability=1.0,
        asked=None,
        conflict=False,
        specification=None,
        created_at=0.0,
    )


def test_the_forest_is_judged_by_blocks_of_its_log(store: Store) -> None:
    create(store, BINS, to_proto({"name": "active-forest", "trees": 6}))
    grower = Grower(store, interval_s=0.0)
    push(store, 130)
    found = grow(grower, store)
    assert (found.rows, found.precise_rows) == (120, 120)
    assert found.right > 64
    again = Grower(store, interval_s=0.0)
    push(store, 1)
    later = grow(again, store)
    assert (later.rows, later.right - found.right) in {(121, 0), (121, 1)}


def test_a_model_that_learns_again_judges_the_trees_before(store: Store) -> None:
    create(store, BINS, to_proto("c45"))
    key = store.get_model("m").key
    push(store, 120)
    for rows, expected in ((0, 0), (60, 60), (30, 90)):
        if rows:
            push(store, rows)
        learned = learn_model(store, LearningTask("m", key, store.get_model("m").sequence_committed))
        store.publish(
            "m",
            as_of=store.get_model("m").sequence_committed,
            snapshot=learned.snapshot,
            agenda=None,
            report=learned.report,
        )
        found = sum(accuracy_in(store.get_model("m").report), AccuracyBlock())
        assert found.rows == expected
    assert found.right > 85


@pytest.mark.parametrize("learner", ["c45"])
def test_answers_to_queries_and_other_labels_are_told_apart(store: Store, learner: str) -> None:
    """120 rows come labelled, of 20 a query is answered, and of 30 the label is stated unasked."""
    create(store, BINS, to_proto(learner), budget=30)
    key = store.get_model("m").key
    grower = Grower(store, interval_s=0.0)

    def grown() -> AccuracyBlock:
        if learner != "c45":
            return grow(grower, store)
        committed = store.get_model("m").sequence_committed
        learned = learn_model(store, LearningTask("m", key, committed))
        store.publish("m", as_of=committed, snapshot=learned.snapshot, agenda=None, report=learned.report)
        return sum(accuracy_in(learned.report), AccuracyBlock())

    push(store, 60)
    grown()
    push(store, 60)
    first = grown()
    assert first.rows == first.unasked_rows >= 60
    assert first.unasked_expected == pytest.approx(first.expected)
    push(store, 60, told=False)
    grown()
    waiting = list(store.page_details("m", 0, 200).histories)[120:]
    agenda = [AgendaEntry(instance, b"[[],null,null,[]]", b"") for instance in waiting[:20]]
    store.publish_agenda("m", as_of=store.get_model("m").sequence_committed, agenda=agenda, key=key)
    for query in store.lease("m", "ann", 20, 60.0).queries:
        store.answer("m", query.number, query.token, Words(encode(ClassSet(1))), KnownModel(2))
    said = [Statement(f"i{150 + k}", "ann", encode(ClassSet(1))) for k in range(30)]
    store.state("m", StatementBatch("r", said), KnownModel(2))
    found = grown()
    assert (found.rows, found.unasked_rows) == (first.rows + 50, first.unasked_rows + 30)
    assert found.unasked_expected < found.expected
    assert sum(count for _, _, count in found.confusion) == found.precise_rows
    assert sum(count for predicted, holds, count in found.confusion if predicted == holds) == found.right
    assert sum(count for _, holds, count in found.confusion if holds == 0) >= 50
    assert model_pb2.GrowthReport.FromString(store.get_model("m").report).accuracy.labelled_rows == 170
