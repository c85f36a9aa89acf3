"""The evidence of a log, kept as simply as possible, and batch induction from it.

Only the events are shared with `quercus.trees.growth.stream`: the rows are Python lists, and every tree is grown anew.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from quercus.belief.evidence import update
from quercus.specification.attributes import Numeric
from quercus.specification.model import Specification
from quercus.trees.ask.agenda import agenda_of
from quercus.trees.ask.query import Query, QueryContext, QueryPosition
from quercus.trees.growth.sample import ContourTable, Sample
from quercus.trees.growth.stream import Answered, Corrected, Event, Observed, Refused, Respecified
from quercus.trees.tree.encoding import Edges, Encoder, cut_counts, declared_count, edges_in_force
from quercus.trees.tree.node import Node, Path
from support.plain_growth import open_context

Contour = tuple[float, ...]


@dataclass
class Evidence:
    """The evidence of the events so far."""

    specification: Specification
    values: list[list[float]] = field(default_factory=list)
    pushed: list[Contour] = field(default_factory=list)
    said: list[list[tuple[Contour, float]]] = field(default_factory=list)  # answers in effect, by instance
    closed: set[int] = field(default_factory=set)  # answered or refused: not to be asked again
    answers: int = 0
    asked: QueryPosition | None = None

    @property
    def size(self) -> int:
        return len(self.values)

    def take(self, event: Event) -> None:
        match event:
            case Observed():
                self.values += event.values.tolist()
                self.pushed += [tuple(contour) for contour in event.contours.tolist()]
                self.said += [[] for _ in event.contours]
            case Answered():
                self.said[event.instance].append((tuple(event.contour.tolist()), event.reliability))
                self.closed.add(event.instance)
                self.answers += 1
                self.asked = event.asked
            case Refused():
                self.closed.add(event.instance)
                self.asked = event.asked
            case Corrected():
                said = [] if event.contour is None else [(tuple(event.contour.tolist()), event.reliability)]
                self.said[event.instance] = said
                self.closed = self.closed | {event.instance} if said else self.closed - {event.instance}
            case Respecified():
                self.specification = event.specification

    def known(self, instance: int) -> Contour:
        """The contour as pushed, and every answer in effect, one after the other."""
        if not self.said[instance]:
            return self.pushed[instance]
        known = np.array(self.pushed[instance])
        for contour, reliability in self.said[instance]:
            known = update(known, np.array(contour), reliability).contour
        return tuple(known.tolist())

    def sampled(self) -> list[int]:
        """Instances to look at one by one: a thousand, and all that someone spoke of."""
        spoken = {instance for instance in range(self.size) if self.said[instance]}
        return sorted(spoken | self.closed | set(range(0, self.size, 1 + self.size // 1000)))

    def induce(self) -> "Batch":
        """Look at it all, from scratch."""
        spec = self.specification
        values = np.array(self.values, dtype=float).reshape(self.size, len(spec.attributes))
        edges = edges_in_force(spec, values)
        codes = Encoder(spec.attributes, edges).codes(values)
        declared = [declared_count(a) + (a.missing == "branch") for a in spec.attributes]
        arities = np.maximum(codes.max(axis=0, initial=0) + 1, declared)
        table = ContourTable(spec.frame.size)
        known = [self.known(instance) for instance in range(self.size)]
        sample = Sample(
            codes=codes,
            arities=tuple(arities.tolist()),
            ids=table.intern(np.array(known).reshape(self.size, spec.frame.size)),
            askable=np.array([instance not in self.closed for instance in range(self.size)], dtype=bool),
            table=table,
            cuts=cut_counts(spec.attributes),
        )
        ordered = tuple(declared_count(a) if isinstance(a, Numeric) else 0 for a in spec.attributes)
        context = open_context(
            sample,
            spec.alpha,
            spec.min_instances,
            spec.max_depth,
            ordered,
            significance=spec.split_significance,
        )
        return Batch(context, edges, self.asked, max(0, spec.budget - self.answers), spec.strategy, known)


@dataclass(eq=False)
class Batch:
    """Tree and agenda of all the evidence at once, by the skeleton every learner stands on."""

    context: QueryContext
    edges: Edges
    asked: QueryPosition | None
    budget_left: int
    strategy: str
    known: list[Contour]

    @cached_property
    def tree(self) -> Node:
        """The tree as published: tests by attribute and threshold, the gain of an attribute that of its cut."""
        below: dict[int, Node] = {}
        numbered = list(self.plain.preorder())
        for index, (node, _, _) in reversed(list(enumerate(numbered))):
            children = [(code, below[at]) for at, (_, parent, code) in enumerate(numbered) if parent == index]
            below[index] = self._published(node, dict(children))
        return below[0]

    @cached_property
    def plain(self) -> Node:
        """The tree in terms of splits."""
        return self.context.growth.tree()

    def _published(self, node: Node, children: dict[int, Node]) -> Node:
        splits = self.context.sample.splits
        gains = {int(splits.attribute[split]): ends for split, ends in node.intervals.items()}
        assert len(gains) == len(node.intervals), "one cut stands for an attribute"
        k = None if node.attribute is None else int(splits.attribute[node.attribute])
        cut = -1 if node.attribute is None else int(splits.cut[node.attribute])
        threshold = float(self.edges[k][cut]) if k is not None and cut >= 0 else None
        return replace(node, attribute=k, threshold=threshold, intervals=gains, children=children)

    def agenda(self, limit: int) -> tuple[Query, ...]:
        return agenda_of(self.context, self.asked, min(limit, self.budget_left), self.strategy)

    def scores(self, query: Query, before: tuple[Query, ...]) -> dict[Contour, float]:
        """Score of every contour that could be asked about in the child of `query`, after those `before`.

        By theory §3.3 as it stands: the width with and without one label.
        """
        sample, place = self.context.sample, self.context.growth.find_node(query.path)
        assert place is not None
        rows = sample.with_value(place.rows, query.attribute, query.code)
        being_asked = [earlier.instance for earlier in before]
        candidates = [row for row in sample.candidates(rows).tolist() if row not in being_asked]
        scores = {}
        for row in candidates:
            contour = self.known[row]
            if contour not in scores:
                without = self._width(rows[rows != row])
                scores[contour] = self._width(rows) - without + (len(set(contour)) == 1)
        return scores

    def _width(self, rows: np.ndarray) -> float:
        lower, upper = self.context.solver.intervals(self.context.sample.counts(rows)[np.newaxis])
        return float(upper[0] - lower[0])

    def rivalries(self) -> dict[Path, dict[int, tuple[float, float]]]:
        """Gain-ratio intervals of every node that was judged."""
        return {
            decision.place.path: dict(decision.choice.intervals)
            for decision, _ in self.context.growth.decisions()
            if decision.choice is not None
        }
