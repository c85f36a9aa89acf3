"""Densities of one attribute under each class at a node, fitted by E2M (theory §6)."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.belief.contour import largest_one
from quercus.kernels.forest import EPSILON, TINY
from quercus.specification.attributes import Nominal
from quercus.trees.learners.mixture import (
    MAX_STEPS,
    Mixtures,
    fit_mixtures,
    possible_classes,
    unseen_classes,
)
from quercus.trees.learners.table import Table
from quercus.trees.rules.ties import TIE


class Component(Protocol):
    """Densities of one attribute under each class."""

    @property
    def proportions(self) -> Floats:
        """(l,) share of each class."""

    def log_densities(self, column: Floats, high: Floats | None = None) -> Floats:
        """Return the log density of values (n,) under each class, (n, l); zeros where missing.

        Where `high` exceeds the value, the number lies between the two, and the result is the log probability of this
        range.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Gaussians:
    """One Gaussian per class, for a numeric attribute; see `quercus.trees.learners.mixture.Mixtures`."""

    proportions: Floats
    means: Floats
    deviations: Floats

    @classmethod
    def of(cls, mixtures: Mixtures, column: int) -> "Gaussians":
        """Return the mixture of one column."""
        return cls(mixtures.proportions[column], mixtures.means[column], mixtures.deviations[column])

    def log_densities(self, column: Floats, high: Floats | None = None) -> Floats:
        """Return the log density of values (n,) under each class, (n, l); zeros where missing.

        Where `high` exceeds the value, the result is the log probability of the range.
        """
        nothing = np.zeros(1)
        one = Mixtures(
            self.proportions[None], self.means[None], self.deviations[None], nothing, nothing.astype(np.int64)
        )
        logs = one.log_densities(column[:, None])[:, 0]
        wide = np.zeros(len(column), dtype=bool) if high is None else high > column
        if high is not None and wide.any():
            logs[wide] = self._log_probabilities(column[wide, None], high[wide, None])
        return logs

    def _log_probabilities(self, low: Floats, high: Floats) -> Floats:
        """Return ``ln(Φ((high - μ) / σ) - Φ((low - μ) / σ))``, computed in the more accurate tail."""
        from scipy.special import log_ndtr  # noqa: PLC0415 - a server that never needs it need not load SciPy

        with np.errstate(over="ignore"):  # infinite ends are allowed
            a, b = (low - self.means) / self.deviations, (high - self.means) / self.deviations
        flip = a > 0
        a, b = np.where(flip, -b, a), np.where(flip, -a, b)
        upper, lower = log_ndtr(b), log_ndtr(a)
        with np.errstate(divide="ignore", invalid="ignore"):  # ranges too narrow or too far out to compute
            logs = upper + np.log1p(-np.exp(np.minimum(lower - upper, 0.0)))
        logs = np.where(np.isnan(logs), -np.inf, logs)
        logs = np.where(self.proportions > 0.0, logs, -np.inf)
        narrow = np.isneginf(logs).all(axis=1)
        middle = low[narrow] / 2 + high[narrow] / 2
        logs[narrow] = self.log_densities(middle[:, 0])  # proportional to the probability, which suffices
        return logs


@dataclass(frozen=True, slots=True, eq=False)
class Frequencies:
    """One distribution over the values per class, for a nominal attribute.

    Parameters
    ----------
    proportions
        (l,) share of each class.
    log_table
        (l, r) log probability of each value under each class.
    """

    proportions: Floats
    log_table: Floats

    def log_densities(self, column: Floats, _high: Floats | None = None) -> Floats:
        """Return the log probability of values (n,) under each class, (n, l); zeros where missing."""
        missing = np.isnan(column)
        logs = self.log_table.T[np.where(missing, 0, column).astype(np.int64)]
        logs = np.where(self.proportions > 0.0, logs, -np.inf)
        known: Floats = np.where(missing[:, None], 0.0, logs)
        return known


def fit_frequencies(
    column: Floats,
    arity: int,
    contours: Floats,
    weights: Floats,
    *,
    epsilon: float = EPSILON,
    max_steps: int = MAX_STEPS,
) -> Frequencies:
    """Fit the distribution of a nominal attribute under each class by E2M.

    The paper covers only numbers; this is the same mixture with ``φ`` replaced by the probability of the value,
    ``φ_kv = (Σ_{i: x_i = v} w t_ik + 1/r) / (Σ_i w t_ik + 1)``. One pseudo-count per class, spread over its ``r``
    values, prevents a value not seen with a class from ruling out the class. The evidential likelihood times ``Π
    φ_kv^(1/r)`` never decreases. A class that is possible only for rows without a value gets the distribution of all
    rows. So do all classes if all rows have the same value, which cannot distinguish them: pseudo-counts alone would
    make it likelier under the common classes.

    Parameters
    ----------
    column
        (n,) indices of values, NaN where missing.
    arity
        Number of values, ``r``.
    contours, weights
        (n, l) contours and (n,) weights of the rows.
    epsilon, max_steps
        See `quercus.trees.learners.mixture.fit_mixtures`.
    """
    known = ~np.isnan(column)
    codes, pl, w = column[known].astype(np.int64), largest_one(contours[known]), weights[known, None]
    beyond = pl - pl.min(axis=1, keepdims=True)
    shares = np.where(beyond.any(axis=1, keepdims=True), beyond, pl)
    shares = shares / shares.sum(axis=1, keepdims=True)
    before, size = -np.inf, contours.shape[1]
    fitted = Frequencies(np.full(size, 1 / size), np.full((size, arity), -np.log(arity)))
    for _ in range(max_steps):
        fitted = _maximise_frequencies(codes, arity, w * shares)
        with np.errstate(divide="ignore"):
            joint = pl * fitted.proportions * np.exp(fitted.log_table.T[codes])
        total = np.maximum(joint.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        shares = joint / total
        now = float((w * np.log(total)).sum() + fitted.log_table.sum() / arity)
        if now - before < epsilon:
            break
        before = now
    least = np.where(possible_classes(contours, weights), TINY, 0.0)  # as in `fit_mixtures`
    whole = _maximise_frequencies(codes, arity, w).log_table
    as_whole = unseen_classes(known[:, None], contours, weights).T | (np.unique(codes).size == 1)
    table = np.where(as_whole, whole, fitted.log_table)
    return Frequencies(np.maximum(fitted.proportions, least), table)


def _maximise_frequencies(codes: Ints, arity: int, shares: Floats) -> Frequencies:
    total = shares.sum(axis=0)
    if not total.any():  # no value is known, so nothing distinguishes the classes
        return Frequencies(np.full(len(total), 1 / len(total)), np.full((len(total), arity), -np.log(arity)))
    counts = np.stack([np.bincount(codes, weights=share, minlength=arity) for share in shares.T])
    table = (counts + 1.0 / arity) / (total[:, None] + 1.0)
    return Frequencies(total / total.sum(), np.log(table))


def fit_components(
    table: Table, rows: Ints, attributes: tuple[int, ...], floor: Floats
) -> tuple[Component, ...]:
    """Fit the densities of some attributes at a node.

    Parameters
    ----------
    table
        All rows.
    rows
        Numbers of the rows of the node.
    attributes
        Numbers of the attributes.
    floor
        (K,) minimum deviation of every column, see `quercus.trees.learners.mixture.column_floor`.
    """
    contours, weights = table.contours[rows], table.weights[rows]
    numeric = [k for k in attributes if not isinstance(table.attributes[k], Nominal)]
    found: dict[int, Component] = {}
    if numeric:
        mixtures = fit_mixtures(table.values[rows][:, numeric], contours, weights, floor=floor[numeric])
        found = {k: Gaussians.of(mixtures, at) for at, k in enumerate(numeric)}
    for k in attributes:
        declared = table.attributes[k]
        if isinstance(declared, Nominal):
            found[k] = fit_frequencies(table.values[rows, k], len(declared.values), contours, weights)
    return tuple(found[k] for k in attributes)


def branch_of(component: Component, column: Floats, logs: Floats) -> Ints:
    """Return the branch of values (n,) with log densities (n, l): the class of highest density (the first if tied).

    A missing value takes the branch of the most frequent class.
    """
    with np.errstate(divide="ignore"):
        prior = np.log(component.proportions)
    ranked = np.where(np.isnan(column)[:, None], prior, logs)
    first: Ints = np.argmax(ranked >= ranked.max(axis=1, keepdims=True) - TIE, axis=1)
    return first
