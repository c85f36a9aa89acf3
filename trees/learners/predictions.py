"""Predictions of learned models: class, probabilities, bounds, masses, and undominated classes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, overload

import numpy as np

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.belief.mass import MassFunction
from quercus.belief.measures import pignistic
from quercus.belief.sums import sums_of_supersets
from quercus.trees.learners.metrics import undominated
from quercus.trees.learners.nested import mass_function, pignistic_of
from quercus.trees.rules.ties import TIE

NO_ROWS = np.zeros(0, dtype=np.int64)
NO_ROWS.setflags(write=False)


class RepeatedMasses(Sequence[MassFunction]):
    """One mass function per row, many of them equal.

    Parameters
    ----------
    distinct
        The distinct mass functions.
    which
        (n,) index of each row's mass function.
    """

    def __init__(self, distinct: Sequence[MassFunction], which: Ints) -> None:
        self.distinct = tuple(distinct)
        self.which = which

    def __len__(self) -> int:
        return len(self.which)

    @overload
    def __getitem__(self, row: int) -> MassFunction: ...
    @overload
    def __getitem__(self, row: slice) -> "RepeatedMasses": ...
    def __getitem__(self, row: int | slice) -> "MassFunction | RepeatedMasses":
        if isinstance(row, slice):
            return RepeatedMasses(self.distinct, self.which[row])
        return self.distinct[int(self.which[row])]


class DenseMasses(Sequence[MassFunction]):
    """One mass function per row, stored as the masses (n, 2^l) of every set by its bit mask."""

    def __init__(self, masses: Floats) -> None:
        self.masses = masses

    def __len__(self) -> int:
        return len(self.masses)

    @overload
    def __getitem__(self, row: int) -> MassFunction: ...
    @overload
    def __getitem__(self, row: slice) -> "DenseMasses": ...
    def __getitem__(self, row: int | slice) -> "MassFunction | DenseMasses":
        return DenseMasses(self.masses[row]) if isinstance(row, slice) else mass_function(self.masses[row])


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions for n rows.

    Parameters
    ----------
    klass
        (n,) predicted class: the likeliest; of tied ones, the first.
    theta
        (n, l) probability of each class; BetP of the mass function, if there is one.
    belief, plausibility
        (n, l) lower and upper bound of the probability of each class; theory §1.5 defines the bounds of each learner.
    masses
        One mass function per row; None if the model has none.
    nodes
        (n,) node of the tree where the row ends; if there are several, their last common node. None if the model has
        several trees.
    several
        Rows that may end at several nodes of the only tree; the others have the predictions of their node.
    conflict
        (n,) bool: the combined evidence is in total conflict, so that the mass is a mean.
    ranking
        (n, l) criterion for the class, if it is not the probability: OBE takes the most plausible class.
    """

    klass: Ints
    theta: Floats
    belief: Floats
    plausibility: Floats
    masses: Sequence[MassFunction] | None = None
    nodes: Ints | None = None
    several: Ints = field(default_factory=lambda: NO_ROWS)
    conflict: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    ranking: Floats | None = None

    def __post_init__(self) -> None:
        if not self.conflict.size:
            object.__setattr__(self, "conflict", np.zeros(len(self.klass), dtype=bool))

    def __len__(self) -> int:
        return len(self.klass)

    def ending_at(self, nodes: Ints, several: Ints = NO_ROWS) -> "Predictions":
        """Return the same predictions with the nodes where the rows end (``dataclasses.replace`` is slow)."""
        return Predictions(
            self.klass,
            self.theta,
            self.belief,
            self.plausibility,
            self.masses,
            nodes,
            several,
            self.conflict,
            self.ranking,
        )

    @property
    def pignistic(self) -> Floats:
        """(n, l) pignistic probability of each class; the same as `theta`."""
        return self.theta

    @property
    def likeliest(self) -> Bools:
        """The classes that are tied for the prediction, (n, l); all of them if nothing is known."""
        return tied_for_largest(self.theta if self.ranking is None else self.ranking)

    @property
    def classes(self) -> Bools:
        """The set-valued predictions, (n, l): the undominated classes.

        A class dominates another when its belief exceeds the other's plausibility (interval dominance).
        """
        return undominated(self.belief, self.plausibility)

    @classmethod
    def of_masses(cls, size: int, distinct: Sequence[MassFunction], index: Ints) -> "Predictions":
        """Return the predictions of mass functions on `size` classes: row i has number ``index[i]`` of `distinct`."""
        theta = np.array([pignistic(mass) for mass in distinct]).reshape(-1, size)
        belief = np.array([singleton_beliefs(mass) for mass in distinct]).reshape(-1, size)
        plausibility = np.array([mass.contour() for mass in distinct]).reshape(-1, size)
        return cls(
            first_most_likely(theta)[index],
            theta[index],
            belief[index],
            plausibility[index],
            RepeatedMasses(distinct, index),
        )

    @classmethod
    def of_dense(cls, masses: Floats, conflict: Bools) -> "Predictions":
        """Return the predictions of masses (n, 2^l) of all sets, by their bit masks."""
        size = masses.shape[1].bit_length() - 1
        theta = pignistic_of(masses)
        plausibility = np.minimum(sums_of_supersets(masses), 1.0)
        return cls(
            first_most_likely(theta),
            theta,
            masses[:, 1 << np.arange(size)],
            plausibility,
            DenseMasses(masses),
            conflict=conflict,
        )


class RowPrediction(NamedTuple):
    """The prediction for one row of known values, see `Predictions`, in plain numbers, which are faster than arrays."""

    klass: int
    theta: list[float]
    belief: list[float]
    plausibility: list[float]
    node: int


def first_most_likely(theta: Floats) -> Ints:
    """Return the first class of each row (n, l) that is tied with the largest, (n,)."""
    found: Ints = np.argmax(tied_for_largest(theta), axis=1)
    return found


def tied_for_largest(theta: Floats) -> Bools:
    """Return which classes of each row (n, l) are tied with the largest (theory §3.5)."""
    leading: Bools = theta >= theta.max(axis=1, keepdims=True, initial=0.0) - TIE
    return leading


def singleton_beliefs(mass: MassFunction) -> tuple[float, ...]:
    """Return the belief of each class, (l,): the mass of its singleton."""
    known = dict(mass.focal)
    return tuple(known.get(1 << c, 0.0) for c in range(mass.size))
