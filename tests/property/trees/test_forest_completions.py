"""The forest of many memories over rows with uncertain values (theory §14.4): draws by hand, batch equals increment."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quercus.specification.attributes import Nominal, Numeric
from quercus.trees import Table, UncertainValues, fit
from quercus.trees.memory_forest.completions import WINDOW, _draw
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.memory_forest.learner import ActiveForest
from quercus.trees.memory_forest.saved import SavedForest, restore_forest, saved_forest
from quercus.trees.tree.encoding import Parts

MASK = 2**64 - 1
TREES, SEED, ROWS = 7, 11, 130


def mixed(key: int, number: int) -> int:
    """splitmix64, in whole numbers of Python."""
    z = (key + (number + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def log(seed: int, count: int = ROWS, *, numbers: bool = True) -> tuple[np.ndarray, np.ndarray, Parts]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=count)
    names = ((truth + (rng.random(count) < 0.2) * rng.integers(1, 3, count)) % 3).astype(float)
    second = truth + rng.normal(0, 0.8, count) if numbers else rng.integers(4, size=count).astype(float)
    values = np.column_stack([names, second])
    parts: dict[tuple[int, int], tuple[tuple[float, float], ...]] = {}
    for i in range(count):
        if rng.random() < 0.3:
            some = sorted({float(names[i]), float(rng.integers(3))})
            if len(some) > 1:
                parts[i, 0] = tuple((v, v) for v in some)
        if rng.random() < 0.3:
            low = float(second[i])
            parts[i, 1] = ((low - 0.5, low + rng.random()),) if numbers else ((0.0, 0.0), (2.0, 2.0))
    for cell in parts:
        values[cell] = np.nan
    contours = np.eye(2)[truth]
    contours[rng.random(count) < 0.5] = 1.0
    return values, contours, parts


def by_hand(values: np.ndarray, parts: Parts, member: int) -> np.ndarray:
    """Return the values with the draws of a member: among the known allowed ones before, or anywhere allowed."""
    found = values.copy()
    for (row, k), ranges in parts.items():
        key = mixed(mixed(mixed(mixed(mixed(SEED, 0), member), -2), row), k)
        chance = (key >> 11) / 2**53
        before = [v for v in values[max(0, row - WINDOW) : row, k].tolist() if not np.isnan(v)]
        some = [v for v in before if any(low <= v <= high for low, high in ranges)]
        if some:
            found[row, k] = some[int(chance * len(some))]
        else:
            low, high = ranges[int(chance * len(ranges))]
            found[row, k] = low + (chance * len(ranges) % 1) * (high - low)
    return found


def forest_of(named: list[bool] | None = None) -> MemoryForest:
    return MemoryForest(np.array(named or [True, False]), 2, trees=TREES, seed=SEED, level=0.75)


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6), st.lists(st.integers(0, ROWS), max_size=4).map(sorted), st.booleans())
def test_the_forest_is_that_of_the_log_at_once(seed: int, cuts: list[int], looks: bool):
    values, contours, parts = log(seed)
    rng = np.random.default_rng(seed)
    corrected = [(int(row), np.eye(2)[int(rng.integers(2))]) for row in rng.choice(ROWS, 6, replace=False)]
    pieces, whole = forest_of(), forest_of()
    whole.observe(values, contours, parts)
    for start, end in pairwise([0, *cuts, ROWS]):
        mine = {(row - start, k): each for (row, k), each in parts.items() if start <= row < end}
        pieces.observe(values[start:end], contours[start:end], mine)
        if looks:
            pieces.members()
    for row, contour in corrected:
        whole.replace_contour(row, contour)
        pieces.replace_contour(row, contour)
        if looks:
            pieces.members()
    a, b = pieces.members(), whole.members()
    assert len(a.trees) == TREES
    for one, two in zip(a.trees, b.trees, strict=True):
        assert np.array_equal(one.nodes, two.nodes)
        assert np.array_equal(np.sort(one.rows), np.sort(two.rows))
    assert np.array_equal(pieces.evidence.values, whole.evidence.values)
    assert np.allclose(pieces.predict(np.array([[0.0, 1.0], [2.0, np.nan]])).theta, whole.predict(
        np.array([[0.0, 1.0], [2.0, np.nan]])).theta)  # fmt: skip


def test_each_member_learns_from_its_own_draws():
    values, contours, parts = log(3, numbers=False)
    forest = forest_of([True, True])
    forest.observe(values, contours, parts)
    assert np.array_equal(forest.evidence.values, by_hand(values, parts, TREES))
    different = set()
    for member, tree in enumerate(forest.members().trees):
        completed = by_hand(values, parts, member)
        alone = forest_of([True, True])
        alone.observe(completed, contours)
        other = alone.members().trees[member]
        assert np.array_equal(tree.nodes, other.nodes)
        assert np.array_equal(tree.opinions, other.opinions, equal_nan=True)
        different.add(completed.tobytes())
    assert len(different) == TREES


def test_numbers_are_drawn_by_hand_too():
    values, contours, parts = log(4, 1_200)
    forest = forest_of()
    forest.observe(values, contours, parts)
    assert np.array_equal(forest.evidence.values, by_hand(values, parts, TREES))
    some, members = np.arange(0, 1_200, 3), [2, 5]
    rows, attributes, codes = forest.evidence.completions.codes_of_members(
        members, some, forest.evidence.values, forest.evidence.book
    )
    held = {cell for cell in parts if cell[0] % 3 == 0}
    assert set(zip(rows.tolist(), attributes.tolist(), strict=True)) == held
    for member, mine in zip(members, codes.T, strict=True):
        completed = by_hand(values, parts, member)
        assert np.array_equal(forest.evidence.book.codes(completed)[rows, attributes], mine)


def test_what_is_kept_of_a_cell_does_not_grow_with_the_members():
    """A draw of each of 1,000 members would be 8,000 bytes a cell; a place and its range are 40."""
    cells = 4_000
    values, parts = np.full((cells, 1), np.nan), {(row, 0): ((0.0, 1.0),) for row in range(cells)}
    forest = MemoryForest(np.array([False]), 2, trees=1_000, seed=0, level=0.75)
    tracemalloc.start()
    forest.observe(values, np.ones((cells, 2)), parts)
    del values, parts
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 400 * cells


def test_many_cells_are_coded_in_little_memory():
    """Only one attribute of a row is coded: 5,000 rows of all attributes would be 20 MB."""
    cells, attributes = 5_000, 500
    forest = MemoryForest(np.ones(attributes, bool), 2, trees=1, seed=0, level=0.75)
    values = np.zeros((cells // 10, attributes))
    parts = {(row, k): ((0.0, 0.0), (1.0, 1.0)) for row in range(len(values)) for k in range(10)}
    for cell in parts:
        values[cell] = np.nan
    forest.observe(values, np.ones((len(values), 2)), parts)
    completions, evidence = forest.evidence.completions, forest.evidence
    tracemalloc.start()
    rows, _, codes = completions.codes_of_members([0], np.arange(len(values)), evidence.values, evidence.book)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(rows) == len(codes) == cells
    assert peak < 2_000_000


def test_draws_follow_the_known_values():
    """Nine of ten of the 300 rows before are 0: so are nine of ten draws of a cell that may be 0 or 1."""
    values = np.zeros((400, 1))
    values[:300:10] = 1.0
    values[300:] = np.nan
    forest = MemoryForest(np.array([True]), 2, trees=100, seed=0, level=0.75)
    forest.observe(values, np.ones((400, 2)), {(i, 0): ((0.0, 0.0), (1.0, 1.0)) for i in range(300, 400)})
    assert forest.evidence.values[300:, 0].mean() == pytest.approx(0.1, abs=0.07)


def test_rows_without_uncertain_values_are_as_ever():
    values, contours, _ = log(5)
    values = np.nan_to_num(values, nan=1.0)
    plain, other = forest_of(), forest_of()
    plain.observe(values, contours)
    other.observe(values, contours, {})
    assert other.evidence.completions is None
    assert np.array_equal(plain.members().groves[0].nodes, other.members().groves[0].nodes)
    plain.members()
    assert saved_forest(plain) is not None


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6), st.integers(1, ROWS - 1))
def test_a_restored_forest_goes_on_as_the_one_that_was_saved(seed: int, cut: int):
    values, contours, parts = log(seed)
    rows = {(row, k): each for (row, k), each in parts.items() if row < cut}
    later = {(row - cut, k): each for (row, k), each in parts.items() if row >= cut}
    whole, first, second = forest_of(), forest_of(), forest_of()
    whole.observe(values, contours, parts)
    first.observe(values[:cut], contours[:cut], rows)
    first.members()
    saved = saved_forest(first)
    assert saved is not None
    copied = {name: np.array(column) for name, column in saved.columns.items()}
    restore_forest(second, SavedForest(saved.begun, saved.piece_begun, copied))
    second.observe(values[cut:], contours[cut:], later)
    assert np.array_equal(second.evidence.values, whole.evidence.values)
    for one, two in zip(second.members().trees, whole.members().trees, strict=True):
        assert np.array_equal(one.nodes, two.nodes)
        assert np.array_equal(one.opinions, two.opinions, equal_nan=True)
    assert second.accuracy == whole.accuracy


@pytest.mark.parametrize(("name", "at", "number"), [
    ("rows", -1, ROWS), ("rows", 0, 100), ("attributes", 0, 2), ("until", 0, 0), ("until", -1, 10_000),
])  # fmt: skip
def test_columns_of_cells_that_do_not_fit_are_refused(name: str, at: int, number: int):
    forest = forest_of()
    forest.observe(*log(6))
    forest.members()
    saved = saved_forest(forest)
    assert saved is not None
    columns = {each: np.array(column) for each, column in saved.columns.items()}
    columns[f"cells.{name}"][at] = number
    with pytest.raises(ValueError, match="columns of uncertain cells, cells, do not fit together"):
        restore_forest(forest_of(), SavedForest(saved.begun, saved.piece_begun, columns))


def test_the_learner_takes_a_table():
    values, contours, parts = log(7)
    attributes = [Nominal("a", ("x", "y", "z")), Numeric("n")]
    table = Table.of_contours(UncertainValues(values, parts), attributes, contours)
    model = fit(ActiveForest(trees=10), table)
    known = ~np.isnan(values).any(axis=1) & (contours.min(axis=1) == 0)
    said = model.predict(values[known]).klass
    assert (said == contours[known].argmax(axis=1)).mean() > 0.8


def test_a_draw_of_all_numbers_is_a_number() -> None:
    """The length of such a range is beyond the largest number."""
    ends = (-1.7e308, 1.7e308)
    drawn = _draw(np.arange(64, dtype=np.uint64) << np.uint64(58), np.empty(0), np.array([ends]))
    assert drawn.tolist() == sorted(drawn.tolist())
    assert (drawn[0], drawn[32], drawn[-1]) == (ends[0], 0.0, pytest.approx(ends[1] / 32 * 31))
