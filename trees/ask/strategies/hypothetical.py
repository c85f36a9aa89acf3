"""The effect of a hypothetical answer on a node."""

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.belief.contour import largest_one
from quercus.trees.ask.query import QueryContext
from quercus.trees.ask.strategies.row_sample import row_hashes
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver


class HypotheticalAnswers:
    """Hypothetical answers, which change neither the evidence nor its solver.

    Parameters
    ----------
    context
        The evidence.

    Attributes
    ----------
    solver : solver over the contours of the evidence, with the same numbers, followed by the l precise ones
    classes : size of the frame, l
    """

    def __init__(self, context: QueryContext) -> None:
        contours = context.sample.table.contours
        self._known, self.classes = contours.shape
        self._contours = largest_one(contours)
        self.solver = IntervalSolver(
            np.concatenate([contours, np.eye(self.classes)]),
            context.solver.alpha,
            effort=context.solver.effort,
        )

    def class_chances(self, counts: Ints, contours: Ints) -> Floats:
        """Return the probability of each class for rows of a node: (k, l).

        It is the mean of the class's belief and plausibility over the node's likelihood cut, times the row's own
        plausibility, normalised. A class that has not occurred in the node therefore has a probability above 0, which
        is the smaller, the more rows of the node are labelled.

        Parameters
        ----------
        counts
            (d,) number of occurrences of each distinct contour in the node.
        contours
            (k,) numbers of the rows' contours.
        """
        belief, plausibility = self.solver.class_bounds(self._pad_for_classes(counts[np.newaxis])[0])
        chance = (belief + plausibility) * self._contours[contours]
        total = chance.sum(axis=1, keepdims=True)
        even = self._contours[contours] / self._contours[contours].sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0, chance / np.where(total > 0, total, 1.0), even))

    def cells_before_answer(self, counts: Ints) -> Cells:
        """Return the labels of a node as a cell, given the count (d,) of each distinct contour."""
        return Cells.of_dense(self._pad_for_classes(counts[np.newaxis]))

    def cells_after_answers(self, counts: Ints, contours: Ints) -> Cells:
        """Return the labels of a node after each possible answer, as k l cells: for each of `contours` (k,), by class.

        In each cell, one row with that contour is answered; `counts` (d,) are the labels before the answer.
        """
        tried = np.repeat(self._pad_for_classes(counts[np.newaxis]), contours.size * self.classes, axis=0)
        every = np.arange(len(tried))
        tried[every, np.repeat(contours, self.classes)] -= 1
        tried[every, self._known + every % self.classes] += 1
        return Cells.of_dense(tried)

    def _pad_for_classes(self, counts: Ints) -> Ints:
        return np.pad(counts, ((0, 0), (0, self.classes)))


def frequent_contours(context: QueryContext, rows: Ints, most: int) -> Ints:
    """Return the numbers (k,) of up to `most` contours of rows, those with the largest sums of plausibilities."""
    contours = np.unique(context.sample.ids[rows]).astype(np.int64)
    totals = context.sample.table.contours[contours].sum(axis=1)
    return np.sort(contours[np.argsort(-totals, kind="stable")[:most]])


def in_order(context: QueryContext, rows: Ints, scores: Floats) -> Ints:
    """Return positions of rows by descending score; ties by descending sum of plausibilities, then by hash.

    Scores that differ by less than half of 1e-9 count as equal (theory §3.5).
    """
    totals = context.sample.table.contours[context.sample.ids[rows]].sum(axis=1)
    return np.lexsort((row_hashes(rows), -totals, -np.round(scores, 9)))
