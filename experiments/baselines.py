"""Baselines for the belief trees: learners that know precise labels or weights alone."""

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput
from quercus.experiments.problem import FittedLearner, Prediction, Problem

TREES = 100  # of a random forest, scikit-learn's default


def uniform_classifier(size: int) -> FittedLearner:
    """Return what is known of ``size`` classes without a label: the first of them, and equal probabilities."""
    return FittedLearner(
        lambda values: Prediction.of_probabilities(np.full((len(values), size), 1.0 / size)), lambda: 1
    )


def probable_classes(problem: Problem, predict_proba: Callable[[Floats], Floats]) -> FittedLearner:
    """Return a learner without trees that gives a matrix (m, p) of the problem's rows probabilities (m, l)."""
    return FittedLearner(lambda values: Prediction.of_probabilities(predict_proba(problem.matrix(values))))


def fit_forest(problem: Problem, rows: Ints, classes: Ints, weights: Floats | None = None) -> FittedLearner:
    """Return scikit-learn's random forest on these training rows, a row as often as it is named."""
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415  (takes a second)

    if not len(rows):
        return uniform_classifier(problem.train.size)
    model = RandomForestClassifier(TREES, random_state=problem.integer_seed)
    model.fit(problem.matrix(problem.train.values[rows]), classes, sample_weight=weights)

    def predict(values: Floats) -> Prediction:
        """Return its probabilities; a class that it never saw has probability 0."""
        probabilities = np.zeros((len(values), problem.train.size))
        probabilities[:, model.classes_] = model.predict_proba(problem.matrix(values))
        return Prediction.of_probabilities(probabilities)

    return FittedLearner(predict, lambda: sum(int(tree.tree_.node_count) for tree in model.estimators_))


def forest_precise(problem: Problem) -> FittedLearner:
    """Return a random forest on the rows whose label is precise."""
    rows = np.flatnonzero(problem.train.precise)
    return fit_forest(problem, rows, problem.train.contours[rows].argmax(axis=1))


def forest_pignistic(problem: Problem) -> FittedLearner:
    """Return a random forest on every row once for each class, weighted by its pignistic probability."""
    pignistic = problem.train.pignistic
    rows, classes = np.nonzero(pignistic)
    return fit_forest(problem, rows, classes, pignistic[rows, classes])


def forest_hard(problem: Problem) -> FittedLearner:
    """Return a random forest on every row that is not vacuous, with its class of the largest pignistic probability."""
    pignistic = problem.train.pignistic
    rows = np.flatnonzero(pignistic.max(axis=1) > pignistic.min(axis=1) + 1e-9)
    return fit_forest(problem, rows, pignistic[rows].argmax(axis=1))


def ek_nn(problem: Problem, k: int = 7) -> FittedLearner:
    """Return the evidential k-nearest-neighbour rule (Denoeux 1995) on the rows that are not vacuous.

    Each of the ``k`` nearest rows is evidence about the class, its label discounted to reliability
    ``.95 exp(-(d / s)^2)``, ``s`` the median distance to the k-th neighbour in training; the evidence is combined as
    contours, by their product, and normalised to probabilities. Columns are taken as they are: standardised, they give
    .70 and .75 on the credal dog sets rather than .84 and .82 (their columns are principal components, and the first
    ones matter most).
    """
    train = problem.train
    if np.isnan(train.values).any() or np.isnan(problem.test).any():
        raise InvalidInput("values", "are missing somewhere; the rule needs distances")
    told = train.contours.min(axis=1) < train.contours.max(axis=1)
    if not told.any():
        return uniform_classifier(train.size)
    rows = problem.matrix(train.values)[told]
    contours = train.contours[told] / train.contours[told].max(axis=1, keepdims=True)
    among = np.sort(cdist(rows, rows), axis=1)[:, min(k, len(rows) - 1)]
    apart = among[among > 0]  # binned rows are often at the same place
    reach = float(np.median(apart)) if apart.size else 1.0

    def probabilities(matrix: Floats) -> Floats:
        distances = cdist(matrix, rows)
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]
        near = np.take_along_axis(distances, nearest, axis=1)
        reliability = 0.95 * np.exp(-((near / reach) ** 2))[:, :, np.newaxis]
        logs = np.log(1.0 - reliability + reliability * contours[nearest]).sum(axis=1)
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        normalised: Floats = shares / shares.sum(axis=1, keepdims=True)
        return normalised

    return probable_classes(problem, probabilities)
