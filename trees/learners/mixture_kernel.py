"""Compiled kernel: E2M of Gaussian mixtures, one attribute after the other (theory §6).

``x``, ``w`` (K, n) numbers and weights, weight 0 where a number is missing; ``log_pl`` (l, n) log plausibilities;
``parameters`` (3, K, l) proportions, means, deviations; ``t`` (l, n) shares of the classes in each row.
"""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.learners.gaussian import FARTHEST, LOG_SQRT_2PI, TINY
from quercus.trees.likelihood.solver.compiled import borrowing, compiled

Array = NDArray[np.float64]

LARGEST_FLOAT = float(np.finfo(np.float64).max)


@compiled
def e_step(x: Array, log_pl: Array, w: Array, parameters: Array, t: Array) -> float:
    """Write ``t_ki ∝ pl_ik π_k φ(x_i; μ_k, σ_k)``; return the evidential log-likelihood."""
    l, n = t.shape
    logs = np.empty(l)
    for k in range(l):
        logs[k] = np.log(parameters[0, k]) if parameters[0, k] > 0.0 else -np.inf
        logs[k] -= np.log(parameters[2, k]) + LOG_SQRT_2PI
    likelihood = 0.0
    for i in range(n):
        top = -LARGEST_FLOAT  # all may be minus infinity for a row of weight 0
        for k in range(l):
            z = (x[i] - parameters[1, k]) / parameters[2, k]
            t[k, i] = log_pl[k, i] + logs[k] - 0.5 * min(z * z, FARTHEST)
            top = max(top, t[k, i])
        total = 0.0
        for k in range(l):
            t[k, i] = np.exp(t[k, i] - top)
            total += t[k, i]
        total = max(total, TINY)
        for k in range(l):
            t[k, i] /= total
        likelihood += w[i] * (top + np.log(total))
    return likelihood


@borrowing
def m_step(x: Array, w: Array, t: Array, floor: float, parameters: Array) -> None:
    """Write the best parameters for shares ``t``; a class without a share keeps its mean and deviation."""
    l, n = t.shape
    weight = 0.0
    for k in range(l):
        total, mean = 0.0, 0.0
        for i in range(n):
            total += w[i] * t[k, i]
            mean += w[i] * t[k, i] * x[i]
        weight += total
        parameters[0, k] = total
        if total > 0.0:
            mean /= total
            spread = 0.0
            for i in range(n):
                spread += w[i] * t[k, i] * (x[i] - mean) ** 2
            parameters[1, k] = mean
            parameters[2, k] = max(np.sqrt(spread / total), floor)
    for k in range(l):
        parameters[0, k] = parameters[0, k] / weight if weight > 0.0 else 1.0 / l


@compiled
def fit_mixture(
    x: Array,
    w: Array,
    centre: Array,
    floor: Array,
    labels: Array,
    epsilon: float,
    max_steps: int,
) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return parameters that no step improves by `epsilon`, the log-likelihoods (K,), and the steps made (K,).

    `labels` (3, l, n) are ``log_pl`` and two kinds of shares. The start fits the last shares best; the proportions, and
    the classes without such a share, start from the second; classes without either from `centre` (K,) and `floor` (K,).
    """
    log_pl, plain, beyond = labels[0], labels[1], labels[2]
    parameters = np.empty((3, x.shape[0], log_pl.shape[0]))
    likelihood = np.empty(x.shape[0])
    steps = np.zeros(x.shape[0], dtype=np.int64)
    t = np.empty(log_pl.shape)
    for column in range(x.shape[0]):
        mine = parameters[:, column]
        mine[1, :] = centre[column]
        mine[2, :] = floor[column]
        m_step(x[column], w[column], plain, floor[column], mine)
        proportions = mine[0].copy()
        m_step(x[column], w[column], beyond, floor[column], mine)
        mine[0, :] = proportions
        now = e_step(x[column], log_pl, w[column], mine, t)
        made = 0
        gaining = True
        while gaining and made < max_steps:
            m_step(x[column], w[column], t, floor[column], mine)
            before = now
            now = e_step(x[column], log_pl, w[column], mine, t)
            made += 1
            gaining = now - before >= epsilon
        likelihood[column] = now
        steps[column] = made
    return parameters, likelihood, steps
