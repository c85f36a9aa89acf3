"""Trees that follow a log whose rows have uncertain cells (theory §14): increment, batch and the plain way agree."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.batch import Batch
from support.plain_shared_growth import plain_shared_tree
from support.published import published_tree
from support.sameness import Tally, assert_flat, assert_same_tree

from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.learners import Pruning
from quercus.trees.ask.query import QueryContext, QueryPosition
from quercus.trees.growth.stream import (
    Answered,
    Corrected,
    Event,
    GrowthState,
    Observed,
    Refused,
    Respecified,
    grow,
)
from quercus.trees.tree.encoding import Parts

ROWS = 40
NOWHERE = QueryPosition((), None, None, ())


def specification(seed: int, **more: object):
    rng = np.random.default_rng([seed, 1])
    attributes = (
        Nominal("sky", ("sun", "rain")),  # a third value is learned
        Numeric("wind", 4) if seed % 2 else Numeric("wind", cuts=5),
        Nominal("day", ("work", "feast"), "reject"),
    )
    return published_tree(
        attributes,
        Frame(("a", "b", "c")),
        alpha=float(rng.choice([0.5, 0.8, 1.0])),
        budget=20,
        min_instances=int(rng.choice([1, 2, 4])),
        warmup_rows=int(rng.choice([1, 10, 100])),
        strategy="published",
        split_significance=float(rng.choice([0.0, 10.0])),
        **more,
    )


def rows(seed: int) -> tuple[np.ndarray, Parts, np.ndarray]:
    """Return values, uncertain ones, and contours, of which the cells often tell the class."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=ROWS)
    sky = np.where(rng.random(ROWS) < 0.7, truth, rng.integers(3, size=ROWS)).astype(float)
    wind = truth + rng.normal(0, 0.7, ROWS)
    day = rng.integers(2, size=ROWS).astype(float)
    sky[rng.random(ROWS) < 0.1] = np.nan
    values = np.column_stack([sky, wind, day])
    parts: dict[tuple[int, int], tuple[tuple[float, float], ...]] = {}
    for i in range(ROWS):
        if rng.random() < 0.25:
            some = sorted(rng.choice(3, 2, replace=False).tolist())
            parts[i, 0] = tuple((float(v), float(v)) for v in some)
        if rng.random() < 0.25:
            parts[i, 1] = ((float(wind[i] - rng.random()), float(wind[i] + rng.random() * 2)),)
        if rng.random() < 0.1:
            parts[i, 2] = ((0.0, 0.0), (1.0, 1.0))
    for cell in parts:
        values[cell] = np.nan
    contours = np.eye(3)[truth]
    contours[rng.random(ROWS) < 0.3] = 1.0
    some = rng.random(ROWS) < 0.3
    contours[some] = np.maximum(contours[some], rng.choice([0.0, 0.4], (int(some.sum()), 3)))
    return values, parts, contours


def observed(seed: int, start: int, end: int) -> Observed:
    values, parts, contours = rows(seed)
    mine = {(i - start, k): each for (i, k), each in parts.items() if start <= i < end}
    return Observed(values[start:end], contours[start:end], mine)


def events_of(seed: int, cuts: list[int]) -> list[Event]:
    """Return rows in pieces, with answers, refusals, corrections and one change of the rules between them."""
    rng = np.random.default_rng([seed, 2])
    found: list[Event] = []
    for start, end in pairwise([0, *cuts, ROWS]):
        if start < end:
            found.append(observed(seed, start, end))
        for _ in range(int(rng.integers(3)) if end else 0):
            row, contour = int(rng.integers(end)), np.eye(3)[int(rng.integers(3))]
            match int(rng.integers(4)):
                case 0:
                    found.append(Answered(row, contour, 1.0, NOWHERE))
                case 1:
                    found.append(Refused(row, NOWHERE))
                case 2:
                    found.append(Corrected(row, contour, 0.9))
                case _:
                    found.append(Corrected(row, None))
    return found


def plain_batch(state: GrowthState) -> Batch:
    """Return the plain tree of the evidence of a state."""
    spec, sample, encoder = state.specification, state.evidence, state.encoder
    allowed = {}
    for (row, k), ranges in state._live.parts.items():
        allowed[row, k] = frozenset(c for low, high in ranges for c in range(int(low), int(high) + 1))
    limits = spec.min_instances, spec.max_depth, spec.prediction_level
    growth = plain_shared_tree(sample, spec.alpha, limits, allowed, spec.split_significance)
    context = QueryContext(sample, sample.table.solver(spec.alpha), growth, (0,) * 3)
    return Batch(context, encoder.edges, None, 0, spec.strategy, [])


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6), st.lists(st.integers(0, ROWS), max_size=4).map(sorted), st.booleans())
def test_the_tree_is_that_of_all_events_at_once(seed: int, cuts: list[int], looks: bool):
    spec, events = specification(seed), events_of(seed, cuts)
    state = GrowthState(spec)
    for event in events:
        state = grow(state, [event])
        if looks:
            assert state.flat.size
            state.agenda(2)
    again = grow(GrowthState(spec), events)
    assert again.tree == state.tree
    assert again.agenda(8) == state.agenda(8)
    assert_flat(state.flat, state.tree)


@pytest.mark.parametrize("seed", range(10))
def test_the_tree_is_the_plain_one(seed: int):
    state = grow(GrowthState(specification(seed)), events_of(seed, [7, 21]))
    tally = Tally()
    tree, batch = state.tree, plain_batch(state)
    plain = batch.plain
    assert tree.size == pytest.approx(ROWS)
    pending = [(tree, batch.tree, plain)]
    while pending:
        a, b, c = pending.pop()
        assert a.size == pytest.approx(c.size, abs=1e-9)
        pending += [(a.children[code], b.children[code], c.children[code]) for code in c.children]
    assert_same_tree(tree, batch, tally)


def test_a_cell_that_allows_one_value_is_known():
    values, _, contours = rows(5)
    values = np.nan_to_num(values)
    spec = specification(5)
    known = grow(GrowthState(spec), [Observed(values, contours)])
    holes, cells = values.copy(), {(i, 0): ((values[i, 0],) * 2,) for i in range(0, ROWS, 3)}
    for cell in cells:
        holes[cell] = np.nan
    single = grow(GrowthState(spec), [Observed(holes, contours, cells)])
    assert [n.theta for n, _, _ in single.tree.preorder()] == [n.theta for n, _, _ in known.tree.preorder()]


def test_a_label_reaches_every_part_of_its_row():
    seed = 3
    spec = specification(seed)
    state = grow(GrowthState(spec), [observed(seed, 0, ROWS)])
    row = next(i for i, _ in sorted(rows(seed)[1]))
    before = state.tree
    state = grow(state, [Corrected(row, np.array([0.0, 0.0, 1.0]))])
    changed = grow(state, [Corrected(row, np.array([1.0, 0.0, 0.0]))])
    assert changed.tree != before
    values, parts, contours = rows(seed)
    contours[row] = [1.0, 0.0, 0.0]
    fresh = grow(GrowthState(spec), [Observed(values, contours, parts)])
    assert fresh.tree.theta == pytest.approx(changed.tree.theta)


def test_a_memory_keeps_the_parts_of_its_rows():
    seed = 4
    spec = specification(seed, memory_rows=10)
    at_once = grow(GrowthState(spec), events_of(seed, [9, 30]))
    state = GrowthState(spec)
    for event in events_of(seed, [9, 30]):
        state = grow(state, [event])
        assert state.flat.size
    assert state.tree == at_once.tree
    assert state.tree.count < ROWS


def test_pruning_and_rules_follow():
    seed = 6
    spec = specification(seed, pruning=Pruning("likelihood", 0.05))
    state = grow(GrowthState(spec), events_of(seed, [20]))
    assert state.flat.size <= state.unpruned_tree.size
    from dataclasses import replace

    state = grow(state, [Respecified(replace(spec, max_depth=0))])
    assert state.flat.size == 1


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({(0, 0): ()}, r"values\[0\].sky: is the empty set"),
        ({(0, 0): ((1.5, 1.5),)}, r"values\[0\].sky: is a set with 1.5"),
        ({(0, 0): ((0.0, 1.0),)}, r"values\[0\].sky: is a set with 0"),
        ({(0, 1): ((2.0, 1.0),)}, r"values\[0\].wind: is the range 2 to 1"),
        ({(0, 1): ((0.0, np.inf),)}, r"values\[0\].wind: is the range 0 to inf"),
        ({(0, 1): ((np.nan, 1.0),)}, r"values\[0\].wind: is the range nan to 1"),
    ],
)
def test_cells_that_cannot_be_are_refused(parts: Parts, message: str):
    with pytest.raises(InvalidInput, match=message):
        grow(GrowthState(specification(0)), [Observed(np.array([[0.0, 1.0, 0.0]]), np.ones((1, 3)), parts)])
