"""Gaussian mixtures with one component a class, fitted by E2M from contours (ALGORITHMS §6).

One mixture an attribute, all attributes at once: the attributes are independent problems of the same shape.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quercus.belief.contour import check_contours
from quercus.belief.errors import InvalidInput
from quercus.belief.frame import check_size

EPSILON = 1e-3
"""Gain of the evidential log-likelihood, in nats over all rows, below which the fit stops."""

MAX_STEPS = 1_000
"""Steps of E2M after which the fit stops though it still gains."""

FLOOR_SHARE = 0.01
"""Least deviation of a component, as a share of the deviation of the whole column, when labels are precise."""

FREE_SHARE = 0.2
"""What is added to it when labels are vacuous."""

_CONSTANT = 1e-9
"""Floor, relative to the largest number, of a column that is constant or nearly so."""

_LARGEST = 1e100
"""What larger numbers count as, of either sign: their squares, and sums of these, must have room."""

_FARTHEST = 1e300
"""Most squared deviations that a number lies from a mean: beyond, no class is told from another by how far it is."""

_TINY = float(np.finfo(np.float64).tiny)

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True, slots=True, eq=False)
class Mixtures:
    """Mixtures of K attributes, one Gaussian a class.

    Parameters
    ----------
    proportions
        (K, l) share of each class, summing to 1 in each row; 0 for a class that no row can have, equal where
        no value is known.
    means, deviations
        (K, l) of each component, in the attribute's unit.
    log_likelihood
        (K,) evidential log-likelihood in nats of the values that are known.
    steps
        (K,) steps of E2M made.
    """

    proportions: NDArray[np.float64]
    means: NDArray[np.float64]
    deviations: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]
    steps: NDArray[np.int64]

    def log_densities(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``ln φ(x; μ_k, σ_k)``, float64 (n, K, l), of values (n, K).

        Minus infinity for a class of proportion 0; zero for every class where the value is missing (NaN), so
        that a missing value tells no class from another.
        """
        x = _bounded(values)[:, :, np.newaxis]
        logs = _log_normal(x, self.means, self.deviations)
        logs = np.where(self.proportions > 0.0, logs, -np.inf)
        known: NDArray[np.float64] = np.where(np.isnan(x), 0.0, logs)
        return known


def column_floor(
    values: NDArray[np.float64], contours: NDArray[np.float64], weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the least deviation of a component, float64 (K,): a share of the column's own deviation.

    The share is ``0.01 + 0.2 u``, where ``u`` is the mean over the rows of ``min pl / max pl``: 0 when labels
    are precise, 1 when they are vacuous. Without a floor a component that sits on one row has an infinite
    likelihood. Precise labels hold every row in its class, so a low floor does; rows that the labels leave free
    gather in spikes where a number happens to repeat, and a spike is what the smallest entropy then falls for
    (10-fold accuracy on iris with 9 labels of 10 vacuous: .80 without the second term, .91 with it).

    The floor of a constant column is 1e-9 of its number, so it is never zero.

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
    free = float(counted @ (contours.min(axis=1) / contours.max(axis=1)) / max(counted.sum(), _TINY))
    known = ~np.isnan(values)
    w = known * counted[:, np.newaxis]
    x = np.where(known, _bounded(values), 0.0)
    total = np.maximum(w.sum(axis=0), _TINY)
    mean = (w * x).sum(axis=0) / total
    deviation = np.sqrt((w * (x - mean) ** 2).sum(axis=0) / total)
    largest = np.abs(x).max(axis=0, initial=0.0)
    floor: NDArray[np.float64] = np.maximum(
        (FLOOR_SHARE + FREE_SHARE * free) * deviation, _CONSTANT * np.where(largest > 0.0, largest, 1.0)
    )
    return floor


def fit_mixtures(
    values: ArrayLike,
    contours: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    floor: ArrayLike | None = None,
    epsilon: float = EPSILON,
    max_steps: int = MAX_STEPS,
) -> Mixtures:
    """Fit a mixture to each column by E2M (ALGORITHMS §6; Gao, Wang, Ma 2022, equations 28 and 29).

    E: ``t_ik ∝ pl_ik π_k φ(x_i; μ_k, σ_k)``. M: ``π_k = Σ w t / Σ w``, ``μ_k = Σ w t x / Σ w t``,
    ``σ_k² = Σ w t (x - μ_k)² / Σ w t``, at least the floor squared. The evidential log-likelihood
    ``Σ_i w_i ln Σ_k pl_ik π_k φ(x_i; μ_k, σ_k)`` never falls, the floor included: in σ the expected
    log-likelihood has one peak, so at the floor is the best of all that is allowed.

    The start is the M step for ``t_ik ∝ pl_ik - min_j pl_ij``, what a contour says beyond ignorance: started
    from equal shares, vacuous rows would draw all components to the same place. A class that no contour
    favours starts from ``t_ik ∝ pl_ik``.

    Parameters
    ----------
    values
        (n, K) numbers, NaN where missing: such a row does not count in that column.
    contours
        (n, l) plausibility of each class.
    weights
        (n,) non-negative, default 1.
    floor
        (K,) least deviation, positive; default `column_floor`.
    epsilon
        Least gain of a step, in nats; positive.
    max_steps
        Most steps.

    Raises
    ------
    InvalidInput
        When an argument breaks one of these rules.

    Examples
    --------
    >>> fit = fit_mixtures([[1.0], [3.0], [10.0], [14.0]], [[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> fit.means.round(6).tolist(), fit.deviations.round(6).tolist()
    ([[2.0, 12.0]], [[1.0, 2.0]])
    """
    x, pl, w = _checked(values, contours, weights)
    if not epsilon > 0.0:
        raise InvalidInput("epsilon", f"is {epsilon!r}, must be greater than 0")
    least = column_floor(x, pl, w) if floor is None else np.asarray(floor, dtype=np.float64)
    if least.shape != (x.shape[1],) or not (least > 0.0).all():
        raise InvalidInput("floor", f"is {least.tolist()}, must be {x.shape[1]} positive numbers")
    return _Fit.start(x, pl, w, least).run(epsilon, max_steps)


@dataclass(slots=True, eq=False)
class _Fit:
    """The state of E2M. Axes: attribute K, class l, row n: sums run over what lies together in memory."""

    x: NDArray[np.float64]  # (K, 1, n), 0 where missing
    log_pl: NDArray[np.float64]  # (l, n)
    w: NDArray[np.float64]  # (K, 1, n), 0 where missing
    floor: NDArray[np.float64]  # (K, 1)
    parameters: NDArray[np.float64]  # (3, K, l): proportions, means, deviations

    @classmethod
    def start(
        cls,
        values: NDArray[np.float64],
        contours: NDArray[np.float64],
        weights: NDArray[np.float64],
        floor: NDArray[np.float64],
    ) -> "_Fit":
        known = ~np.isnan(values.T[:, np.newaxis, :])
        x = np.where(known, values.T[:, np.newaxis, :], 0.0)
        with np.errstate(divide="ignore"):
            log_pl = np.log(contours.T)
        columns = values.shape[1]
        shape = (columns, contours.shape[1])
        centre = (known * x).sum(axis=2) / np.maximum(known.sum(axis=2), 1)
        fit = cls(
            x,
            log_pl,
            known * weights,
            floor[:, np.newaxis],
            # A class without any share keeps these: the middle of the column, and a width that is allowed.
            np.stack(
                [np.zeros(shape), np.broadcast_to(centre, shape), np.broadcast_to(floor[:, None], shape)]
            ),
        )
        plain = contours / contours.sum(axis=1, keepdims=True)
        beyond = contours - contours.min(axis=1, keepdims=True)
        beyond /= np.maximum(beyond.sum(axis=1, keepdims=True), _TINY)
        every = np.arange(columns)
        fit.maximise(every, np.broadcast_to(plain.T, (columns, *plain.T.shape)))
        first = fit.parameters.copy()
        fit.maximise(every, np.broadcast_to(beyond.T, (columns, *beyond.T.shape)))
        favoured = (fit.w * beyond.T).sum(axis=2) > 0.0
        fit.parameters[1:] = np.where(favoured, fit.parameters[1:], first[1:])
        fit.parameters[0] = first[0]
        return fit

    def run(self, epsilon: float, max_steps: int) -> Mixtures:
        columns = len(self.x)
        steps = np.zeros(columns, dtype=np.int64)
        shares, likelihood = self.expect(np.arange(columns))
        active = np.arange(columns)
        while active.size and steps.max() < max_steps:
            self.maximise(active, shares)
            shares, now = self.expect(active)
            steps[active] += 1
            gaining = now - likelihood[active] >= epsilon
            likelihood[active] = now
            active, shares = active[gaining], shares[gaining]
        proportions, means, deviations = self.parameters
        return Mixtures(proportions, means, deviations, likelihood, steps)

    def expect(self, active: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return ``t``, (a, l, n), and the log-likelihood, (a,), of the active columns."""
        proportions, means, deviations = (p[active][:, :, np.newaxis] for p in self.parameters)
        with np.errstate(divide="ignore"):
            joint = self.log_pl + np.log(proportions)
        joint += _log_normal(self.x[active], means, deviations)
        top = np.maximum(
            joint.max(axis=1, keepdims=True), np.finfo(float).min
        )  # of a row of weight 0: all -inf
        np.exp(np.subtract(joint, top, out=joint), out=joint)
        total = np.maximum(joint.sum(axis=1, keepdims=True), _TINY)
        joint /= total
        likelihood: NDArray[np.float64] = (self.w[active] * (top + np.log(total))).sum(axis=(1, 2))
        return joint, likelihood

    def maximise(self, active: NDArray[np.int64], shares: NDArray[np.float64]) -> None:
        """Set the parameters of the active columns to the best for shares ``t``, (a, l, n)."""
        x, old = self.x[active], self.parameters[:, active]
        t = shares * self.w[active]
        total = t.sum(axis=2)
        divisor = np.where(total > 0.0, total, 1.0)
        means = np.where(total > 0.0, (t * x).sum(axis=2) / divisor, old[1])
        spread = (t * (x - means[:, :, np.newaxis]) ** 2).sum(axis=2) / divisor
        weight = total.sum(axis=1, keepdims=True)
        proportions = np.where(
            weight > 0.0, total / np.where(weight > 0.0, weight, 1.0), 1.0 / total.shape[1]
        )
        deviations = np.where(total > 0.0, np.maximum(np.sqrt(spread), self.floor[active]), old[2])
        self.parameters[:, active] = proportions, means, deviations


def _log_normal(
    x: NDArray[np.float64], mean: NDArray[np.float64], deviation: NDArray[np.float64]
) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        z: NDArray[np.float64] = (x - mean) / deviation
        z *= z
    np.minimum(z, _FARTHEST, out=z)
    z *= -0.5
    z -= np.log(deviation) + _LOG_SQRT_2PI
    return z


def _checked(
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
    return _bounded(x), pl, w


def _bounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.clip(values, -_LARGEST, _LARGEST)
