"""Prediction sets and the doubt about a class in words, for the terminal and the console."""

from __future__ import annotations

import math
from typing import Final

from quercus.client.classifications import CoverageBasis, PredictionSets
from quercus.specification.shares import percent_text
from quercus.view.words import counted

NO_DOUBT: Final = 0.005
"""Bits of doubt below which there is none in words."""


def share_text(coverage: float) -> str:
    """Return a coverage in percent, with as many decimals as it needs.

    Examples
    --------
    >>> [share_text(coverage) for coverage in (0.9, 0.95, 0.999)]
    ['90 %', '95 %', '99.9 %']
    """
    return percent_text(coverage, 0 if abs(100 * coverage - round(100 * coverage)) < 1e-9 else 1)


def coverage_text(sets: PredictionSets) -> str:
    """Return the guarantee of prediction sets, and the rows that it is based on, in a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> none = np.empty(0, np.uint64)
    >>> coverage_text(PredictionSets(none, 0.9, 950, CoverageBasis.LABELLED))
    'sets of 90 %: measured on 950 rows that were predicted before their label came'
    >>> coverage_text(PredictionSets(none, 0.9, 60, CoverageBasis.WEIGHTED)).partition("; ")[2]
    'as these were asked about, sets are often too large'
    >>> coverage_text(PredictionSets(none, 0.95, 10, CoverageBasis.LABELLED))
    'sets of 95 %: all classes, since 10 rows were predicted without their label; 19 are needed'
    >>> coverage_text(PredictionSets(none, 0.95, 0, CoverageBasis.NONE)).partition("; ")[2]
    '19 are needed, of a learner that keeps them, as active-forest does'
    """
    head, needed = f"sets of {share_text(sets.coverage)}", scores_needed(sets.coverage)
    if not sets.scores:
        return (
            f"{head}: all classes, since no row was predicted before its label came; {needed:,} are needed, "
            "of a learner that keeps them, as active-forest does"
        )
    rows = counted(sets.scores, "row")
    if sets.scores < needed:
        were = "was" if sets.scores == 1 else "were"
        return (
            f"{head}: all classes, since {rows} {were} predicted without their label; {needed:,} are needed"
        )
    if sets.basis is CoverageBasis.WEIGHTED:
        return (
            f"{head}: measured on {rows} that were predicted without their label; "
            "as these were asked about, sets are often too large"
        )
    return f"{head}: measured on {rows} that were predicted before their label came"


def scores_needed(coverage: float) -> int:
    """Return the number of rows predicted before their label arrived that sets of a coverage need.

    Examples
    --------
    >>> [scores_needed(coverage) for coverage in (0.5, 0.8, 0.9, 0.95, 0.99)]
    [1, 4, 9, 19, 99]
    """
    return math.ceil(coverage / (1.0 - coverage) - 1e-9)


def doubt_text(overlap: float, ignorance: float) -> str:
    """Return which part of the doubt labels can settle, and how many bits it has of either kind.

    Examples
    --------
    >>> doubt_text(0.52, 0.29)
    'more labels can settle 36 % of the doubt; classes are alike in the rest (ignorance 0.29, overlap 0.52 bits)'
    >>> doubt_text(0.0, 0.29), doubt_text(0.0, 0.001)
    ('more labels can settle the doubt (ignorance 0.29 bits)', 'no doubt')
    >>> doubt_text(0.52, 0.0)
    'more labels can hardly settle the doubt: classes are alike here (overlap 0.52 bits)'
    """
    total = overlap + ignorance
    if total < NO_DOUBT:
        return "no doubt"
    if overlap < NO_DOUBT:
        return f"more labels can settle the doubt (ignorance {ignorance:.2f} bits)"
    if ignorance < NO_DOUBT:
        return f"more labels can hardly settle the doubt: classes are alike here (overlap {overlap:.2f} bits)"
    bits = f"ignorance {ignorance:.2f}, overlap {overlap:.2f} bits"
    share = percent_text(ignorance / total)
    return f"more labels can settle {share} of the doubt; classes are alike in the rest ({bits})"
