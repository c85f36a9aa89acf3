"""Baselines for the belief trees: learners that know precise labels or weights alone."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput
from quercus.experiments.problem import FittedLearner, Prediction, Problem

TREES = 100  # of a random forest, scikit-learn's default


@dataclass(frozen=True, eq=False)
class UniformClassifier:
    """The classifier without a label to learn from: every class is equally likely."""

    size: int
    nodes: int = 1

    def predict(self, values: Floats) -> Prediction:
        """Return the first class of every row, and equal probabilities."""
        return Prediction.of_probabilities(np.full((len(values), self.size), 1.0 / self.size))


@dataclass(frozen=True, eq=False)
class SklearnClassifier:
    """A classifier of scikit-learn, fitted to numbers of classes."""

    problem: Problem
    model: Any

    @property
    def nodes(self) -> int:
        """Nodes of its tree or trees."""
        trees = getattr(self.model, "estimators_", [self.model])
        return sum(int(tree.tree_.node_count) for tree in trees)

    def predict(self, values: Floats) -> Prediction:
        """Return its probabilities; a class that it never saw has probability 0."""
        probabilities = np.zeros((len(values), self.problem.train.size))
        probabilities[:, self.model.classes_] = self.model.predict_proba(self.problem.matrix(values))
        return Prediction.of_probabilities(probabilities)


def fit_forest(problem: Problem, rows: Ints, classes: Ints, weights: Floats | None = None) -> FittedLearner:
    """Return scikit-learn's random forest on these training rows, a row as often as it is named."""
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415  (takes a second)

    if not len(rows):
        return UniformClassifier(problem.train.size)
    model = RandomForestClassifier(TREES, random_state=problem.integer_seed)
    model.fit(problem.matrix(problem.train.values[rows]), classes, sample_weight=weights)
    return SklearnClassifier(problem, model)


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


@dataclass(frozen=True, eq=False)
class EvidentialNeighbours:
    """The evidential k-nearest-neighbour rule (Denoeux 1995) with labels that are belief functions.

    Each of the ``k`` nearest rows is evidence about the class, its label discounted to reliability
    ``.95 exp(-(d / s)^2)``, ``s`` the median distance to the k-th neighbour in training; the evidence is combined as
    contours, by their product. Columns are taken as they are: standardised, they give .70 and .75 on the credal dog
    sets rather than .84 and .82 (their columns are principal components, and the first ones matter most).
    """

    problem: Problem
    rows: Floats
    contours: Floats
    reach: float
    k: int
    nodes: int = 0

    def predict(self, values: Floats) -> Prediction:
        """Return the normalised contour of the combined evidence as probabilities."""
        distances = cdist(self.problem.matrix(values), self.rows)
        nearest = np.argsort(distances, axis=1, kind="stable")[:, : self.k]
        near = np.take_along_axis(distances, nearest, axis=1)
        reliability = 0.95 * np.exp(-((near / self.reach) ** 2))[:, :, np.newaxis]
        logs = np.log(1.0 - reliability + reliability * self.contours[nearest]).sum(axis=1)
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        return Prediction.of_probabilities(shares / shares.sum(axis=1, keepdims=True))


def ek_nn(problem: Problem, k: int = 7) -> FittedLearner:
    """Return the evidential k-nearest-neighbour rule on the rows that are not vacuous."""
    train = problem.train
    if np.isnan(train.values).any() or np.isnan(problem.test).any():
        raise InvalidInput("values", "are missing somewhere; the rule needs distances")
    told = train.contours.min(axis=1) < train.contours.max(axis=1)
    matrix = problem.matrix(train.values)
    if not told.any():
        return UniformClassifier(train.size)
    rows = matrix[told]
    contours = train.contours[told] / train.contours[told].max(axis=1, keepdims=True)
    among = np.sort(cdist(rows, rows), axis=1)[:, min(k, len(rows) - 1)]
    apart = among[among > 0]  # binned rows are often at the same place
    reach = float(np.median(apart)) if apart.size else 1.0
    return EvidentialNeighbours(problem, rows, contours, reach, k)
