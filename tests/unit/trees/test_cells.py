"""The solver over cells: sparse count vectors (theory §2.3)."""

import numpy as np
import pytest
from support.held_bytes import held_bytes

from quercus.belief.errors import InvalidInput
from quercus.trees.likelihood import cell_cache, interval
from quercus.trees.likelihood.interval import Cells, IntervalSolver, entropy_interval
from quercus.trees.likelihood.maximiser import estimate

CONTOURS = np.array(
    [[1, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0.4, 0], [0, 0, 1], [0.5, 0.2, 0], [0.3, 0.3, 0.3], [0, 1, 1]]
)


def random_counts(seed, m=60):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, rng.choice([3, 40, 3_000], m)[:, None], (m, len(CONTOURS)))
    counts[rng.random(counts.shape) < 0.5] = 0
    counts[0] = 0
    counts[1:20, [3, 5, 7]] = 0  # precise and vacuous labels only
    return counts


@pytest.mark.parametrize("alpha", [0.0, 0.05, 0.8, 0.999, 1.0])
def test_every_cell_has_the_interval_of_its_rows(alpha):
    counts = random_counts(1)
    cells = Cells.of_dense(counts)
    solver = IntervalSolver(CONTOURS, alpha)
    found = solver.solve_cells(cells)
    outer = solver.enclose_cells(cells)
    assert found.lower[0] == found.upper[0] == outer[0][0] == outer[1][0] == 0.0
    for row, low, high in zip(counts, found.lower, found.upper, strict=True):
        single = entropy_interval(CONTOURS, row.astype(float), alpha)
        assert (low, high) == pytest.approx((single.lower, single.upper), abs=2e-9)
    assert (outer[0] <= found.lower + 1e-9).all()
    assert (outer[1] >= found.upper - 1e-9).all()


def test_a_cell_does_not_depend_on_the_others_nor_on_what_was_solved_before():
    counts = random_counts(2)
    solver = IntervalSolver(CONTOURS, 0.8)
    together = solver.solve_cells(Cells.of_dense(counts))
    backwards = solver.solve_cells(Cells.of_dense(counts[::-1]))
    alone = [IntervalSolver(CONTOURS, 0.8).intervals(row[None]) for row in counts[:30]]
    assert np.array_equal(together.lower, backwards.lower[::-1])
    assert np.array_equal(together.upper, backwards.upper[::-1])
    assert [low[0] for low, _ in alone] == together.lower[:30].tolist()
    assert [high[0] for _, high in alone] == together.upper[:30].tolist()


@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_estimates_and_class_bounds(alpha):
    counts = random_counts(3)
    cells = Cells.of_dense(counts)
    solver = IntervalSolver(CONTOURS, alpha)
    theta, unique = solver.estimate_cells(cells)
    belief, plausibility = solver.bound_classes_cells(cells)
    for i, row in enumerate(counts):
        single = estimate(CONTOURS[row > 0], row[row > 0].astype(float))
        assert unique[i] == single.unique
        assert theta[i] == pytest.approx(single.theta, abs=1e-12)
        if single.unique:
            assert (belief[i] <= theta[i] + 1e-12).all()
            assert (theta[i] <= plausibility[i] + 1e-12).all()
    vacuous = solver.bound_classes_cells(Cells.of_dense(np.eye(8, dtype=int)[[1, 6]] * 4))
    assert (vacuous[0] == 0.0).all()
    assert (vacuous[1] == 1.0).all()


def test_no_cells():
    cells = Cells.of_dense(np.zeros((0, len(CONTOURS)), int))
    solver = IntervalSolver(CONTOURS, 0.8)
    assert len(cells) == 0
    assert solver.solve_cells(cells).lower.shape == (0,)
    assert solver.enclose_cells(cells)[1].shape == (0,)
    assert solver.estimate_cells(cells)[0].shape == (0, 3)
    assert solver.bound_classes_cells(cells)[0].shape == (0, 3)


@pytest.mark.parametrize(
    ("start", "ids", "counts", "field"),
    [
        ([0, 3], [0, 1], [1, 1], "start"),
        ([1, 2], [0, 1], [1, 1], "start"),
        ([], [], [], "start"),
        ([0, 2], [0, 1], [1], "counts"),
    ],
)
def test_arrays_that_do_not_fit_are_named(start, ids, counts, field):
    with pytest.raises(InvalidInput) as error:
        Cells(np.array(start, np.int64), np.array(ids, np.int32), np.array(counts, np.int64))
    assert error.value.field == field


def test_arrays_of_another_type_are_named():
    with pytest.raises(InvalidInput, match="ids: is float64"):
        Cells(np.array([0, 1]), np.array([0.0]), np.array([1]))


@pytest.mark.parametrize(
    ("ids", "counts"),
    [([1, 0], [1, 1]), ([0, 0], [1, 1]), ([-1, 2], [1, 1]), ([0, 8], [1, 1]), ([0, 2], [1, 0])],
)
@pytest.mark.parametrize("method", ["solve_cells", "enclose_cells", "estimate_cells", "bound_classes_cells"])
def test_a_malformed_cell_is_named(method, ids, counts):
    cells = Cells(np.array([0, 0, 2]), np.array(ids, np.int32), np.array(counts))
    with pytest.raises(InvalidInput, match=r"cells\[1\]: is malformed"):
        getattr(IntervalSolver(CONTOURS, 0.8), method)(cells)


def test_what_is_forgotten_is_computed_again(monkeypatch):
    counts = random_counts(4)
    expected = IntervalSolver(CONTOURS, 0.8).solve_cells(Cells.of_dense(counts))
    monkeypatch.setattr(cell_cache, "CELLS", 7)
    solver = IntervalSolver(CONTOURS, 0.8)
    for _ in range(2):
        for first in range(0, len(counts), 5):
            part = slice(first, first + 5)
            found = solver.solve_cells(Cells.of_dense(counts[part]))
            assert np.array_equal(found.lower, expected.lower[part])
            assert np.array_equal(found.upper, expected.upper[part])


def test_contours_that_are_proportional_count_together():
    table = np.array([[1.0, 0.5, 0.2], [0.0, 1.0, 0.3], [0.5, 0.25, 0.1], [0.0, 0.5, 0.15]])
    merged = IntervalSolver(table, 0.8).solve_cells(Cells.of_dense(np.array([[5, 2, 0, 0], [1, 2, 3, 1]])))
    plain = IntervalSolver(table, 0.8).solve_cells(Cells.of_dense(np.array([[5, 2, 0, 0], [4, 3, 0, 0]])))
    assert np.array_equal(merged.lower, plain.lower)
    assert np.array_equal(merged.upper, plain.upper)


def test_a_thousand_contours_in_a_cell():
    rng = np.random.default_rng(9)
    table = rng.integers(0, 101, (1_500, 3)) / 100  # many of them proportional, none in order
    table = table[table.any(axis=1)]
    counts = rng.integers(0, 3, (1, len(table)))
    found = IntervalSolver(table, 0.8).solve_cells(Cells.of_dense(counts))
    single = entropy_interval(table, counts[0].astype(float), 0.8)
    assert (found.lower[0], found.upper[0]) == pytest.approx((single.lower, single.upper), abs=1e-9)


def test_what_was_solved_some_looks_ago_is_let_go():
    """A look asks again for what the last looks asked for; a grower holds many trees for days."""
    solver, chance = IntervalSolver(CONTOURS, 0.8), np.random.default_rng(0)
    held = []
    for _ in range(300):
        counts = chance.integers(0, 9, (20, len(CONTOURS)))
        solver.solve_cells(Cells.of_dense(counts))
        solver.enclose_cells(Cells.of_dense(counts))
        solver.end_look()
        held.append(held_bytes(solver))
    assert max(held[100:]) <= 1.1 * max(held[:100])


def test_a_large_look_is_cached_for_the_next_ones(monkeypatch):
    monkeypatch.setattr(cell_cache, "SPARED_BYTES", 0)
    solver, counts = IntervalSolver(CONTOURS, 0.8), random_counts(5)
    asked = []
    solve = solver._compute_intervals
    monkeypatch.setattr(
        solver, "_compute_intervals", lambda wanted: asked.append(len(wanted)) or solve(wanted)
    )
    for _ in range(interval.LOOKS + 1):
        solver.solve_cells(Cells.of_dense(counts))
        solver.end_look()
    assert len(asked) == 2
