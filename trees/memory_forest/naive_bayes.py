"""A naive-Bayes member: for each attribute, the density or the frequencies of its values in each class (theory §10.3).

Rows whose label is one class are counted once. Only the others are divided among the classes at each step of E2M, rows
with the same name and contour together.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.kernels.forest import DENSITY_STEPS, add_densities, fit_densities
from quercus.kernels.growth import NONE
from quercus.trees.memory_forest.evidence import DistinctContours
from quercus.trees.memory_forest.unpickled import WritableArrays

Kinds = NDArray[np.int32]

LEAST_CHANGE = 1e-6  # of a probability: E2M stops after a step in which none changes by more
PRIOR = 0.5  # pseudo-count of each name in each class


@dataclass(frozen=True, eq=False)
class NaiveBayes(WritableArrays):
    """The classes' densities of numbers and frequencies of names.

    Parameters
    ----------
    named
        (K,) whether an attribute is nominal.
    weight
        Weight of the labels: the sum of ``1 - min pl / max pl``, in which a label that excludes a class counts 1.
    prior
        (l,) estimate of the classes' probabilities.
    means, deviations
        (numbers, l) mean and standard deviation of each numeric attribute in each class.
    frequencies
        Logarithms of the frequencies (names + 1, l) of each nominal attribute; the last line is for names that the
        member has not seen.
    """

    named: Bools
    weight: float
    prior: Floats
    means: Floats
    deviations: Floats
    frequencies: tuple[Floats, ...]

    @classmethod
    def of(
        cls, values: Floats, rows: Ints, named: Bools, kinds: Kinds, contours: DistinctContours
    ) -> "NaiveBayes":
        """Learn from rows of the log.

        Parameters
        ----------
        values
            (all rows, K) values.
        rows
            (n,) numbers of the rows to learn from, in the order in which they were labelled.
        named
            (K,) whether an attribute is nominal.
        kinds
            (n,) numbers of the rows' contours.
        contours
            The contours.
        """
        klass = contours.sole_class[kinds]
        rank = contours.lexicographic_rank[kinds]
        ranked = contours.values[np.argsort(contours.lexicographic_rank)]  # independent of the log's order
        uncertain = contours.values[kinds[klass == NONE]]
        free = float((uncertain.min(axis=1) / uncertain.max(axis=1)).sum())
        means, deviations = fit_densities(
            values, rows, np.flatnonzero(~named), klass, uncertain, free / len(rows)
        )
        prior = _name_frequencies(np.zeros(len(rows), np.int64), 1, klass, rank, ranked)[1]
        tables = []
        for k in np.flatnonzero(named):
            column = values[rows, k]
            known = ~np.isnan(column)
            names = column[known].astype(np.int64)
            if names.size and names.min() < names.max():
                width = int(names.max()) + 2
            else:  # a single name, or none, distinguishes no classes, and neither may an unseen one
                names, width = np.zeros_like(names), 1
            tables.append(np.log(_name_frequencies(names, width, klass[known], rank[known], ranked)[0]))
        return cls(named, len(rows) - free, prior, means, deviations, tuple(tables))

    def theta(self, values: Floats) -> Floats:
        """Return the class probabilities (m, l) of rows of values (m, K)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.prior)[np.newaxis].repeat(len(values), axis=0)
        if len(self.means):
            add_densities(np.ascontiguousarray(values[:, ~self.named]), self.means, self.deviations, logs)
        for column, table in zip(values[:, self.named].T, self.frequencies, strict=True):
            known = np.flatnonzero(~np.isnan(column))
            logs[known] += table[np.minimum(column[known].astype(np.int64), len(table) - 1)]
        logs -= np.maximum(logs.max(axis=1, keepdims=True), -np.finfo(np.float64).max)
        joint = np.exp(logs)
        total = joint.sum(axis=1, keepdims=True)
        theta: Floats = np.where(total > 0.0, joint / np.where(total > 0.0, total, 1.0), self.prior)
        return theta


def _name_frequencies(
    names: Ints, width: int, klass: Kinds, rank: Ints, contours: Floats
) -> tuple[Floats, Floats]:
    """Return the frequencies (width, l) of names in each class, and the probabilities (l,) of the classes, by E2M.

    Parameters
    ----------
    names
        (n,) name of each row, below `width`.
    width
        Number of names.
    klass
        (n,) class of each row, `NONE` if it is uncertain.
    rank
        (n,) number of each row's contour in `contours`.
    contours
        (D, l) contours in lexicographic order.
    """
    l = contours.shape[1]
    sure = klass != NONE
    precise = np.bincount(names[sure] * l + klass[sure], minlength=width * l).reshape(width, l)
    pairs, count = np.unique(rank[~sure] * width + names[~sure], return_counts=True)
    name, given = pairs % width, contours[pairs // width]
    classes, frequencies = np.full(l, 1.0 / l), np.full((width, l), 1.0 / width)
    for _ in range(DENSITY_STEPS):
        rows = precise.astype(np.float64)
        if pairs.size:
            joint = given * (classes * frequencies)[name]
            total = joint.sum(axis=1, keepdims=True)
            shares = count[:, np.newaxis] * joint / np.where(total > 0.0, total, 1.0)
            for c in range(l):
                rows[:, c] += np.bincount(name, shares[:, c], width)
        beside = rows.sum(axis=0)
        known = beside.sum()
        now = beside / known if known > 0.0 else classes
        ratio = (rows + PRIOR) / (beside + width * PRIOR)
        moved = max(np.abs(now - classes).max(), np.abs(ratio - frequencies).max())
        classes, frequencies = now, ratio
        if moved <= LEAST_CHANGE or not pairs.size:
            break
    return frequencies, classes
