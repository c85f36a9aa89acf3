"""Compiled: densities of the classes of numbers, by E2M (theory §6, §10.3).

Rows with a precise label need no E step: they are counted once. Only the others are distributed anew at each step.
Rows count in the order of the log.
"""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.learners.gaussian import FARTHEST, LOG_SQRT_2PI, TINY
from quercus.trees.learners.mixture import COLUMN_ROUNDING, EPSILON, FLOOR_SHARE, FREE_SHARE, LARGEST_NUMBER
from quercus.trees.likelihood.solver.compiled import borrowing, compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Kinds = NDArray[np.int32]

DENSITY_STEPS = 100  # of E2M, at most


@borrowing
def read_numbers(
    values: Floats, rows: Ints, k: int, x: Floats, klass: Kinds, moments: Floats
) -> tuple[float, float, float, float]:
    """Copy a column of numbers, less its origin; write count, mean and sum of squares about it of each class, (3, l).

    `klass` (n,) is the class of a row, -1 if it is uncertain. The origin is the first known number, and all that is
    computed of the column counts from there: far from zero sums would lose the digits that distinguish rows, and
    classes would differ by rounding in a column in which rows do not.

    Returns
    -------
    origin, mean, deviation, largest
        The origin; mean, from there, and deviation of all known numbers, and their largest distance from zero.
    """
    origin, known, total, largest = 0.0, 0.0, 0.0, 0.0
    for c in range(moments.shape[1]):
        moments[0, c] = moments[1, c] = moments[2, c] = 0.0
    for i in range(rows.shape[0]):
        number = values[rows[i], k]
        if np.isnan(number):
            x[i] = number
            continue
        number = min(max(number, -LARGEST_NUMBER), LARGEST_NUMBER)
        if known == 0.0:
            origin = number
        x[i] = number - origin
        known += 1.0
        total += x[i]
        largest = max(largest, abs(number))
        c = klass[i]
        if c >= 0:
            moments[0, c] += 1.0
            moments[1, c] += x[i]
    if known == 0.0:
        return 0.0, 0.0, 0.0, 0.0
    for c in range(moments.shape[1]):
        if moments[0, c] > 0.0:
            moments[1, c] /= moments[0, c]
    mean, square = total / known, 0.0
    for i in range(x.shape[0]):
        if not np.isnan(x[i]):
            square += (x[i] - mean) ** 2
            c = klass[i]
            if c >= 0:
                moments[2, c] += (x[i] - moments[1, c]) ** 2
    return origin, mean, np.sqrt(square / known), largest


@borrowing
def _m_step(x: Floats, u: int, t: Floats, moments: Floats, floor: float, parameters: Floats) -> None:
    """Write the best proportions, means and deviations (3, l) for the shares t (l, u) of the `u` uncertain rows.

    A class without a share keeps its mean and deviation.
    """
    l = moments.shape[1]
    total = 0.0
    for c in range(l):
        weight, mean = moments[0, c], moments[0, c] * moments[1, c]
        for i in range(u):
            weight += t[c, i]
            mean += t[c, i] * x[i]
        total += weight
        parameters[0, c] = weight
        if weight > 0.0:
            mean /= weight
            spread = moments[2, c] + moments[0, c] * (moments[1, c] - mean) ** 2
            for i in range(u):
                spread += t[c, i] * (x[i] - mean) ** 2
            parameters[1, c] = mean
            parameters[2, c] = max(np.sqrt(spread / weight), floor)
    for c in range(l):
        parameters[0, c] = parameters[0, c] / total if total > 0.0 else 1.0 / l


@compiled
def _e_step(x: Floats, u: int, contours: Floats, moments: Floats, parameters: Floats, t: Floats) -> float:
    """Write the shares t (l, u) of `u` uncertain rows, of contours (u, l); return the log-likelihood of all rows."""
    l = moments.shape[1]
    logs = np.empty(l)
    likelihood = 0.0
    for c in range(l):
        logs[c] = np.log(parameters[0, c]) if parameters[0, c] > 0.0 else -np.inf
        logs[c] -= np.log(parameters[2, c]) + LOG_SQRT_2PI
        if moments[0, c] > 0.0:
            spread = moments[2, c] + moments[0, c] * (moments[1, c] - parameters[1, c]) ** 2
            likelihood += moments[0, c] * logs[c] - 0.5 * min(spread / parameters[2, c] ** 2, FARTHEST)
    for i in range(u):
        top = -np.inf
        for c in range(l):
            t[c, i] = -np.inf
            if contours[i, c] > 0.0:
                z = (x[i] - parameters[1, c]) / parameters[2, c]
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


@borrowing
def _share_out(given: Floats, u: int, beyond: bool, t: Floats) -> None:
    """Write the shares (l, u) of contours (u, l), or of their excess over the least plausibility if `beyond`."""
    for i in range(u):
        least, total = np.inf, 0.0
        for c in range(given.shape[1]):
            least = min(least, given[i, c])
        least = least if beyond else 0.0
        for c in range(given.shape[1]):
            total += given[i, c] - least
        for c in range(given.shape[1]):
            t[c, i] = (given[i, c] - least) / max(total, TINY)


@compiled
def fit_densities(
    values: Floats, rows: Ints, columns: Ints, klass: Kinds, contours: Floats, free: float
) -> tuple[Floats, Floats]:
    """Return means and deviations (k, l) that no step improves by `EPSILON`, after at most `DENSITY_STEPS` steps.

    Parameters
    ----------
    values : (all rows, K), NaN where missing
    rows : (n,) numbers of the rows that count
    columns : (k,) the numeric columns
    klass : (n,) the class of a row, -1 if it is uncertain
    contours : (uncertain rows, l) contours of the uncertain rows, in order
    free : mean over the rows of ``min pl / max pl``, see `quercus.trees.learners.mixture.column_floor`
    """
    l = contours.shape[1]
    means, deviations = np.empty((columns.shape[0], l)), np.empty((columns.shape[0], l))
    moments, parameters, x = np.empty((3, l)), np.empty((3, l)), np.empty(rows.shape[0])
    proportions, doubtful, uncertain = np.empty(l), np.empty(klass.shape[0], np.int64), 0
    for i in range(klass.shape[0]):
        if klass[i] < 0:
            doubtful[uncertain] = i
            uncertain += 1
    mine, given, t = np.empty(uncertain), np.empty((uncertain, l)), np.empty((l, uncertain))
    for k in range(columns.shape[0]):
        origin, mean, deviation, largest = read_numbers(values, rows, columns[k], x, klass, moments)
        least = max(COLUMN_ROUNDING * (largest if largest > 0.0 else 1.0), TINY)
        floor = max((FLOOR_SHARE + FREE_SHARE * free) * deviation, least)
        u = 0
        for i in range(uncertain):
            if not np.isnan(x[doubtful[i]]):
                mine[u] = x[doubtful[i]]
                for c in range(l):
                    given[u, c] = contours[i, c]
                u += 1
        for c in range(l):  # of a class without a known number no number says anything
            parameters[1, c], parameters[2, c] = mean, max(deviation, floor)
        _share_out(given, u, False, t)
        _m_step(mine, u, t, moments, floor, parameters)
        for c in range(l):
            proportions[c] = parameters[0, c]
        _share_out(given, u, True, t)
        _m_step(mine, u, t, moments, floor, parameters)
        if u > 0:
            for c in range(l):
                parameters[0, c] = proportions[c]
            now = _e_step(mine, u, given, moments, parameters, t)
            for _ in range(DENSITY_STEPS):
                _m_step(mine, u, t, moments, floor, parameters)
                before = now
                now = _e_step(mine, u, given, moments, parameters, t)
                if now - before < EPSILON:
                    break
        for c in range(l):
            means[k, c], deviations[k, c] = origin + parameters[1, c], parameters[2, c]
    return means, deviations
