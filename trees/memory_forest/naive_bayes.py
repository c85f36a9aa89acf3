"""A naive-Bayes member: a density or frequencies of each class, one attribute at a time (theory §10.3)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.trees.learners.mixture import Mixtures, fit_mixtures
from quercus.trees.memory_forest.routing import add_densities

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

STEPS = 100  # of E2M, at most
CLOSE = 1e-6  # changes of probabilities at which E2M stops
PRIOR = 0.5  # rows that each name has before any is seen


@dataclass(frozen=True, eq=False)
class NaiveBayes:
    """The classes' densities of numbers and frequencies of names.

    Parameters
    ----------
    named
        (K,) whether an attribute is nominal.
    prior
        (l,) estimate of the classes' probabilities.
    mixtures
        Of the numbers; None where there are none.
    frequencies
        Of each nominal attribute log-frequencies (names + 1, l): the last of a name that the member has not seen.
    """

    named: Bools
    prior: Floats
    mixtures: Mixtures | None
    frequencies: tuple[Floats, ...]

    @classmethod
    def of(cls, values: Floats, named: Bools, kinds: Ints, contours: Floats) -> "NaiveBayes":
        """Learn from rows of values (n, K), in the order of the log, and the numbers of their `contours`."""
        numbers = values[:, ~named]
        mixtures = fit_mixtures(numbers, contours[kinds]) if numbers.shape[1] else None
        every = np.bincount(kinds, minlength=len(contours))[:, np.newaxis].astype(np.float64)
        prior = _frequencies(every, contours, 0.0)[1]
        tables = (_counts(column, kinds, len(contours)) for column in values[:, named].T)
        frequencies = tuple(np.log(_frequencies(table, contours, PRIOR)[0]) for table in tables)
        return cls(named, prior, mixtures, frequencies)

    def theta(self, values: Floats) -> Floats:
        """Return the probabilities (m, l) of rows of values (m, K)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.prior)[np.newaxis].repeat(len(values), axis=0)
        if self.mixtures is not None:
            mixtures = self.mixtures
            add_densities(values[:, ~self.named], mixtures.means, mixtures.deviations, logs)
        for column, table in zip(values[:, self.named].T, self.frequencies, strict=True):
            known = np.flatnonzero(~np.isnan(column))
            logs[known] += table[np.minimum(column[known].astype(np.int64), len(table) - 1)]
        logs -= np.maximum(logs.max(axis=1, keepdims=True), -np.finfo(np.float64).max)
        found = np.exp(logs)
        total = found.sum(axis=1, keepdims=True)
        theta: Floats = np.where(total > 0.0, found / np.where(total > 0.0, total, 1.0), self.prior)
        return theta


def _counts(column: Floats, kinds: Ints, contours: int) -> Floats:
    """Return how often each name comes with each contour, (contours, names + 1)."""
    known = ~np.isnan(column)
    names = column[known].astype(np.int64)
    width = int(names.max(initial=-1)) + 2
    found = np.bincount(kinds[known] * width + names, minlength=contours * width)
    return found.reshape(contours, width).astype(np.float64)


def _frequencies(counts: Floats, contours: Floats, before: float) -> tuple[Floats, Floats]:
    """Return the frequencies (V, l) of values in each class, and those (l,) of the classes, by E2M.

    Parameters
    ----------
    counts
        (D, V) how often each value comes with each contour.
    contours
        (D, l).
    before
        Rows of each class that each value has before any is seen.
    """
    kept = counts.any(axis=1)
    counts, contours = counts[kept], contours[kept]
    V, l = counts.shape[1], contours.shape[1]
    classes, given = np.full(l, 1.0 / l), np.full((V, l), 1.0 / V)
    for _ in range(STEPS):
        joint = contours[:, np.newaxis, :] * (classes * given)  # (D, V, l)
        total = joint.sum(axis=2, keepdims=True)
        shares = counts[:, :, np.newaxis] * joint / np.where(total > 0.0, total, 1.0)
        rows = shares.sum(axis=0)
        beside = rows.sum(axis=0)
        known = beside.sum()
        now = beside / known if known > 0.0 else classes
        ratio = (rows + before) / np.where(beside + V * before > 0.0, beside + V * before, 1.0)
        moved = max(np.abs(now - classes).max(), np.abs(ratio - given).max())
        classes, given = now, ratio
        if moved <= CLOSE:
            break
    return given, classes
