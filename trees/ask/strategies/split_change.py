"""Expected change of the split: asks about the row whose answer is expected to separate the rivals of a node most.

At an undecided node with rows ``T``, the mid-value of rival ``k`` is ``(M(T) - Σ_h f_h M(T_h)) / SI_k``, where ``M`` is
the mid-value of an entropy interval (theory §3.1). The answer that row ``i`` is of class ``c`` changes two of these
intervals: that of ``T``, and that of the row's branch of ``k``. With ``Δ_k`` the change of ``k``'s mid-value, the score
is ``|T| Σ_c p_c (max_k Δ_k - min_k Δ_k)`` over the rivals, since a change that is the same for all rivals decides
nothing. The probabilities ``p_c`` are those of `hypothetical.HypotheticalAnswers.class_chances`. Ties are broken by the
larger sum of plausibilities, then by hash (`row_sample.row_hashes`). The score of a row in several nodes is its
largest.

If no node is undecided, leaves get queries by their width (`leaf_width`).

Only the 8 largest of the first 200 undecided nodes in pre-order are considered, with at most 1,000 candidates each
(`row_sample`), 8 distinct contours among these, and the 16 rivals of largest mid-value.
"""

from collections.abc import Iterator
from itertools import islice
from typing import ClassVar

import numpy as np

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.specification.parameter import parametric
from quercus.trees.ask.query import Query, QueryContext, QueryPosition
from quercus.trees.ask.reasons import Reason
from quercus.trees.ask.strategies.hypothetical import HypotheticalAnswers, frequent_contours, in_order
from quercus.trees.ask.strategies.leaf_queries import query_of_child
from quercus.trees.ask.strategies.leaf_width import LeafWidth
from quercus.trees.ask.strategies.row_sample import CONTESTED_NODES, SAMPLED_ROWS, sample_rows
from quercus.trees.ask.strategies.strategy import Strategy
from quercus.trees.growth.batch import OpenNode
from quercus.trees.rules.gain import split_information
from quercus.trees.rules.ties import TIE

LARGEST_NODES = 8  # greatest number of undecided nodes that are examined
SPLIT_CONTOURS = 8  # greatest number of distinct contours tried among the candidates of a node
LIKELY_RIVALS = 16  # greatest number of rivals compared at a node

REASON = Reason("This label is expected to separate them most.")


@parametric
class SplitChange(Strategy):
    """The row whose answer is expected to separate the rivals of a node most."""

    name: ClassVar[str] = "split-change"

    def queries(self, context: QueryContext, last: QueryPosition | None, limit: int) -> Iterator[Query]:
        """See `quercus.trees.ask.strategies.strategy.Strategy`."""
        first = islice(context.growth.contested_nodes(), CONTESTED_NODES)
        contested = sorted(first, key=lambda node: -node[0].rows.size)
        if not contested:  # if all labels are of one class, there would otherwise never be another query
            yield from LeafWidth().queries(context, last, limit)
            return
        trial = HypotheticalAnswers(context)
        found = [_candidate_scores(context, trial, *node) for node in contested[:LARGEST_NODES]]
        rows = np.concatenate([of_node for of_node, _, _ in found])
        scores = np.concatenate([of_node for _, of_node, _ in found])
        apart = np.concatenate([of_node for _, _, of_node in found])
        node = np.repeat(np.arange(len(found)), [of_node.size for of_node, _, _ in found])
        asked = set()
        for place in in_order(context, rows, scores).tolist():
            row = int(rows[place])
            if row not in asked:
                asked.add(row)
                yield _query_of_row(
                    context, contested[node[place]], row, int(apart[place]), float(scores[place])
                )


def _candidate_scores(
    context: QueryContext, trial: HypotheticalAnswers, place: OpenNode, rivals: tuple[int, ...]
) -> tuple[Ints, Floats, Ints]:
    """Return candidates of a node, their scores, and the rival that each one is expected to move most."""
    sample = context.sample
    gains = context.growth.gain_intervals(place)
    rivals = tuple(sorted(sorted(rivals, key=lambda k: -sum(gains[k]))[:LIKELY_RIVALS]))
    candidates = sample_rows(sample.candidates(place.rows), SAMPLED_ROWS)
    contours = frequent_contours(context, candidates, SPLIT_CONTOURS)
    candidates = candidates[np.isin(sample.ids[candidates], contours)]
    known = np.searchsorted(contours, sample.ids[candidates])
    counts = sample.counts(place.rows)
    chance = trial.class_chances(counts, contours)[known]
    whole = _expected_moves(trial, counts, contours)[known]
    moved = np.empty((len(rivals), *chance.shape))
    for at, k in enumerate(rivals):
        table = sample.contingency(place.rows, (k,))[k]
        sizes = table.sum(axis=1)
        gone = np.zeros(chance.shape)
        for code in np.flatnonzero(sizes).tolist():
            here = np.isin(candidates, sample.with_value(candidates, k, code))
            if here.any():
                part = sizes[code] / sizes.sum()
                gone[here] = (
                    part
                    * _expected_moves(trial, table[code], contours, table[code][contours] > 0)[known[here]]
                )
        moved[at] = (whole - gone) / split_information(sizes)[0]
    expected = (chance * (moved.max(axis=0) - moved.min(axis=0))).sum(axis=1)
    off = (chance * np.abs(moved - moved.mean(axis=0))).sum(axis=2)
    most = (off >= off.max(axis=0) - TIE).argmax(axis=0)  # two rivals are equally far from their mean
    return candidates, place.rows.size * expected, np.array(rivals)[most]


def _expected_moves(
    trial: HypotheticalAnswers, counts: Ints, contours: Ints, there: Bools | None = None
) -> Floats:
    """Return by how much each answer changes the mid-value of a cell's interval: (k, l), 0 for absent contours."""
    moves = np.zeros((contours.size, trial.classes))
    tried = contours if there is None else contours[there]
    now = trial.solver.solve_cells(trial.cells_before_answer(counts))
    then = trial.solver.solve_cells(trial.cells_after_answers(counts, tried))
    mid = (then.lower + then.upper - now.lower - now.upper) / 2
    moves[slice(None) if there is None else there] = mid.reshape(tried.size, trial.classes)
    return moves


def _query_of_row(
    context: QueryContext, node: tuple[OpenNode, tuple[int, ...]], row: int, attribute: int, score: float
) -> Query:
    """Return the query about a row of a node, which stands for the child of the rival that it moves most."""
    code = int(context.sample.contingency(np.array([row]), (attribute,))[attribute].any(axis=1).argmax())
    return query_of_child(context, node, (attribute, code), row, score, REASON)
