"""Forests: the same whoever grows them, and what their votes are."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial, reduce
from multiprocessing import get_context

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.belief.measures import pignistic
from quercus.belief.rules import dempster
from quercus.trees.growth import Place, Verdict
from quercus.trees.learners.averaging import averaging
from quercus.trees.learners.belief_entropy import BeliefEntropyModel, fit_belief_entropy
from quercus.trees.learners.c45 import c45
from quercus.trees.learners.forest import (
    FORESTS,
    Forest,
    Learner,
    NodeModel,
    OfNodes,
    RandomAttributes,
    bayesian,
    belief_entropy_forest,
    combine,
    grow_forest,
    half_of,
    root_of,
)
from quercus.trees.learners.id3 import id3
from quercus.trees.learners.nested import log_commonalities_of, mass_function, normalised
from quercus.trees.learners.predicting import predict
from quercus.trees.learners.table import Floats, Ints, Table
from quercus.trees.learners.total_uncertainty import fit_total_uncertainty, total_uncertainty_tree
from quercus.trees.specification import Numeric
from quercus.trees.tree import Node

IRIS = load_iris()
NAMES = [Numeric(name) for name in IRIS.feature_names]
LEARNER = partial(fit_belief_entropy, kind="IBE")


def iris(vacuous: float = 0.0, rows: Ints | None = None) -> Table:
    contours = np.eye(3)[IRIS.target]
    contours[np.random.default_rng(0).random(150) < vacuous] = 1.0
    table = Table.of_contours(IRIS.data, NAMES, contours)
    return table if rows is None else table.take(rows)


@dataclass(frozen=True)
class Says:
    """A model that says the same mass of every row."""

    mass: MassFunction

    def classify(self, values: Floats) -> Ints:
        return np.full(len(values), pignistic(self.mass).argmax())

    def log_commonalities(self, values: Floats) -> Floats:
        return np.tile(log_commonalities_of(self.mass) - 3.0, (len(values), 1))


def same(a: Forest, b: Forest) -> bool:
    mine, other = a.predict(IRIS.data), b.predict(IRIS.data)
    return mine.probabilities.tolist() == other.probabilities.tolist()


def test_the_forest_is_the_same_whatever_the_executor() -> None:
    here = grow_forest(iris(0.5), LEARNER, 7, vote="mass", trees=4)
    with ThreadPoolExecutor(3) as threads:
        threaded = grow_forest(iris(0.5), LEARNER, 7, vote="mass", trees=4, executor=threads)
        assert same(here, threaded)
        elsewhere = here.predict(IRIS.data, threads)
        assert elsewhere.probabilities.tolist() == here.predict(IRIS.data).probabilities.tolist()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        spawned = grow_forest(iris(0.5), LEARNER, 7, vote="mass", trees=4, executor=processes)
    assert same(here, spawned)
    for mine, other in zip(here.models, spawned.models, strict=True):
        assert isinstance(mine, BeliefEntropyModel)
        assert isinstance(other, BeliefEntropyModel)
        assert mine.root == other.root


def test_the_seed_determines_the_forest_and_more_trees_begin_with_the_same() -> None:
    four, again, six, other = (
        grow_forest(iris(), LEARNER, seed, trees=trees) for seed, trees in ((1, 4), (1, 4), (1, 6), (2, 4))
    )
    roots = [[model.root for model in forest.models] for forest in (four, again, six, other)]  # type: ignore[attr-defined]
    assert roots[0] == roots[1] == roots[2][:4]
    assert roots[0] != roots[3]
    assert len({hash(root) for root in roots[0]}) > 1


def test_each_tree_sees_as_many_rows_as_there_are() -> None:
    forest = grow_forest(iris(), LEARNER, 3, trees=5)
    for model in forest.models:
        assert isinstance(model, BeliefEntropyModel)
        assert model.root.size == 150
        assert 80 < model.root.count < 110  # distinct ones: about 1 - 1/e of them


@pytest.mark.parametrize(
    ("count", "drawn"), [(0, 0), (1, 1), (2, 2), (4, 2), (5, 3), (9, 3), (10, 4), (60, 8)]
)
def test_the_customary_number_is_the_root_rounded_up(count: int, drawn: int) -> None:
    assert root_of(count) == drawn


def test_half_is_rounded_up_and_draws_that_many() -> None:
    assert [half_of(count) for count in range(6)] == [0, 1, 1, 2, 2, 3]
    inner = Recording(set(range(9)))
    RandomAttributes(inner, np.random.default_rng(0), half_of).judge(Place((), np.arange(3), tuple(range(9))))
    assert [len(offered) for offered in inner.offered] == [5]


class Recording:
    """A criterion that splits by the last attribute it is offered, if that is `good`."""

    def __init__(self, good: set[int]) -> None:
        self.good, self.offered = good, list[tuple[int, ...]]()

    def judge(self, place: Place) -> Verdict | None:
        self.offered.append(place.attributes)
        usable = [k for k in place.attributes if k in self.good]
        return Verdict(usable[-1], {}, ()) if usable else None


def test_attributes_are_drawn_anew_at_each_node_and_in_declared_order() -> None:
    inner = Recording(set(range(9)))
    criterion = RandomAttributes(inner, np.random.default_rng(0))
    for _ in range(50):
        assert criterion.judge(Place((), np.arange(3), tuple(range(9)))) is not None
    assert {len(offered) for offered in inner.offered} == {3}
    assert all(list(offered) == sorted(offered) for offered in inner.offered)
    assert len(set(inner.offered)) > 30


def test_where_none_drawn_can_split_the_others_are_tried() -> None:
    inner = Recording({5})
    for seed in range(10):
        verdict = RandomAttributes(inner, np.random.default_rng(seed)).judge(
            Place((), np.arange(3), tuple(range(9)))
        )
        assert verdict is not None
        assert verdict.attribute == 5
    assert (
        RandomAttributes(Recording(set()), np.random.default_rng(0)).judge(Place((), np.arange(3), (1, 2)))
        is None
    )
    assert (
        RandomAttributes(Recording({1}), np.random.default_rng(0)).judge(Place((), np.arange(3), ())) is None
    )


def test_labels_vote_and_ties_go_to_the_earlier_class() -> None:
    models = tuple(Says(MassFunction(3, ((1 << c, 1.0),))) for c in (2, 1, 1, 2, 0))
    found = Forest(3, models, "label").predict(IRIS.data[:2])
    assert found.probabilities.tolist() == [[0.2, 0.4, 0.4]] * 2
    assert found.classes.tolist() == [1, 1]
    assert found.mass(0) == bayesian(np.array([0.2, 0.4, 0.4]))


def test_masses_combine_by_dempsters_rule() -> None:
    masses = [
        MassFunction(3, ((1, 0.3), (3, 0.5), (7, 0.2))),
        MassFunction(3, ((2, 0.6), (7, 0.4))),
        MassFunction(3, ((4, 0.1), (6, 0.1), (7, 0.8))),
    ]
    found = Forest(3, tuple(Says(mass) for mass in masses), "mass").predict(IRIS.data[:2])
    expected = reduce(dempster, masses)
    assert dict(found.mass(1).focal) == pytest.approx(dict(expected.focal))
    np.testing.assert_allclose(found.probabilities[1], pignistic(expected))
    assert not found.conflicts.any()


def test_total_conflict_falls_back_to_the_mean_and_is_counted() -> None:
    a, b = MassFunction(2, ((1, 1.0),)), MassFunction(2, ((2, 1.0),))
    found = Forest(2, (Says(a), Says(b), Says(b)), "mass").predict(IRIS.data[:3])
    assert found.conflicts.tolist() == [True] * 3
    assert dict(found.mass(0).focal) == pytest.approx({1: 1 / 3, 2: 2 / 3})
    assert found.classes.tolist() == [1, 1, 1]
    rows = [
        np.stack([log_commonalities_of(m) for m in pair]) for pair in ((a, a), (b, MassFunction.vacuous(2)))
    ]
    masses, conflicts = combine(rows)
    assert conflicts.tolist() == [True, False]
    assert mass_function(masses[1]) == a


def test_opposed_certainties_do_not_underflow() -> None:
    nearly = [MassFunction(2, ((1, 1 - 1e-12), (3, 1e-12)))] * 60 + [
        MassFunction(2, ((2, 1 - 1e-12), (3, 1e-12)))
    ] * 61
    found = Forest(2, tuple(Says(mass) for mass in nearly), "mass").predict(IRIS.data[:1])
    assert not found.conflicts.any()
    assert found.classes.tolist() == [1]


@pytest.mark.parametrize("name", FORESTS)
def test_the_five_forests_learn_iris_with_most_labels_vacuous(name: str) -> None:
    train, test = train_test_split(np.arange(150), test_size=0.3, random_state=1, stratify=IRIS.target)
    forest = belief_entropy_forest(iris(0.7, train), name, 0, trees=10)
    kind, vote = FORESTS[name]
    assert (forest.vote, len(forest.models)) == (vote, 10)
    assert all(isinstance(model, BeliefEntropyModel) and model.kind == kind for model in forest.models)
    assert (forest.classify(IRIS.data[test]) == IRIS.target[test]).mean() >= 0.85


@pytest.mark.parametrize("vote", ["label", "mass"])
def test_other_learners_make_forests_too(vote: str) -> None:
    binary = Table.of_classes(IRIS.data, NAMES, (IRIS.target == 1).astype(int), 2)
    bare = grow_forest(binary, OfNodes(partial(total_uncertainty_tree, klass=0)), 0, vote=vote, trees=6)  # type: ignore[arg-type]
    whole = grow_forest(binary, fit_total_uncertainty, 0, vote=vote, trees=6)  # type: ignore[arg-type]
    assert all(isinstance(model, NodeModel) for model in bare.models)
    np.testing.assert_allclose(bare.predict(IRIS.data).probabilities, whole.predict(IRIS.data).probabilities)
    assert (whole.classify(IRIS.data) == (IRIS.target == 1)).mean() > 0.93
    against_rest = grow_forest(iris(), fit_total_uncertainty, 0, vote=vote, trees=4)  # type: ignore[arg-type]
    assert (against_rest.classify(IRIS.data) == IRIS.target).mean() > 0.93


def test_unknown_values_spread_over_the_branches() -> None:
    table = Table.of_classes([[1.0], [2.0], [3.0], [7.0], [8.0], [9.0]], [NAMES[0]], [0, 0, 0, 1, 1, 1], 2)
    tree = total_uncertainty_tree(table, 0.9)
    model = NodeModel(tree, table.attributes)
    values = np.array([[2.0], [np.nan], [8.0]])
    said = [predict(tree, row.tolist(), table.attributes) for row in values]
    assert model.classify(values).tolist() == [0, 0, 1] == [one.klass for one in said]
    for logs, one in zip(model.log_commonalities(values), said, strict=True):
        assert one.mass is not None
        assert dict(mass_function(normalised(logs)[0]).focal) == pytest.approx(dict(one.mass.focal))
    bare = NodeModel(replace(tree, mass=None, children={}, attribute=None), table.attributes)
    assert np.exp(bare.log_commonalities(values)[1]).tolist() == pytest.approx([1, *tree.theta, 0])


def test_rows_without_weight_are_never_drawn() -> None:
    table = Table.of_contours(IRIS.data, NAMES, np.eye(3)[IRIS.target], np.repeat([1.0, 0.0, 1.0], 50))
    forest = grow_forest(table, LEARNER, 0, trees=3)
    assert all(model.root.plausibility[1] == 0.0 for model in forest.models)  # type: ignore[attr-defined]
    assert set(forest.classify(IRIS.data)) == {0, 2}


@pytest.mark.parametrize("learner", [LEARNER, fit_total_uncertainty, OfNodes(total_uncertainty_tree)])
def test_no_rows_have_no_predictions(learner: Learner) -> None:
    table = Table.of_classes(IRIS.data, NAMES, (IRIS.target == 1).astype(int), 2)
    for vote in ("label", "mass"):
        found = grow_forest(table, learner, 0, trees=2, vote=vote).predict(np.empty((0, 4)))  # type: ignore[arg-type]
        assert (found.classes.shape, found.probabilities.shape) == ((0,), (0, 2))


def test_bad_parameters_are_refused() -> None:
    wide = Table.of_contours([[1.0], [2.0]], [NAMES[0]], np.ones((2, 17)))
    for call in (
        lambda: grow_forest(iris(), LEARNER, 0, vote="both"),  # type: ignore[arg-type]
        lambda: grow_forest(iris(), LEARNER, 0, trees=0),
        lambda: grow_forest(wide, partial(fit_belief_entropy, kind="OBE"), 0, vote="mass"),
        lambda: belief_entropy_forest(iris(), "X-RF", 0),
    ):
        with pytest.raises(InvalidInput):
            call()


@pytest.mark.parametrize("learner", [id3, c45, averaging])
def test_a_forest_of_any_learner(learner: Callable[..., Node]) -> None:
    table = Table.of_classes(IRIS.data[::2], NAMES, IRIS.target[::2], 3)
    forest = grow_forest(table, OfNodes(partial(learner, max_depth=4)), 7, trees=12)
    said = forest.predict(IRIS.data[1::2])
    assert (said.classes == IRIS.target[1::2]).mean() > 0.9
    again = grow_forest(table, OfNodes(partial(learner, max_depth=4)), 7, trees=12)
    assert (again.predict(IRIS.data[1::2]).probabilities == said.probabilities).all()
    other = grow_forest(table, OfNodes(partial(learner, max_depth=4)), 8, trees=12)
    assert (other.predict(IRIS.data[1::2]).probabilities != said.probabilities).any()
