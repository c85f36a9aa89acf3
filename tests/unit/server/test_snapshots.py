"""A stored model comes back as it was, whole or as much of it as classifying needs, and as a message."""

import dataclasses

import numpy as np
import pytest
from support.published import published_tree

from quercus.belief.frame import Frame
from quercus.belief.mass import MassFunction
from quercus.server.wire import snapshots
from quercus.server.wire.trees import TreeClassifier, decode_snapshot, encode_head
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.learners import SpecifiedLearner
from quercus.storage.records import Snapshot
from quercus.trees import C45, ActiveForest, Averaging, BeliefEntropy, E2m, Forest, TotalUncertainty
from quercus.trees.learners.cells import Between, UncertainValues, Value
from quercus.trees.learners.learner import fit
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.stored import part_trees, restore_model
from quercus.trees.learners.table import Table
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.node import Node, Stop

ATTRIBUTES = (Nominal("A", ("a", "b", "c")), Numeric("N", edges=(1.0, 2.0)))
SPECIFICATION = published_tree(ATTRIBUTES, Frame(("p", "q")))
EDGES = ((), (1.0, 2.0))
NAMES = (("a", "b", "c", "?"), ("< 1", "[1, 2)", "≥ 2", "?"))
PEOPLE_READ = (
    "undecided",
    "stop",
    "interval_start",
    "interval_attribute",
    "interval_lower",
    "interval_upper",
)


def leaf(klass: int, theta: float, count: int, stop: Stop) -> Node:
    return Node(
        attribute=None,
        klass=klass,
        theta=(theta, 1 - theta),
        count=count,
        stop=stop,
        belief=(theta / 2, (1 - theta) / 2),
        plausibility=(1.0, 1.0),
    )


def whole() -> FlatTree:
    below = Node(
        attribute=1,
        klass=0,
        theta=(1 / 3, 2 / 3),
        count=7,
        intervals={1: (0.1, 0.7)},
        children={2: leaf(1, 0.1, 3, Stop.NO_GAIN), 3: leaf(0, 0.9, 4, Stop.FEW_INSTANCES)},
        belief=(0.25, 0.5),
        plausibility=(0.5, 0.75),
    )
    root = Node(
        attribute=0,
        klass=1,
        theta=(0.5, 0.5),
        count=2**40,
        intervals={0: (0.0, 0.3), 1: (0.2, 0.2)},
        children={0: leaf(0, 1.0, 1, Stop.PURE), 2: below},
        undecided=True,
        belief=(0.0, 0.0),
        plausibility=(1.0, 1.0),
    )
    return FlatTree.of(root)


def columns(flat: FlatTree) -> dict[str, list[object]]:
    found = {each.name: getattr(flat, each.name) for each in dataclasses.fields(flat) if each.init}
    return {name: np.nan_to_num(column, nan=-99.0).tolist() for name, column in found.items()}


def model(flat: FlatTree) -> TreeModel:
    return TreeModel(ATTRIBUTES, 2, flat, EDGES)


def encoded(flat: FlatTree) -> bytes:
    return snapshots.encode_snapshot(encode_head(SPECIFICATION, EDGES, NAMES), model(flat))


TREES = {"whole": whole(), "one leaf": FlatTree.of(leaf(0, 0.5, 0, Stop.FEW_INSTANCES))}


@pytest.mark.parametrize("flat", TREES.values(), ids=TREES)
def test_every_column_comes_back(flat: FlatTree) -> None:
    data = encoded(flat)
    stored = snapshots.read_snapshot(data)
    assert (list(stored.head.classes), list(stored.head.attributes[1].edges)) == (["p", "q"], [1.0, 2.0])
    (found,) = part_trees(stored.columns)
    assert columns(found) == columns(flat)
    message = decode_snapshot("m", Snapshot(3, 9, data, 0.0))
    assert (message.name, message.version, message.as_of) == ("models/m/trees/3", 3, 9)
    assert (message.learner, message.member, len(message.members)) == ("abc45", 0, 1)
    assert (message.members[0].nodes, message.members[0].leaves) == (flat.size, flat.leaf_count)
    assert list(message.nodes.counts) == flat.count.tolist()
    assert (list(message.nodes.thresholds), list(message.nodes.masses)) == ([], [])


def test_a_classifier_reads_no_more_than_it_needs() -> None:
    flat = TREES["whole"]
    data = encoded(flat)
    (found,) = part_trees(snapshots.read_classifier(data).columns)
    wanted, read = columns(flat), columns(found)
    assert {k: v for k, v in read.items() if k not in PEOPLE_READ} == {
        k: v for k, v in wanted.items() if k not in PEOPLE_READ
    }
    classifier = TreeClassifier.of(1, Snapshot(3, 9, data, 0.0), SPECIFICATION)
    values = np.array([[0, np.nan], [1, 0], [2, 2.5], [2, np.nan], [2, 0]])
    answer = classifier.classify(UncertainValues(values), want_paths=True)
    assert list(answer.nodes) == [1, 0, 3, 4, 2]
    assert [[(step.attribute, step.value) for step in path.steps] for path in answer.paths] == [
        [("A", "a")],
        [],
        [("A", "c"), ("N", "≥ 2")],
        [("A", "c"), ("N", "?")],
        [("A", "c")],
    ]
    assert list(answer.class_indices) == [0, 1, 1, 0, 0]
    assert list(answer.belief) == flat.belief[[1, 0, 3, 4, 2]].ravel().tolist()
    assert list(answer.class_sets) == [3] * 5
    assert not answer.masses


def test_a_format_of_another_version_is_refused() -> None:
    data = encoded(TREES["whole"])
    other = bytes([2]) + data[1:]
    assert (snapshots.is_readable(data), snapshots.is_readable(other)) == (True, False)
    assert not snapshots.is_readable(data[:5])
    for read in (snapshots.read_snapshot, snapshots.read_classifier):
        with pytest.raises(snapshots.UnreadableSnapshotError, match=r"format 2; this version reads format 5"):
            read(other)


LEARNERS: dict[str, SpecifiedLearner] = {
    "e2m": E2m(),
    "c45": C45(),
    "averaging": Averaging(),
    "total uncertainty": TotalUncertainty(lam=0.7, combine="mean"),
    "active forest": ActiveForest(trees=7),
    "OBE": BeliefEntropy("OBE", 4),
    "LBE": BeliefEntropy("LBE", 4),
    "IBE": BeliefEntropy("IBE", 4),
    "forest of averaging": Forest(Averaging(), 3, "mass"),
    "forest of total uncertainty": Forest(TotalUncertainty(lam=0.7), 2),
    "forest of LBE": Forest(BeliefEntropy("LBE", 4), 3, "mass"),
    "forest of IBE": Forest(BeliefEntropy("IBE", 4), 3, "mass"),
    "votes of LBE": Forest(BeliefEntropy("LBE", 4), 3),
    "votes of OBE": Forest(BeliefEntropy("OBE", 4), 3),
    "votes of averaging": Forest(Averaging(), 3),
}


def learned(learner: SpecifiedLearner) -> LearnedModel:
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 60)
    colour = np.where(rng.random(60) < 0.3, rng.integers(0, 3, 60), classes)
    values = np.column_stack([colour, classes + rng.normal(0, 0.4, 60)])
    values[rng.random(values.shape) < 0.1] = np.nan
    masses = [
        MassFunction.of(3, {1 << c: 0.7, 7: 0.3} if i % 3 else {1 << c: 1.0}) for i, c in enumerate(classes)
    ]
    return fit(learner, Table.of_masses(values, ATTRIBUTES, masses))


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_a_stored_model_predicts_as_the_learned_one(learner: SpecifiedLearner) -> None:
    whole_model = learned(learner)
    specification = published_tree(ATTRIBUTES, Frame(("p", "q", "r")), learner=learner)
    data = snapshots.encode_snapshot(encode_head(specification, ((), ()), NAMES), whole_model)
    stored = snapshots.read_snapshot(data)
    back = restore_model(stored.form, stored.columns, ATTRIBUTES, 3, ((), ()))
    assert back.trees == whole_model.trees
    values = np.array([[k % 4, x] for k in range(4) for x in (-1.0, 0.4, 1.6, np.nan)])
    rows = [[None, Between(0.2, 1.8)], [frozenset({0, 2}), 1.0], [frozenset({1, 2}), frozenset({0.1, 1.9})]]
    quick = TreeClassifier.of(1, Snapshot(1, 1, data, 0.0), specification).model
    for again in (back, quick):
        for mine, theirs in (
            (again.predict(values), whole_model.predict(values)),
            (again.predict_rows(rows), whole_model.predict_rows(rows)),
        ):
            for name in ("klass", "theta", "belief", "plausibility", "classes", "conflict"):
                assert getattr(mine, name).tolist() == getattr(theirs, name).tolist()
            assert list(mine.masses or ()) == list(theirs.masses or ())


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_answers_carry_masses_and_sets_when_wanted(learner: SpecifiedLearner) -> None:
    specification = published_tree(ATTRIBUTES, Frame(("p", "q", "r")), learner=learner)
    for whole_model in (learned(learner), learner.vacuous_model(ATTRIBUTES, 3)):
        data = snapshots.encode_snapshot(encode_head(specification, ((), ()), NAMES), whole_model)
        classifier = TreeClassifier.of(1, Snapshot(1, 1, data, 0.0), specification)
        cells = UncertainValues.of_rows([[0, 0.1], [None, Between(0.2, 1.8)], [0, 0.1]], ATTRIBUTES)
        answer = classifier.classify(cells, want_masses=True)
        said = whole_model.predict_cells(cells)
        expected = [mass.focal for mass in said.masses or ()]
        found = [answer.masses[at] for at in answer.mass_indices]
        assert [tuple(zip(mass.focal_sets, mass.masses, strict=True)) for mass in found] == expected
        assert [[mask >> c & 1 for c in range(3)] for mask in answer.class_sets] == said.classes.tolist()
        assert not classifier.classify(cells).masses


@pytest.mark.parametrize("name", [name for name in LEARNERS if " of " not in name])  # of one tree
def test_a_row_alone_is_answered_as_among_others(name: str) -> None:
    learner = LEARNERS[name]
    specification = published_tree(ATTRIBUTES, Frame(("p", "q", "r")), learner=learner)
    data = snapshots.encode_snapshot(encode_head(specification, ((), ()), NAMES), learned(learner))
    classifier = TreeClassifier.of(1, Snapshot(1, 1, data, 0.0), specification)
    rows: list[list[Value]] = [[k % 4, x] for k in range(4) for x in (-1.0, 0.4, 1.6, None)]
    rows += [[None, Between(0.2, 1.8)], [frozenset({0, 2}), 1.0]]
    together = classifier.classify(UncertainValues.of_rows(rows, ATTRIBUTES))
    for _ in range(2):  # the second time from what is kept
        for at, row in enumerate(rows):
            answer = classifier.classify(UncertainValues.of_rows([row], ATTRIBUTES))
            assert (answer.tree_version, answer.as_of, list(answer.classes)) == (1, 1, ["p", "q", "r"])
            assert answer.class_indices == together.class_indices[at : at + 1]
            assert answer.nodes == together.nodes[at : at + 1]
            assert answer.class_sets == together.class_sets[at : at + 1]
            for part in ("theta", "pignistic", "belief", "plausibility"):
                wanted = getattr(together, part)[3 * at : 3 * at + 3]  # sums may be in another order
                assert list(getattr(answer, part)) == pytest.approx(wanted, abs=1e-14)


def test_the_tree_of_one_class_against_the_rest_names_both() -> None:
    learner = LEARNERS["forest of total uncertainty"]
    specification = published_tree(ATTRIBUTES, Frame(("p", "q", "r")), learner=learner)
    data = snapshots.encode_snapshot(encode_head(specification, ((), ()), NAMES), learned(learner))
    message = decode_snapshot("m", Snapshot(1, 1, data, 0.0), 4)
    assert [list(member.classes) for member in message.members] == 2 * [
        ["p", "not p"],
        ["q", "not q"],
        ["r", "not r"],
    ]
    assert message.member == 4
    assert len(message.nodes.theta) == 2 * message.members[4].nodes
    assert len(message.nodes.mass_counts) == message.members[4].nodes
