from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quercus.belief.errors import InvalidInput
from quercus.specification.attributes import Nominal, Numeric
from quercus.trees import Averaging, Id3, TotalUncertainty, fit
from quercus.trees.growth.batch import OpenNode, SplitChoice
from quercus.trees.learners.gain_rules import GainRules, code_branches
from quercus.trees.learners.splits import (
    Candidates,
    branch_codes,
    candidate_splits,
    class_entropy,
    gains_of,
    root_node,
    share_entropy,
    weighted_statistics,
)
from quercus.trees.learners.table import Table
from quercus.trees.tree.splits import midpoints, near_quantiles

COLOUR = Nominal("colour", ("red", "blue", "green"))
SIZE = Numeric("size")
NAN = np.nan


def slow_entropy(parts):
    total = sum(parts)
    return -sum(p / total * log2(p / total) for p in parts if p)


def slow_gain(codes, weights, shares):
    def info(rows):
        return slow_entropy([sum(weights[i] * shares[i][c] for i in rows) for c in range(len(shares[0]))])

    rows = range(len(codes))
    total = sum(weights)
    groups = [[i for i in rows if codes[i] == code] for code in sorted(set(codes))]
    return info(rows) - sum(sum(weights[i] for i in g) / total * info(g) for g in groups)


def test_codes_of_values_thresholds_and_missing_ones():
    assert branch_codes(COLOUR, None, np.array([2, NAN, 0])).tolist() == [2, 3, 0]
    assert branch_codes(SIZE, 1.0, np.array([0.9, 1.0, NAN, 1.1])).tolist() == [0, 1, 2, 1]
    with pytest.raises(InvalidInput, match="threshold"):
        branch_codes(SIZE, None, np.array([0.0]))


@given(st.lists(st.floats(allow_nan=True, allow_infinity=False), max_size=12))
def test_every_threshold_tells_two_neighbours_apart(values):
    column = np.array(values, dtype=np.float64)
    distinct = sorted(set(column[~np.isnan(column)].tolist()))
    cuts = midpoints(column).tolist()
    assert len(cuts) == max(len(distinct) - 1, 0)
    assert all(a < t <= b for a, t, b in zip(distinct, cuts, distinct[1:], strict=False))


def test_a_cap_keeps_the_thresholds_nearest_to_the_quantiles():
    column = np.array([0.0] * 90 + [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    assert midpoints(column, 1).tolist() == [0.5]
    assert midpoints(np.arange(100.0), 4).tolist() == [19.5, 39.5, 59.5, 79.5]
    assert midpoints(np.arange(5.0), 4).tolist() == midpoints(np.arange(5.0)).tolist()
    assert len(midpoints(column, 3)) <= 3
    with pytest.raises(InvalidInput, match="max_cuts"):
        midpoints(np.arange(5.0), 0)


def test_entropy_of_shares():
    assert share_entropy(np.array([1.0, 1.0, 1.0, 1.0])) == 2.0
    assert share_entropy(np.array([[3.0, 0.0], [0.0, 0.0]])).tolist() == [0.0, 0.0]
    assert share_entropy(np.array([0.2, 0.3, 0.5])) == pytest.approx(slow_entropy([0.2, 0.3, 0.5]), abs=1e-12)


def random_table(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 15))
    values = np.column_stack([rng.integers(0, 3, n), rng.integers(0, 6, n) / 2]).astype(float)
    values[rng.random((n, 2)) < 0.2] = NAN
    contours = rng.integers(0, 3, (n, 3)) / 2.0
    contours[np.arange(n), rng.integers(0, 3, n)] = 1.0
    return Table.of_contours(values, [COLOUR, SIZE], contours, rng.integers(1, 4, n) / 2)


@pytest.mark.parametrize("seed", range(20))
def test_gains_of_all_splits_are_those_counted_one_by_one(seed):
    table = random_table(seed)
    place = root_node(table)
    statistics = weighted_statistics(table, place, table.pignistic)
    parent = float(class_entropy(statistics.sum(axis=0)))
    seen = {}
    for found in candidate_splits(table, place, statistics):
        for split, gain in enumerate(gains_of(found, parent, class_entropy)):
            k, cut = int(found.attributes[split]), found.threshold(split)
            codes = branch_codes(table.attributes[k], cut, table.values[:, k])
            slow = slow_gain(codes.tolist(), table.weights.tolist(), table.pignistic.tolist())
            assert gain == pytest.approx(slow, abs=1e-9)
            seen.setdefault(k, []).append(cut)
    for k in range(len(table.attributes)):
        column = table.values[:, k]
        told_apart = np.unique(column).size > 1  # NaN counts as one value
        cuts = [None] if k == 0 else [*midpoints(column)] or [np.nanmax(column)] if told_apart else []
        assert seen.get(k, []) == (cuts if told_apart else [])


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("seed", range(20))
def test_capped_thresholds_of_many_columns_at_once_are_those_of_each_alone(seed, most):
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.normal(size=30), rng.integers(0, 4, 30), rng.exponential(size=30).round(1)])
    values[rng.random(values.shape) < 0.1] = NAN
    table = Table.of_classes(values, [SIZE, Numeric("y"), Numeric("z")], rng.integers(0, 2, 30), 2)
    statistics = weighted_statistics(table, root_node(table), table.pignistic)
    (found,) = candidate_splits(table, root_node(table), statistics, most)
    for k in range(3):
        assert found.thresholds[found.attributes == k].tolist() == midpoints(values[:, k], most).tolist()


def test_attributes_are_looked_at_in_pieces_where_there_are_too_many(monkeypatch):
    table = random_table(3)
    whole = [
        (k, found.threshold(split), found.sums[split].tolist())
        for found in candidate_splits(
            table, root_node(table), weighted_statistics(table, root_node(table), table.pignistic)
        )
        for split, k in enumerate(found.attributes)
    ]
    monkeypatch.setattr("quercus.trees.learners.splits.STATISTIC_CELLS", 1)
    wide = Table.of_contours(
        np.tile(table.values, 2),
        [COLOUR, SIZE, Nominal("b", COLOUR.values), Numeric("c")],
        table.contours,
        table.weights,
    )
    found = list(
        candidate_splits(wide, root_node(wide), weighted_statistics(wide, root_node(wide), wide.pignistic))
    )
    assert len(found) == 4
    parts = {int(part.attributes[0]): part for part in found}
    for k, cut, sums in whole:
        for same in (k, k + 2):
            at = next(i for i in range(len(parts[same].attributes)) if parts[same].threshold(i) == cut)
            assert parts[same].sums[at].tolist() == sums


def test_splits_joined_are_in_order_of_attribute():
    table = random_table(5)
    statistics = weighted_statistics(table, root_node(table), table.pignistic)
    parts = list(candidate_splits(table, root_node(table), statistics))
    joined = Candidates.joined(list(reversed(parts)), statistics.shape[1])
    assert joined.attributes.tolist() == sorted(k for part in parts for k in part.attributes.tolist())
    for part in parts:
        here = joined.attributes == part.attributes[0]
        assert joined.sums[here].sum(axis=1) == pytest.approx(part.sums.sum(axis=1))
    assert Candidates.joined([], 3).sums.shape == (0, 0, 3)


@pytest.mark.parametrize("seed", range(20))
def test_the_criterion_takes_the_first_of_the_largest_gains(seed):
    table = random_table(seed)
    choice = GainRules(table, table.pignistic, Id3()).choose_split(root_node(table))
    assert choice is not None
    best = {}
    for k, declared in enumerate(table.attributes):
        column = table.values[:, k]
        cuts = [None] if k == 0 else [*midpoints(column)] or [np.nanmax(column)]
        for cut in cuts:
            codes = branch_codes(declared, cut, column).tolist()
            if len(set(codes)) > 1:
                best[k, cut] = slow_gain(codes, table.weights.tolist(), table.pignistic.tolist())
    bar = max(best.values()) - 1e-9
    assert (choice.attribute, choice.threshold) == next(key for key, gain in best.items() if gain >= bar)
    assert set(choice.intervals) == {k for k, _ in best}


def test_branches_spend_nominal_attributes_and_keep_numbers():
    table = Table.of_classes([[0, 1.0], [2, 2.0], [NAN, 3.0], [0, NAN]], [COLOUR, SIZE], [0, 1, 0, 1], 2)
    below = code_branches(table, root_node(table), SplitChoice(0, {}))
    assert [(b.path[-1][1], b.rows.tolist(), b.attributes) for b in below] == [
        (0, [0, 3], (1,)),
        (2, [1], (1,)),
        (3, [2], (1,)),
    ]
    below = code_branches(table, root_node(table), SplitChoice(1, {}, threshold=2.0))
    assert [(b.path[-1][1], b.rows.tolist(), b.attributes) for b in below] == [
        (0, [0], (0, 1)),
        (1, [1, 2], (0, 1)),
        (2, [3], (0, 1)),
    ]


def test_branches_take_the_weights_of_parts_of_rows_with_them():
    table = Table.of_classes([[0, 1.0], [1, 2.0]], [COLOUR, SIZE], [0, 1], 2)
    place = OpenNode((), np.array([0, 1]), (0, 1), np.array([0.25, 0.5]))
    below = code_branches(table, place, SplitChoice(0, {}))
    assert [b.weights.tolist() for b in below] == [[0.25], [0.5]]


def test_rows_that_do_not_count_are_not_in_the_tree():
    table = Table.of_classes([[0], [1], [2]], [COLOUR], [0, 1, 0], 2, [1, 0, 2])
    assert root_node(table).rows.tolist() == [0, 2]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(1, 12))
def test_cuts_near_quantiles_are_those_of_the_whole_table(steps: list[int], most: int) -> None:
    passed, count = np.cumsum(steps), sum(steps) + 3
    targets = count * np.arange(1, most + 1) / (most + 1)
    expected = np.unique(np.abs(passed - targets[:, np.newaxis]).argmin(axis=1))
    assert near_quantiles(passed, count, most).tolist() == expected.tolist()


@pytest.mark.parametrize("max_cuts", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_thresholds_that_are_kept_are_near_the_quantiles_of_weighted_rows(seed, max_cuts):
    """A row of weight 3 is three rows."""
    rng = np.random.default_rng(seed)
    values, classes, times = rng.normal(size=(12, 1)), rng.integers(0, 2, 12), rng.integers(1, 9, 12)
    again = np.repeat(np.arange(12), times)
    found, wanted = (
        next(
            candidate_splits(
                table, root_node(table), weighted_statistics(table, root_node(table), shares), max_cuts
            )
        )
        for table in (
            Table.of_classes(values, [SIZE], classes, 2, times),
            Table.of_classes(values[again], [SIZE], classes[again], 2),
        )
        for shares in (table.contours,)
    )
    assert found.thresholds.tolist() == wanted.thresholds.tolist()
    assert found.sums.tolist() == wanted.sums.tolist()


@pytest.mark.parametrize("learner", [Averaging(), Id3(), TotalUncertainty()])
def test_a_node_of_which_no_value_is_known_is_split_by_what_may_be(learner):
    """The names of all rows are open between two, and the third of the names tells the classes apart."""
    pairs = [((0.0, 0.0), (2.0, 2.0)), ((0.0, 0.0), (1.0, 1.0))]
    contours = np.eye(2)[np.arange(40) % 2]
    parts = {(row, 0): pairs[row % 2] for row in range(40)}
    found = fit(learner, Table(np.full((40, 1), NAN), (COLOUR,), contours, np.ones(40), parts=parts))
    said = found.predict(np.array([[1.0], [2.0]])).theta
    assert said[0, 1] > 0.5 > said[1, 1]
