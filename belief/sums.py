"""Sums whose terms are added in a fixed order, so that they are bit-identical on every processor.

BLAS (NumPy's ``@`` and `numpy.dot`) adds in an order that depends on the processor, and on how many rows are
multiplied at once.
"""

import numpy as np

from quercus.belief.arrays import Floats


def weighted_sum(weights: Floats, rows: Floats) -> Floats:
    """Return ``Σ_i w_i x_i`` of rows (n, d), added in the order of rows: float64 (d,).

    Examples
    --------
    >>> weighted_sum(np.array([1.0, 2.0]), np.array([[1.0, 0.0], [0.5, 3.0]])).tolist()
    [2.0, 6.0]
    """
    found: Floats = np.einsum("i,ij->j", weights, rows)
    return found


def sums_of_supersets(masses: Floats) -> Floats:
    """Return for each class the sum of numbers (n, 2^l) of all sets over the sets that hold it, float64 (n, l).

    Column = bit mask of the set. The sets are folded class by class, the last class first.

    Examples
    --------
    >>> sums_of_supersets(np.array([[0.0, 0.5, 0.25, 0.25]])).tolist()
    [[0.75, 0.5]]
    """
    size = masses.shape[-1].bit_length() - 1
    sums = np.empty((*masses.shape[:-1], size))
    for c in reversed(range(size)):
        without, within = masses[..., : 1 << c], masses[..., 1 << c :]
        sums[..., c] = within.sum(axis=-1)
        masses = without + within
    return sums
