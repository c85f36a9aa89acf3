"""Compiled: densities of the classes of numbers, by E2M (theory §6, §10.3).

Rows whose label is one class need no E step: they are counted once, whatever the steps. Only the others are shared out
anew at each step. Rows count in the order of the log.
"""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.learners.gaussian import FARTHEST, LOG_SQRT_2PI, TINY
from quercus.trees.learners.mixture import EPSILON
from quercus.trees.likelihood.solver.compiled import compiled

Floats = NDArray[np.float64]
Kinds = NDArray[np.int32]

STEPS = 100  # of E2M, at most


@compiled
def count_precise(x: Floats, klass: Kinds, moments: Floats) -> None:
    """Write count, mean and sum of squares about the mean of each class, (3, l), of known numbers x (n,).

    `klass` (n,) is the class of a row, -1 where it is uncertain.
    """
    moments[:] = 0.0
    for i in range(x.shape[0]):
        if klass[i] >= 0 and not np.isnan(x[i]):
            moments[0, klass[i]] += 1.0
            moments[1, klass[i]] += x[i]
    for c in range(moments.shape[1]):
        if moments[0, c] > 0.0:
            moments[1, c] /= moments[0, c]
    for i in range(x.shape[0]):
        if klass[i] >= 0 and not np.isnan(x[i]):
            moments[2, klass[i]] += (x[i] - moments[1, klass[i]]) ** 2


@compiled
def _m_step(x: Floats, t: Floats, moments: Floats, floor: float, found: Floats) -> None:
    """Write the best proportions, means and deviations (3, l) for the shares t (l, u) of the uncertain rows.

    A class without any keeps its mean and deviation.
    """
    l = moments.shape[1]
    total = 0.0
    for c in range(l):
        weight, mean = moments[0, c], moments[0, c] * moments[1, c]
        for i in range(x.shape[0]):
            weight += t[c, i]
            mean += t[c, i] * x[i]
        total += weight
        found[0, c] = weight
        if weight > 0.0:
            mean /= weight
            spread = moments[2, c] + moments[0, c] * (moments[1, c] - mean) ** 2
            for i in range(x.shape[0]):
                spread += t[c, i] * (x[i] - mean) ** 2
            found[1, c] = mean
            found[2, c] = max(np.sqrt(spread / weight), floor)
    for c in range(l):
        found[0, c] = found[0, c] / total if total > 0.0 else 1.0 / l


@compiled
def _e_step(x: Floats, contours: Floats, moments: Floats, found: Floats, t: Floats) -> float:
    """Write the shares t (l, u) of the uncertain rows, of contours (u, l); return the log-likelihood of all rows."""
    l = moments.shape[1]
    logs = np.empty(l)
    likelihood = 0.0
    for c in range(l):
        logs[c] = np.log(found[0, c]) if found[0, c] > 0.0 else -np.inf
        logs[c] -= np.log(found[2, c]) + LOG_SQRT_2PI
        if moments[0, c] > 0.0:
            spread = moments[2, c] + moments[0, c] * (moments[1, c] - found[1, c]) ** 2
            likelihood += moments[0, c] * logs[c] - 0.5 * min(spread / found[2, c] ** 2, FARTHEST)
    for i in range(x.shape[0]):
        top = -np.inf
        for c in range(l):
            t[c, i] = -np.inf
            if contours[i, c] > 0.0:
                z = (x[i] - found[1, c]) / found[2, c]
                t[c, i] = np.log(contours[i, c]) + logs[c] - 0.5 * min(z * z, FARTHEST)
            top = max(top, t[c, i])
        total = 0.0
        for c in range(l):
            t[c, i] = np.exp(t[c, i] - top) if top > -np.inf else contours[i, c]
            total += t[c, i]
        total = max(total, TINY)
        for c in range(l):
            t[c, i] /= total
        likelihood += max(top, -FARTHEST) + np.log(total)
    return likelihood


@compiled
def fit_densities(x: Floats, klass: Kinds, contours: Floats, floor: Floats) -> tuple[Floats, Floats]:
    """Return means and deviations (K, l) that no step improves by `EPSILON`, after `STEPS` steps at the latest.

    Parameters
    ----------
    x : (K, n), NaN where missing
    klass : (n,) the class of a row, -1 where it is uncertain
    contours : (uncertain rows, l) theirs, in their order
    floor : (K,) least deviation
    """
    K, l = x.shape[0], contours.shape[1]
    means, deviations = np.empty((K, l)), np.empty((K, l))
    moments, found = np.empty((3, l)), np.empty((3, l))
    doubtful = np.flatnonzero(klass < 0)
    mine, given, t = np.empty(len(doubtful)), np.empty((len(doubtful), l)), np.empty((l, len(doubtful)))
    for k in range(K):
        count_precise(x[k], klass, moments)
        known, total = moments[0].sum(), (moments[0] * moments[1]).sum()
        u = 0
        for i in range(len(doubtful)):
            if not np.isnan(x[k, doubtful[i]]):
                mine[u] = x[k, doubtful[i]]
                given[u] = contours[i]
                total += mine[u]
                u += 1
        found[1, :] = total / max(known + u, 1.0)
        found[2, :] = floor[k]
        for i in range(u):
            t[:, i] = given[i] / given[i].sum()
        _m_step(mine[:u], t[:, :u], moments, floor[k], found)
        proportions = found[0].copy()
        for i in range(u):
            beyond = given[i] - given[i].min()
            t[:, i] = beyond / max(beyond.sum(), TINY)
        _m_step(mine[:u], t[:, :u], moments, floor[k], found)
        if u > 0:
            found[0] = proportions
            now = _e_step(mine[:u], given[:u], moments, found, t[:, :u])
            for _ in range(STEPS):
                _m_step(mine[:u], t[:, :u], moments, floor[k], found)
                before = now
                now = _e_step(mine[:u], given[:u], moments, found, t[:, :u])
                if now - before < EPSILON:
                    break
        means[k], deviations[k] = found[1], found[2]
    return means, deviations
