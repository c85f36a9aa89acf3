"""The greatest log likelihood of cells, with proof (theory §2.2)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.trees.likelihood.solver.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Masks = NDArray[np.uint64]

OCCURS = 1e-6  # probability from which a class counts as one that occurs


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
        """Return arrays of this shape with the values at these places, and cells without a label elsewhere."""
        spread = LikelihoodMaxima(
            np.zeros(shape), np.zeros(shape), np.zeros(shape, np.uint64), np.zeros(shape)
        )
        for name in ("reached", "bound", "classes", "weight"):
            getattr(spread, name)[at] = getattr(self, name)
        return spread


@compiled
def bound_maxima(
    start: Ints,
    ids: Ids,
    counts: Floats,
    contours: Floats,
    theta: Floats,
    reached: Floats,
    bound: Floats,
    classes: Masks,
    weights: Floats,
) -> None:
    """Write the fields of `LikelihoodMaxima`, (m,) each.

    Parameters
    ----------
    start, ids, counts : the cells, see `quercus.trees.likelihood.cells.Cells`
    contours : (d, l)
    theta : (m, l) estimates
    reached, bound, classes, weights : (m,) written
    """
    score = np.empty(
        contours.shape[1]
    )  # of each class; none is above the weight where θ is a maximiser (theory §2.2)
    for i in range(reached.shape[0]):
        value, weight = 0.0, 0.0
        for c in range(score.shape[0]):
            score[c] = 0.0
        for e in range(start[i], start[i + 1]):
            contour = contours[ids[e]]
            least, most, chance = contour[0], contour[0], 0.0
            for c in range(contour.shape[0]):
                least, most = min(least, contour[c]), max(most, contour[c])
                chance += theta[i, c] * contour[c]
            if least == most:  # the label is vacuous
                continue
            value += counts[e] * np.log(chance / most)
            weight += counts[e]
            for c in range(contour.shape[0]):
                score[c] += counts[e] * contour[c] / chance
        reached[i] = value
        weights[i] = weight
        top = score[0]
        for c in range(score.shape[0]):
            top = max(top, score[c])
        bound[i] = min(value + max(top - weight, 0.0), 0.0)
        classes[i] = 0
        if weight > 0.0:
            for c in range(contours.shape[1]):
                if theta[i, c] > OCCURS:
                    classes[i] |= np.uint64(1) << np.uint64(c)
