"""One tree per class against all others, and the combination of their predictions (theory §5)."""

from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import TotalConflict
from quercus.belief.frame import full_mask
from quercus.belief.mass import MassFunction
from quercus.belief.rules import dempster
from quercus.specification.attributes import Attribute
from quercus.specification.parameters import COMBINE
from quercus.trees.learners.cells import UncertainValues
from quercus.trees.learners.nested import log_commonalities_of
from quercus.trees.learners.predicting import LearnedModel, TreeModel, distinct_rows, mean_mass
from quercus.trees.learners.predictions import Predictions, RepeatedMasses
from quercus.trees.tree.flat import FlatTree

NO_DIGITS = 1e-300  # smaller sums have no digits left, and cannot be normalised

Combine = Literal["dempster", "mean"]


@dataclass(frozen=True, eq=False)
class OneAgainstRest(LearnedModel):
    """One tree per class against the rest, and the combination of their masses.

    Parameters
    ----------
    attributes
        Declarations of the columns.
    size
        Number of classes.
    models
        One tree per class; its class 0 is this class, its class 1 the rest.
    combine
        ``"dempster"`` or ``"mean"`` of the vacuous extensions; the mean also in case of total conflict.
    """

    attributes: tuple[Attribute, ...]
    size: int
    models: tuple[TreeModel, ...]
    combine: Combine = COMBINE.default

    @property
    def flat_trees(self) -> tuple[FlatTree, ...]:
        """The trees as arrays."""
        return tuple(model.flat for model in self.models)

    def predict_cells(self, cells: UncertainValues) -> Predictions:
        """Return the combined predictions of the trees for rows of cells."""
        return Predictions.of_masses(self.size, *self._distinct_masses(cells))

    def log_commonalities(self, cells: UncertainValues) -> Floats:
        """Return the log commonality of every set, (n, 2^l), of each row's mass; at most 16 classes."""
        masses, index = self._distinct_masses(cells)
        return np.array([log_commonalities_of(mass) for mass in masses]).reshape(-1, 1 << self.size)[index]

    def _distinct_masses(self, cells: UncertainValues) -> tuple[list[MassFunction], Ints]:
        """Return the distinct masses of rows, and the index of each row's mass."""
        parts = [model.predict_cells(cells).masses for model in self.models]
        shared = [part for part in parts if isinstance(part, RepeatedMasses)]  # all: leaves have masses
        together, index = distinct_rows(np.column_stack([part.which for part in shared]))
        extended = [
            [extend_vacuously(mass, self.size, klass) for mass in part.distinct]
            for klass, part in enumerate(shared)
        ]
        found = []
        for some in together.tolist():
            masses = [part[at] for part, at in zip(extended, some, strict=True)]
            try:
                found.append(reduce(dempster, masses) if self.combine == "dempster" else mean_mass(masses))
            except TotalConflict:  # possible if rows weigh so much that no mass is left on the whole frame
                found.append(mean_mass(masses))
        return found, index


def extend_vacuously(mass: MassFunction, size: int, klass: int) -> MassFunction:
    """Return the vacuous extension of a mass on a class (0) and its complement (1) to the whole frame.

    Examples
    --------
    >>> extend_vacuously(MassFunction(2, ((0b01, 0.5), (0b10, 0.25), (0b11, 0.25))), 3, 1).focal
    ((2, 0.5), (5, 0.25), (7, 0.25))
    """
    whole, single = full_mask(size), 1 << klass
    refined = {0b01: single, 0b10: whole & ~single, 0b11: whole}
    return MassFunction.of(size, [(refined[mask], m) for mask, m in mass.focal])


def pignistic_together(masses: Floats, combine: Combine) -> Floats:
    """Return BetP of the combined masses of one tree per class, (n, l), without enumerating focal sets.

    Tree ``k`` gives ``a_k`` to its class, ``b_k`` to the others, ``c_k`` to all. Under Dempster's rule, ``{k}`` gets
    ``a_k Π_{j≠k} (1 - a_j)``, and a set ``A`` of undecided trees
    ``Π_{j∈A} c_j Π_{j∉A} b_j``. The share of ``k`` in the latter is
    ``c_k Σ_s e_s / (s + 1)`` with ``e_s`` the coefficient of ``z^s`` in ``Π_{j≠k} (b_j + c_j z)``.

    Parameters
    ----------
    masses
        (n, l, 3) masses of each tree: on its class, on the rest, and on both.
    combine
        ``"dempster"`` or ``"mean"``; the mean also in case of total conflict.

    Examples
    --------
    >>> pignistic_together(np.array([[[0.5, 0.25, 0.25], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]]), "mean").round(4).tolist()
    [[0.4444, 0.2361, 0.3194]]
    """
    for_it, against, both = np.moveaxis(masses, -1, 0)
    size = for_it.shape[1]
    others = against / (size - 1)
    averaged: Floats = (
        for_it - others + others.sum(axis=1, keepdims=True) + both.sum(axis=1, keepdims=True) / size
    ) / size
    if combine == "mean":
        return averaged
    betp = np.empty_like(for_it)
    for k in range(size):
        rest = np.delete(np.arange(size), k)
        sets = np.zeros(for_it.shape)  # e_s
        sets[:, 0] = 1.0
        for j in rest:
            grown = sets * against[:, j, np.newaxis]
            grown[:, 1:] += sets[:, :-1] * both[:, j, np.newaxis]
            sets = grown
        betp[:, k] = for_it[:, k] * (1.0 - for_it[:, rest]).prod(axis=1)
        betp[:, k] += both[:, k] * (sets / np.arange(1, size + 1)).sum(axis=1)
    total = betp.sum(axis=1, keepdims=True)
    together: Floats = np.where(total > NO_DIGITS, betp / np.maximum(total, NO_DIGITS), averaged)
    return together
