"""The input of a learner in a job, its predictions, and their scores."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.experiments.datasets import DataSet
from quercus.specification.attributes import Attribute, Nominal, Numeric
from quercus.trees.learners.metrics import u65, u80
from quercus.trees.learners.table import Table
from quercus.trees.tree.encoding import Encoder, branch_names, equal_width_edges


@dataclass(frozen=True, eq=False)
class Problem:
    """A training fold with its labels, and the rows to classify.

    Parameters
    ----------
    train
        The training rows; their labels may be corrupted.
    truth
        (n,) true classes of the training rows, for oracles only.
    test
        (m, K) values of the rows to classify.
    ordered
        (K,) whether the values of a column, numbers or bins, are ordered.
    seed
        Seed of the learner's random draws.
    """

    train: Table
    truth: Ints
    test: Floats
    ordered: Bools
    seed: np.random.SeedSequence

    @cached_property
    def integer_seed(self) -> int:
        """A seed below 2^32, for libraries that want one."""
        return int(self.seed.generate_state(1)[0])

    @cached_property
    def ordered_attributes(self) -> tuple[Attribute, ...]:
        """The attributes, where bins of numbers are numbers that are cut between the bins."""
        return tuple(
            Numeric(a.name, edges=tuple(i + 0.5 for i in range(len(a.values) - 1)), missing=a.missing)
            if isinstance(a, Nominal) and self.ordered[k] and len(a.values) > 1
            else a
            for k, a in enumerate(self.train.attributes)
        )

    def true_contour(self, row: int) -> Floats:
        """Return the contour (l,) of the true class of a training row."""
        truth: Floats = np.eye(self.train.size)[self.truth[row]]
        return truth

    def matrix(self, values: Floats) -> Floats:
        """Return values (n, K) as scikit-learn wants them: ordered columns as they are, else a column a value."""
        columns = []
        for k, attribute in enumerate(self.train.attributes):
            column = values[:, k]
            if self.ordered[k] or not isinstance(attribute, Nominal):
                columns.append(column[:, np.newaxis])
            else:
                columns.append((column[:, np.newaxis] == np.arange(len(attribute.values))).astype(float))
        return np.concatenate(columns, axis=1)


@dataclass(frozen=True, eq=False)
class Prediction:
    """The predictions of a learner for m rows.

    Parameters
    ----------
    classes
        (m,) the class predicted.
    probabilities
        (m, l).
    possible
        (m, l) bool, the set-valued prediction; of a learner that has none, the class predicted alone.
    """

    classes: Ints
    probabilities: Floats
    possible: Bools

    @classmethod
    def of_probabilities(cls, probabilities: Floats) -> "Prediction":
        """Return the predictions of a learner with only probabilities (m, l): the first of tied classes."""
        classes: Ints = np.argmax(probabilities >= probabilities.max(axis=1, keepdims=True) - 1e-9, axis=1)
        possible = classes[:, np.newaxis] == np.arange(probabilities.shape[1])
        return cls(classes, probabilities, possible)

    def scores(self, targets: Ints) -> dict[str, float]:
        """Return means over the rows, whose true classes are ``targets`` (m,): the scores of a `Measurement`."""
        truth = np.eye(self.probabilities.shape[1])[targets]
        return {
            "accuracy": float(np.mean(self.classes == targets)),
            "u65": u65(self.possible, targets),
            "u80": u80(self.possible, targets),
            "brier": float(np.mean(np.sum((self.probabilities - truth) ** 2, axis=1))),
        }


@dataclass(frozen=True, eq=False)
class FittedLearner:
    """A fitted learner.

    Parameters
    ----------
    predict
        Returns the predictions for rows of values (m, K).
    count_nodes
        Returns the number of nodes of all its trees.
    """

    predict: Callable[[Floats], Prediction]
    count_nodes: Callable[[], int] = lambda: 0

    @property
    def nodes(self) -> int:
        """Nodes of all its trees."""
        return self.count_nodes()


def fold_of(
    data: DataSet, labels: Table, held_out: Bools, bins: int, seed: np.random.SeedSequence
) -> Problem:
    """Return the problem of a fold.

    Parameters
    ----------
    data
        The whole set.
    labels
        Its rows with the labels to learn from.
    held_out
        (n,) the rows to classify.
    bins
        Number of bins of equal width for every numeric column over the training rows (theory §8); 0: leave
        numbers as they are.
    seed
        Seed of the learner.
    """
    train, test = labels.take(~held_out), data.values[held_out]
    return problem_of(train, data.targets[~held_out], test, bins, seed)


def problem_of(train: Table, truth: Ints, test: Floats, bins: int, seed: np.random.SeedSequence) -> Problem:
    """Return a problem of its parts, numeric columns cut into bins where wanted."""
    ordered = np.array([isinstance(attribute, Numeric) for attribute in train.attributes])
    if not bins or not ordered.any():
        return Problem(train, truth, test, ordered, seed)
    edges = tuple(
        equal_width_edges(train.values[:, k], bins) if ordered[k] else () for k in range(len(ordered))
    )
    attributes = tuple(Numeric(a.name, bins=bins) if isinstance(a, Numeric) else a for a in train.attributes)
    encoder = Encoder(attributes, edges)
    names = branch_names(attributes, edges)
    binned = tuple(
        Nominal(a.name, tuple(f"{i}: {text}" for i, text in enumerate(names[k][:bins]))) if ordered[k] else a
        for k, a in enumerate(attributes)
    )

    def cut_values(values: Floats) -> Floats:
        codes = encoder.codes(values).astype(np.float64)
        return np.where(ordered & ~np.isnan(values), codes, values)

    coded = Table(cut_values(train.values), binned, train.contours, train.weights, train.given)
    return Problem(coded, truth, cut_values(test), ordered, seed)
