"""The forest of many memories against one that was written from theory §10 alone: the same estimates and classes."""

import numpy as np
import pytest
from support.plain_memory_forest import PlainForest, drawn_cut, hashed

from quercus.kernels.forest import derived_key, member_key, number_between
from quercus.trees.memory_forest.forest import MemoryForest


def world(rng: np.random.Generator, rows: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of numbers (rounded, whole, with many digits) and names, some missing; contours of every kind."""
    K = int(rng.integers(2, 6))
    named = rng.random(K) < 0.4
    classes = rng.integers(size, size=rows)
    noise = (
        np.round(rng.normal(size=(rows, K)), rng.integers(3))
        if rng.random() < 0.5
        else rng.normal(size=(rows, K))
    )
    values = np.where(
        named, (classes[:, None] + rng.integers(4, size=(rows, K))) % 7, classes[:, None] + noise
    )
    values = np.where(rng.random((rows, K)) < 0.08, np.nan, values)
    contours = np.eye(size)[classes]
    kinds = rng.integers(4, size=rows)
    contours[kinds == 1, rng.integers(size)] = 1.0
    soft = kinds == 2
    contours[soft] = np.maximum(contours[soft], np.round(rng.random((int(soft.sum()), size)), 1))
    discounted = kinds == 3
    contours[discounted] = np.maximum(contours[discounted], 0.2)
    return values, named, contours


def rows_of(matrix: np.ndarray) -> list[list[float | None]]:
    return [[None if np.isnan(x) else float(x) for x in row] for row in matrix]


@pytest.mark.parametrize(
    ("seed", "rows"),
    [(0, 30), (1, 60), (2, 101), (3, 130), (4, 49), pytest.param(5, 240, marks=pytest.mark.slow)],
)
def test_estimates_are_those_of_the_text(seed: int, rows: int) -> None:
    """Rows that come with labels, answers about others, and a correction; 240 are more than a memory holds."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 5))
    values, named, contours = world(rng, rows + 30, size)
    forest = MemoryForest(named, size, trees=7, seed=seed, level=0.75)
    plain = PlainForest(named.tolist(), size, trees=7, seed=seed)
    at_once = rng.random(rows) < 0.7
    forest.observe(values[:rows], np.where(at_once[:, np.newaxis], contours[:rows], 1.0))
    for row, cells in enumerate(rows_of(values[:rows])):
        plain.see(cells)
        if at_once[row] and contours[row].min() < 1.0:
            plain.label(row, contours[row].tolist())
    for row in [*rng.permutation(np.flatnonzero(~at_once)).tolist(), 0]:
        if contours[row].min() < 1.0:
            answer = contours[row] if row else np.eye(size)[1]
            forest.replace_contour(row, answer)
            plain.label(row, answer.tolist())
    expected = np.array(plain.theta(rows_of(values)))
    assert forest.weights == pytest.approx(np.array(plain.weights()), abs=1e-9)
    assert forest.theta(values) == pytest.approx(expected, abs=1e-9)
    np.testing.assert_array_equal(forest.predict(values).theta, forest.theta(values))  # bounds do not move it
    clear = np.ptp(np.sort(expected)[:, -2:], axis=1) > 1e-8
    assert forest.predict(values).klass[clear].tolist() == expected.argmax(axis=1)[clear].tolist()


def test_the_hash_and_its_layout_are_those_of_the_text() -> None:
    """The numbers stand in theory §10.2."""
    assert [hashed(0, 0), hashed(0, 1)] == [16294208416658607535, 7960286522194355700]
    assert [hashed(hashed(0, 0), m) for m in (0, 1)] == [12035550249420947055, 12935080325729570654]
    a = 2**63 + 11
    assert [drawn_cut(a, 3, high) for high in (4, 10, 90, 91, 100, 200)] == [3, 9, 50, 50, 50, 177]
    assert [number_between(a, 3, high) for high in (4, 10, 90, 91, 100, 200)] == [3, 9, 50, 50, 50, 177]
    assert [member_key(0, m) for m in (0, 1)] == [12035550249420947055, 12935080325729570654]
    rng = np.random.default_rng(0)
    for _ in range(200):
        key, number = int(rng.integers(2**63)) * 2 + 1, int(rng.integers(1_000))
        low = int(rng.integers(1, 300))
        high = low + int(rng.integers(1, 300))
        assert derived_key(key, number) == hashed(key, number)
        assert number_between(key, low, high) == drawn_cut(key, low, high)
    assert member_key(7, 3) == hashed(hashed(7, 0), 3)
