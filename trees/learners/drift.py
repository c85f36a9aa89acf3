"""Detection of drift in bounded windows at the end of a log (theory §18).

The signal is a function of the log: of the last 1,000 labels that arrived after a prediction, and of the last 2,500
rows. It therefore needs no state, and a change is reported for as long as it lies in these windows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Ints
from quercus.trees.learners.recent_accuracy import AccuracyBlock

CONFIDENCE: Final = 0.02
"""Level of the test of the accuracy; it is divided by the logarithm of the window's length (ADWIN)."""
ROWS_LEVEL: Final = 1e-3
"""Level of the test of the rows; it is divided by the number of attributes."""
RECENT_ROWS: Final = 500
REFERENCE_ROWS: Final = 2_000
"""Number of rows before the recent ones, with which these are compared; with fewer than `RECENT_ROWS` there is no
test."""
STEP_ROWS: Final = 100
"""The recent rows end at the last multiple of this number of rows."""
LEAST_DISTANCE: Final = 0.1
"""Total variation distance below which a difference is ignored, however significant."""
LEAST_EXPECTED: Final = 5.0
"""Minimum expected count of a code: rarer codes are counted together."""


@dataclass(frozen=True, slots=True)
class AccuracyFall:
    """A fall of the accuracy on recent labels.

    Attributes
    ----------
    before, since
        Mean accuracy before the change, and since, in [0, 1].
    labels
        Number of labels since the change.
    """

    before: float
    since: float
    labels: int


@dataclass(frozen=True, slots=True)
class Drift:
    """Recent changes; there are none if both fields are empty.

    Attributes
    ----------
    accuracy
        The fall of the accuracy; None if there is none.
    attributes
        The attributes whose values differ in the recent rows from those before: number and total variation distance of
        each, the largest distance first.
    """

    accuracy: AccuracyFall | None = None
    attributes: tuple[tuple[int, float], ...] = field(default=())


def accuracy_fall(blocks: Sequence[AccuracyBlock], confidence: float = CONFIDENCE) -> AccuracyFall | None:
    """Return the fall of the accuracy within the last blocks, at the clearest cut; None if there is none.

    A cut between blocks counts if the mean error rises across it by more than ADWIN's bound
    ``√(2 σ² ln(1/δ) / m) + 2 ln(1/δ) / (3 m)``, with ``1/m = 1/n₀ + 1/n₁`` and ``δ`` the confidence divided by the
    logarithm of the number of rows. Source: Bifet, Gavaldà 2007, one-sided.

    Examples
    --------
    >>> good, bad = AccuracyBlock(50, 50, 45, 45.0), AccuracyBlock(50, 50, 20, 20.0)
    >>> accuracy_fall([good] * 6 + [bad] * 2), accuracy_fall([bad] * 6 + [good] * 2)
    (AccuracyFall(before=0.9, since=0.4, labels=100), None)
    """
    known = [block for block in blocks if block.rows]
    rows = list(accumulate(block.rows for block in known))
    right = list(accumulate(block.expected for block in known))
    if len(known) < 2:
        return None
    mean = right[-1] / rows[-1]
    doubt = math.log(max(math.log(rows[-1]), 1.0) / confidence)
    found, clearest = None, 0.0
    for n, r in zip(rows[:-1], right[:-1], strict=True):
        before, since = r / n, (right[-1] - r) / (rows[-1] - n)
        weight = 1.0 / (1.0 / n + 1.0 / (rows[-1] - n))
        bound = math.sqrt(2.0 * mean * (1.0 - mean) * doubt / weight) + 2.0 * doubt / (3.0 * weight)
        if before - since - bound > clearest:
            found, clearest = AccuracyFall(before, since, rows[-1] - n), before - since - bound
    return found


def changed_attributes(
    codes: NDArray[np.integer], starts: Ints, level: float = ROWS_LEVEL
) -> list[tuple[int, float]]:
    """Return the attributes whose codes differ between the recent rows and those before, the most changed first.

    The test is a two-sample χ² test of the counts of codes (missing values have a code), at a level divided by the
    number of attributes.

    Parameters
    ----------
    codes
        (n, K) codes of all rows.
    starts
        (K,) number of the first row that has each attribute.
    level
        Level of the test for all attributes together.

    Returns
    -------
    list of (attribute, distance)
        Distance: the total variation distance, in [0, 1].
    """
    end = len(codes) // STEP_ROWS * STEP_ROWS
    recent = end - RECENT_ROWS
    found = []
    for k, start in enumerate(starts.tolist()):
        first = max(start, recent - REFERENCE_ROWS)
        if recent - first < RECENT_ROWS:
            continue
        column = codes[first:end, k].astype(np.int64)
        size = int(column.max(initial=0)) + 1
        before, since = (
            np.bincount(part, minlength=size) for part in (column[: recent - first], column[recent - first :])
        )
        distance = 0.5 * float(np.abs(before / before.sum() - since / since.sum()).sum())
        if distance >= LEAST_DISTANCE and _chance(before, since) < level / codes.shape[1]:
            found.append((k, distance))
    return sorted(found, key=lambda each: (-each[1], each[0]))


def _chance(before: Ints, since: Ints) -> float:
    """Return the p-value of the hypothesis that two samples of counts (codes,) come from one distribution."""
    from scipy.special import chdtrc  # noqa: PLC0415  (11 MB of memory that a server without growth does not need)

    share = since.sum() / (before.sum() + since.sum())
    both = before + since
    common = both * min(share, 1.0 - share) >= LEAST_EXPECTED
    counts = np.array([[*part[common], part[~common].sum()] for part in (before, since)], dtype=np.float64)
    counts = counts[:, counts.sum(axis=0) > 0]
    expected = counts.sum(axis=0) * np.array([[1.0 - share], [share]])
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return float(chdtrc(max(1, counts.shape[1] - 1), statistic)) if counts.shape[1] > 1 else 1.0
