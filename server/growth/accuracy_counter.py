"""The accuracy of the earlier tree on the rows that a part of the log labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from quercus.belief.contour import is_vacuous
from quercus.trees import (
    AccuracyBlock,
    Answered,
    Corrected,
    Edges,
    GrowthState,
    Observed,
    Refused,
    Respecified,
    TreeModel,
    count_rows,
)

MAX_JUDGED_ROWS: int = 2_000
"""Rows of one part that are looked at, the newest: more would fall out of the blocks at once."""


class AccuracyCounter:
    """Counter of the accuracy on rows that some events label for the first time.

    Parameters
    ----------
    state : before the events.
    events : events to grow into it.
    """

    def __init__(
        self, state: GrowthState, events: Sequence[Observed | Answered | Refused | Corrected | Respecified]
    ) -> None:
        self._count = state.instance_count
        heard = {event.instance for event in events if isinstance(event, Answered | Corrected)}
        self._unlabelled = [
            row for row in sorted(heard) if row < self._count and is_vacuous(state.contour(row))
        ]

    def add_new_labels(
        self, blocks: tuple[AccuracyBlock, ...], before: TreeModel, after: GrowthState
    ) -> tuple[AccuracyBlock, ...]:
        """Return the blocks with the rows that the events labelled, as predicted by the earlier tree.

        While the bins of numbers are not settled, codes of before and after differ, and nothing is counted.
        """
        if before.edges != after.edges:
            return blocks
        sample = after.evidence
        rows = np.append(np.array(self._unlabelled, np.int64), np.arange(self._count, after.instance_count))
        rows = rows[~sample.table.vacuous[sample.ids[rows]]][-MAX_JUDGED_ROWS:]
        if not rows.size:
            return blocks
        codes = sample.codes[rows]
        ends = before.flat.route(codes, _numbers_of(codes, after.edges))
        return count_rows(blocks, before.flat.klass[ends], sample.table.contours[sample.ids[rows]])


def _numbers_of(codes: NDArray[np.integer], edges: Edges) -> NDArray[np.float64]:
    """Return a number of each bin (n, K), NaN where it is missing: trees that split at thresholds want numbers.

    Examples
    --------
    >>> _numbers_of(np.array([[0], [1], [2], [3]]), ((1.5, 4.0),)).ravel().tolist()
    [-inf, 1.5, 4.0, nan]
    """
    found = np.zeros(codes.shape)
    for k, cuts in enumerate(edges):
        if cuts:
            of_bins = np.array([-np.inf, *cuts, np.nan])
            found[:, k] = of_bins[np.minimum(codes[:, k], len(cuts) + 1)]
    return found
