"""The best candidate of a node by itself: the product keeps its candidates from round to round."""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.ask.candidate import ChildCandidates
from quercus.trees.growth.sample import Sample
from quercus.trees.likelihood.interval import IntervalSolver


def best_candidate(
    sample: Sample, solver: IntervalSolver, rows: NDArray[np.int64], candidates: NDArray[np.int64]
) -> tuple[int, float]:
    """Return the candidate whose removal narrows the child most, and its score (theory §3.3, ties §3.5)."""
    best = ChildCandidates(sample, solver, rows, candidates, 1).best_candidate(
        np.ones(len(sample.ids), dtype=bool)
    )
    assert best is not None
    return best
