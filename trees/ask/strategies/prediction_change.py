"""Expected change of the predictions: asks about the row whose answer is expected to change the predictions most.

The score of a row is ``n_L Σ_c p_c TV(θ̂_L, θ̂_L | c)``: the number of rows in its leaf ``L``, times the expected total
variation between the leaf's estimates before and after the answer that the row is of class ``c``. The probabilities
``p_c`` are those of `hypothetical.HypotheticalAnswers.class_chances`. Ties are broken by the larger sum of
plausibilities, then by hash (`row_sample.row_hashes`).

No row scores more than the number of rows in its leaf, so only leaves that may contain the best row are examined. At
most 16 distinct contours are tried per leaf.
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.specification.parameter import parametric
from quercus.trees.ask.query import Query, QueryContext, QueryPosition
from quercus.trees.ask.reasons import Reason
from quercus.trees.ask.strategies.hypothetical import HypotheticalAnswers, frequent_contours, in_order
from quercus.trees.ask.strategies.leaf_queries import LeafRows
from quercus.trees.ask.strategies.strategy import Strategy
from quercus.trees.rules.ties import TIE

LEAF_CONTOURS = 16  # maximum number of distinct contours tried among the candidates of a leaf

REASON = Reason("This label is expected to change the predictions of most rows.")


@parametric
class PredictionChange(Strategy):
    """The row whose answer is expected to change the predictions of most rows."""

    name: ClassVar[str] = "prediction-change"

    def queries(self, context: QueryContext, _last: QueryPosition | None, _limit: int) -> Iterator[Query]:
        """See `quercus.trees.ask.strategies.strategy.Strategy`."""
        sample, leaves, trial = context.sample, LeafRows(context), HypotheticalAnswers(context)
        candidates = sample.candidates(np.arange(len(sample.ids)))
        waiting = np.bincount(leaves.of[candidates], minlength=leaves.count.size)
        bound = np.where(waiting > 0, leaves.count.astype(float), -1.0)
        best: dict[int, list[tuple[int, float]]] = {}  # rows of examined leaves, best last
        while (bound >= 0).any():
            leaf = int((bound >= bound.max() - TIE).argmax())
            if leaf not in best:
                rows = sample.candidates(leaves.rows_of_leaf(leaf))
                rows, scores = _candidate_scores(context, trial, leaves.rows_of_leaf(leaf), rows)
                best[leaf] = list(zip(rows[::-1].tolist(), scores[::-1].tolist(), strict=True))
            else:
                row, score = best[leaf].pop()
                yield leaves.query_about(row, score, REASON)
            bound[leaf] = best[leaf][-1][1] if best[leaf] else -1.0


def _candidate_scores(
    context: QueryContext, trial: HypotheticalAnswers, rows: Ints, candidates: Ints
) -> tuple[Ints, Floats]:
    """Return the candidates whose contours are tried, best first, and their scores; `rows` are those of the leaf."""
    sample = context.sample
    counts = sample.counts(rows)
    contours = frequent_contours(context, candidates, LEAF_CONTOURS)
    (now,), _ = trial.solver.estimate_cells(trial.cells_before_answer(counts))
    then, _ = trial.solver.estimate_cells(trial.cells_after_answers(counts, contours))
    moved = np.abs(then.reshape(contours.size, trial.classes, -1) - now).sum(axis=2) / 2
    worth = np.zeros(sample.table.size)
    worth[contours] = rows.size * (trial.class_chances(counts, contours) * moved).sum(axis=1)
    kept = candidates[np.isin(sample.ids[candidates], contours)]
    scores = worth[sample.ids[kept]]
    order = in_order(context, kept, scores)
    return kept[order], scores[order]
