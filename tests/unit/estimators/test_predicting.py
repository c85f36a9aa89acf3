"""Predictions of the estimators, compared with their learners; and their use with scikit-learn's tools."""

import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.estimators import (
    ActiveBeliefTreeClassifier,
    ActiveForestClassifier,
    BeliefEntropyTreeClassifier,
    BeliefTreeClassifier,
    C45Classifier,
    E2MTreeClassifier,
    EvidentialForestClassifier,
    ID3Classifier,
    TotalUncertaintyTreeClassifier,
)
from quercus.estimators.base import BeliefClassifier
from quercus.specification import learners
from quercus.specification.attributes import Numeric
from quercus.trees import C45, Averaging, BeliefEntropy, E2m, Id3, TotalUncertainty
from quercus.trees.learners.cells import Between
from quercus.trees.learners.learner import fit
from quercus.trees.learners.metrics import u65
from quercus.trees.learners.table import Table

X, TARGETS = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
Y = NAMES[TARGETS]
ATTRIBUTES = [Numeric(f"x{k}") for k in range(4)]

PAIRS = [
    (ID3Classifier(significance=0.05), Id3(significance=0.05)),
    (C45Classifier(confidence=None, min_branch=1), C45(confidence=None, min_branch=1)),
    (E2MTreeClassifier(pruning="likelihood", level=0.01, max_cuts=8),
     E2m(max_cuts=8, pruning=learners.Pruning("likelihood", 0.01))),
    (BeliefTreeClassifier(max_depth=3), Averaging(max_depth=3)),
    (TotalUncertaintyTreeClassifier(lam=0.4, combine="mean"), TotalUncertainty(0.4, "mean")),
    (BeliefEntropyTreeClassifier(leaf="OBE", min_instances=9), BeliefEntropy("OBE", 9)),
]  # fmt: skip
EVERY: list[BeliefClassifier] = [
    *(pair[0] for pair in PAIRS),
    ActiveBeliefTreeClassifier(),
    ActiveForestClassifier(n_estimators=30, random_state=0),
    EvidentialForestClassifier(n_estimators=4, random_state=0),
]


def said(n: int = 150, seed: int = 3) -> list[Any]:
    """Labels of every kind: classes, sets, nothing, masses."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(4, size=n)
    return [
        name if kind == 0 else {name, "versicolor"} if kind == 1 else None if kind == 2
        else {frozenset([name]): 0.6, frozenset(NAMES.tolist()): 0.4}
        for name, kind in zip(Y[:n].tolist(), kinds, strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize(("estimator", "learner"), PAIRS, ids=lambda value: type(value).__name__)
def test_the_model_is_the_learners(estimator: BeliefClassifier, learner: learners.SpecifiedLearner) -> None:
    model = fit(learner, Table.of_classes(X, ATTRIBUTES, TARGETS, 3))
    expected = model.predict(X)
    found = clone(estimator).fit(X, Y)
    assert found.model_.trees == model.trees
    assert found.classes_.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(found.predict(X), NAMES[expected.klass])
    np.testing.assert_array_equal(found.predict_proba(X), expected.theta)
    np.testing.assert_array_equal(found.predict_contour(X), expected.plausibility)
    np.testing.assert_array_equal(found.predict_belief(X), expected.belief)
    np.testing.assert_array_equal(found.predict_set(X), expected.classes)


@pytest.mark.parametrize("estimator", EVERY, ids=lambda value: type(value).__name__)
def test_labels_of_every_kind_at_once(estimator: BeliefClassifier) -> None:
    found = clone(estimator).fit(X, said())
    assert (found.predict_belief(X) <= found.predict_proba(X) + 1e-12).all()
    assert (found.predict_proba(X) <= found.predict_contour(X) + 1e-12).all()
    assert found.predict_set(X).any(axis=1).all()
    assert found.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(150))
    assert found.score(X, Y) > 0.85
    assert u65(found.predict_set(X), TARGETS) >= 7 / 15 - 1e-9  # what it is worth to say nothing


@pytest.mark.parametrize("estimator", EVERY, ids=lambda value: type(value).__name__)
def test_clones_and_pickles_say_the_same(estimator: BeliefClassifier) -> None:
    found = clone(estimator).fit(X, Y)
    again = pickle.loads(pickle.dumps(found))  # noqa: S301 - our own
    np.testing.assert_array_equal(again.predict_proba(X), found.predict_proba(X))
    assert again.get_params().keys() == found.get_params().keys()
    with pytest.raises(NotFittedError):
        clone(found).predict(X)


@pytest.mark.parametrize("bins", [4, None])
@pytest.mark.parametrize("kind", ["likelihood", "chi-square"])
def test_the_active_tree_is_pruned_where_labels_are_noise(bins: int | None, kind: str) -> None:
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(150) < 0.3, NAMES[rng.integers(3, size=150)], Y)
    sizes = [
        ActiveBeliefTreeClassifier(alpha=1.0, bins=bins, pruning=pruning, level=level)
        .fit(X, noisy)
        .model_.flat_trees[0]
        .size
        for pruning, level in ((None, 0.05), (kind, 0.05), (kind, 0.0001))
    ]
    assert sizes[0] > sizes[1] > sizes[2] >= 1
    asking = ActiveBeliefTreeClassifier(alpha=0.5, strategy="published")
    unsure = [None if row % 3 else name for row, name in enumerate(noisy)]
    pruned = clone(asking).set_params(pruning=kind)
    assert asking.query(X, unsure, batch_size=5).tolist() == pruned.query(X, unsure, batch_size=5).tolist()


def test_a_forest_that_is_mapped_read_only_goes_on_learning(tmp_path: Path) -> None:
    """joblib maps the arrays of a pickle so that nobody may write to them."""
    values = np.random.default_rng(0).normal(size=(120, 3))
    labels = (values[:, 0] > 0).astype(int)
    forest = ActiveForestClassifier(n_estimators=7, random_state=0).fit(values, labels)
    expected = forest.predict_proba(values)
    joblib.dump(forest, tmp_path / "forest")
    mapped = joblib.load(tmp_path / "forest", mmap_mode="r")
    values.flags.writeable = False
    assert (mapped.predict_proba(values) == expected).all()
    mapped.partial_fit(values, labels)
    assert mapped.query(values, [None] * 120).shape == (1,)
    assert (mapped.predict_proba(values) == forest.partial_fit(values, labels).predict_proba(values)).all()


@pytest.mark.parametrize("first", [1, 3, 10])
def test_the_forest_of_batches_is_that_of_all_rows_whatever_names_come_later(first: int) -> None:
    """A draw of names depends on their order, which must not depend on the batches."""
    rng = np.random.default_rng(0)
    colours = np.array(["red", "green", "blue", "amber"])[
        np.minimum(np.arange(60) // 12, 3) - rng.integers(0, 2, 60)
    ]
    frame = pd.DataFrame({"colour": colours, "size": rng.normal(size=60)})
    labels = (rng.random(60) < np.where(np.isin(colours, ["red", "amber"]), 0.9, 0.2)).astype(int)
    whole = ActiveForestClassifier(n_estimators=12, random_state=0, classes=[0, 1])
    parts = clone(whole)
    for a, b in pairwise([0, first, first + 13, 60]):
        parts.partial_fit(frame.iloc[a:b], labels[a:b])
    rows = frame.assign(size=frame["size"].to_numpy()[::-1])
    np.testing.assert_array_equal(parts.predict_proba(rows), whole.fit(frame, labels).predict_proba(rows))


def test_a_class_that_comes_later_excludes_itself_from_what_was_labelled() -> None:
    """The forest is that of all rows at once, with labels that say what they said."""
    rng = np.random.default_rng(3)
    rows, old = rng.normal(size=(90, 2)), rng.integers(0, 2, 90)
    labels = np.eye(3)[old]
    labels[:60:3] = 1.0
    labels[60::2] = [0.0, 0.0, 1.0]
    late = ActiveForestClassifier(n_estimators=12, random_state=0, classes=["a", "b"])
    late.partial_fit(rows[:60], np.where(labels[:60].all(axis=1)[:, None], 1.0, labels[:60])[:, :2])
    with pytest.raises(ValueError, match=r"were \['a', 'b'\] before"):
        late.partial_fit(rows[60:], labels[60:], classes=["a", "c", "b"])
    with pytest.raises(ValueError, match="c"):
        late.partial_fit(rows[60:], ["c"] * 30)
    late.partial_fit(rows[60:], labels[60:], classes=["a", "b", "c"])
    whole = ActiveForestClassifier(n_estimators=12, random_state=0, classes=["a", "b", "c"]).fit(rows, labels)
    assert late.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(late.predict_proba(rows), whole.predict_proba(rows))


def test_a_batch_that_is_refused_leaves_nothing_behind() -> None:
    """Neither rows nor names, whose order draws depend on."""
    rng = np.random.default_rng(0)
    colours = np.array(["red", "green", "blue", "amber"])[rng.integers(0, 4, 60)]
    frame = pd.DataFrame({"colour": colours, "size": rng.normal(size=60)})
    labels = (rng.random(60) < np.where(np.isin(colours, ["red", "amber"]), 0.9, 0.2)).astype(int)
    whole = ActiveForestClassifier(n_estimators=12, random_state=0, classes=[0, 1])
    parts = clone(whole).partial_fit(frame.iloc[:1], labels[:1])
    for refused in ([-1.0], [0.5], [np.nan]):
        with pytest.raises(ValueError, match="weight"):
            parts.partial_fit(frame.iloc[59:].assign(colour="violet"), labels[59:], sample_weight=refused)
    for a, b in pairwise([1, 20, 60]):
        parts.partial_fit(frame.iloc[a:b], labels[a:b])
    whole.fit(frame, labels)
    np.testing.assert_array_equal(parts.predict_proba(frame), whole.predict_proba(frame))


def test_contours_in_y() -> None:
    contours = np.eye(3)[TARGETS]
    contours[::2] = 1.0
    found = E2MTreeClassifier(classes=NAMES).fit(X, contours)
    as_list = [None if i % 2 == 0 else name for i, name in enumerate(Y)]
    again = E2MTreeClassifier().fit(X, as_list)
    assert found.model_.trees == again.model_.trees
    frame = pd.DataFrame(contours, columns=NAMES)
    assert E2MTreeClassifier().fit(X, frame).predict(X).tolist() == found.predict(X).tolist()


def test_mass_functions_in_y_and_out() -> None:
    masses = [MassFunction.of(3, {1 << t: 0.7, 0b111: 0.3}) for t in TARGETS.tolist()]
    found = BeliefTreeClassifier(classes=NAMES).fit(X, masses)
    out = found.predict_mass(X[:2])
    assert [mass.size for mass in out] == [3, 3]
    np.testing.assert_allclose(out[0].contour(), found.predict_contour(X[:1])[0])
    with pytest.raises(ValueError, match="C45Classifier has no mass functions"):
        C45Classifier().fit(X, Y).predict_mass(X)


def test_weights_are_counts() -> None:
    weights = np.random.default_rng(0).integers(3, size=150)
    again = np.repeat(np.arange(150), weights)
    for estimator in (
        E2MTreeClassifier(),
        C45Classifier(),
        BeliefTreeClassifier(),
        ActiveBeliefTreeClassifier(),
        ActiveBeliefTreeClassifier(bins=None, alpha=0.9),
    ):
        weighted = clone(estimator).fit(X, Y, sample_weight=weights)
        repeated = clone(estimator).fit(X[again], Y[again])
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-9)
        np.testing.assert_allclose(weighted.predict_belief(X), repeated.predict_belief(X), atol=1e-9)
        twice = clone(estimator).fit(np.vstack([X, X]), np.concatenate([Y, Y]), np.repeat([1, 0], 150))
        assert twice.export_text() == clone(estimator).fit(X, Y).export_text()
    with pytest.raises(InvalidInput, match=r"weights\[0\]: is 0.5, must be a whole number"):
        ActiveBeliefTreeClassifier().fit(X, Y, sample_weight=np.full(150, 0.5))


def test_e2m_takes_weights_in_parts() -> None:
    halves = E2MTreeClassifier().fit(np.vstack([X, X]), np.concatenate([Y, Y]), np.full(300, 0.5))
    whole = E2MTreeClassifier().fit(X, Y)
    np.testing.assert_allclose(halves.predict_proba(X), whole.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(halves.predict_belief(X), whole.predict_belief(X), atol=1e-9)


@pytest.mark.parametrize("kind", [ActiveBeliefTreeClassifier, E2MTreeClassifier])
def test_sets_are_the_more_cautious_the_lower_their_level(kind: Any) -> None:
    labels = [
        None if at % 10 else name for at, name in enumerate(Y)
    ]  # five of each class: no leaf can be sure
    sizes, trees = [], []
    for level in (1.0, 0.8, 0.15, 0.01, 0.0):
        model = kind(prediction_level=level, classes=NAMES).fit(X, labels)
        chosen = model.predict_set(X)
        assert chosen[np.arange(150), np.searchsorted(NAMES, model.predict(X))].all()
        sizes.append(chosen.sum(axis=1))
        trees.append(model.model_.flat_trees[0].attribute.tolist())
    assert all(tree == trees[0] for tree in trees)  # the level of the sets is no matter to the tree
    assert all((more >= fewer).all() for fewer, more in pairwise(sizes))
    assert (sizes[-1] == 3).all()
    assert sizes[0].mean() < sizes[3].mean()
    with pytest.raises(InvalidInput, match=r"prediction_level: is 1\.5, must lie in"):
        kind(prediction_level=1.5).fit(X, Y)


def test_a_leaf_says_one_class_when_enough_rows_do_and_all_when_none_does() -> None:
    """With n rows of one class, its least probability is p with ``p^n`` = level, which must exceed 1 - p."""
    for level in (0.5, 0.15, 0.05):
        for rows in range(1, 9):
            model = E2MTreeClassifier(prediction_level=level, max_depth=0, classes=["a", "b", "c"])
            alone = model.fit([[0.0]] * rows, ["b"] * rows).predict_set([[0.0]])[0]
            assert alone.tolist() == ([False, True, False] if level ** (1 / rows) > 0.5 else [True] * 3)
            belief = model.predict_belief([[0.0]])[0]
            np.testing.assert_allclose(belief, [0.0, level ** (1 / rows), 0.0], atol=1e-9)
    silent = ActiveBeliefTreeClassifier(classes=["a", "b"]).fit([[0.0], [1.0]], [None, None])
    assert silent.predict_set([[0.0]]).tolist() == [[True, True]]


FRAME = pd.DataFrame(
    {
        "colour": pd.Categorical(["red", "red", "blue", "blue", "green", None] * 5),
        "size": [1.0, 2.0, 3.0, 4.0, np.nan, 6.0] * 5,
        "shape": ["round", "square", "round", "square", "round", "square"] * 5,
    }
)
KIND = ["a", "a", "b", "b", "b", "a"] * 5
WITH_NAMES = [
    each for each in EVERY if not isinstance(each, BeliefEntropyTreeClassifier | EvidentialForestClassifier)
]


@pytest.mark.parametrize(
    "estimator", [*WITH_NAMES, EvidentialForestClassifier(C45Classifier(), n_estimators=4)]
)
def test_data_frames_with_names_and_missing_cells(estimator: BeliefClassifier) -> None:
    found = (
        clone(estimator).set_params(random_state=1)
        if "random_state" in estimator.get_params()
        else clone(estimator)
    )
    found.fit(FRAME, KIND)
    assert found.feature_names_in_.tolist() == ["colour", "size", "shape"]
    assert found.n_features_in_ == 3
    assert found.score(FRAME, KIND) == 1.0
    unknown = pd.DataFrame({"colour": ["violet"], "size": [np.nan], "shape": [None]})
    assert found.predict_proba(unknown).sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="feature names"):
        found.predict(FRAME[["size", "colour", "shape"]])


def test_unseen_names_and_missing_cells_are_the_same_unknown() -> None:
    rows = pd.DataFrame({"c": ["x", "x", "y", "y", "y"]})
    found = C45Classifier(min_branch=1, confidence=None).fit(rows, ["a", "a", "b", "b", "b"])
    unseen, missing = (found.predict_proba(pd.DataFrame({"c": [value]})) for value in ("new", None))
    np.testing.assert_array_equal(unseen, missing)
    np.testing.assert_allclose(unseen, [[0.4, 0.6]])  # both branches, by their rows


def test_cells_that_are_sets_and_ranges() -> None:
    rows = pd.DataFrame({"c": ["x", "y", "z", "z"], "n": [1.0, 2.0, 1.0, 9.0]})
    found = BeliefTreeClassifier(min_instances=1).fit(rows, ["a", "b", "b", "b"])
    doubt = pd.DataFrame(
        {"c": [{"x", "y"}, {"y", "z"}, "x"], "n": [1.0, Between(0, 5), Between(0, 10)]}, dtype=object
    )
    assert [mass.focal for mass in found.predict_mass(doubt)] == [
        ((0b11, 1.0),),
        ((0b10, 1.0),),
        ((0b01, 1.0),),
    ]


def test_forests_do_not_depend_on_jobs() -> None:
    forest = EvidentialForestClassifier(C45Classifier(max_depth=3), n_estimators=6, random_state=4)
    alone = clone(forest).fit(X, Y)
    together = clone(forest).set_params(n_jobs=2).fit(X, Y)
    assert alone.model_.trees == together.model_.trees
    other = clone(forest).set_params(random_state=5).fit(X, Y)
    assert other.model_.trees != alone.model_.trees


@pytest.mark.parametrize(
    "base", [EvidentialForestClassifier(), StandardScaler(), ActiveBeliefTreeClassifier()]
)
def test_what_cannot_stand_in_a_forest(base: BaseEstimator) -> None:
    with pytest.raises(InvalidInput, match=r"base: is .* must be an estimator of a tree"):
        EvidentialForestClassifier(base, n_estimators=2).fit(X, Y)


def test_scores_by_uncertain_labels() -> None:
    tree = E2MTreeClassifier(classes=NAMES).fit(X, Y)
    predicted = tree.predict(X[:4]).tolist()
    assert predicted == ["setosa"] * 4
    y = [
        "setosa",
        {"setosa", "virginica"},
        None,
        {frozenset(["setosa"]): 0.6, frozenset(NAMES.tolist()): 0.4},
    ]
    assert tree.score(X[:4], y) == pytest.approx((1 + 1 / 2 + 1 / 3 + (0.6 + 0.4 / 3)) / 4)
    assert tree.score(X[:2], np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0]])) == pytest.approx((0.75 + 0.25) / 2)
    assert tree.score(X, Y, sample_weight=TARGETS) == tree.score(X[50:], Y[50:], TARGETS[50:])
    assert tree.score(X[:2], ["setosa", "unheard of"]) == 0.5


def test_scores_where_some_labels_are_missing() -> None:
    """A missing label is a label that says nothing, whatever stands for it."""
    some, labels = X[::10], TARGETS[::10].copy()
    forest = ActiveForestClassifier(n_estimators=6, random_state=0, missing_label=-1).fit(X, TARGETS)
    right = forest.predict(some) == labels
    labels[::2] = -1
    expected = np.where(labels < 0, 1 / 3, right).mean()
    for y in (labels, labels.tolist(), pd.Series(labels), [None if y < 0 else y for y in labels.tolist()]):
        assert forest.score(some, y) == pytest.approx(expected)


def test_grids_may_hold_numbers_of_numpy() -> None:
    grid = {"max_depth": np.arange(1, 3), "prediction_level": np.array([0.25], dtype=np.float32)}
    search = GridSearchCV(E2MTreeClassifier(), grid, cv=2, error_score="raise").fit(X, Y)
    assert search.best_params_["max_depth"] == 2


def test_grid_search_with_uncertain_labels() -> None:
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(
        E2MTreeClassifier(classes=NAMES), {"max_depth": [0, 3]}, cv=folds, error_score="raise"
    )
    search.fit(X, said())
    assert search.best_params_ == {"max_depth": 3}
    assert search.best_estimator_.score(X, Y) > 0.9


def test_grid_search_and_pipelines() -> None:
    grid = GridSearchCV(
        EvidentialForestClassifier(C45Classifier(), n_estimators=3, random_state=0),
        {"base__max_depth": [1, 3], "max_features": ["root", "all"]},
        cv=3,
    )
    pipeline = make_pipeline(StandardScaler(), grid).fit(X, Y)
    assert pipeline.score(X, Y) > 0.9
    assert grid.get_params()["estimator__base__max_depth"] is None
    assert pipeline[-1].best_params_["base__max_depth"] == 3
    assert cross_val_score(make_pipeline(StandardScaler(), ID3Classifier()), X, Y, cv=3).mean() > 0.9


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (C45Classifier(confidence=2.0), r"confidence: is 2.0, must lie in \(0, 1\)"),
        (ID3Classifier(min_instances=0), "min_instances: is 0"),
        (E2MTreeClassifier(pruning="hard"), "kind: is 'hard'"),
        (BeliefEntropyTreeClassifier(leaf="XBE"), "leaf: is 'XBE'"),  # type: ignore[arg-type]
        (ActiveBeliefTreeClassifier(alpha=2.0), "alpha: is 2.0"),
        (ActiveBeliefTreeClassifier(pruning="hard"), "kind: is 'hard'"),
        (ActiveBeliefTreeClassifier(strategy="none"), "strategy: is 'none'"),
        (EvidentialForestClassifier(n_estimators=0), "trees: is 0"),
    ],
)
def test_parameters_out_of_bounds(estimator: BeliefClassifier, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        estimator.fit(X, Y)
