"""The strategy that asks in the leaf with many unlabelled rows and a wide entropy interval.

The score of a leaf is the number of its rows that may be asked about, times the width of the entropy interval of its
labels, in bits (theory §2.3); of tied leaves, the first in pre-order is chosen. Within the leaf, the published score
selects the label (theory §3.3), and the hash a row among those with equal labels. Each answer narrows the interval of
its leaf, and each query takes a row from it, so no leaf gets all queries.
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.specification.parameter import parametric
from quercus.trees.ask.candidate import ChildCandidates
from quercus.trees.ask.query import Query, QueryContext, QueryPosition
from quercus.trees.ask.reasons import Reason
from quercus.trees.ask.strategies.leaf_queries import LeafRows, by_lot
from quercus.trees.ask.strategies.strategy import Strategy
from quercus.trees.likelihood.cells import Cells
from quercus.trees.rules.ties import TIE

LEAVES_AT_ONCE = 64  # leaves whose intervals are solved together

REASON = Reason("It ends in the leaf with the most rows about which little is known.")


@parametric
class LeafWidth(Strategy):
    """The leaf with the largest product of unlabelled rows and width of the entropy interval."""

    name: ClassVar[str] = "leaf-width"

    def queries(self, context: QueryContext, _last: QueryPosition | None, limit: int) -> Iterator[Query]:
        """See `quercus.trees.ask.strategies.strategy.Strategy`."""
        sample, leaves = context.sample, LeafRows(context)
        free = np.zeros(len(sample.ids), dtype=bool)
        free[sample.candidates(np.arange(len(sample.ids)))] = True
        unlabelled = np.bincount(leaves.of[free], minlength=leaves.count.size)
        widths = np.full(leaves.count.size, np.nan)
        children: dict[int, ChildCandidates] = {}
        while (unlabelled > 0).any():
            leaf, score = _widest_leaf(context, leaves, unlabelled, widths)
            if leaf not in children:
                rows = leaves.rows_of_leaf(leaf)
                children[leaf] = ChildCandidates(sample, context.solver, rows, rows[free[rows]], limit)
            best = children[leaf].best_candidate(free)
            if best is None:  # only after `limit` queries, beyond which no candidates are kept
                return
            row = by_lot(context, leaves.rows_of_leaf(leaf), free, best[0])
            free[row] = False
            unlabelled[leaf] -= 1
            yield leaves.query_about(row, score, REASON)


def _widest_leaf(
    context: QueryContext, leaves: LeafRows, unlabelled: Ints, widths: Floats
) -> tuple[int, float]:
    """Return the leaf with the largest score, and the score; only the intervals that may decide it are solved."""
    most = np.log2(context.sample.table.contours.shape[1])
    while True:
        scores = unlabelled * np.where(np.isnan(widths), most, widths)
        scores[unlabelled == 0] = -1.0
        tied = np.flatnonzero(scores >= scores.max() - TIE)
        unknown = tied[np.isnan(widths[tied])]
        if not unknown.size:
            return int(tied[0]), float(scores[tied[0]])
        near = np.argsort(-np.where(np.isnan(widths), scores, -1.0), kind="stable")[:LEAVES_AT_ONCE]
        unknown = near[np.isnan(widths[near]) & (unlabelled[near] > 0)]
        cells = leaf_cells(context, leaves, unknown)
        found = context.solver.solve_cells(cells)
        widths[unknown] = found.upper - found.lower


def leaf_cells(context: QueryContext, leaves: LeafRows, chosen: Ints) -> Cells:
    """Return the labels of the chosen leaves as cells."""
    ids, counts, start = [], [], [0]
    for leaf in chosen.tolist():
        found, times = np.unique(context.sample.ids[leaves.rows_of_leaf(leaf)], return_counts=True)
        ids.append(found)
        counts.append(times)
        start.append(start[-1] + found.size)
    return Cells(
        np.array(start), np.concatenate(ids).astype(np.int32), np.concatenate(counts).astype(np.int64)
    )
