"""The greatest log likelihood of cells, with proof (theory §2.2)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Masks = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class LikelihoodMaxima:
    """The greatest log likelihood of cells, in nats, over their informative labels.

    The largest plausibility of each label is scaled to 1, so no value is above 0, and a certain class gives 0.

    Attributes
    ----------
    reached : value at the estimate, a lower bound of the maximum
    bound : proven upper bound of the maximum
    classes : classes with a probability above 1e-6 in the estimate, as bits; 0 without an informative label
    weight : number of informative labels, or the sum of their weights
    """

    reached: Floats
    bound: Floats
    classes: Masks
    weight: Floats

    def spread_over(self, shape: tuple[int, ...], at: tuple[NDArray[Any], ...]) -> "LikelihoodMaxima":
        """Return arrays of this shape with these maxima at the indices `at`, and those of empty cells elsewhere."""
        spread = LikelihoodMaxima(
            np.zeros(shape), np.zeros(shape), np.zeros(shape, np.uint64), np.zeros(shape)
        )
        for name in ("reached", "bound", "classes", "weight"):
            getattr(spread, name)[at] = getattr(self, name)
        return spread
