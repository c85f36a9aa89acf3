"""Which label to ask for next (ALGORITHMS §3.3)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.trees.dominance import TIE, Interval
from quercus.trees.growth import Place, Rows
from quercus.trees.interval import IntervalSolver
from quercus.trees.sample import Sample
from quercus.trees.tree import Path

MAX_CELLS = 4_000_000  # of a matrix of counts: leaving each label out in turn must not fill the memory


@dataclass(frozen=True, slots=True)
class Asked:
    """Where in a round of queries a query stood; it travels with its answer through the log.

    Parameters
    ----------
    path
        The undecided node.
    attribute, code
        The child of that node that the query stands for.
    rivals
        Non-dominated attributes when the round began, in declared order; `attribute` is one of them.
    """

    path: Path
    attribute: int
    code: int
    rivals: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.attribute not in self.rivals:
            raise InvalidInput("rivals", f"are {self.rivals}, must contain the attribute {self.attribute}")


@dataclass(frozen=True, slots=True)
class Query:
    """A question to an oracle, with its reason.

    Parameters
    ----------
    instance
        0-based ordinal of the instance.
    path
        The undecided node.
    attribute, code
        The child of that node that the instance stands for.
    score
        How much asking narrows the child, in bits (ALGORITHMS §3.3).
    rivals
        Attribute, lower and upper end of the gain ratio of each rival, now.
    asked
        To be stored with the answer or refusal.
    node_count
        Number of instances in the undecided node.
    """

    instance: int
    path: Path
    attribute: int
    code: int
    score: float
    rivals: tuple[tuple[int, float, float], ...]
    asked: Asked
    node_count: int


class Grown(Protocol):
    """A tree as far as the choice of queries looks at it."""

    def find(self, path: Path) -> Place | None:
        """Return the place at `path`, or None when the tree has no such node."""

    def contested(self) -> Iterator[tuple[Place, tuple[int, ...]]]:
        """Yield the split nodes with more than one rival and a row to ask about, in pre-order, with the rivals."""

    def gains(self, place: Place) -> Mapping[int, Interval]:
        """Return the gain-ratio interval of every candidate at a place, also where the tree did not need them."""


@dataclass(frozen=True, slots=True, eq=False)
class Desk:
    """All that choosing queries needs: the rows, what they say, and the tree they grow.

    Parameters
    ----------
    sample
        The rows; whoever is being asked about is not askable.
    solver
        Entropy intervals over the sample's contours.
    growth
        The tree, decided as far as it is looked at.
    """

    sample: Sample
    solver: IntervalSolver
    growth: Grown


def agenda(desk: Desk, last: Asked | None, limit: int) -> tuple[Query, ...]:
    """Return up to `limit` queries in the order they would be asked if none were answered meanwhile.

    An open round goes on as long as its node is in the tree; then the first node in pre-order that has
    rivals and a candidate opens the next round.

    Parameters
    ----------
    desk
        Where to choose.
    last
        Where the last answered or refused query stood. None: nothing was asked yet.
    limit
        Most queries to return.
    """
    free = desk.sample.askable.copy()
    desk = replace(desk, sample=replace(desk.sample, askable=free))
    queries: list[Query] = []
    while len(queries) < limit:
        query = _next_query(desk, last)
        if query is None:
            break
        queries.append(query)
        free[query.instance] = False  # being asked
        last = query.asked
    return tuple(queries)


def _next_query(desk: Desk, last: Asked | None) -> Query | None:
    if last is not None:
        place = desk.growth.find(last.path)
        query = None if place is None else _ask(desk, place, _rest(desk.sample, last), last.rivals)
        if query is not None:
            return query
    for place, rivals in desk.growth.contested():
        query = _ask(desk, place, _children(desk.sample, rivals), rivals)
        if query is not None:
            return query
    return None


def _children(sample: Sample, rivals: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    return ((attribute, code) for attribute in rivals for code in range(sample.arities[attribute]))


def _rest(sample: Sample, last: Asked) -> Iterator[tuple[int, int]]:
    here = (last.rivals.index(last.attribute), last.code)
    return (
        (attribute, code)
        for attribute, code in _children(sample, last.rivals)
        if (last.rivals.index(attribute), code) > here
    )


def _ask(
    desk: Desk, place: Place, children: Iterator[tuple[int, int]], rivals: tuple[int, ...]
) -> Query | None:
    """Return the query of the first of the children that has a candidate."""
    sample = desk.sample
    if not sample.candidates(place.rows).size:
        return None
    for attribute, code in children:
        rows = sample.with_value(place.rows, attribute, code)
        candidates = sample.candidates(rows)
        if candidates.size:
            instance, score = best_candidate(sample, desk.solver, rows, candidates)
            known = desk.growth.gains(place)
            return Query(
                instance=instance,
                path=place.path,
                attribute=attribute,
                code=code,
                score=score,
                rivals=tuple((k, *known[k]) for k in rivals if k in known),
                asked=Asked(place.path, attribute, code, rivals),
                node_count=int(place.rows.size),
            )
    return None


def best_candidate(sample: Sample, solver: IntervalSolver, rows: Rows, candidates: Rows) -> tuple[int, float]:
    """Return the candidate whose removal narrows the child most, and its score (ALGORITHMS §3.3, ties §3.5).

    Parameters
    ----------
    sample
        Holds the labels.
    solver
        Entropy intervals over the sample's contours.
    rows
        The child.
    candidates
        Those of its rows that may be asked about; at least one.

    Returns
    -------
    instance : int
        Number of the row.
    score : float
        ``w(S(T_h)) - w(S(T_h without i)) + 1[vacuous]``, bits.
    """
    distinct = np.unique(sample.ids[candidates])  # rows of equal labels score the same
    scores = _scores(sample, solver, rows, distinct)
    tied = scores >= scores.max() - TIE
    totals = sample.table.contours[distinct].sum(axis=1)
    tied &= totals >= totals[tied].max() - TIE
    instance = int(candidates[np.isin(sample.ids[candidates], distinct[tied])].min())
    return instance, float(scores[distinct == sample.ids[instance]][0])


def _scores(
    sample: Sample, solver: IntervalSolver, rows: Rows, distinct: NDArray[np.int32]
) -> NDArray[np.float64]:
    vacuous = sample.table.vacuous[distinct]
    scores = vacuous.astype(np.float64)
    # A vacuous label constrains nothing, so without it the width is the same, unless it was the only
    # row: then nothing is left.
    solved = np.ones(distinct.size, dtype=bool) if rows.size == 1 else ~vacuous
    if solved.any():
        counts = sample.counts(rows)
        width = _widths(solver, counts[np.newaxis])[0]
        step = max(1, MAX_CELLS // counts.size)
        chunks = [distinct[solved][start : start + step] for start in range(0, int(solved.sum()), step)]
        widths_without = [_widths(solver, _without_each(counts, chunk)) for chunk in chunks]
        scores[solved] += width - np.concatenate(widths_without)
    return scores


def _without_each(counts: NDArray[np.int64], distinct: NDArray[np.int32]) -> NDArray[np.int64]:
    without = np.repeat(counts[np.newaxis], distinct.size, axis=0)
    without[np.arange(distinct.size), distinct] -= 1
    return without


def _widths(solver: IntervalSolver, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    lower, upper = solver.intervals(counts)
    return upper - lower
