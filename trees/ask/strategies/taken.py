"""What covering changes when a candidate is asked about."""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.ask.strategies.covering import covering_gains

Ints = NDArray[np.int64]


def take_candidate(far: Ints, near: Ints, gains: Ints, candidate: int) -> None:
    """Bring what is known up to date: `near` and `gains` are as if they were computed anew.

    Others bring less where the candidate is nearer than what was known. These are ever fewer rows, and only there
    anything is computed.

    Parameters
    ----------
    far
        (n, m) distances of candidates from rows.
    near
        (m,) distance of each row from what is known.
    gains
        (n,) how much nearer each candidate would bring rows, see `covering_gains`.
    candidate
        The one that is asked about.
    """
    nearer = np.flatnonzero(far[candidate] < near)
    before, now = near[nearer], far[candidate, nearer]
    some = np.ascontiguousarray(far[:, nearer])
    gains += covering_gains(some, now) - covering_gains(some, before)
    near[nearer] = now
