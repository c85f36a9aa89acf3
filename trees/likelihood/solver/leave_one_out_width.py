"""Points of extreme entropy over a likelihood cut, and the least width of its interval without one row (theory §3.3).

The notation is that of `kernels/likelihood/leave_one_out.hpp`. No point here needs to be the true extreme: any two
points of a cut prove that its interval is at least as wide as the difference of their entropies. The better the points,
the fewer problems must be solved.
"""

import numpy as np
from numpy.typing import NDArray

from quercus.belief.sums import weighted_sum
from quercus.kernels.likelihood import (
    descend,
    entropy,
    highest_without,
    known_ends,
    loglik,
    maximise,
    minimise_over_cut,
    move_into_cut,
    multiplier_at,
    newton_stationary,
    plain_sums,
    rounding,
    to_boundary,
)

Array = NDArray[np.float64]

MINIMA = 4  # local minima kept of the child's own cut
LEARNT = 8  # local minima kept once those found without one row have been added
SAME_POINT = 1e-6  # points nearer to each other than this count as one
LN2 = float(np.log(2.0))
REACHED = 1e-8  # nats; a local minimum this near to the least entropy is the global one


def greatest_point(
    P: Array, w: Array, c: float, theta: Array, near: Array | None = None
) -> tuple[Array, float]:
    """Point of the greatest entropy over ``l >= c``, and its multiplier, which is positive if the point is approximate.

    `near` is a guess.
    """
    l = P.shape[1]
    uniform = np.full(l, 1.0 / l)
    if loglik(P, w, uniform) >= c:
        return uniform, 0.0
    x = np.empty(l)
    for aim in (uniform,) if near is None else (near, uniform):
        to_boundary(P, w, c, theta, aim, x)
        mu = multiplier_at(P, w, x)
        if mu < 0.0:
            mu = newton_stationary(P, w, c, x, mu)
        if mu < 0.0:
            return x, mu
    guess = 0.5 * (theta + x)
    minimise_over_cut(P, w, c, np.empty(0), np.zeros(l), np.ones(l), guess, np.inf)
    to_boundary(P, w, c, theta, guess, x)
    mu = min(multiplier_at(P, w, x), 0.0)
    return x, newton_stationary(P, w, c, x, mu) or 1.0


class LocalMinima:
    """Local minima of the entropy over ``l >= c``, the lowest first: points (l,) with their multipliers."""

    def __init__(self) -> None:
        self.found: list[tuple[float, Array, float]] = []

    def add_minimum(self, x: Array, mu: float, most: int = MINIMA) -> bool:
        """Keep `x` if it is new, and among the `most` lowest."""
        if not mu > 0.0 or any(np.abs(x - y).max() <= SAME_POINT for _, y, _ in self.found):
            return False
        self.found.append((float(entropy(x)), x.copy(), mu))
        self.found.sort(key=lambda entry: entry[0])
        del self.found[most:]
        return True

    @property
    def least_entropy(self) -> float:
        """The least entropy, in nats; infinite when nothing was found."""
        return self.found[0][0] if self.found else np.inf

    def search_minima(self, P: Array, w: Array, c: float, theta: Array, lower: float) -> None:
        """Descend from `theta`, try its opposite side, then start towards each vertex until `lower` (nats) is met."""
        x = theta.copy()
        self.add_minimum(x, descend(P, w, c, c, theta, x)[1])
        for _, y, _ in self.found[:]:
            self.add_minimum(*settled_minimum(P, w, c, theta, 2.0 * theta - y))
        for aim in np.eye(len(theta)):
            if self.least_entropy <= lower + REACHED:
                break
            to_boundary(P, w, c, theta, aim, x)
            self.add_minimum(x, descend(P, w, c, c, theta, x)[1])


def settled_minimum(P: Array, w: Array, c: float, theta: Array, aim: Array) -> tuple[Array, float]:
    """Local minimum near where the ray from `theta` to `aim` leaves the cut, and its multiplier; 0 for none."""
    x = np.empty_like(theta)
    to_boundary(P, w, c, theta, aim, x)
    mu = multiplier_at(P, w, x)
    return x, newton_stationary(P, w, c, x, mu) if mu > 0.0 else 0.0


class LeaveOneOut:
    """Lower bounds of the width of a child's entropy interval without one row, for each of its contours.

    Parameters
    ----------
    contours : (n, l) distinct, none constant
    counts : (n,) how many rows have each, 1 or more
    level : ``ln alpha``, below 0
    lower : least entropy of the child, in bits
    """

    def __init__(self, contours: Array, counts: NDArray[np.int64], level: float, lower: float) -> None:
        w = counts.astype(np.float64)
        theta, worst = maximise(contours, w)
        self._problem = (contours / (contours * theta).sum(axis=1)[:, np.newaxis], w, level)
        self._tops, self._low, self._high = np.empty((3, len(counts)))
        highest_without(*self._problem[:2], theta, worst, self._tops)
        known_ends(*self._problem, theta, self._tops, self._low, self._high)
        self._top, mu = greatest_point(*self._problem, theta)
        if mu <= 0.0:
            move_into_cut(*self._problem, self._top, mu, self._tops, True, self._high)
        self._minima = LocalMinima()
        if lower > 0.0:
            self._minima.search_minima(*self._problem, theta, lower * LN2)
        for _, x, mu in self._minima.found:
            move_into_cut(*self._problem, x, mu, self._tops, False, self._low)

    def width_bounds(self, which: slice = slice(None)) -> Array:
        """Lower bounds (bits) of the widths without one row of the contours `which`; they grow as points are found."""
        return np.maximum(self._high[which] - self._low[which], 0.0) / LN2

    def _problem_without(self, k: int) -> tuple[tuple[Array, Array, float], Array]:
        """Problem and maximiser without one row of contour `k`; the level is 0 if rounding may leave only a point."""
        P, counts, level = self._problem
        counts = counts.copy()
        counts[k] -= 1.0
        left = counts > 0.0
        P, w = P[left], counts[left]
        if not len(w):
            return (P, w, 0.0), self._top
        theta, worst = maximise(P, w)
        level = min(level + w.sum() * (worst + plain_sums(*P.shape) + rounding(P.shape[1])), 0.0)
        return (P / (P * theta).sum(axis=1)[:, np.newaxis], w, level), theta

    def refine_contour(self, k: int) -> bool:
        """Find better points for contour `k` by solving its problem; True if other contours gained a point too."""
        problem, theta = self._problem_without(k)
        known = len(self._minima.found)
        if not len(problem[1]):
            self._low[k], self._high[k] = 0.0, np.log(len(theta))
        elif problem[2] < 0.0:
            top, _ = greatest_point(*problem, theta, self._top)
            self._high[k] = max(self._high[k], entropy(top))
            self._low[k] = min(self._low[k], self._least_found(problem, theta))
        return len(self._minima.found) > known

    def _least_found(self, problem: tuple[Array, Array, float], theta: Array) -> float:
        """Least entropy, in nats, of the points found in the cut of a problem without one row."""
        P, w, level = problem
        with np.errstate(divide="ignore"):
            at_vertices = weighted_sum(w, np.log(P))
        if at_vertices.max() >= level:
            return 0.0
        near = LocalMinima()
        for _, start, mu in self._minima.found:
            x = start.copy()
            near.add_minimum(x, newton_stationary(P, w, level, x, mu))
        if not near.found:
            x = theta.copy()
            near.add_minimum(x, descend(P, w, level, level, theta, x)[1])
            self._adopt_minimum(near)
        return float(min(entropy(theta), near.least_entropy))

    def learn_from_lower(self, k: int, lower: float) -> None:
        """Search for the point that reaches `lower` (bits) without a row of contour `k`; `refine_contour` missed it."""
        problem, theta = self._problem_without(k)
        if len(problem[1]) and problem[2] < 0.0 < lower:
            near = LocalMinima()
            near.search_minima(*problem, theta, lower * LN2)
            self._adopt_minimum(near)

    def _adopt_minimum(self, near: LocalMinima) -> None:
        """Use the lowest of the minima found without one row for the other contours too."""
        for _, x, mu in near.found[:1]:
            if self._minima.add_minimum(x, mu, LEARNT):
                move_into_cut(*self._problem, x, mu, self._tops, False, self._low)
