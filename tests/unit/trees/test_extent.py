"""The extent of a class over the likelihood cut, compared with the interior-point method and with points of the cut."""

import numpy as np
import pytest

from quercus.kernels.likelihood import (
    least_at_vertex,
    least_of_class,
    loglik,
    maximise,
    minimise_over_cut,
    newton,
    quadratic_start,
    rescale_rows,
    rounding,
)

SETS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1.0]])


def cut(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """A likelihood cut as the solver sees it: rows with ``P @ theta = 1``, weights, maximiser, level."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        P = SETS[rng.random(6) < 0.8]
        P = P if len(P) > 1 else SETS
    else:
        l, n = int(rng.integers(2, 8)), int(rng.integers(2, 30))
        P = np.where(rng.random((n, l)) < 0.4, 0.0, rng.random((n, l)))
        P[np.arange(n), rng.integers(0, l, n)] = 1.0
    w = np.ceil(rng.random(len(P)) * 10 ** rng.uniform(0, 4))
    theta, worst = maximise(np.ascontiguousarray(P), w)
    level = np.log(rng.choice([0.3, 0.8, 0.99])) - w.sum() * (worst + rounding(P.shape[1]))
    return rescale_rows(P, theta), w, theta, float(level)


@pytest.mark.parametrize("seed", range(50))
def test_agrees_with_the_interior_point_method(seed: int) -> None:
    P, w, theta, level = cut(seed)
    l = len(theta)
    for j in range(l):
        for sign, trivial in ((1.0, 0.0), (-1.0, -1.0)):
            cost = np.zeros(l)
            cost[j] = sign
            slow, _ = minimise_over_cut(
                P, w, level, cost, np.zeros(l), np.ones(l), 0.9 * theta + 0.1 / l, np.inf
            )
            fast = least_of_class(P, w, level, theta, j, sign, np.empty(l))
            assert max(fast, trivial) == pytest.approx(max(slow, trivial), abs=2e-7)


@pytest.mark.parametrize("seed", range(25))
def test_no_point_of_the_cut_is_beyond(seed: int) -> None:
    P, w, theta, level = cut(seed)
    rng = np.random.default_rng(seed)
    corners = rng.dirichlet(np.full(len(theta), 0.5), 2_000)
    near = theta + rng.random((2_000, 1)) ** 3 * (corners - theta)
    inside = np.array([x for x in near if loglik(P, w, x) >= level])
    for j in range(len(theta)):
        least = least_of_class(P, w, level, theta, j, 1.0, np.empty(len(theta)))
        most = -least_of_class(P, w, level, theta, j, -1.0, np.empty(len(theta)))
        assert least <= theta[j] + 1e-12 <= most + 2e-12
        if len(inside):
            assert least <= inside[:, j].min() + 1e-12
            assert most >= inside[:, j].max() - 1e-12


def vertex_cut(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """A cut whose maximiser is a vertex: most labels prefer one class, as in the leaves of a forest."""
    rng = np.random.default_rng(seed)
    l, n = int(rng.integers(2, 9)), int(rng.integers(1, 12))
    P = rng.random((n, l)) * (rng.random((n, l)) < 0.8)
    a = int(rng.integers(l))
    P[:, a] = np.where(rng.random(n) < 0.8, 1.0, 0.5 + 0.5 * P[:, a])
    P[P.max(axis=1) < 1.0, (a + 1) % l] = 1.0
    w = np.ceil(rng.random(n) * 10 ** rng.uniform(0, 3))
    w[P[:, a] == 1.0] *= 20.0
    theta = np.eye(l)[a]
    level = np.log(rng.choice([1e-6, 0.15, 0.75, 0.999])) - w.sum() * rounding(l)
    return rescale_rows(P, theta), w, theta, float(level)


def is_vertex(P: np.ndarray, w: np.ndarray, theta: np.ndarray) -> bool:
    return bool(P[:, theta.argmax()].all() and (w @ P <= w.sum() * (1 - 1e-9) + theta * w.sum()).all())


@pytest.mark.parametrize("seed", range(60))
def test_ends_of_edges_are_those_of_the_interior_point_method(seed: int) -> None:
    P, w, theta, level = vertex_cut(seed)
    if not is_vertex(P, w, theta):
        return
    l = len(theta)
    for j in range(l):
        for sign, trivial in ((1.0, 0.0), (-1.0, -1.0)):
            cost = np.zeros(l)
            cost[j] = sign
            slow, _ = minimise_over_cut(
                P, w, level, cost, np.zeros(l), np.ones(l), 0.9 * theta + 0.1 / l, np.inf
            )
            fast = least_of_class(P, w, level, theta, j, sign, np.empty(l))
            assert max(fast, trivial) == pytest.approx(max(slow, trivial), abs=2e-7)


def test_edges_prove_most_of_it_and_never_too_much() -> None:
    """No point of the cut is beyond a proven end; where a third class helps, the edge proves nothing."""
    proven = tried = 0
    for seed in range(200):
        P, w, theta, level = vertex_cut(seed)
        if not is_vertex(P, w, theta):
            continue
        a, l = int(theta.argmax()), len(theta)
        rng = np.random.default_rng(seed)
        points = theta + rng.random((400, 1)) ** 3 * (rng.dirichlet(np.full(l, 0.3), 400) - theta)
        with np.errstate(divide="ignore"):
            inside = points[np.log(points @ P.T) @ w >= level]
        for j in range(l):
            sign = 1.0 if j == a else -1.0
            if j != a and loglik(P, w, np.eye(l)[j]) >= level:
                continue
            found = least_at_vertex(P, w, level, a, j, sign, np.empty(l))
            tried += 1
            proven += found > -np.inf
            assert (sign * inside[:, j] >= found - 1e-12).all()
    assert tried > 300
    assert proven >= 0.8 * tried


def test_newton_proves_most_of_it() -> None:
    proven = tried = 0
    for seed in range(1, 200, 2):
        P, w, theta, level = cut(seed)
        for j in np.flatnonzero(theta > 0.01):
            y = np.empty(len(theta))
            mu = quadratic_start(P, w, level, theta, int(j), -1.0, y)
            if mu > 0.0 and w.sum() > 100:
                tried += 1
                proven += newton(P, w, level, int(j), -1.0, y, mu) > -np.inf
    assert tried > 50
    assert proven >= 0.9 * tried
