"""Precise labels made vacuous, imprecise, noisy or uncertain (theory §8; Ma 2016, §4; Gao 2022, §5).

Every row has the same number of draws, made row by row: what becomes of a row depends on the seed and its place alone,
not on how many rows follow. The draws do not depend on the levels either: a row that is vacuous at V = .3 is so at
V = .4, which makes curves over a level smooth.
"""

from dataclasses import dataclass, fields

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput

_CHANCES = 5
"""Draws of a row that are not one a class: vacuous, imprecise, noisy, uncertain, the class drawn anew."""


@dataclass(frozen=True)
class Corruption:
    """The amount of each kind of corruption; 0 is none.

    Parameters
    ----------
    vacuous
        V, chance that a row's label says nothing.
    imprecise
        I, chance that a row's label is a set, and the chance of each other class to be in it.
    noise
        N, chance that a row's class is drawn anew, uniformly.
    uncertain
        U, chance that each other class gets a plausibility, and the largest it may get.
    unit
        Draw that plausibility from [0, 1] rather than [0, U], as the belief-entropy paper does.

    Raises
    ------
    InvalidInput
        When a level lies outside [0, 1].
    """

    vacuous: float = 0.0
    imprecise: float = 0.0
    noise: float = 0.0
    uncertain: float = 0.0
    unit: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0.0 <= value <= 1.0:
                raise InvalidInput(field.name, f"is {value}, must lie in [0, 1]")


def corrupt(targets: Ints, size: int, corruption: Corruption, seed: np.random.SeedSequence) -> Floats:
    """Return the contours (n, l) of corrupted labels.

    The class is drawn anew first, then come plausibilities, then a set, and a vacuous label swallows all.

    Parameters
    ----------
    targets
        (n,) true classes.
    size
        Number of classes ``l``.
    corruption
        Levels.
    seed
        Seed of the draws.

    Examples
    --------
    >>> corrupt(np.array([0, 1]), 2, Corruption(), np.random.SeedSequence(0)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rows = len(targets)
    draws = np.random.default_rng(seed).random((rows, _CHANCES + 2 * size))
    vacuous, imprecise, noisy, uncertain, anew = draws[:, :_CHANCES].T
    joins, plausibilities = draws[:, _CHANCES : _CHANCES + size], draws[:, _CHANCES + size :]
    redrawn = np.minimum((anew * size).astype(np.int64), size - 1)
    contours: Floats = np.eye(size)[np.where(noisy < corruption.noise, redrawn, targets)]
    top = 1.0 if corruption.unit else corruption.uncertain
    doubtful = (uncertain < corruption.uncertain)[:, np.newaxis]
    contours = np.where(doubtful, np.maximum(contours, top * plausibilities), contours)
    sets = (imprecise < corruption.imprecise)[:, np.newaxis] & (joins < corruption.imprecise)
    contours[sets] = 1.0
    contours[vacuous < corruption.vacuous] = 1.0
    return contours
