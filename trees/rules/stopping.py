"""The stopping rules of ABC4.5 (theory §3.4, §12), for many nodes at once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.trees.rules.ties import TIE
from quercus.trees.tree.node import Stop

GOES_ON = 0  # in place of a reason: nothing stops the node so far


def stops_before(
    counts: NDArray[Any],
    estimates: tuple[Floats, Bools],
    depths: NDArray[np.integer],
    min_instances: int,
    max_depth: int | None,
) -> Ints:
    """Return why nodes must not be split, whatever the gain: the number of the `Stop`, or `GOES_ON`, (m,).

    Parameters
    ----------
    counts
        (m,) number of rows in each node, or the sum of their weights.
    estimates
        (m, l) maximum likelihood estimates, and (m,) whether each is the only maximiser.
    depths
        (m,) number of tests above each node.
    min_instances, max_depth
        See `quercus.specification.model.Specification`.
    """
    theta, unique = estimates
    few = counts < min_instances - TIE
    pure = unique & (theta.max(axis=1) >= 1 - TIE)
    deep = np.zeros(few.shape, bool) if max_depth is None else depths >= max_depth
    late = np.where(deep, Stop.MAX_DEPTH.value, GOES_ON)
    return np.where(few, Stop.FEW_INSTANCES.value, np.where(pure, Stop.PURE.value, late))


def stops_after(split: Ints, most: Floats, justified: Bools) -> Ints:
    """Return why the gains of nodes do not justify a split: the number of the `Stop`, or `GOES_ON`, (m,).

    Parameters
    ----------
    split
        (m,) the best split, -1 where there is no candidate.
    most
        (m, k) upper ends of the candidates' gain ratios; NaN for other splits.
    justified
        (m,) whether a split is earned, or need not be (theory §12).
    """
    stop = np.where(justified, GOES_ON, Stop.NOT_SIGNIFICANT.value)
    stop[np.fmax.reduce(most, axis=1) <= TIE] = Stop.NO_GAIN.value
    stop[split < 0] = Stop.NO_ATTRIBUTE.value
    return stop


def stop_reason(stop: int) -> Stop | None:
    """Return the reason that a number stands for, or None if growth continues."""
    return None if stop == GOES_ON else Stop(stop)
