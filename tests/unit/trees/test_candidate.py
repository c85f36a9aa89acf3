import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support.candidates import best_candidate
from support.plain_growth import open_context

from quercus.trees.ask import candidate
from quercus.trees.ask.agenda import agenda_of
from quercus.trees.ask.candidate import ChildCandidates, ScoreCache
from quercus.trees.ask.strategies import published
from quercus.trees.growth.sample import ContourTable, Sample
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import POINT, EntropyIntervals, IntervalSolver, entropy_interval
from quercus.trees.likelihood.solver.leave_one_out_width import LeaveOneOut

EVERYTHING = (1.0, 1.0)
TIE = 1e-9


def sample(contours: object, codes: object = None) -> Sample:
    labels = np.array(contours, dtype=float)
    values = np.zeros((len(labels), 1), dtype=np.int16) if codes is None else np.array(codes, dtype=np.int16)
    table = ContourTable(labels.shape[1])
    arities = tuple((values.max(axis=0) + 1).tolist())
    return Sample(values, arities, table.intern(labels), np.ones(len(labels), dtype=bool), table)


def best(contours: object, alpha: float = 0.8) -> tuple[int, float]:
    rows = sample(contours)
    every = np.arange(len(rows.ids))
    return best_candidate(rows, rows.table.solver(alpha), every, rows.candidates(every))


def width(contours: object, alpha: float = 0.8) -> float:
    return entropy_interval(np.array(contours, dtype=float), None, alpha).width


def test_a_score_is_what_leaving_the_row_out_changes() -> None:
    rows = [(1, 0), (1, 0), (0, 1), (0.4, 1.0)]
    assert best(rows) == (3, pytest.approx(width(rows) - width(rows[:3])))


def test_a_vacuous_row_scores_one() -> None:
    assert best([(1, 0), (0.3, 0.3), (0, 1)]) == (1, 1.0)


def test_without_the_last_row_nothing_is_left() -> None:
    assert best([EVERYTHING]) == (0, pytest.approx(1.0 + 1.0))  # width log2 l, and 1 for being vacuous
    assert best([(1.0, 0.5)]) == (0, pytest.approx(width([(1.0, 0.5)])))


def test_of_equal_scores_the_less_committed_then_the_earlier_row() -> None:
    assert best([(1, 0), (0.5, 0.5), (1, 1), (1, 1)])[0] == 2
    assert best([(1, 0), (1, 1), (1, 1)])[0] == 1


@pytest.mark.parametrize("alpha", [0.3, 0.8, 1.0])
def test_mirrored_rows_score_the_same(alpha: float) -> None:
    rows = [(1, 0, 0), (0, 1, 0), (1, 0.2, 0.5), (0.2, 1, 0.5)]
    assert best(rows, alpha) == pytest.approx((2, width(rows, alpha) - width(rows[:3], alpha)), abs=TIE)
    halved = [(1, 0, 0), (0, 1, 0), (0.5, 0.1, 0.25), (0.2, 1, 0.5)]  # says the same, but commits to more
    assert best(halved, alpha)[0] == 3


def test_precise_rows_are_no_candidates() -> None:
    rows = sample([(0, 0.5), (1, 0), (1, 0.1)])
    assert rows.candidates(np.arange(3)).tolist() == [2]


def test_somebody_must_be_there_to_be_chosen() -> None:
    rows = sample([(1.0, 0.5)])
    nobody = ChildCandidates(rows, rows.table.solver(0.8), np.arange(1), np.arange(0), 1)
    assert nobody.best_candidate(np.ones(1, dtype=bool)) is None


def general(rng: np.random.Generator, n: int, l: int) -> np.ndarray:
    contours = rng.random((n, l))
    contours[np.arange(n), rng.integers(0, l, n)] = 1.0
    return contours


def set_valued(rng: np.random.Generator, n: int, l: int) -> np.ndarray:
    contours = (rng.random((n, l)) < 0.5).astype(float)
    contours[np.arange(n), rng.integers(0, l, n)] = 1.0
    return contours


def coarse(rng: np.random.Generator, n: int, l: int) -> np.ndarray:
    return np.round(general(rng, n, l) * 4) / 4


def subnormal(rng: np.random.Generator, n: int, l: int) -> np.ndarray:
    return general(rng, n, l) * rng.uniform(0.1, 0.9, (n, 1))


def mixed(rng: np.random.Generator, n: int, l: int) -> np.ndarray:
    contours = general(rng, n, l)
    contours[rng.random(n) < 0.3] = rng.choice([0.5, 1.0])
    precise = rng.random(n) < 0.3
    contours[precise] = np.eye(l)[rng.integers(0, l, int(precise.sum()))]
    return contours


def repeated(rng: np.random.Generator, n: int, l: int) -> np.ndarray:
    return general(rng, n, l)[rng.integers(0, max(1, n // 3), n)]


Kind = Callable[[np.random.Generator, int, int], np.ndarray]
KINDS: tuple[Kind, ...] = (general, set_valued, coarse, subnormal, mixed, repeated)


def slowly(contours: np.ndarray, alpha: float) -> tuple[int, float]:
    """As the formula says, row by row: nothing shared with what is tested but the interval of a set of rows."""
    scores = {}
    for row, contour in enumerate(contours):
        if (contour > 0).sum() > 1:
            rest = np.delete(contours, row, axis=0)
            left = width(rest, alpha) if len(rest) else 0.0
            scores[row] = width(contours, alpha) - left + float(contour.min() == contour.max())
    tied = [row for row, score in scores.items() if score >= max(scores.values()) - TIE]
    totals = {row: contours[row].sum() for row in tied}
    row = min(row for row in tied if totals[row] >= max(totals.values()) - TIE)
    return row, scores[row]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.8, 0.99, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_choice_is_that_of_scoring_every_row(kind: Kind, alpha: float) -> None:
    rng = np.random.default_rng(7)
    chosen = 0
    for n in (1, 2, 2, 3, 4, 5, 6, 8, 10, 14, 20):
        contours = kind(rng, n, int(rng.integers(2, 6)))
        if ((contours > 0).sum(axis=1) > 1).any():
            # at level 1 a width is what rounding leaves unproved, of which both know bounds of their own
            near = POINT if alpha == 1.0 else TIE
            assert best(contours, alpha) == pytest.approx(slowly(contours, alpha), abs=near)
            chosen += 1
    assert chosen > 5


def test_the_choice_among_some_rows_is_that_of_scoring_these() -> None:
    rng = np.random.default_rng(5)
    rows = sample(mixed(rng, 30, 3))
    solver = rows.table.solver(0.8)
    every = np.arange(30)
    left = rows.candidates(every)
    child, free = ChildCandidates(rows, solver, every, left, 30), np.ones(30, dtype=bool)
    while left.size:
        alone = IntervalSolver(rows.table.contours, 0.8)  # which remembers nothing
        found = child.best_candidate(free)
        assert found == best_candidate(rows, alone, every, left)
        free[found[0]] = False
        left = left[left != found[0]]
    assert child.best_candidate(free) is None


class Counting(IntervalSolver):
    """Counts the cells that it is asked for."""

    asked = 0

    def solve_cells(self, cells: Cells) -> EntropyIntervals:
        self.asked += len(cells)
        return super().solve_cells(cells)


@pytest.mark.parametrize("l", [2, 3, 4])
def test_few_intervals_are_solved(l: int) -> None:
    rng = np.random.default_rng(l)
    rows = sample(np.repeat(general(rng, 100, l), 5, axis=0))
    solver = Counting(rows.table.contours, 0.8)
    best_candidate(rows, solver, np.arange(500), np.arange(500))
    assert solver.asked <= 4
    first = solver.asked
    best_candidate(rows, solver, np.arange(500), np.arange(500))
    assert solver.asked == first  # all is remembered


@pytest.mark.parametrize("kind", KINDS)
def test_points_of_the_cuts_bound_the_widths(kind: Kind) -> None:
    rng = np.random.default_rng(11)
    for n in (3, 6, 12, 40):
        contours = np.unique(kind(rng, n, 3), axis=0)
        contours = contours[contours.min(axis=1) < contours.max(axis=1)]
        counts = rng.integers(1, 5, len(contours))
        whole = entropy_interval(contours, counts, 0.8)
        points = LeaveOneOut(contours, counts, float(np.log(0.8)), whole.lower)
        for k in range(len(contours)):
            without = counts - (np.arange(len(counts)) == k)
            true = entropy_interval(contours, without, 0.8).width if without.any() else np.log2(3)
            assert points.width_bounds()[k] <= true + 1e-9
            points.refine_contour(k)
            assert points.width_bounds()[k] <= true + 1e-9


def test_bounds_are_near_where_rows_are_many() -> None:
    rng = np.random.default_rng(2)
    contours, counts = general(rng, 100, 3), np.full(100, 5)
    whole = entropy_interval(contours, counts, 0.8)
    points = LeaveOneOut(contours, counts, float(np.log(0.8)), whole.lower)
    for k in range(0, 100, 10):
        true = entropy_interval(contours, counts - (np.arange(100) == k), 0.8).width
        assert points.width_bounds()[k] == pytest.approx(true, abs=1e-4)
        points.refine_contour(k)
        assert points.width_bounds()[k] == pytest.approx(true, abs=1e-8)


@pytest.mark.parametrize("alpha", [0.5, 0.8, 1.0])
def test_an_agenda_is_what_is_asked_one_by_one(alpha: float) -> None:
    rng = np.random.default_rng(13)
    rows = sample(mixed(rng, 60, 3), rng.integers(0, 3, (60, 3)))
    listed = agenda_of(open_context(rows, alpha, 2, None), None, 60)
    last, free = None, np.ones(60, dtype=bool)
    for entry in listed:
        context = open_context(replace(rows, askable=free.copy()), alpha, 2, None)
        assert agenda_of(context, last, 1) == (entry,)
        last, free[entry.instance] = entry.asked, False
    assert agenda_of(open_context(replace(rows, askable=free), alpha, 2, None), last, 1) == ()
    assert alpha == 1.0 or len(listed) > 10


def test_an_agenda_does_not_depend_on_what_it_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(17)
    rows = sample(mixed(rng, 60, 3), rng.integers(0, 3, (60, 3)))
    listed = agenda_of(open_context(rows, 0.8, 2, None), None, 60)
    monkeypatch.setattr(published, "CHILD_ENTRIES", 0)
    monkeypatch.setattr(candidate, "SCORE_ENTRIES", 0)
    assert agenda_of(open_context(rows, 0.8, 2, None), None, 60) == listed
    assert len(listed) > 10


@pytest.mark.parametrize("contours", [1, 5, pytest.param(20, marks=pytest.mark.slow)])
def test_what_is_remembered_is_bounded_however_few_contours_a_child_has(
    contours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidate, "SCORE_ENTRIES", 2_000)
    rng = np.random.default_rng(19)
    rows = sample(mixed(rng, contours, 3))
    ids, counts = np.unique(rows.ids, return_counts=True)
    solver, memories = rows.table.solver(0.8), [ScoreCache()]
    totals, first = rows.table.contours[ids].sum(axis=1), np.arange(ids.size)
    tracemalloc.start()
    try:
        for number in range(400):
            scores = memories[0].scores_of(rows, solver, ids, counts + number)
            scores.choose_contour(np.ones(ids.size, dtype=bool), totals, first)
        del scores
        with_them = tracemalloc.get_traced_memory()[0]
        memories.clear()
        remembered = with_them - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 50_000 < remembered < 150 * candidate.SCORE_ENTRIES
