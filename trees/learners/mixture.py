"""Gaussian mixtures with one component per class, fitted by E2M from contours (theory §6).

There is one mixture per attribute; all are fitted at once, as independent problems of the same shape.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quercus.belief.contour import check_contours, largest_one
from quercus.belief.errors import InvalidInput
from quercus.belief.frame import check_size
from quercus.kernels.forest import (
    COLUMN_ROUNDING,
    EPSILON,
    FARTHEST,
    FLOOR_SHARE,
    FREE_SHARE,
    LARGEST_NUMBER,
    LOG_SQRT_2PI,
    TINY,
    fit_mixture,
)

MAX_STEPS = 1_000
"""Maximum number of steps of E2M."""


@dataclass(frozen=True, slots=True, eq=False)
class Mixtures:
    """Mixtures of K attributes, with one Gaussian per class.

    Parameters
    ----------
    proportions
        (K, l) share of each class; the shares of an attribute sum to 1. They are 0 exactly for classes that no row can
        have, and equal if no value is known.
    means, deviations
        (K, l) mean and standard deviation of each component, in the attribute's unit.
    log_likelihood
        (K,) evidential log-likelihood of the known values, in nats.
    steps
        (K,) number of steps of E2M.
    """

    proportions: NDArray[np.float64]
    means: NDArray[np.float64]
    deviations: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]
    steps: NDArray[np.int64]

    def log_densities(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``ln φ(x; μ_k, σ_k)``, float64 (n, K, l), of values (n, K).

        Minus infinity for a class of proportion 0; zero for every class if the value is missing (NaN), so that a
        missing value does not distinguish classes.
        """
        x = _bounded_values(values)[:, :, np.newaxis]
        logs = _log_normal(x, self.means, self.deviations)
        logs = np.where(self.proportions > 0.0, logs, -np.inf)
        known: NDArray[np.float64] = np.where(np.isnan(x), 0.0, logs)
        return known


def column_floor(
    values: NDArray[np.float64], contours: NDArray[np.float64], weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the minimum deviation of a component, float64 (K,): a share of the column's own deviation.

    The share is ``0.01 + 0.2 u``, where ``u`` is the mean over the rows of ``min pl / max pl``: 0 if all labels are
    precise, 1 if all are vacuous. Without a floor, a component on a single row has an infinite likelihood. For precise
    labels, which fix the class of every row, a low floor suffices. With vague labels, components concentrate in spikes
    where a number happens to repeat, and such a spike would have the smallest entropy (10-fold accuracy on iris with 9
    of 10 labels vacuous: .80 without the second term, .91 with it).

    The floor follows the spread of the column, independently of its origin and unit. For a constant column it is the
    rounding error of its number, so it is never zero.

    Parameters
    ----------
    values
        (n, K), NaN where missing.
    contours
        (n, l) plausibility of each class.
    weights
        (n,), default 1.
    """
    counted = np.ones(len(values)) if weights is None else weights
    ignorance = contours.min(axis=1) / contours.max(axis=1)
    free = float((counted * ignorance).sum() / max(counted.sum(), TINY))
    known = ~np.isnan(values)
    w = known * counted[:, np.newaxis]
    x = np.where(known, _bounded_values(values), 0.0)
    largest = np.abs(x).max(axis=0, initial=0.0)
    x = np.where(known, x - _column_origin(x, known), 0.0)
    _, deviation = _column_moments(x, w)
    floor: NDArray[np.float64] = np.maximum(
        (FLOOR_SHARE + FREE_SHARE * free) * deviation, COLUMN_ROUNDING * np.where(largest > 0.0, largest, 1.0)
    )
    return np.maximum(floor, TINY)


def _column_origin(x: NDArray[np.float64], known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return an origin for each column (K,), since far from zero sums lose the digits in which rows differ."""
    origin: NDArray[np.float64] = x[known.argmax(axis=0), np.arange(x.shape[1])]
    return origin


def fit_mixtures(
    values: ArrayLike,
    contours: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    floor: ArrayLike | None = None,
    epsilon: float = EPSILON,
    max_steps: int = MAX_STEPS,
) -> Mixtures:
    """Fit a mixture to each column by E2M (theory §6; Gao, Wang, Ma 2022, equations 28 and 29).

    E: ``t_ik ∝ pl_ik π_k φ(x_i; μ_k, σ_k)``. M: ``π_k = Σ w t / Σ w``, ``μ_k = Σ w t x / Σ w t``,
    ``σ_k² = Σ w t (x - μ_k)² / Σ w t``, at least the floor squared. The evidential log-likelihood
    ``Σ_i w_i ln Σ_k pl_ik π_k φ(x_i; μ_k, σ_k)`` never decreases, even with the floor: the expected log-likelihood is
    unimodal in σ, so the floor is the best allowed value.

    A class that is possible only for rows without a value cannot be distinguished by values: it gets the mean and the
    deviation of the whole column.

    The initial proportions are those of the M step for ``t_ik ∝ pl_ik``. Initial means and deviations are those for
    ``t_ik ∝ pl_ik - min_j pl_ij``, the information in a contour: with equal initial shares, vacuous rows would pull all
    components to the same place. For a class that no contour favours, ``t_ik ∝ pl_ik`` is used here too. The fit stops
    after a step that gains less than `epsilon`; the parameters may then still be some way from the maximum.

    Parameters
    ----------
    values
        (n, K) numbers, NaN where missing; a row without a value is ignored in that column.
    contours
        (n, l) plausibility of each class.
    weights
        (n,) non-negative, default 1.
    floor
        (K,) minimum deviation, positive; default `column_floor`.
    epsilon
        The fit stops after a step that gains less, in nats; positive.
    max_steps
        Maximum number of steps.

    Raises
    ------
    InvalidInput
        If an argument is not as described.

    Examples
    --------
    >>> fit = fit_mixtures([[1.0], [3.0], [10.0], [14.0]], [[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> fit.means.round(6).tolist(), fit.deviations.round(6).tolist()
    ([[2.0, 12.0]], [[1.0, 2.0]])
    """
    x, pl, w = _checked_arguments(values, contours, weights)
    if not epsilon > 0.0:
        raise InvalidInput("epsilon", f"is {epsilon!r}, must be greater than 0")
    least = column_floor(x, pl, w) if floor is None else np.asarray(floor, dtype=np.float64)
    if least.shape != (x.shape[1],) or not (least > 0.0).all():
        raise InvalidInput("floor", f"is {least.tolist()}, must be {x.shape[1]} positive numbers")
    known = ~np.isnan(x.T)
    origin = _column_origin(np.where(known.T, x, 0.0), known.T)
    numbers = np.where(known, x.T - origin[:, np.newaxis], 0.0)
    plain = largest_one(pl)
    beyond = plain - plain.min(axis=1, keepdims=True)
    beyond /= np.maximum(beyond.sum(axis=1, keepdims=True), TINY)
    with np.errstate(divide="ignore"):
        log_pl = np.log(pl)
    proportions, means, deviations, likelihood, steps = fit_mixture(
        np.ascontiguousarray(numbers),
        np.ascontiguousarray(known * w),
        numbers.sum(axis=1) / np.maximum(known.sum(axis=1), 1),
        np.ascontiguousarray(least),
        np.ascontiguousarray(log_pl.T),
        np.ascontiguousarray((plain / plain.sum(axis=1, keepdims=True)).T),
        np.ascontiguousarray(beyond.T),
        epsilon,
        max_steps,
    )
    column, k = np.nonzero(unseen_classes(known.T, pl, w))
    if column.size:
        mean, deviation = _column_moments(numbers.T, known.T * w[:, np.newaxis])
        means[column, k] = mean[column]
        deviations[column, k] = np.maximum(deviation, least)[column]
    least_shares = np.where(possible_classes(pl, w), TINY, 0.0)  # an underflow must not rule out a class
    return Mixtures(
        np.maximum(proportions, least_shares), means + origin[:, np.newaxis], deviations, likelihood, steps
    )


def possible_classes(contours: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the classes that a row of contours (n, l) and weights (n,) can have, (l,)."""
    return np.asarray((contours[weights > 0.0] > 0.0).any(axis=0), dtype=np.bool_)


def unseen_classes(
    known: NDArray[np.bool_], contours: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return the classes that are possible only for rows without a value, (K, l), in columns with any value.

    Parameters
    ----------
    known
        (n, K) whether each value is known.
    contours, weights
        (n, l) contours and (n,) weights of the rows.
    """
    if known.all():
        return np.zeros((known.shape[1], contours.shape[1]), dtype=np.bool_)
    seen = np.stack([possible_classes(contours[here], weights[here]) for here in known.T])
    return possible_classes(contours, weights) & ~seen & seen.any(axis=1, keepdims=True)


def _column_moments(
    x: NDArray[np.float64], w: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and deviation of each column (K,) of numbers (n, K), 0 where unknown, of weights (n, K)."""
    total = np.maximum(w.sum(axis=0), TINY)
    mean = (w * x).sum(axis=0) / total
    return mean, np.sqrt((w * (x - mean) ** 2).sum(axis=0) / total)


def _log_normal(
    x: NDArray[np.float64], mean: NDArray[np.float64], deviation: NDArray[np.float64]
) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        z: NDArray[np.float64] = (x - mean) / deviation
        z *= z
    np.minimum(z, FARTHEST, out=z)
    z *= -0.5
    z -= np.log(deviation) + LOG_SQRT_2PI
    return z


def _checked_arguments(
    values: ArrayLike, contours: ArrayLike, weights: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 2 or not len(x) or np.isinf(x).any():
        raise InvalidInput(
            "values", f"have shape {x.shape}, must be rows of finite numbers, at least one, NaN for missing"
        )
    pl = np.asarray(contours, dtype=np.float64)
    pl = check_contours(pl, check_size(pl.shape[1] if pl.ndim == 2 else 0, "contours"))
    if len(pl) != len(x):
        raise InvalidInput("contours", f"are {len(pl)}, must be one for each of {len(x)} rows")
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (len(x),) or not (np.isfinite(w) & (w >= 0.0)).all():
        raise InvalidInput("weights", f"must be {len(x)} finite numbers of at least 0")
    return _bounded_values(x), pl, w


def _bounded_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.clip(values, -LARGEST_NUMBER, LARGEST_NUMBER)
