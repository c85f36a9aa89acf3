"""Which label to ask for next (ALGORITHMS §3.3)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from quercus.belief.errors import InvalidInput
from quercus.trees.candidate import Child
from quercus.trees.dominance import Interval
from quercus.trees.growth import Place
from quercus.trees.interval import IntervalSolver
from quercus.trees.sample import Sample
from quercus.trees.tree import Path

ENTRIES = (
    1_000_000  # contours and candidates of children kept for one agenda, some 100 bytes each at the most
)


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
    return tuple(islice(_Agenda(desk, limit).queries(last), limit))


class _Agenda:
    """One agenda in the making. Whoever is listed is being asked; nothing else changes meanwhile.

    Hence the scores of a child are found once, and a node without candidates stays so.
    """

    def __init__(self, desk: Desk, limit: int) -> None:
        self._desk = desk
        self._limit = limit
        self._free = desk.sample.askable.copy()
        self._children: dict[tuple[Path, int, int], Child | None] = {}
        self._entries = 0

    def queries(self, last: Asked | None) -> Iterator[Query]:
        """Yield the queries in order."""
        sample, growth = self._desk.sample, self._desk.growth
        place = None if last is None else growth.find(last.path)
        if last is not None and place is not None:
            yield from self._round(place, last.rivals, _rest(sample, last))
        for place, rivals in growth.contested():
            yield from self._rounds(place, rivals)

    def _rounds(self, place: Place, rivals: tuple[int, ...]) -> Iterator[Query]:
        """Yield the queries of round after round at a node, until it has no candidate left."""
        asked = bool(self._desk.sample.candidates(place.rows).size)
        while asked:
            asked = False
            for query in self._round(place, rivals, _children(self._desk.sample, rivals)):
                asked = True
                yield query

    def _round(
        self, place: Place, rivals: tuple[int, ...], children: Iterable[tuple[int, int]]
    ) -> Iterator[Query]:
        """Yield a query for each of the children that has a candidate."""
        intervals = None
        for attribute, code in children:
            child = self._child(place, attribute, code)
            best = None if child is None else child.best(self._free)
            if best is None:
                continue
            instance, score = best
            self._free[instance] = False
            if intervals is None:
                known = self._desk.growth.gains(place)
                intervals = tuple((k, *known[k]) for k in rivals if k in known)
            yield Query(
                instance=instance,
                path=place.path,
                attribute=attribute,
                code=code,
                score=score,
                rivals=intervals,
                asked=Asked(place.path, attribute, code, rivals),
                node_count=int(place.rows.size),
            )

    def _child(self, place: Place, attribute: int, code: int) -> Child | None:
        """Return the child, or None when it had no candidate when first looked at."""
        key = (place.path, attribute, code)
        if key not in self._children:
            sample = self._desk.sample
            rows = sample.with_value(place.rows, attribute, code)
            candidates = sample.candidates(rows)
            candidates = candidates[self._free[candidates]]
            child = (
                Child(sample, self._desk.solver, rows, candidates, self._limit) if candidates.size else None
            )
            self._entries += 0 if child is None else len(child)
            if self._entries > ENTRIES:  # they can be made again
                self._children.clear()
                self._entries = 0 if child is None else len(child)
            self._children[key] = child
        return self._children[key]


def _children(sample: Sample, rivals: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    return ((attribute, code) for attribute in rivals for code in range(sample.arities[attribute]))


def _rest(sample: Sample, last: Asked) -> Iterator[tuple[int, int]]:
    here = (last.rivals.index(last.attribute), last.code)
    return (
        (attribute, code)
        for attribute, code in _children(sample, last.rivals)
        if (last.rivals.index(attribute), code) > here
    )
