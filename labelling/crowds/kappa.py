"""Agreement beyond chance: Cohen's kappa for two labellers, Krippendorff's alpha for any number.

Sources: J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20 (1960);
K. Krippendorff, "Content Analysis", 3rd ed., Sage (2013), §12.3, for nominal data with missing values.
"""

from __future__ import annotations

import numpy as np

from quercus.belief.arrays import Ints


def cohen_kappa(counts: Ints) -> float | None:
    """Return Cohen's kappa of two labellers; None if chance explains all agreement, or there are no instances.

    Parameters
    ----------
    counts
        int64 (l, l): instances by the class that each of the two labellers named.

    Examples
    --------
    >>> cohen_kappa(np.array([[20, 5], [10, 15]]))
    0.4
    >>> cohen_kappa(np.array([[7, 0], [0, 0]])) is None
    True
    """
    total = int(counts.sum())
    by_chance = int((counts.sum(axis=0) * counts.sum(axis=1)).sum())
    if total**2 == by_chance:
        return None
    same = int(np.trace(counts))
    return (same * total - by_chance) / (total**2 - by_chance)


def krippendorff_alpha(counts: Ints) -> float | None:
    """Return Krippendorff's alpha for nominal data; None if only one class was named, or there are no instances.

    Parameters
    ----------
    counts
        int64 (n, l): number of labellers who named each class, by instance. Rows sum to at least 2.

    Examples
    --------
    >>> krippendorff_alpha(np.array([[2, 0], [0, 2]]))
    1.0
    """
    each = counts.sum(axis=1)
    named = counts.sum(axis=0)
    total = int(each.sum())
    expected = total**2 - int((named**2).sum())
    if not expected:
        return None
    unlike = float(((each**2 - (counts**2).sum(axis=1)) / (each - 1)).sum())
    return 1.0 - (total - 1) * unlike / expected
