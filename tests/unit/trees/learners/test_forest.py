"""Forests: the same whoever grows them, and what their votes are."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from multiprocessing import get_context

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from support.growing import grow_forest, id3, total_uncertainty_tree

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.belief.measures import pignistic
from quercus.belief.rules import dempster
from quercus.specification.attributes import Numeric
from quercus.trees import C45, FORESTS, Averaging, BeliefEntropy, Id3, TotalUncertainty, TreeLearner
from quercus.trees.growth.batch import GrowthRules, NodePrediction, OpenNode, SplitChoice, grow_tree
from quercus.trees.learners.cells import UncertainValues
from quercus.trees.learners.entropy_model import BeliefEntropyModel
from quercus.trees.learners.forest import ForestModel, RandomAttributes, Vote, attributes_drawn, combine_trees
from quercus.trees.learners.learner import fit
from quercus.trees.learners.nested import log_commonalities_of, mass_function, normalised_masses
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.predictions import Predictions
from quercus.trees.learners.table import Table
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.node import Stop

IRIS = load_iris()
NAMES = [Numeric(name) for name in IRIS.feature_names]
LEARNER = BeliefEntropy("IBE")


def iris(vacuous: float = 0.0, rows: Ints | None = None) -> Table:
    contours = np.eye(3)[IRIS.target]
    contours[np.random.default_rng(0).random(150) < vacuous] = 1.0
    table = Table.of_contours(IRIS.data, NAMES, contours)
    return table if rows is None else table.take(rows)


@dataclass(frozen=True)
class Says(LearnedModel):
    """A model that says the same mass of every row."""

    mass: MassFunction

    @property
    def flat_trees(self) -> tuple[FlatTree, ...]:
        return ()

    def predict_cells(self, cells: UncertainValues) -> Predictions:
        return Predictions.of_masses(self.mass.size, [self.mass], np.zeros(len(cells), dtype=np.int64))

    def log_commonalities(self, cells: UncertainValues) -> Floats:
        return np.tile(log_commonalities_of(self.mass) - 3.0, (len(cells), 1))


def forest_of(size: int, masses: Sequence[MassFunction], vote: Vote) -> ForestModel:
    return ForestModel(tuple(NAMES), size, tuple(Says(mass) for mass in masses), vote)


def same(a: ForestModel, b: ForestModel) -> bool:
    mine, other = a.predict(IRIS.data), b.predict(IRIS.data)
    return mine.theta.tolist() == other.theta.tolist()


def test_the_forest_is_the_same_whatever_the_executor() -> None:
    here = grow_forest(iris(0.5), LEARNER, 7, vote="mass", trees=4)
    with ThreadPoolExecutor(3) as threads:
        threaded = grow_forest(iris(0.5), LEARNER, 7, vote="mass", trees=4, executor=threads)
        assert same(here, threaded)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        spawned = grow_forest(iris(0.5), LEARNER, 7, vote="mass", trees=4, executor=processes)
    assert same(here, spawned)
    for mine, other in zip(here.models, spawned.models, strict=True):
        assert mine.trees == other.trees


def test_the_seed_determines_the_forest_and_more_trees_begin_with_the_same() -> None:
    four, again, six, other = (
        grow_forest(iris(), LEARNER, seed, trees=trees) for seed, trees in ((1, 4), (1, 4), (1, 6), (2, 4))
    )
    roots = [list(forest.trees) for forest in (four, again, six, other)]
    assert roots[0] == roots[1] == roots[2][:4]
    assert roots[0] != roots[3]
    assert len({hash(root) for root in roots[0]}) > 1


def test_each_tree_sees_as_many_rows_as_there_are() -> None:
    forest = grow_forest(iris(), LEARNER, 3, trees=5)
    for root in forest.trees:
        assert root.size == 150
        assert 80 < root.count < 110  # distinct ones: about 1 - 1/e of them


@pytest.mark.parametrize(
    ("count", "drawn"), [(0, 0), (1, 1), (2, 2), (4, 2), (5, 3), (9, 3), (10, 4), (60, 8)]
)
def test_the_customary_number_is_the_root_rounded_up(count: int, drawn: int) -> None:
    assert attributes_drawn("root", count) == drawn


def test_half_is_rounded_up_and_draws_that_many() -> None:
    assert [attributes_drawn("half", count) for count in range(6)] == [0, 1, 1, 2, 2, 3]
    (first, *_) = RandomAttributes(np.random.default_rng(0), "half")(NINE)
    assert len(first.attributes) == 5


NINE = OpenNode((), np.arange(3), tuple(range(9)))


def test_attributes_are_drawn_anew_at_each_node_and_in_declared_order() -> None:
    draw = RandomAttributes(np.random.default_rng(0))
    offered = [next(draw(NINE)).attributes for _ in range(50)]
    assert {len(some) for some in offered} == {3}
    assert all(list(some) == sorted(some) for some in offered)
    assert len(set(offered)) > 30


@dataclass(frozen=True)
class OnlyBy(GrowthRules):
    """Rules by which one attribute alone splits nodes, into leaves."""

    good: int

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        return Stop.MAX_DEPTH if place.depth else None

    def choose_split(self, place: OpenNode) -> SplitChoice | None:
        return SplitChoice(self.good, {}) if self.good in place.attributes else None

    def branches(self, place: OpenNode, choice: SplitChoice) -> list[OpenNode]:
        return [place.child(choice.attribute, 0, place.rows, place.attributes)]

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        return NodePrediction(0, (1.0,), (1.0,), (1.0,))


def test_where_none_drawn_can_split_the_others_are_tried() -> None:
    for seed in range(10):
        tree = grow_tree(NINE, OnlyBy(5), RandomAttributes(np.random.default_rng(seed)))
        assert tree.attribute == 5
    for attributes in ((1, 2), ()):
        place = OpenNode((), np.arange(3), attributes)
        tree = grow_tree(place, OnlyBy(5), RandomAttributes(np.random.default_rng(0)))
        assert tree.stop is Stop.NO_ATTRIBUTE


def test_labels_vote_and_ties_go_to_the_earlier_class() -> None:
    masses = [MassFunction(3, ((1 << c, 1.0),)) for c in (2, 1, 1, 2, 0)]
    found = forest_of(3, masses, "label").predict(IRIS.data[:2])
    assert (
        found.theta.tolist() == found.belief.tolist() == found.plausibility.tolist() == [[0.2, 0.4, 0.4]] * 2
    )
    assert found.klass.tolist() == [1, 1]
    assert found.masses is None


def test_belief_and_plausibility_of_votes_are_what_trees_say_alone_and_what_they_do_not_rule_out() -> None:
    sure, torn = MassFunction(3, ((1, 1.0),)), MassFunction(3, ((2, 0.4), (3, 0.6)))
    found = forest_of(3, [sure, torn, torn, torn], "label").predict(IRIS.data[:1])
    assert found.theta.tolist() == [[0.25, 0.75, 0.0]]
    assert found.belief.tolist() == [[0.25, 0.0, 0.0]]
    assert found.plausibility.tolist() == [[1.0, 0.75, 0.0]]
    assert found.classes.tolist() == [[True, True, False]]


def test_who_knows_nothing_votes_for_all_alike_and_tied_classes_share_a_vote() -> None:
    silent, either = MassFunction.vacuous(3), MassFunction(3, ((6, 1.0),))
    third = MassFunction(3, ((4, 1.0),))
    found = forest_of(3, [silent, silent, silent, either, third], "label").predict(IRIS.data[:1])
    np.testing.assert_allclose(found.theta, [[0.2, 0.3, 0.5]])
    assert found.klass.tolist() == [2]
    assert found.belief.tolist() == [[0.0, 0.0, 0.2]]
    nearly = MassFunction(3, ((1, 1e-10), (7, 1 - 1e-10)))  # within a tie (theory §3.5)
    found = forest_of(3, [nearly], "label").predict(IRIS.data[:1])
    np.testing.assert_allclose(found.theta, [[1 / 3] * 3])


def test_masses_combine_by_dempsters_rule() -> None:
    masses = [
        MassFunction(3, ((1, 0.3), (3, 0.5), (7, 0.2))),
        MassFunction(3, ((2, 0.6), (7, 0.4))),
        MassFunction(3, ((4, 0.1), (6, 0.1), (7, 0.8))),
    ]
    found = forest_of(3, masses, "mass").predict(IRIS.data[:2])
    expected = reduce(dempster, masses)
    assert dict(list(found.masses or ())[1].focal) == pytest.approx(dict(expected.focal))
    np.testing.assert_allclose(found.theta[1], pignistic(expected))
    assert not found.conflict.any()


def test_total_conflict_falls_back_to_the_mean_and_is_counted() -> None:
    a, b = MassFunction(2, ((1, 1.0),)), MassFunction(2, ((2, 1.0),))
    found = forest_of(2, [a, b, b], "mass").predict(IRIS.data[:3])
    assert found.conflict.tolist() == [True] * 3
    assert dict(next(iter(found.masses or ())).focal) == pytest.approx({1: 1 / 3, 2: 2 / 3})
    assert found.klass.tolist() == [1, 1, 1]
    rows = [
        np.stack([log_commonalities_of(m) for m in pair]) for pair in ((a, a), (b, MassFunction.vacuous(2)))
    ]
    masses, conflicts = combine_trees(rows)
    assert conflicts.tolist() == [True, False]
    assert mass_function(masses[1]) == a


def test_opposed_certainties_do_not_underflow() -> None:
    nearly = [MassFunction(2, ((1, 1 - 1e-12), (3, 1e-12)))] * 60 + [
        MassFunction(2, ((2, 1 - 1e-12), (3, 1e-12)))
    ] * 61
    found = forest_of(2, nearly, "mass").predict(IRIS.data[:1])
    assert not found.conflict.any()
    assert found.klass.tolist() == [1]


@pytest.mark.parametrize("name", FORESTS)
def test_the_five_forests_learn_iris_with_most_labels_vacuous(name: str) -> None:
    train, test = train_test_split(np.arange(150), test_size=0.3, random_state=1, stratify=IRIS.target)
    forest = fit(replace(FORESTS[name], trees=10), iris(0.7, train))
    assert isinstance(forest, ForestModel)
    assert (forest.vote, len(forest.models)) == ({"L": "label", "M": "mass"}[name[0]], 10)
    assert all(isinstance(model, BeliefEntropyModel) and model.kind == name[2:5] for model in forest.models)
    assert (forest.predict(IRIS.data[test]).klass == IRIS.target[test]).mean() >= 0.85


@pytest.mark.parametrize("vote", ["label", "mass"])
def test_other_learners_make_forests_too(vote: str) -> None:
    binary = Table.of_classes(IRIS.data, NAMES, (IRIS.target == 1).astype(int), 2)
    base = TotalUncertainty(lam=0.5)
    whole = grow_forest(binary, base, 0, vote=vote, trees=6)  # type: ignore[arg-type]
    assert all(isinstance(model, TreeModel) for model in whole.models)
    assert (whole.predict(IRIS.data).klass == (IRIS.target == 1)).mean() > 0.93
    against_rest = grow_forest(iris(), base, 0, vote=vote, trees=4)  # type: ignore[arg-type]
    assert (against_rest.predict(IRIS.data).klass == IRIS.target).mean() > 0.93


def test_unknown_values_spread_over_the_branches() -> None:
    table = Table.of_classes([[1.0], [2.0], [3.0], [7.0], [8.0], [9.0]], [NAMES[0]], [0, 0, 0, 1, 1, 1], 2)
    tree = total_uncertainty_tree(table, 0.9)
    model = TreeModel.of(tree, table.attributes)
    values = np.array([[2.0], [np.nan], [8.0]])
    said = model.predict(values)
    assert said.klass.tolist() == [0, 0, 1]
    assert said.masses is not None
    for logs, mass in zip(model.log_commonalities(UncertainValues(values)), said.masses, strict=True):
        assert dict(mass_function(normalised_masses(logs)[0]).focal) == pytest.approx(dict(mass.focal))


def test_a_tree_without_masses_votes_with_its_probabilities_weakened_by_its_weight() -> None:
    table = Table.of_classes([[1.0], [2.0], [3.0], [7.0], [8.0], [9.0]], [NAMES[0]], [0, 0, 0, 1, 1, 1], 2)
    logs = TreeModel.of(id3(table), table.attributes).log_commonalities(
        UncertainValues(np.array([[2.0], [np.nan]]))
    )
    assert np.exp(logs[0]) == pytest.approx([1, 1, 1 / 4, 1 / 4])  # m({0}) = 3/4 of three rows
    assert np.exp(logs[1]) == pytest.approx([1, 5 / 8, 5 / 8, 1 / 4])  # the mean of both leaves


def test_rows_without_weight_are_never_drawn() -> None:
    table = Table.of_contours(IRIS.data, NAMES, np.eye(3)[IRIS.target], np.repeat([1.0, 0.0, 1.0], 50))
    forest = grow_forest(table, LEARNER, 0, trees=3)
    assert all(root.plausibility[1] == 0.0 for root in forest.trees)
    assert set(forest.predict(IRIS.data).klass) == {0, 2}


@pytest.mark.parametrize("learner", [LEARNER, TotalUncertainty(lam=0.5)])
def test_no_rows_have_no_predictions(learner: TreeLearner) -> None:
    table = Table.of_classes(IRIS.data, NAMES, (IRIS.target == 1).astype(int), 2)
    for vote in ("label", "mass"):
        found = grow_forest(table, learner, 0, trees=2, vote=vote).predict(np.empty((0, 4)))  # type: ignore[arg-type]
        assert (found.klass.shape, found.theta.shape) == ((0,), (0, 2))


def test_bad_parameters_are_refused() -> None:
    wide = Table.of_contours([[1.0], [2.0]], [NAMES[0]], np.ones((2, 17)))
    for call in (
        lambda: grow_forest(iris(), LEARNER, 0, vote="both"),  # type: ignore[arg-type]
        lambda: grow_forest(iris(), LEARNER, 0, trees=0),
        lambda: grow_forest(wide, BeliefEntropy("OBE"), 0, vote="mass"),
    ):
        with pytest.raises(InvalidInput):
            call()


@pytest.mark.parametrize("learner", [Id3(max_depth=4), C45(max_depth=4), Averaging(max_depth=4)])
def test_a_forest_of_any_learner(learner: TreeLearner) -> None:
    table = Table.of_classes(IRIS.data[::2], NAMES, IRIS.target[::2], 3)
    forest = grow_forest(table, learner, 7, trees=12)
    said = forest.predict(IRIS.data[1::2])
    assert (said.klass == IRIS.target[1::2]).mean() > 0.9
    again = grow_forest(table, learner, 7, trees=12)
    assert (again.predict(IRIS.data[1::2]).theta == said.theta).all()
    other = grow_forest(table, learner, 8, trees=12)
    assert (other.predict(IRIS.data[1::2]).theta != said.theta).any()
