"""Roots of single equations, on which the curves of precise labels depend (theory §2.9)."""

import numpy as np

from quercus.trees.likelihood.solver.compiled import borrowing


@borrowing
def upper_root(y: float) -> float:
    """Return the root ``s >= 1`` of ``s - ln s = y``, ``y >= 1`` (Fritsch, Shafer, Crowley 1973)."""
    e = y - 1.0
    if not e > 1e-14:
        return 1.0 + float(np.sqrt(2.0 * max(e, 0.0)))
    root = np.sqrt(0.5 * e)
    s = 1.0 + e + 2.0 * root / (1.0 + 0.3361 * root)  # within a few in a hundred
    for _ in range(4):
        z = s - np.log(s) - y
        q = 2.0 * (1.0 - s) * (1.0 - s + 2.0 / 3.0 * z)
        move = z / (1.0 - s) * (q - z) / (q - 2.0 * z)
        s += s * move
        if abs(move) < 1e-4:
            break
    return float(max(s, 1.0))


@borrowing
def product_root(y: float) -> float:
    """Return the root ``s > 0`` of ``s + ln s = y`` (Fritsch, Shafer, Crowley 1973)."""
    if y < -36.0:
        return float(np.exp(y))
    s = y - np.log(y) * (1.0 - 1.0 / y) if y > 1.5 else np.log1p(np.exp(y))
    for _ in range(4):
        z = y - s - np.log(s)
        q = 2.0 * (1.0 + s) * (1.0 + s + 2.0 / 3.0 * z)
        move = z / (1.0 + s) * (q - z) / (q - 2.0 * z)
        s += s * move
        if abs(move) < 1e-4:
            break
    return float(s)


@borrowing
def class_end(n: float, N: float, c: float) -> float:
    """Return the greatest ``t`` with ``n ln(t / p) + (N - n) ln((1 - t) / (1 - p)) >= c``, ``p = n / N``; rarely less.

    The left side is the profile likelihood of one class. It is concave in ``u = ln(t / (1 - t))``, so every Newton
    step ends outside the cut: to the right of the root.
    """
    if n <= 0.0:
        return float(-np.expm1(c / N))
    if n >= N:
        return 1.0
    rest = N - n
    log_p = np.log(n / N)
    log_q = np.log(rest / N)
    u = np.log(n / rest) + np.sqrt(-2.0 * c * N / (n * rest))
    for step in range(50):
        x = np.exp(-u)
        log_t = -np.log1p(x)
        value = n * (log_t - log_p) + rest * (log_t - u - log_q) - c
        move = value / (N / (1.0 + x) - n)
        u += move
        if step > 0 and move > -1e-13 * (1.0 + abs(u)):
            break
    return float(1.0 / (1.0 + np.exp(-u)))


@borrowing
def binary_entropy(t: float) -> float:
    """Return the entropy of ``(t, 1 - t)`` in nats."""
    return float(-t * np.log(t) - (1.0 - t) * np.log1p(-t)) if 0.0 < t < 1.0 else 0.0
