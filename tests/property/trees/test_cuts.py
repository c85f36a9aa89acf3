"""Streams that split numbers at cuts, and pruned trees: against the learner of tables, which shares no code with it."""

from dataclasses import replace

import numpy as np
import pytest
from support.growing import abc45
from support.published import published_tree

from quercus.belief.frame import Frame
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.learners import Pruning
from quercus.specification.model import Specification
from quercus.trees.growth.stream import GrowthState, Observed, Respecified, grow
from quercus.trees.learners.table import Table
from quercus.trees.tree.node import Node

FRAME = Frame(("p", "q", "r"))
ATTRIBUTES = (
    Nominal("a", ("u", "v", "w")),
    Numeric("x", cuts=7),
    Numeric("y", edges=(-0.5, 0.0, 0.8), cuts=3),
    Numeric("z", cuts=200),
)


def problem(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, rows)
    values = np.column_stack(
        [
            np.where(rng.random(rows) < 0.5, truth, rng.integers(0, 3, rows)),
            truth + rng.normal(0, 0.7, rows),
            rng.normal(0, 1, rows),
            np.round(rng.normal(0, 1, rows) - truth, 1),
        ]
    )
    values[rng.random(values.shape) < (0.0, 0.1)[seed % 2]] = np.nan
    contours = np.where(
        rng.random((rows, 1)) < (0.2, 0.7, 1.0)[seed % 3],
        np.eye(3)[truth],
        np.maximum(np.eye(3)[truth], rng.choice([0.0, 0.3, 0.5, 1.0], (rows, 3))),
    )
    return values, contours


def model(alpha: float, warmup: int, pruning: Pruning | None = None) -> Specification:
    return published_tree(
        ATTRIBUTES, FRAME, alpha=alpha, min_instances=3, warmup_rows=warmup, pruning=pruning
    )


def fed(
    spec: Specification, values: np.ndarray, contours: np.ndarray, small: int | None = None
) -> GrowthState:
    """The state after rows in some pieces, looked at in between."""
    state = GrowthState(spec, small)
    for part in np.array_split(np.arange(len(values)), 5):
        state = grow(state, [Observed(values[part], contours[part])])
        assert state.flat.count[0] == part[-1] + 1
    return state


def by_table(state: GrowthState, values: np.ndarray, contours: np.ndarray) -> Node:
    spec = state.specification
    return abc45(
        Table.of_contours(values, ATTRIBUTES, contours),
        alpha=spec.alpha,
        min_instances=spec.min_instances,
        cuts=state.edges,
        pruning=spec.pruning,
    )


def assert_same(found: Node, wanted: Node) -> None:
    for (a, *place), (b, *there) in zip(found.preorder(), wanted.preorder(), strict=True):
        assert place == there
        for name in ("attribute", "threshold", "klass", "count", "stop", "undecided"):
            assert getattr(a, name) == getattr(b, name), name
        for name in ("theta", "belief", "plausibility"):
            assert getattr(a, name) == pytest.approx(getattr(b, name), abs=1e-9), name
        assert a.intervals.keys() == b.intervals.keys()
        for k, ends in a.intervals.items():
            assert ends == pytest.approx(b.intervals[k], abs=1e-9)


@pytest.mark.parametrize("alpha", [pytest.param(0.8, marks=pytest.mark.slow), 0.99, 1.0])
@pytest.mark.parametrize("seed", range(6))  # each warm-up with each size of nodes, twice
def test_a_stream_grows_the_tree_of_its_table(seed: int, alpha: float) -> None:
    values, contours = problem(seed, 150)
    state = fed(
        model(alpha, warmup=(20, 100, 1000)[seed % 3]), values, contours, small=(None, 0, 40)[seed % 3]
    )
    assert_same(state.tree, by_table(state, values, contours))
    assert state.flat.has_thresholds


@pytest.mark.parametrize("kind", ["likelihood", "chi-square"])
@pytest.mark.parametrize("seed", range(4))
def test_the_published_tree_is_pruned_and_the_growing_one_whole(seed: int, kind: str) -> None:
    values, contours = problem(seed, 150)
    pruning = Pruning(kind, 0.05)
    state = fed(model(0.9, 50, pruning), values, contours)
    plain = fed(model(0.9, 50), values, contours)
    assert_same(state.tree, by_table(state, values, contours))
    assert state.unpruned_tree.tree() == plain.tree
    assert state.flat.size < state.unpruned_tree.size
    assert state.agenda(20) == plain.agenda(20)
    again = grow(state, [Respecified(replace(state.specification, pruning=None))])
    assert again.tree == plain.tree
    assert (
        grow(again, [Respecified(model(0.9, 50, pruning))]).tree
        == fed(model(0.9, 50, pruning), values, contours).tree
    )


def test_rows_are_routed_to_the_nodes_that_hold_them() -> None:
    values, contours = problem(1, 300)
    state = fed(model(1.0, 100), values, contours)
    codes = state.encoder.codes(values)
    ends = state.flat.route(codes, values)
    alone = [state.flat.route(codes[[at]], values[[at]]).item() for at in range(len(values))]
    assert alone == ends.tolist()
    leaves = state.flat.attribute < 0
    assert leaves[ends].all()
    assert np.bincount(ends, minlength=leaves.size)[leaves].tolist() == state.flat.count[leaves].tolist()


def test_cuts_are_quantiles_of_the_first_rows() -> None:
    values, contours = problem(0, 400)
    state = fed(model(1.0, 50), values, contours)
    a, x, y, z = state.edges
    assert (a, y, len(x)) == ((), (-0.5, 0.0, 0.8), 7)
    first = np.sort(values[:50, 1])
    np.testing.assert_allclose([(first < cut).sum() for cut in x], 50 * np.arange(1, 8) / 8, atol=0.51)
    distinct = np.unique(values[:50, 3])
    np.testing.assert_allclose(z, (distinct[1:] + distinct[:-1]) / 2)
