"""The published strategy: ABC4.5's rounds of queries (theory §3.3; Ma, Destercke, Wang 2016).

An open round continues as long as its node is in the tree. Then the first node in pre-order that has rivals and a
candidate opens the next round. The score of a query is the width by which leaving out the label narrows the interval of
its child, in bits, plus 1 if the label is vacuous.

If every label is vacuous, all candidates score 1 and ties decide; every query then comes from the root (theory §8.1).
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from quercus.specification.parameter import parametric
from quercus.trees.ask.candidate import ChildCandidates
from quercus.trees.ask.query import Query, QueryContext, QueryPosition
from quercus.trees.ask.reasons import CHILD, Reason
from quercus.trees.ask.strategies.strategy import Strategy
from quercus.trees.growth.batch import OpenNode
from quercus.trees.growth.sample import Sample
from quercus.trees.tree.node import Path

# Contours and candidates of children that are kept for one agenda; each takes about 100 bytes at most.
CHILD_ENTRIES = 1_000_000

REASON = Reason(f"This label tells most about the rows where {CHILD}.")


@parametric
class Published(Strategy):
    """ABC4.5 as published: round by round at the first undecided node."""

    name: ClassVar[str] = "published"

    def queries(self, context: QueryContext, last: QueryPosition | None, limit: int) -> Iterator[Query]:
        """See `quercus.trees.ask.strategies.strategy.Strategy`."""
        return _RoundRobin(context, limit).queries(last)


class _RoundRobin:
    """The computation of one agenda.

    Instances already on the agenda count as being asked about; nothing else changes during the computation. The scores
    of a child are therefore computed once, and a node without candidates gets none later.
    """

    def __init__(self, context: QueryContext, limit: int) -> None:
        self._context = context
        self._limit = limit
        self._free = context.sample.askable.copy()
        self._children: dict[tuple[Path, int, int], ChildCandidates | None] = {}
        self._entries = 0

    def queries(self, last: QueryPosition | None) -> Iterator[Query]:
        """Yield the queries in order."""
        sample, growth = self._context.sample, self._context.growth
        if last is not None:
            place = growth.find_node(last.path)
            if place is not None:
                yield from self._query_each_child(place, last.rivals, _rest_of_round(sample, last))
        for place, rivals in growth.contested_nodes():
            yield from self._queries_at_node(place, rivals)

    def _queries_at_node(self, place: OpenNode, rivals: tuple[int, ...]) -> Iterator[Query]:
        """Yield the queries of successive rounds at a node, until it has no candidate left."""
        asked = bool(self._context.sample.candidates(place.rows).size)
        while asked:
            asked = False
            for query in self._query_each_child(
                place, rivals, children_in_order(self._context.sample, rivals)
            ):
                asked = True
                yield query

    def _query_each_child(
        self, place: OpenNode, rivals: tuple[int, ...], children: Iterable[tuple[int, int]]
    ) -> Iterator[Query]:
        """Yield a query for each child that has a candidate."""
        intervals = None
        for attribute, code in children:
            child = self._child_candidates(place, attribute, code)
            best = None if child is None else child.best_candidate(self._free)
            if best is None:
                continue
            instance, score = best
            self._free[instance] = False
            if intervals is None:
                known = self._context.growth.gain_intervals(place)
                intervals = tuple((k, *known[k]) for k in rivals if k in known)
            yield Query(
                instance=instance,
                path=place.path,
                attribute=attribute,
                code=code,
                score=score,
                rivals=intervals,
                asked=QueryPosition(place.path, attribute, code, rivals),
                node_count=int(place.rows.size),
                reason=REASON,
            )

    def _child_candidates(self, place: OpenNode, attribute: int, code: int) -> ChildCandidates | None:
        """Return the child, or None if it had no candidate when first examined."""
        key = (place.path, attribute, code)
        if key not in self._children:
            sample = self._context.sample
            rows = sample.with_value(place.rows, attribute, code)
            candidates = sample.candidates(rows)
            candidates = candidates[self._free[candidates]]
            child = (
                ChildCandidates(sample, self._context.solver, rows, candidates, self._limit)
                if candidates.size
                else None
            )
            self._entries += 0 if child is None else len(child)
            if self._entries > CHILD_ENTRIES:  # dropped children are computed again if they are needed
                self._children.clear()
                self._entries = 0 if child is None else len(child)
            self._children[key] = child
        return self._children[key]


def children_in_order(sample: Sample, rivals: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield the children that a round at a node visits, in order, each as attribute and code."""
    return ((attribute, code) for attribute in rivals for code in range(sample.splits.branches[attribute]))


def _rest_of_round(sample: Sample, last: QueryPosition) -> Iterator[tuple[int, int]]:
    if last.attribute is None or last.code is None:  # not part of a round
        return iter(())
    here = (last.rivals.index(last.attribute), last.code)
    return (
        (attribute, code)
        for attribute, code in children_in_order(sample, last.rivals)
        if (last.rivals.index(attribute), code) > here
    )
