"""Defects that a review of the incremental engine found, each as small as it could be made."""

import gc
import weakref
from itertools import pairwise

import numpy as np
import pytest
from support.candidates import best_candidate
from support.published import published_tree

from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.specification.attributes import Nominal
from quercus.trees.ask import candidate
from quercus.trees.ask.query import QueryPosition
from quercus.trees.growth import abc45
from quercus.trees.growth.incremental.tally import in_order
from quercus.trees.growth.sample import ContourTable
from quercus.trees.growth.stream import GrowthState, Observed, Refused, grow
from quercus.trees.likelihood.interval import IntervalSolver, entropy_interval

STALLED = [0b11101101, 0b10000010, 0b00001100, 0b01001010, 0b00110111, 0b00010100, 0b10111111, 0b00011101,
           0b01000000, 0b00111010, 0b10100010]  # fmt: skip


def test_the_search_does_not_shave_thin_sides_for_ever() -> None:
    """Eight classes, eleven sets: in one order of the rows the bound stood still however long the search went on."""
    sets = np.array([[mask >> (7 - j) & 1 for j in range(8)] for mask in STALLED], float)
    one = entropy_interval(sets[[4, 6, 7, 2, 0, 3, 5, 10, 9, 8, 1]], None, 0.5)
    cells = IntervalSolver(sets, 0.5).interval(np.ones(11, np.int64))
    assert one.gap < 1e-6
    assert (cells.lower, cells.upper) == pytest.approx((one.lower, one.upper), abs=1e-6)


def test_solvers_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[weakref.ref[IntervalSolver]] = []
    plain = candidate.ChildCandidates.__init__

    def watched(
        self: candidate.ChildCandidates, sample: object, solver: IntervalSolver, *rest: object
    ) -> None:
        kept.append(weakref.ref(solver))
        plain(self, sample, solver, *rest)

    monkeypatch.setattr(candidate.ChildCandidates, "__init__", watched)
    labels = np.maximum(np.eye(2)[[0, 1, 0, 1]], 0.4)
    abc45.induce([[0], [0], [1], [1]], [2], labels, alpha=0.3, budget=2, oracle=lambda _: None)
    best_candidate(
        abc45._sample_of([[0], [0]], [1], np.array([[1, 0.3], [0.2, 1]])), IntervalSolver(labels, 0.8),
        np.arange(2), np.arange(2),
    )  # fmt: skip
    gc.collect()
    assert kept
    assert not any(reference() for reference in kept)


def test_cells_of_many_contours_are_in_order() -> None:
    rng = np.random.default_rng(0)
    start = np.array([0, 0, 40, 41, 90, 90])
    ids = np.concatenate([rng.permutation(40), [7], rng.permutation(49)]).astype(np.int32)
    cells = in_order(start, ids, ids.astype(np.int64) + 1)
    for a, b in pairwise(start):
        assert (np.diff(cells.ids[a:b]) > 0).all()
        assert sorted(cells.ids[a:b]) == sorted(ids[a:b])
    assert (cells.counts == cells.ids + 1).all()


def test_a_table_of_contours_keeps_its_numbers_as_it_grows() -> None:
    rng = np.random.default_rng(0)
    table, contours = ContourTable(3), rng.random((100, 3))
    ids = np.concatenate([table.intern(contours[i : i + 1]) for i in range(100)])
    assert ids.tolist() == list(range(100))
    assert (table.contours == contours).all()
    assert table.size == len(table.precise) == len(table.vacuous) == 100
    assert table.intern(contours[::-1]).tolist() == list(range(99, -1, -1))


def test_trees_of_many_contours_do_not_depend_on_how_rows_came() -> None:
    rng = np.random.default_rng(1)
    spec = published_tree(
        (Nominal("a", ("0", "1"), "reject"), Nominal("b", ("0", "1"), "reject")), Frame(("x", "y"))
    )
    values, labels = rng.integers(0, 2, (120, 2)).astype(float), rng.random((120, 2)) * 0.8 + 0.1
    at_once = grow(GrowthState(spec, small=1), [Observed(values, labels)])
    one_by_one = GrowthState(spec, small=1)
    for i in range(0, 120, 7):
        one_by_one = grow(one_by_one, [Observed(values[i : i + 7], labels[i : i + 7])])
        assert one_by_one.flat.count[0] == min(i + 7, 120)
    assert one_by_one.tree == at_once.tree


@pytest.mark.parametrize("asked", [QueryPosition((), 5, 0, (0, 5)), QueryPosition(((9, 0),), 0, 0, (0,))])
def test_a_query_of_attributes_that_do_not_exist_is_refused(asked: QueryPosition) -> None:
    spec = published_tree((Nominal("a", ("0", "1")),), Frame(("x", "y")))
    state = grow(GrowthState.initial(spec), [Observed(np.zeros((1, 1)), np.ones((1, 2)))])
    with pytest.raises(InvalidInput, match=r"asked: names attribute \d, there are 1"):
        grow(state, [Refused(0, asked)])
