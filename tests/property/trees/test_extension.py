"""A model that was extended has the trees and queries of one that had all classes and attributes from the first on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support import words
from support.published import published_message, published_tree

from quercus.belief.codec import decode, encode, widened
from quercus.belief.frame import Frame, full_mask
from quercus.belief.label import ClassSet, Label, Masses, Plausibilities
from quercus.belief.mass import MassFunction
from quercus.server.config import Config
from quercus.server.growth.engines import TreeEngine, tree_engine
from quercus.server.growth.regrowing import regrow_model
from quercus.server.growth.saved_columns import SavedEngine, read_columns, write_columns
from quercus.server.wire.models import complete_specification, extension_of, first_specification
from quercus.specification.attributes import Nominal, Numeric
from quercus.storage import AgendaEntry, KnownModel, Store
from quercus.trees import Observed, Respecified
from quercus.trees.growth.stream import GrowthState, grow
from quercus.v1 import model_pb2

FOLLOWING = ("active-forest", "abc45", "e2m")
LEARNERS = (*FOLLOWING, "averaging", "belief-entropy", "c45", "forest", "id3", "total-uncertainty")
SIZES = Config().message_limits
OLD = [
    model_pb2.Attribute(name="X", nominal=model_pb2.NominalAttribute(values="abc")),
    model_pb2.Attribute(name="n", numeric=model_pb2.NumericAttribute(edges=[0.3, 0.6])),
]
NEW = [
    model_pb2.Attribute(name="Z", nominal=model_pb2.NominalAttribute(values="pq")),
    model_pb2.Attribute(name="m", numeric=model_pb2.NumericAttribute(edges=[0.5])),
]


def stored(learner: str, attributes: Sequence[model_pb2.Attribute], classes: str) -> bytes:
    message = published_message(
        attributes=attributes,
        classes=classes,
        learner=learner,
        alpha=0.9,
        budget=50,
        split_significance=10.0,
        min_instances=4,  # the default of some learners depends on the number of classes
    )
    return complete_specification(message).SerializeToString(deterministic=True)


def labels_of(rng: np.random.Generator, count: int, size: int) -> list[Label]:
    """Labels of all kinds; most name one class, and many say nothing."""
    found: list[Label] = []
    for kind in rng.choice(5, size=count, p=[0.45, 0.3, 0.1, 0.1, 0.05]):
        match kind:
            case 0:
                found.append(ClassSet(1 << int(rng.integers(size))))
            case 1:
                found.append(ClassSet(full_mask(size)))
            case 2:
                found.append(ClassSet(int(rng.integers(1, full_mask(size) + 1))))
            case 3:
                found.append(Plausibilities((1.0, *rng.random(size - 1).round(2).tolist())))
            case _:
                found.append(Masses(MassFunction.of(size, {1: 0.5, full_mask(size): 0.5})))
    return found


def rows_of(rng: np.random.Generator, count: int, width: int) -> NDArray[np.float64]:
    columns = [rng.integers(3, size=count), rng.random(count), rng.integers(2, size=count), rng.random(count)]
    values = np.array(columns[:width], dtype=float).T
    values[rng.random(values.shape) < 0.05] = np.nan
    return values


class Twins:
    """The same log twice: of a model that is extended, and of one that was made with everything."""

    def __init__(self, store: Store, learner: str) -> None:
        self.store = store
        self.width, self.size = 2, 2
        store.create_model("grown", stored(learner, OLD, "xy"), budget=50)
        store.create_model("whole", stored(learner, [*OLD, *NEW], "xyz"), budget=50)

    def push(self, ids: list[str], values: NDArray[np.float64], labels: Sequence[Label]) -> None:
        said = [encode(label) for label in labels]
        self.store.append_instances("grown", ids, values, said)
        more = np.full((len(values), 4 - self.width), np.nan)
        wide = [widened(each, self.size, 3) if self.size < 3 else each for each in said]
        self.store.append_instances("whole", ids, np.hstack([values, more]), wide)

    def answer(self, instance: int, label: Label, reliability: float, *, undo: bool = False) -> None:
        """Answer a query about an instance in both, and take the answer back if wanted."""
        said = encode(label)
        for model, data, size in (("grown", said, self.size), ("whole", widened(said, self.size, 3), 3)):
            store, known = self.store, KnownModel(size)
            asked = b"[[],null,null,[]]"
            last = store.get_model(model).sequence_committed
            store.publish(model, as_of=last, snapshot=b"", agenda=[AgendaEntry(instance, asked, b"")])
            (query,) = store.lease(model, "ann", 1, 600.0).queries

            words.answer(store, model, query.number, query.token, data, reliability, known=known)
            if undo:
                words.amend(store, model, query.number, "ann", None, known=known)

    def extend(self) -> None:
        request = model_pb2.ExtendModelRequest(classes=["z"], attributes=NEW)
        self.store.extend_model(
            "grown", lambda data: extension_of(data, request, SIZES), "r", lambda *_: True
        )
        whole = self.store.get_model("whole").specification
        self.store.revise("whole", lambda _: (whole, 50))  # an event, so that both have as many
        self.width, self.size = 4, 3


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as opened:
        yield opened


def fill(twins: Twins, seed: int, before: int = 90, after: int = 70) -> None:
    """Rows, answers and undos, the extension, and more of all."""
    rng = np.random.default_rng(seed)
    ids = [f"r{i}" for i in range(before + after)]
    twins.push(ids[:before], rows_of(rng, before, 2), labels_of(rng, before, 2))
    twins.answer(3, ClassSet(1), 1.0)
    twins.answer(5, Plausibilities((1.0, 0.3)), 0.8)
    twins.answer(7, ClassSet(2), 0.9, undo=True)
    twins.extend()
    twins.answer(9, ClassSet(4), 1.0)
    twins.push(ids[before:], rows_of(rng, after, 4), labels_of(rng, after, 3))
    twins.answer(before, ClassSet(6), 1.0)
    twins.answer(11, ClassSet(4), 0.9, undo=True)
    twins.answer(13, Plausibilities((0.2, 0.3, 1.0)), 0.7)


def test_labels_of_before_exclude_the_new_class_unless_they_say_nothing() -> None:
    said = [
        ClassSet(1),
        ClassSet(3),
        ClassSet(7),
        Plausibilities((0.5, 0.5, 0.5)),
        Plausibilities((1.0, 1.0, 0.0)),
        Masses(MassFunction.of(3, {7: 1.0})),
        Masses(MassFunction.of(3, {1: 0.5, 7: 0.5})),
    ]
    now = [decode(widened(encode(label), 3, 4), 4) for label in said]
    assert now == [
        ClassSet(1),
        ClassSet(3),
        ClassSet(15),
        Plausibilities((0.5, 0.5, 0.5, 0.5)),
        Plausibilities((1.0, 1.0, 0.0, 0.0)),
        Masses(MassFunction.of(4, {15: 1.0})),
        Masses(MassFunction.of(4, {1: 0.5, 7: 0.5})),
    ]


@pytest.mark.parametrize("learner", LEARNERS)
def test_its_trees_are_those_of_a_model_that_had_everything_from_the_first(
    store: Store, learner: str
) -> None:
    twins = Twins(store, learner)
    fill(twins, LEARNERS.index(learner))
    last = store.get_model("grown").sequence_committed
    assert last == store.get_model("whole").sequence_committed
    assert trees_of(store, "grown", learner, last) == trees_of(store, "whole", learner, last)


def trees_of(store: Store, model: str, learner: str, last: int) -> bytes:
    if learner in FOLLOWING:
        return folded(store, model, 10_000, looks=False).grown_trees({}).encode()
    return regrow_model(store, model, last)


def folded(store: Store, model: str, step: int, looks: bool) -> TreeEngine:
    """Both logs say when the new attributes came: at the event that extended one, and changed nothing of the other."""
    specification, _ = first_specification(store.get_model(model))
    engine, last = tree_engine(specification, 2), 0
    while (segment := store.read_log(model, last, rows=step)).parts:
        engine.fold_events(segment.parts)
        last = segment.last
        if looks:
            engine.grown_trees({})
    return engine


@pytest.mark.parametrize("learner", ["active-forest", "abc45", "e2m"])
def test_it_asks_as_the_other_does_in_whatever_parts_the_log_is_read(store: Store, learner: str) -> None:
    twins = Twins(store, learner)
    fill(twins, 5)
    whole = folded(store, "whole", 10_000, looks=False)
    for step in (7, 10_000):
        grown = folded(store, "grown", step, looks=step == 7)
        assert grown.grown_trees({}).encode() == whole.grown_trees({}).encode()
        assert grown.choose_queries(8) == whole.choose_queries(8)


@pytest.mark.parametrize("learner", ["active-forest", "abc45", "e2m"])
def test_growth_that_was_saved_goes_on_as_if_it_had_never_stopped(
    store: Store, learner: str, tmp_path: Path
) -> None:
    twins = Twins(store, learner)
    fill(twins, 6)
    first = first_specification(store.get_model("grown"))
    rest = store.read_log("grown", 0, rows=10_000).parts
    at_once = tree_engine(*first)
    at_once.fold_events(rest)
    for stop in (3, len(rest) // 2, len(rest) - 2):
        saving = tree_engine(*first)
        saving.fold_events(rest[:stop])
        saving.grown_trees({})
        saved = saving.saved_state()
        assert saved is not None
        write_columns(tmp_path / "file", saved.head, saved.columns, saved.growing)
        going_on = tree_engine(*first)
        going_on.restore_state(SavedEngine(*read_columns(tmp_path / "file")))
        going_on.fold_events(rest[stop:])
        assert going_on.grown_trees({}).encode() == at_once.grown_trees({}).encode()


@pytest.mark.parametrize("numeric", [Numeric("new", bins=3), Numeric("new", cuts=5)])
@pytest.mark.parametrize("step", [1, 7, 200])
def test_bins_of_a_number_that_came_later_are_set_by_the_rows_since(numeric: Numeric, step: int) -> None:
    """Compared with the tree of all rows at once, whose edges are those of the rows that set them."""
    rng = np.random.default_rng(4)
    values, klass = np.full((200, 2), np.nan), rng.integers(2, size=200)
    values[:, 0] = rng.integers(2, size=200)
    values[80:, 1] = klass[80:] + rng.random(120)
    contours = np.eye(2)[klass]
    spec = published_tree((Nominal("X", ("a", "b")), numeric), Frame(("x", "y")), warmup_rows=50)
    state = grow(GrowthState.initial(spec, 1), [Observed(values[:80], contours[:80]), Respecified(spec, 2)])
    for at in range(80, 200, step):
        state = grow(state, [Observed(values[at : at + step][:200], contours[at : at + step])])
        assert state.flat.size  # a look
        count = min(at + step, 200)
        setting = min(50, 1 << ((count - 80).bit_length() - 1)) if count < 130 else 50
        alone = grow(
            GrowthState.initial(published_tree((numeric,), spec.frame, warmup_rows=50)),
            [Observed(values[80 : 80 + setting, 1:], contours[80 : 80 + setting])],
        )
        assert state.edges[1] == alone.edges[0]
    declared = published_tree(
        (spec.attributes[0], Numeric("new", len(state.edges[1]) + 1, state.edges[1], cuts=numeric.cuts)),
        spec.frame,
    )
    at_once = grow(GrowthState.initial(declared), [Observed(values, contours)])
    assert state.tree == at_once.tree


@pytest.mark.parametrize("step", [1, 7, 200])
def test_a_number_that_came_later_may_be_uncertain(step: int) -> None:
    """Ranges are coded anew whenever the bins move, and are those of a tree that had the bins from the first on."""
    rng = np.random.default_rng(8)
    values, klass = np.full((200, 2), np.nan), rng.integers(2, size=200)
    values[:, 0] = rng.integers(2, size=200)
    values[80:, 1] = klass[80:] + rng.random(120)
    contours = np.eye(2)[klass]
    parts = {}
    for row in rng.choice(np.arange(80, 200), 25, replace=False).tolist():
        parts[row, 1] = ((values[row, 1] - 0.3, values[row, 1] + 0.3),)
        values[row, 1] = np.nan
    spec = published_tree(
        (Nominal("X", ("a", "b")), Numeric("new", bins=4)), Frame(("x", "y")), warmup_rows=50, min_instances=8
    )
    state = grow(GrowthState.initial(spec, 1), [Observed(values[:80], contours[:80]), Respecified(spec, 2)])
    for at in range(80, 200, step):
        mine = {(row - at, k): each for (row, k), each in parts.items() if at <= row < at + step}
        state = grow(state, [Observed(values[at : at + step], contours[at : at + step], mine)])
        assert state.flat.size  # a look
    declared = published_tree(
        (spec.attributes[0], Numeric("new", 4, state.edges[1])), spec.frame, min_instances=8
    )
    assert state.tree == grow(GrowthState.initial(declared), [Observed(values, contours, parts)]).tree
