"""Two kinds of doubt about a class: overlap, which further labels hardly reduce, and ignorance, which they do reduce.

The doubt of a prediction is the entropy of its probabilities. Theory §10.9 defines the part of it that is overlap; the
rest is ignorance.
"""

from dataclasses import dataclass

import numpy as np

from quercus.belief.arrays import Floats


@dataclass(frozen=True, eq=False)
class Doubt:
    """The doubt of predictions.

    Parameters
    ----------
    overlap
        (n,) bits of doubt because rows of several classes are alike; further labels hardly reduce it.
    ignorance
        (n,) bits of doubt because too little is known about rows like this one; further labels reduce it.
    """

    overlap: Floats
    ignorance: Floats

    @classmethod
    def of(cls, theta: Floats, overlap: Floats) -> "Doubt":
        """Return the doubt of predictions: the entropy of the probabilities, divided into overlap and ignorance.

        Parameters
        ----------
        theta
            (n, l) probabilities.
        overlap
            (n,) overlap in bits; what exceeds the entropy is cut off.

        Examples
        --------
        >>> doubt = Doubt.of(np.array([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]]), np.array([0.25, 0.1, 1.5]))
        >>> doubt.overlap.tolist(), doubt.ignorance.tolist()
        ([0.25, 0.0, 1.0], [0.75, 0.0, 0.0])
        """
        entropy = entropies(theta)
        mine = np.minimum(overlap, entropy)
        return cls(mine, entropy - mine)


def entropies(theta: Floats) -> Floats:
    """Return the Shannon entropy of each row (n, l) in bits, (n,)."""
    some = np.where(theta > 0.0, theta, 1.0)
    return np.asarray(0.0 - (some * np.log2(some)).sum(axis=1))
