"""The update of distances and gains when a candidate is asked about."""

import numpy as np

from quercus.belief.arrays import Ints
from quercus.kernels.forest import covering_gains


def take_candidate(far: Ints, near: Ints, gains: Ints, candidate: int) -> None:
    """Update `near` and `gains` in place, to the values that computing them anew would give.

    The gains of others fall only for rows that are nearer to the candidate than to the known rows. These become fewer
    and fewer, and only they are computed.

    Parameters
    ----------
    far
        (n, m) distances of candidates from rows.
    near
        (m,) distance of each row from the nearest known one.
    gains
        (n,) gain of each candidate: the sum of the distances that it would save, see `covering_gains`.
    candidate
        The one that is asked about.
    """
    nearer = np.flatnonzero(far[candidate] < near)
    before, now = near[nearer], far[candidate, nearer]
    some = np.ascontiguousarray(far[:, nearer])
    gains += covering_gains(some, now) - covering_gains(some, before)
    near[nearer] = now
