"""The rules of ABC4.5 for many nodes at once: against plain ones, and a batch against its nodes one by one."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from support.plain_rules import gain_ratio_interval, non_dominated

from quercus.trees.likelihood.interval import SETTLED_END
from quercus.trees.rules.choice import SplitCells, choose_splits
from quercus.trees.rules.gain import best_splits, split_information
from quercus.trees.rules.stopping import stop_reason, stops_after, stops_before
from quercus.trees.rules.ties import TIE, largest_mid_value
from quercus.trees.tree.node import Stop

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass
class Known:
    """Entropies that are there: exact ones, and bounds around them."""

    lower: Floats
    upper: Floats
    slack: float

    def enclose(self, wanted: Bools) -> None:
        pass

    def solve(self, wanted: Bools) -> None:
        pass

    def estimate(self, wanted: Bools) -> Floats:
        return np.where(wanted, (self.lower + self.upper) / 2, np.nan)

    def read_ends(self, solved: Bools) -> tuple[Floats, Floats]:
        slack = np.where(solved, 0.0, self.slack)
        return self.lower - slack, self.upper + slack

    def of(self, node: int) -> "Known":
        return Known(self.lower[node : node + 1], self.upper[node : node + 1], self.slack)


def problem(seed: int) -> tuple[SplitCells, Floats, Known]:
    """A few nodes with attributes of 1 to 9 cuts, and of 2 to 4 values; cuts ascend, and many tie."""
    rng = np.random.default_rng(seed)
    nodes, rows = int(rng.integers(1, 6)), 40
    branches, sizes, bounds = [], [], [0]
    for _ in range(rng.integers(1, 4)):
        if rng.random() < 0.6:
            cuts = int(rng.integers(1, 10))
            below = np.sort(rng.integers(0, rows + 1, (nodes, cuts)), axis=1)
            sizes.append(np.stack([below, rows - below], axis=2).reshape(nodes, -1))
            branches += [2] * cuts
        else:
            values = int(rng.integers(2, 5))
            sizes.append(rng.multinomial(rows, rng.dirichlet(np.ones(values) / 2), nodes))
            branches.append(values)
        bounds.append(len(branches))
    size = np.concatenate([np.full((nodes, 1), rows), *sizes], axis=1) * (1.0, 0.3)[seed % 2]
    cells = SplitCells(np.cumsum([1, *branches])[:-1], np.array(bounds), size.shape[1])
    lower = rng.choice([0.0, 0.1, 0.2, 0.7], size.shape) * (size > 0)
    return cells, size, Known(lower, lower + rng.choice([0.0, 0.2], size.shape), 0.05)


def ranges(cells: SplitCells) -> list[slice]:
    ends = [*cells.first[1:].tolist(), cells.count]
    return [slice(int(first), end) for first, end in zip(cells.first, ends, strict=True)]


def plain_candidates(cells: SplitCells, size: Floats, known: Known) -> list[int]:
    """The split that stands for each attribute of one node, by the rule for gains that are single numbers."""
    populated = [t for t, at in enumerate(ranges(cells)) if (size[at] > 0).sum() > 1]
    attribute = np.searchsorted(cells.bounds, populated, side="right")
    firsts = np.unique(attribute, return_index=True)[1]
    middle = known.estimate(np.ones(known.lower.shape, bool))[0]
    gains, below = np.zeros(len(populated)), np.zeros(len(populated))
    for i, t in enumerate(populated):
        at = ranges(cells)[t]
        below[i] = size[at][0]
        for share, entropy in zip(size[at] / size[0], middle[at], strict=True):
            gains[i] -= share * entropy
    return [populated[i] for i in best_splits(gains, firsts, below)]


@pytest.mark.parametrize("seed", range(25))
def test_many_nodes_at_once_are_as_one_by_one_in_plain_terms(seed: int) -> None:
    cells, size, known = problem(seed)
    found = choose_splits(cells, size, known, frugal=False)
    for node, own in enumerate(size):
        here = known.of(node)
        candidates = plain_candidates(cells, own, here)
        assert np.flatnonzero(~np.isnan(found.lower[node])).tolist() == candidates
        parent = float(here.lower[0, 0]), float(here.upper[0, 0])
        intervals = {
            t: gain_ratio_interval(parent, here.lower[0, at], here.upper[0, at], own[at])
            for t, at in enumerate(ranges(cells))
            if t in candidates
        }
        for t, ends in intervals.items():
            assert (found.lower[node, t], found.upper[node, t]) == pytest.approx(ends, abs=1e-12)
        information = {t: float(split_information(own[at])[0]) for t, at in enumerate(ranges(cells))}
        rivals = non_dominated(intervals, information)
        assert tuple(np.flatnonzero(found.rivals[node]).tolist()) == rivals
        assert found.split[node] == (largest_mid_value(intervals, rivals) if rivals else -1)


def test_a_split_of_one_row_dominates_only_what_the_proof_of_its_ends_allows() -> None:
    """An end of an entropy may be off by `SETTLED_END` bits; the gain ratio of one row in 10⁶ by 46,000 times it."""
    size = np.array([[1e6, 1.0, 1e6 - 1.0, 5e5, 5e5]])
    little = float(split_information(size[0, 1:3])[0])
    first, second = 0.3, 0.30002  # the gain ratios
    rest = (0.5 - first * little) / (1.0 - 1e-6)
    lower = np.array([[0.5, 0.0, rest, 0.5 - second, 0.5 - second]])
    upper = lower.copy()
    lower[0, 0] += SETTLED_END  # the values that were reached: within the true interval
    upper[0, 2] -= SETTLED_END
    cells = SplitCells(np.array([1, 3]), np.array([0, 1, 2]), 5)
    found = choose_splits(cells, size, Known(lower, upper, 0.0), frugal=False)
    assert found.lower[0, 0] > second + TIE  # is reported so, and is not so
    assert found.rivals.tolist() == [[True, True]]


@pytest.mark.parametrize("frugal", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_a_node_is_decided_alike_alone_and_in_company(seed: int, frugal: bool) -> None:
    cells, size, known = problem(seed)
    found = choose_splits(cells, size, known, frugal=frugal)
    for node in range(len(size)):
        alone = choose_splits(cells, size[node : node + 1], known.of(node), frugal=frugal)
        for name in ("split", "lower", "upper", "rivals"):
            assert getattr(alone, name)[0].tobytes() == getattr(found, name)[node].tobytes()


@pytest.mark.parametrize("seed", range(12))
def test_bounds_first_choose_the_same(seed: int) -> None:
    cells, size, known = problem(seed)
    exact, frugal = (choose_splits(cells, size, known, frugal=frugal) for frugal in (False, True))
    assert frugal.split.tolist() == exact.split.tolist()
    assert frugal.rivals.tolist() == exact.rivals.tolist()
    assert (frugal.lower[exact.rivals] == exact.lower[exact.rivals]).all()


def test_of_several_reasons_to_stop_the_first_counts() -> None:
    """Rows, then certainty, then depth; each at its bound."""
    theta = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.6, 0.4], [0.6, 0.4]])
    unique = np.array([True, True, False, True, True])
    counts, depths = np.array([1.0, 2.0, 2.0, 2.0, 2.0]), np.array([3, 3, 3, 3, 2])
    stops = [stop_reason(stop) for stop in stops_before(counts, (theta, unique), depths, 2, 3)]
    assert stops == [Stop.FEW_INSTANCES, Stop.PURE, Stop.MAX_DEPTH, Stop.MAX_DEPTH, None]


def test_a_node_without_candidate_or_gain_stops() -> None:
    most = np.array([[np.nan, np.nan], [np.nan, 1e-10], [0.0, 1e-3]])
    most = most[[0, 0, 1, 1, 2, 2]]
    justified = np.array([True, False] * 3)
    stops = [stop_reason(stop) for stop in stops_after(np.array([-1, -1, 1, 1, 1, 1]), most, justified)]
    assert stops == [*[Stop.NO_ATTRIBUTE] * 2, *[Stop.NO_GAIN] * 2, None, Stop.NOT_SIGNIFICANT]
