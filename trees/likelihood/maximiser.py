"""Evidential likelihood: its maximiser with a certificate (theory §2.2).

For contours ``pl_i`` with weights ``w_i``, ``l(theta) = sum_i w_i ln(sum_j theta_j pl_ij)`` is concave on the simplex.
A feasible ``theta`` is at most ``W (max_j g_j - 1)`` below the maximum, with
``g_j = (1/W) sum_i w_i pl_ij / (pl_i . theta)``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.belief.sums import weighted_sum
from quercus.kernels.likelihood import kkt_excess, loglik, maximise

Array = NDArray[np.float64]

ACTIVE = 1e-8  # a class with 1 - g_j below this may carry probability in some maximiser
RANK = 1e-9  # singular values below this fraction of the largest count as zero


@dataclass(frozen=True)
class Estimate:
    """Maximum evidential likelihood estimate.

    Attributes
    ----------
    theta : (l,) class probabilities that maximise the evidential likelihood
    log_likelihood : ``l(theta)``, in nats, of the contours as given
    gap : bound of ``l(maximiser) - l(theta)``, in nats; proven up to the rounding of theory §2.8
    unique : whether no other maximiser exists
    """

    theta: Array
    log_likelihood: float
    gap: float
    unique: bool


def estimate(contours: Array, weights: Array | None = None) -> Estimate:
    """Maximise the evidential likelihood.

    Parameters
    ----------
    contours : (n, l) plausibilities in [0, 1], no row all zero
    weights : (n,) non-negative; None: 1 each

    Raises
    ------
    InvalidInput
        If an argument is malformed or out of its bounds. The error names the argument, the value and the bound.

    Examples
    --------
    >>> estimate(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])).theta.round(6).tolist()
    [0.666667, 0.333333]
    """
    contours, weights = check_problem(contours, weights)
    P, w = distinct_contours(contours, weights)
    l = contours.shape[1]
    if len(w) == 0:
        return Estimate(np.full(l, 1.0 / l), likelihood_shift(contours, weights), 0.0, unique=False)
    theta, _ = maximise(P, w)
    return certify(contours, weights, theta, is_unique(P, w, theta))


def certify(contours: Array, weights: Array, theta: Array, unique: bool) -> Estimate:
    """Complete an estimate by its likelihood and the certificate of theory §2.2. Arguments are not checked."""
    P, w = distinct_contours(contours, weights)
    if len(w) == 0:
        return Estimate(theta, likelihood_shift(contours, weights), 0.0, unique)
    value = loglik(P, w, theta) + likelihood_shift(contours, weights)
    gap = float(w.sum() * kkt_excess(P, w, theta, np.empty_like(theta)))
    return Estimate(theta, value, gap, unique)


def check_problem(contours: Array, weights: Array | None) -> tuple[Array, Array]:
    """Validate and convert the arguments shared by the functions of this package."""
    P = np.asarray(contours, dtype=np.float64)
    if P.ndim != 2 or P.shape[1] < 2:
        raise InvalidInput(
            "contours", f"has shape {P.shape}; it must be (rows, classes) with 2 classes or more"
        )
    bad = ~((P >= 0.0) & (P <= 1.0))
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise InvalidInput(f"contours[{i}][{j}]", f"is {P[i, j]}; a plausibility lies in [0, 1]")
    zero = ~P.any(axis=1)
    if zero.any():
        raise InvalidInput(
            f"contours[{int(np.argmax(zero))}]", "is all zero; at least one class must be possible"
        )
    if weights is None:
        return P, np.ones(len(P))
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (len(P),):
        raise InvalidInput("weights", f"has shape {w.shape}; it must be ({len(P)},), one per row of contours")
    bad = ~((w >= 0.0) & np.isfinite(w))
    if bad.any():
        i = int(np.argmax(bad))
        raise InvalidInput(f"weights[{i}]", f"is {w[i]}; a weight is finite and not negative")
    return P, w


def stack_problems(
    problems: Sequence[tuple[Array, Array | None]],
) -> Iterator[tuple[NDArray[np.intp], Array, Array, NDArray[np.int64]]]:
    """Validate problems as `check_problem` does, all at once, and stack those with the same number of classes.

    Yields
    ------
    Numbers (m,) of the problems; their contours (n, l) and weights (n,), which the caller may overwrite; and the start
    of each problem, followed by the end of the last (m + 1,).
    """
    contours = [np.asarray(given, dtype=np.float64) for given, _ in problems]
    weights = [
        np.ones(len(P)) if w is None else np.asarray(w, dtype=np.float64)
        for P, (_, w) in zip(contours, problems, strict=True)
    ]
    fit = all(
        P.ndim == 2 and P.shape[1] >= 2 and w.shape == P.shape[:1]
        for P, w in zip(contours, weights, strict=True)
    )
    sizes = np.array([P.shape[-1] for P in contours]) if fit else np.empty(0)
    for l in np.unique(sizes):
        chosen = np.flatnonzero(sizes == l)
        P = np.concatenate([contours[i] for i in chosen])
        w = np.concatenate([weights[i] for i in chosen])
        fit = fit and bool(
            ((P >= 0.0) & (P <= 1.0)).all() and P.any(axis=1).all() and ((w >= 0.0) & (w < np.inf)).all()
        )
        if not fit:
            break
        first = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum([len(weights[i]) for i in chosen], out=first[1:])
        yield chosen, P, w, first
    if not fit:  # checked one by one, so that the error is that of the first invalid problem
        for given, given_weights in problems:
            check_problem(given, given_weights)


def distinct_contours(contours: Array, weights: Array) -> tuple[Array, Array]:
    """Return the distinct informative contours, scaled to maximum 1, and their total weights.

    They determine the likelihood up to a constant: a factor of a row adds a constant to ``l``, and a constant row is
    vacuous. The contours are sorted, so that nothing computed from them depends on the order of rows.
    """
    use = (weights > 0.0) & (contours.min(axis=1) < contours.max(axis=1))
    P = contours[use]
    if len(P) == 0:
        return P, weights[:0]
    P = P / P.max(axis=1, keepdims=True)
    rows, inverse = np.unique(P, axis=0, return_inverse=True)
    totals = np.zeros(len(rows))
    np.add.at(totals, inverse.ravel(), weights[use])
    return np.ascontiguousarray(rows), totals


def likelihood_shift(contours: Array, weights: Array) -> float:
    """``l`` of the contours minus ``l`` of the rows that `distinct_contours` returns."""
    return float((weights * np.log(contours.max(axis=1))).sum()) if len(contours) else 0.0


def is_unique(P: Array, w: Array, theta: Array) -> bool:
    """Return whether the maximiser `theta` is the only one.

    ``v = P theta`` is the same for all maximisers (``l`` is strictly concave in it), and they are zero off the active
    classes: they are unique iff the columns of the active classes are affinely independent.
    """
    return nullity(P, active_classes(P, w, theta)) == 0


def active_classes(P: Array, w: Array, theta: Array) -> NDArray[np.intp]:
    """Classes that may carry probability in some maximiser: those with ``g_j = 1``."""
    g = weighted_sum(w / (P * theta).sum(axis=1), P) / w.sum()
    return np.flatnonzero(g >= 1.0 - ACTIVE)


def nullity(P: Array, classes: NDArray[np.intp]) -> int:
    """Dimension of ``{d : P d = 0, sum d = 0, d zero off classes}``."""
    A = np.vstack([P[:, classes], np.ones(len(classes))])
    values = np.linalg.svd(A, compute_uv=False)
    return len(classes) - int((values > RANK * values[0]).sum())
