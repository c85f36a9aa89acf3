"""Entropy intervals from the evidential likelihood, with proof (ALGORITHMS §2).

``S_alpha = [min, max]`` of the Shannon entropy over ``L_alpha = {theta : l(theta) >= l(theta_hat) + ln alpha}``. The
maximum is a convex program; the minimum is the global one, by branch and bound over boxes. What can be told without
computing is told first: a vertex inside the level set makes the minimum 0, the uniform point inside it the maximum
``log2 l``; precise labels have a solution of one parameter (`precise`), ``alpha = 1`` its own (`maximisers`).
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.trees import cut, kernels, likelihood, search
from quercus.trees.likelihood import Array, Estimate, distinct
from quercus.trees.maximisers import maximiser_entropies
from quercus.trees.precise import least_entropy_of_counts

EFFORT = 20_000  # boxes the branch and bound may examine; a box costs some tens of microseconds
TOLERANCE = 2e-10  # nats; the proof is driven to this unless the effort is spent first
SETTLED = 1e-8  # bits; an end proved to this is reported as the value reached, else as the proven bound
MEMO = 200_000  # problems an IntervalSolver remembers
EPS = 4e-16  # rounding of one term of the log-likelihood, relative to its weight


@dataclass(frozen=True)
class EntropyInterval:
    """Bounds of the entropy over a likelihood cut, in bits.

    Attributes
    ----------
    lower, upper : the ends. An end whose proof did not finish within the effort is the *outer* proven bound, so that
        the interval encloses the true one
    gap : proven bound of the error of each end
    """

    lower: float
    upper: float
    gap: float

    @property
    def width(self) -> float:
        """``upper - lower``, in bits."""
        return self.upper - self.lower


def entropy_interval(
    contours: Array, weights: Array | None, alpha: float, *, effort: int = EFFORT
) -> EntropyInterval:
    """Entropy interval of a set of evidential labels.

    Parameters
    ----------
    contours : (n, l) plausibilities in [0, 1], no row all zero
    weights : (n,) non-negative counts; 1 each when None
    alpha : level of the cut, in [0, 1]
    effort : most boxes the search for the minimum examines; ``gap`` tells what was proved within it

    Returns
    -------
    EntropyInterval
        ``gap <= 1e-6`` for ``l <= 7``, and for any ``l`` when all labels are precise or vacuous. No rows: ``[0, 0]``.

    Raises
    ------
    InvalidInput
        Naming the argument, the value and the bound.

    Notes
    -----
    ALGORITHMS §2; the method is Ma, Destercke, Wang 2016, section 3.1, which searched a lattice.

    Examples
    --------
    >>> interval = entropy_interval(np.eye(3)[[0, 0, 1]], None, 0.8)
    >>> round(interval.lower, 6), round(interval.upper, 6)
    (0.665651, 1.249878)
    """
    contours, weights = likelihood.check_problem(contours, weights)
    check_alpha(alpha)
    if effort < 1:
        raise InvalidInput("effort", f"is {effort}; at least 1 box must be examined")
    if not weights.sum() > 0.0:
        return EntropyInterval(0.0, 0.0, 0.0)
    return solve(*distinct(contours, weights), contours.shape[1], alpha, effort)


def check_alpha(alpha: float) -> None:
    """Raise `InvalidInput` unless `alpha` is a level."""
    if not 0.0 <= alpha <= 1.0:
        raise InvalidInput("alpha", f"is {alpha}; it must lie in [0, 1]")


def solve(P: Array, w: Array, l: int, alpha: float, effort: int = EFFORT) -> EntropyInterval:
    """Entropy interval of a reduced problem (as `likelihood.distinct` returns it)."""
    if len(w) == 0 or alpha == 0.0:
        return EntropyInterval(0.0, float(np.log2(l)), 0.0)
    theta, excess = kernels.maximise(P, w)
    P = np.ascontiguousarray(P / (P @ theta)[:, None])
    W = float(w.sum())
    error = W * (excess + EPS)
    c = np.log(alpha)
    if -c <= 100.0 * error:
        lower, upper, gap = maximiser_entropies(P, w, theta, error - c)
        return EntropyInterval(*in_bits(lower, upper, l), float(gap / np.log(2.0)))
    outer, inner = float(c - W * EPS), float(c + error)
    high, high_reached = search.greatest_entropy(P, w, outer, inner, theta)
    use = undominated(P)
    Q = np.ascontiguousarray(P[:, use])
    if len(use) == 1:
        low = low_reached = 0.0
    elif np.all((Q > 0.0).sum(axis=1) == 1):
        counts = w @ (Q > 0.0)
        low, low_reached = least_entropy_of_counts(np.sort(counts)[::-1].copy(), outer, inner, TOLERANCE)
    else:
        centre, kkt, Q = recentre(Q, w, theta[use])
        low, low_reached, _ = search.least_entropy(Q, w, outer, inner, centre, kkt, TOLERANCE, effort)
    return report(low, low_reached, high, high_reached, l)


def recentre(Q: Array, w: Array, theta: Array) -> tuple[Array, float, Array]:
    """Maximiser, KKT excess and rescaled rows of the problem left by dropping dominated classes."""
    if abs(theta.sum() - 1.0) > 1e-15:
        theta, excess = kernels.maximise(Q, w)
        Q = np.ascontiguousarray(Q / (Q @ theta)[:, None])
    else:
        excess = kernels.excess(Q, w, theta, np.empty_like(theta))
    return np.ascontiguousarray(theta), excess, Q


def report(low: float, low_reached: float, high: float, high_reached: float, l: int) -> EntropyInterval:
    """Choose what to report of each end (nats in, bits out)."""
    bit = np.log(2.0)
    low_gap, high_gap = max(low_reached - low, 0.0) / bit, max(high - high_reached, 0.0) / bit
    lower = low_reached if low_gap <= SETTLED else low
    upper = high_reached if high_gap <= SETTLED else high
    return EntropyInterval(*in_bits(lower, upper, l), float(max(low_gap, high_gap)))


def in_bits(lower: float, upper: float, l: int) -> tuple[float, float]:
    """Convert from nats and clip to ``[0, log2 l]``."""
    top = float(np.log2(l))
    low = min(max(float(lower / np.log(2.0)), 0.0), top)
    return low, min(max(float(upper / np.log(2.0)), low), top)


def undominated(P: Array) -> NDArray[np.intp]:
    """Classes that the minimum needs: no other is at least as plausible in every row (of equals, the first stays).

    Moving the probability of a dominated class onto the class that dominates it loses no likelihood and, since
    ``-x ln x`` is subadditive, no entropy is gained.
    """
    l = P.shape[1]
    keep = np.ones(l, dtype=bool)
    for j in range(l):
        others = keep.copy()
        others[j] = False
        above = (P[:, others] >= P[:, [j]]).all(axis=0)
        if above.any():
            equal = (P[:, others] == P[:, [j]]).all(axis=0)
            first = np.flatnonzero(others)
            keep[j] = not (above & (~equal | (first < j))).any()
    return np.flatnonzero(keep)


def prepare() -> None:
    """Have every kernel compiled: half a minute on a fresh machine, a moment when the on-disk cache has them.

    Processes that must answer in time call this first; nobody else needs to.
    """
    contours = np.array([[1.0, 0.2, 0.3], [0.1, 1.0, 0.4], [0.3, 0.4, 1.0]])
    for labels in (contours, np.eye(3)):
        for alpha in (0.9, 1.0):
            entropy_interval(labels, np.array([9.0, 5.0, 3.0]), alpha)
    class_bounds(*distinct(contours, np.ones(3)), 3, 0.9)


class IntervalSolver:
    """Entropy intervals of many count vectors over one growing table of contours, each computed once.

    Parameters
    ----------
    contours : (d, l) distinct contours; more may be appended with `extend`
    alpha : level of the cut
    effort : see `entropy_interval`
    """

    def __init__(self, contours: Array, alpha: float, *, effort: int = EFFORT) -> None:
        check_alpha(alpha)
        self.alpha = alpha
        self.effort = effort
        self.contours = likelihood.check_problem(contours, None)[0]
        self._interval = lru_cache(MEMO)(self._solve_interval)
        self._estimate = lru_cache(MEMO)(self._solve_estimate)
        self._bounds = lru_cache(MEMO)(self._solve_bounds)

    def extend(self, contours: Array) -> None:
        """Append (k, l) contours; they get the next ids."""
        extra = likelihood.check_problem(contours, None)[0]
        if extra.shape[1] != self.contours.shape[1]:
            raise InvalidInput(
                "contours", f"have {extra.shape[1]} classes; the table has {self.contours.shape[1]}"
            )
        self.contours = np.vstack([self.contours, extra])

    def intervals(self, counts: NDArray[np.int64]) -> tuple[Array, Array]:
        """Intervals of (m, d) count vectors: lower (m,) and upper (m,), in bits. A vector of zeros has ``[0, 0]``."""
        found = [self._interval(*sparse(row)) for row in np.atleast_2d(counts)]
        return np.array([f.lower for f in found]), np.array([f.upper for f in found])

    def interval(self, counts: NDArray[np.int64]) -> EntropyInterval:
        """Interval of one (d,) count vector, with its gap."""
        return self._interval(*sparse(counts))

    def estimate(self, counts: NDArray[np.int64]) -> Estimate:
        """Maximum likelihood estimate of one (d,) count vector."""
        return self._estimate(*sparse(counts))

    def class_bounds(self, counts: NDArray[np.int64]) -> tuple[Array, Array]:
        """Belief (l,) and plausibility (l,) of each class: proven bounds of ``theta_c`` over the likelihood cut."""
        return self._bounds(*sparse(counts))

    def _problem(self, ids: bytes, counts: bytes) -> tuple[Array, Array]:
        rows = np.frombuffer(ids, np.int64)
        return distinct(self.contours[rows], np.frombuffer(counts, np.int64).astype(np.float64))

    def _solve_interval(self, ids: bytes, counts: bytes) -> EntropyInterval:
        if not ids:
            return EntropyInterval(0.0, 0.0, 0.0)
        return solve(*self._problem(ids, counts), self.contours.shape[1], self.alpha, self.effort)

    def _solve_estimate(self, ids: bytes, counts: bytes) -> Estimate:
        rows = np.frombuffer(ids, np.int64)
        return likelihood.estimate(self.contours[rows], np.frombuffer(counts, np.int64).astype(np.float64))

    def _solve_bounds(self, ids: bytes, counts: bytes) -> tuple[Array, Array]:
        return class_bounds(*self._problem(ids, counts), self.contours.shape[1], self.alpha)


def sparse(counts: NDArray[np.int64]) -> tuple[bytes, bytes]:
    """Hashable form of a count vector: which contours occur, and how often."""
    ids = np.flatnonzero(counts)
    return ids.astype(np.int64).tobytes(), np.asarray(counts)[ids].astype(np.int64).tobytes()


def class_bounds(P: Array, w: Array, l: int, alpha: float) -> tuple[Array, Array]:
    """Proven bounds of each class probability over the likelihood cut of a reduced problem: lower (l,), upper (l,)."""
    if len(w) == 0 or alpha == 0.0:
        return np.zeros(l), np.ones(l)
    theta, excess = kernels.maximise(P, w)
    P = np.ascontiguousarray(P / (P @ theta)[:, None])
    c = np.log(alpha) - w.sum() * (excess + EPS)
    lower, upper = np.empty(l), np.empty(l)
    for j in range(l):
        for sign, bounds in ((1.0, lower), (-1.0, upper)):
            cost = np.zeros(l)
            cost[j] = sign
            start = 0.9 * theta + 0.1 / l
            bound, _ = cut.minimise_over_cut(P, w, c, cost, False, np.zeros(l), np.ones(l), start, np.inf)
            bounds[j] = sign * bound
    return np.clip(lower, 0.0, theta), np.clip(upper, theta, 1.0)
