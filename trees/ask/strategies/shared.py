"""The budget shared over nodes: every undecided node gets queries in proportion to its rows.

The next query goes to the undecided node with the largest ``|T| / (2 a + 1)``, where ``a`` is the number of its rows
that were asked about or are labelled anyway (Sainte-Laguë's divisors); within the node, to the child of a rival with
the largest such quotient; and within the child, to the row that the published score selects (theory §3.3). Ties go to
the first node in pre-order, and to the first child in declared order. The score of a query is the quotient of its node.

Queries in a node also count for all nodes above it, so deeper undecided nodes have had fewer queries for their rows,
and the root does not take the whole budget.

With `regret`, a node has the weight ``|T| R`` in place of ``|T|``, and gets no queries unless ``R``, the regret of its
split (`gain_regret`), exceeds the limit. The regret is the amount by which a rival's gain ratio may still exceed that
of the splitting attribute, ``max_k hi_k - lo``. Queries therefore stop when no other split can be much better.

If no node is undecided (for example, because all labels so far are of one class, so that the root is pure), leaves get
queries by their width (`leaf_width`), since otherwise there would never be another query; with `regret` only while the
tree is a single leaf.

Only the first 200 undecided nodes in pre-order are considered.
"""

from collections.abc import Iterator
from itertools import islice
from typing import ClassVar

import numpy as np

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.specification.parameter import parameter, parametric
from quercus.trees.ask.candidate import ChildCandidates
from quercus.trees.ask.query import Query, QueryContext, QueryPosition
from quercus.trees.ask.reasons import Reason
from quercus.trees.ask.strategies.leaf_queries import by_lot, query_of_child
from quercus.trees.ask.strategies.leaf_width import LeafWidth
from quercus.trees.ask.strategies.row_sample import CONTESTED_NODES
from quercus.trees.ask.strategies.strategy import Strategy
from quercus.trees.growth.batch import OpenNode
from quercus.trees.rules.ties import TIE, Interval, largest_mid_value

REGRET = "Regret, in gain ratio, up to which an undecided node gets no queries"
BY_ROWS = Reason("For its size, this part of the tree has had the fewest answers.")
BY_REGRET = Reason("Here a wrong choice between them would cost most.")


@parametric
class SharedQueries(Strategy):
    """As published within a node, but shares the queries among the undecided nodes by their rows."""

    name: ClassVar[str] = "shared"
    regret: float | None = parameter(
        None, REGRET, 0, 1, meaning_of_none="every undecided node asks, whatever its regret"
    )

    def queries(self, context: QueryContext, last: QueryPosition | None, limit: int) -> Iterator[Query]:
        """See `quercus.trees.ask.strategies.strategy.Strategy`."""
        if next(context.growth.contested_nodes(), None) is None:
            if self.regret is None or not int(context.growth.row_leaves()[0].max(initial=0)):
                yield from LeafWidth().queries(context, last, limit)
            return
        open_rows = np.zeros(len(context.sample.ids), dtype=bool)
        open_rows[context.sample.candidates(np.arange(open_rows.size))] = True
        labelled = ~context.sample.table.vacuous[context.sample.ids]
        asked = ~context.sample.askable | labelled
        nodes = []
        for place, rivals in islice(context.growth.contested_nodes(), CONTESTED_NODES):
            weight = self._node_weight(context, place, rivals)
            if weight > 0:
                nodes.append(_Node(context, place, rivals, weight, limit))
        quotients = np.array([node.quotient(asked) for node in nodes])
        while nodes:
            at = int((quotients >= quotients.max() - TIE).argmax())
            if quotients[at] < 0:
                return
            found = nodes[at].take_next_row(open_rows, asked)
            if found is None:
                quotients[at] = -1.0
                continue
            child, row = found
            yield query_of_child(
                context,
                (nodes[at].place, nodes[at].rivals),
                child,
                row,
                float(quotients[at]),
                BY_ROWS if self.regret is None else BY_REGRET,
            )
            open_rows[row], asked[row] = False, True
            for other, node in enumerate(nodes):
                if quotients[other] >= 0 and node.holds_row(row):
                    quotients[other] = node.quotient(asked)

    def _node_weight(self, context: QueryContext, place: OpenNode, rivals: tuple[int, ...]) -> float:
        if self.regret is None:
            return float(place.rows.size)
        gains = context.growth.gain_intervals(place)
        found = gain_regret({k: gains[k] for k in rivals})
        return place.rows.size * found if found > self.regret else 0.0


def gain_regret(gains: dict[int, Interval]) -> float:
    """Return by how much a rival's gain ratio may exceed that of the chosen attribute, the one of largest mid-value.

    Examples
    --------
    >>> round(gain_regret({0: (0.5, 0.7), 1: (0.3, 0.6)}), 9)
    0.1
    """
    chosen = largest_mid_value(gains, gains)
    others = [upper for k, (_, upper) in gains.items() if k != chosen]
    return max(0.0, max(others, default=0.0) - gains[chosen][0])


@parametric
class SmallRegret(SharedQueries):
    """As shared, weighted by regret; stops when no regret exceeds 0.1 of gain ratio."""

    name: ClassVar[str] = "small-regret"
    regret: float | None = parameter(0.1, REGRET, 0, 1)


class _Node:
    """An undecided node and the children of its rivals."""

    def __init__(
        self, context: QueryContext, place: OpenNode, rivals: tuple[int, ...], weight: float, limit: int
    ) -> None:
        self.place, self.rivals = place, rivals
        self._context, self._weight, self._limit = context, weight, limit
        tables = {k: context.sample.contingency(place.rows, (k,))[k].sum(axis=1) for k in rivals}
        self._children = [(k, code) for k in rivals for code in np.flatnonzero(tables[k]).tolist()]
        self._sizes: Floats = np.array([tables[k][code] for k, code in self._children], dtype=float)
        self._rows: dict[int, Ints] = {}
        self._made: dict[int, ChildCandidates] = {}

    def holds_row(self, row: int) -> bool:
        """Return whether a row belongs to the node."""
        at = int(np.searchsorted(self.place.rows, row))
        return at < self.place.rows.size and int(self.place.rows[at]) == row

    def quotient(self, asked: Bools) -> float:
        """Return ``w / (2 a + 1)`` with ``w`` the weight of the node."""
        return self._weight / (2 * int(asked[self.place.rows].sum()) + 1)

    def take_next_row(self, open_rows: Bools, asked: Bools) -> tuple[tuple[int, int], int] | None:
        """Return the next child, as attribute and code, and its row; None if no row is left."""
        spent = np.array([int(asked[self._rows_of_child(at)].sum()) for at in range(len(self._children))])
        left = np.array([bool(open_rows[self._rows_of_child(at)].any()) for at in range(len(self._children))])
        quotients = np.where(left, self._sizes / (2 * spent + 1), -1.0)
        if not left.any():
            return None
        at = int((quotients >= quotients.max() - TIE).argmax())
        if at not in self._made:
            rows = self._rows_of_child(at)
            sample, solver = self._context.sample, self._context.solver
            self._made[at] = ChildCandidates(sample, solver, rows, rows[open_rows[rows]], self._limit)
        best = self._made[at].best_candidate(open_rows)
        if best is None:
            return None
        return self._children[at], by_lot(self._context, self._rows_of_child(at), open_rows, best[0])

    def _rows_of_child(self, at: int) -> Ints:
        if at not in self._rows:
            self._rows[at] = self._context.sample.with_value(self.place.rows, *self._children[at])
        return self._rows[at]
