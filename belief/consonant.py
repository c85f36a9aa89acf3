"""Contours of maximum 1 as consonant mass functions, many at once (theory §1.3)."""

import numpy as np

from quercus.belief.arrays import Floats


def consonant_pignistic(contours: Floats) -> Floats:
    """Return the pignistic probabilities of the consonant mass functions of contours (n, l) of maximum 1.

    Examples
    --------
    >>> consonant_pignistic(np.array([[1.0, 0.5, 0.0]])).tolist()
    [[0.75, 0.25, 0.0]]
    """
    order = np.argsort(-contours, axis=1, kind="stable")
    falling = np.take_along_axis(contours, order, axis=1)
    steps = falling - np.column_stack([falling[:, 1:], np.zeros(len(contours))])
    shares = steps / np.arange(1, contours.shape[1] + 1)
    found = np.empty(contours.shape)
    np.put_along_axis(found, order, np.cumsum(shares[:, ::-1], axis=1)[:, ::-1], axis=1)
    return found
