"""Queries by scikit-activeml's conventions."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from support.published import published_tree

from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.estimators import ActiveBeliefTreeClassifier, ActiveForestClassifier
from quercus.specification.attributes import Numeric
from quercus.specification.parameters import MAX_COUNT
from quercus.specification.strategies import strategies
from quercus.trees.growth.stream import Answered, GrowthState, Observed, grow

X, TARGETS = load_iris(return_X_y=True)
PAIR = X[::3, [0, 3]]
NAN = np.nan


def partly(known: int = 12, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float64]]:
    y = np.full(len(TARGETS), NAN)
    some = np.random.default_rng(seed).permutation(len(y))[:known]
    y[some] = TARGETS[some]
    return y


def learner(strategy: str = "published", **parameters: Any) -> ActiveBeliefTreeClassifier:
    return ActiveBeliefTreeClassifier(classes=[0, 1, 2], strategy=strategy, **parameters)


@pytest.mark.parametrize("strategy", strategies("tree"))
def test_rows_without_label_are_asked_about(strategy: str) -> None:
    y = partly()
    found = learner(strategy).query(X, y, batch_size=5)
    assert found.dtype.kind == "i"
    assert len(set(found.tolist())) == len(found) == 5
    assert np.isnan(y[found]).all()


@pytest.mark.parametrize("strategy", strategies("tree"))
def test_utilities(strategy: str) -> None:
    y = partly()
    found, utilities = learner(strategy).query(X, y, batch_size=4, return_utilities=True)
    np.testing.assert_array_equal(found, learner(strategy).query(X, y, batch_size=4))
    assert utilities.shape == (4, len(X))
    assert np.nanargmax(utilities, axis=1).tolist() == found.tolist()
    for pick, row in enumerate(utilities):
        gone = set(np.flatnonzero(~np.isnan(y)).tolist()) | set(found[:pick].tolist())
        assert set(np.flatnonzero(np.isnan(row)).tolist()) == gone


@pytest.mark.parametrize("strategy", strategies("tree"))
def test_candidates_by_number(strategy: str) -> None:
    y = partly()
    some = np.flatnonzero(np.isnan(y))[::7]
    found, utilities = learner(strategy).query(X, y, candidates=some, batch_size=3, return_utilities=True)
    assert len(found) == 3
    assert set(found.tolist()) <= set(some.tolist())
    assert set(np.flatnonzero(~np.isnan(utilities[0])).tolist()) == set(some.tolist())


@pytest.mark.parametrize("strategy", strategies("tree"))
def test_candidates_as_rows(strategy: str) -> None:
    y = partly(30)
    others = X[::10] + 0.05
    found, utilities = learner(strategy).query(X, y, candidates=others, batch_size=2, return_utilities=True)
    assert utilities.shape == (2, len(others))
    assert ((found >= 0) & (found < len(others))).all()


@pytest.mark.parametrize("strategy", strategies("tree"))
def test_who_refused_is_not_asked_again(strategy: str) -> None:
    y = partly()
    first = learner(strategy).query(X, y, batch_size=3)
    others, utilities = learner(strategy).query(X, y, batch_size=3, return_utilities=True, refused=first)
    assert not set(first.tolist()) & set(others.tolist())
    assert np.isnan(utilities[0, first]).all()


def test_a_forest_turns_away_from_a_region_where_nobody_answers() -> None:
    """Seventy rows that nobody can answer and thirty elsewhere: a refused row covers its neighbours."""
    values = np.append(np.linspace(0.0, 1.0, 70), np.linspace(5.0, 6.0, 30))[:, np.newaxis]
    y = np.full(100, NAN)
    forest = ActiveForestClassifier(n_estimators=10, classes=[0, 1], random_state=0)
    (first,) = forest.query(values, y, refused=[])
    assert first < 70
    (second,) = forest.query(values, y, refused=[first])
    (among_the_others,) = forest.query(values, y, candidates=np.setdiff1d(np.arange(100), first))
    assert second >= 70 > among_the_others


def test_rows_that_are_no_candidates_cover_nothing() -> None:
    """Sixty rows are far from five; of the former one may be asked about, and it covers the others."""
    values = np.concatenate([np.linspace(0.0, 1.0, 5), np.linspace(9.0, 10.0, 60)])[:, np.newaxis]
    y = np.full(65, NAN)
    tree = learner("covering-committee", bins=None)
    some = np.array([*range(5), 34])
    (first,) = tree.query(values, y, candidates=some)
    assert first == 34
    (away,) = tree.query(values, y, candidates=some, refused=np.setdiff1d(np.arange(65), some))
    assert away < 5


def test_uncertain_labels_are_asked_about_too() -> None:
    known = [int(t) for t in TARGETS]
    labels: list[Any] = [{t, (t + 1) % 3} if i % 50 == 7 else t for i, t in enumerate(known)]
    found = learner(alpha=0.0).query(X, labels, batch_size=9)
    assert set(found.tolist()) <= {7, 57, 107}
    assert len(found)


def test_nothing_is_asked_where_no_label_could_change_the_tree() -> None:
    assert learner().query(X, TARGETS.astype(float), batch_size=3).tolist() == []
    found, utilities = learner().query(X, TARGETS.astype(float), return_utilities=True)
    assert (found.shape, utilities.shape) == ((0,), (0, len(X)))


@pytest.mark.parametrize("bins", [3, None])
@pytest.mark.parametrize("strategy", strategies("tree"))
def test_the_service_asks_the_same(strategy: str, bins: int | None) -> None:
    """The queries of a model that sees the same rows and answers, one after the other, and its tree."""
    X, truth = PAIR, TARGETS[::3]
    y = np.full(len(X), NAN)
    clf = learner(strategy, bins=bins)
    declared = Numeric("x0", cuts=32) if bins is None else Numeric("x0", bins=bins)
    specification = published_tree(
        (declared, replace(declared, name="x1")),
        Frame(("0", "1", "2")),
        budget=MAX_COUNT,
        warmup_rows=len(X),
        strategy=strategy,
    )
    state = grow(GrowthState.initial(specification), [Observed(X, np.ones((len(X), 3)))])
    asked = []
    for _ in range(8):
        wanted = state.agenda(1)
        assert clf.query(X, y).tolist() == [query.instance for query in wanted]
        for query in wanted:
            state = grow(
                state, [Answered(query.instance, np.eye(3)[truth[query.instance]], 1.0, query.asked)]
            )
            y[query.instance] = truth[query.instance]
            asked.append(query.instance)
    assert asked
    assert clf.fit(X, y).model_.trees == (state.tree,)


def test_what_was_asked_last_is_forgotten_with_other_rows() -> None:
    clf = learner()
    y = partly()
    first = clf.query(X, y)
    y[first] = TARGETS[first]
    again = clf.query(X, y)
    assert again.tolist() != learner().query(X, y).tolist()  # it goes on with the next child
    clf.query(X, y)
    np.testing.assert_array_equal(clf.query(X[::-1], y[::-1]), learner().query(X[::-1], y[::-1]))
    np.testing.assert_array_equal(clone(clf).query(X, y), learner().query(X, y))


def test_the_estimator_stays_as_it_is() -> None:
    clf = learner()
    clf.query(X, partly())
    assert not [name for name in vars(clf) if name.endswith("_")]
    fitted = clone(clf).fit(X[:, :2], TARGETS)
    fitted.query(X, partly())
    assert fitted.n_features_in_ == 2


def test_data_frames_names_and_another_missing_label() -> None:
    frame = pd.DataFrame({"c": ["x", "y", "x", "y", "z", "z"] * 4, "n": np.arange(24.0)})
    y = ["a", "b", "none", "none", "none", "a"] * 4
    clf = ActiveBeliefTreeClassifier(missing_label="none")
    found = clf.query(frame, y, batch_size=3)
    assert all(y[i] == "none" for i in found)
    rows = frame.iloc[[2, 3]]
    assert set(clf.query(frame, y, candidates=rows, batch_size=2).tolist()) <= {0, 1}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"batch_size": 0}, "batch_size: is 0"),
        ({"candidates": [150]}, r"candidates: are \[150\], must be numbers of rows in \[0, 150\)"),
        ({"candidates": [-1]}, "candidates: are"),
        ({"candidates": [0.5]}, "candidates: are"),
        ({"refused": [150]}, r"refused: are \[150\], must be numbers of rows in \[0, 150\)"),
    ],
)
def test_mistakes(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        learner().query(X, partly(), **arguments)


@pytest.mark.filterwarnings("ignore:.*base_estimator. could not be fitted")
def test_the_loop_of_scikit_activeml() -> None:
    """Its pool loop with our estimator in place of its query strategy, beside one of its own."""
    pool = pytest.importorskip(
        "skactiveml.pool", reason="scikit-activeml is not installed: its loop is NOT checked"
    )
    classifier = pytest.importorskip("skactiveml.classifier")
    utils = pytest.importorskip("skactiveml.utils")
    from sklearn.tree import DecisionTreeClassifier

    order = np.random.default_rng(2).permutation(len(X))
    train, test = order[:100], order[100:]
    ours = ActiveBeliefTreeClassifier(classes=[0, 1, 2], missing_label=utils.MISSING_LABEL)
    theirs = pool.UncertaintySampling(method="entropy", random_state=0)
    model = classifier.SklearnClassifier(
        DecisionTreeClassifier(random_state=0), classes=[0, 1, 2], random_state=0
    )
    accuracy = {}
    for name, ask in {
        "ours": lambda y: ours.query(X=X[train], y=y, batch_size=2),
        "theirs": lambda y: theirs.query(X=X[train], y=y, clf=model, batch_size=2),
    }.items():
        y = np.full(shape=len(train), fill_value=utils.MISSING_LABEL)
        for _ in range(15):
            asked = ask(y)
            assert not utils.is_labeled(y)[asked].any()
            y[asked] = TARGETS[train][asked]
        assert utils.is_labeled(y).sum() == 30
        accuracy[name] = clone(ours).fit(X[train], y).score(X[test], TARGETS[test])
    assert accuracy["ours"] >= 0.85, accuracy
    assert min(accuracy.values()) > 0.5


def test_the_forest_asks_by_the_strategy_of_its_parameter() -> None:
    y = partly(60)

    def utilities(**parameters: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        forest = ActiveForestClassifier(random_state=0, **parameters)
        return np.asarray(forest.query(X, y, batch_size=3, return_utilities=True)[1])

    found = [utilities(strategy=strategy) for strategy in strategies("forest")]
    np.testing.assert_array_equal(utilities(), found[0])
    assert np.nanmax(found[1] - found[0]) > 0.01
    with pytest.raises(InvalidInput, match="strategy: is 'committee', must be one of margin, memory-disag"):
        ActiveForestClassifier(strategy="committee").query(X, y)
