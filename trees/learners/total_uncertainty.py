"""Belief decision trees by total uncertainty (ALGORITHMS §5; Vannoorenberghe, Denoeux 2002).

Two classes make one tree. More make one tree a class, against all others, and their masses are combined.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np

from quercus.belief.errors import InvalidInput, TotalConflict
from quercus.belief.frame import full_mask
from quercus.belief.mass import MassFunction
from quercus.belief.measures import pignistic
from quercus.belief.rules import dempster
from quercus.trees.dominance import TIE, first_largest
from quercus.trees.flat import FlatTree
from quercus.trees.growth import Criterion, Method, Place, Summary, Verdict, grow_tree
from quercus.trees.learners.cells import Cells
from quercus.trees.learners.nested import log_commonalities_of
from quercus.trees.learners.pieces import Wrap, node_weight, wrapped
from quercus.trees.learners.predicting import Learned, TreeModel, distinct_rows, mean
from quercus.trees.learners.predictions import Predictions, Shared
from quercus.trees.learners.splits import ByCode, LargestGain, root, weighted
from quercus.trees.learners.table import Floats, Ints, Table
from quercus.trees.specification import Attribute, check_count
from quercus.trees.tree import Node, Stop

Combine = Literal["dempster", "mean"]

LAMBDAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""What cross-validation tries. At 0 only the size of a node counts, and no split gains."""

DEFAULT_LAMBDA = 0.5


def node_masses(sums: Floats) -> Floats:
    """Return the credal inference on Bernoulli trials, (..., 3): masses of ``{ω}``, ``{¬ω}`` and both.

    ``m({ω}) = Σ m_i({ω}) / (n + 1)``, ``m({¬ω}) = Σ m_i({¬ω}) / (n + 1)``, the rest on both (ALGORITHMS §5).

    Parameters
    ----------
    sums
        (..., 3): weight ``n``, ``Σ m_i({ω})``, ``Σ m_i({¬ω})``.

    Examples
    --------
    >>> node_masses(np.array([9.0, 6.0, 3.0])).round(6).tolist()
    [0.6, 0.3, 0.1]
    """
    singles = sums[..., 1:] / (sums[..., :1] + 1.0)
    return np.concatenate([singles, 1.0 - singles.sum(axis=-1, keepdims=True)], axis=-1)


def total_uncertainty(masses: Floats, lam: float) -> Floats:
    """Return ``U_λ = (1 - λ) N + λ D`` in bits of masses (..., 3) as of `node_masses`.

    ``N`` is the mass of both (times log2 2); ``D = -Σ m log2 BetP``, to which the mass of both adds nothing
    since BetP of the whole is 1.
    """
    singles, both = masses[..., :2], masses[..., 2]
    betp = singles + both[..., np.newaxis] / 2.0
    logs = np.log2(betp, out=np.zeros_like(betp), where=singles > 0.0)
    discord = -(singles * logs).sum(axis=-1)
    measure: Floats = (1.0 - lam) * both + lam * discord
    return measure


@dataclass(frozen=True, slots=True)
class _Impurity:
    """``U_λ`` of sums of statistics; an object, so that it can travel to other processes."""

    lam: float

    def __call__(self, sums: Floats) -> Floats:
        return total_uncertainty(node_masses(sums), self.lam)


@dataclass(frozen=True, slots=True, eq=False)
class _Stopping:
    """Stop where nothing is gained: the nonspecificity of small nodes is what prunes the tree."""

    table: Table
    min_instances: int
    max_depth: int | None

    def before(self, place: Place) -> Stop | None:
        if self.table.weights[place.rows].sum() < self.min_instances - TIE:
            return Stop.FEW_INSTANCES
        return Stop.MAX_DEPTH if self.max_depth is not None and place.depth >= self.max_depth else None

    def after(self, _place: Place, verdict: Verdict) -> Stop | None:
        return Stop.NO_GAIN if verdict.intervals[verdict.attribute][1] <= TIE else None


@dataclass(frozen=True, slots=True, eq=False)
class _Leaf:
    """The node's mass, and what follows from it."""

    table: Table
    shares: Floats

    def summary(self, place: Place) -> Summary:
        sums = weighted(self.table, place, self.shares).sum(axis=0)
        for_it, against, both = node_masses(sums).clip(0.0).tolist()
        mass = MassFunction(2, ((0b01, for_it), (0b10, against), (0b11, both)))
        theta = tuple(pignistic(mass).tolist())
        plausibility = tuple(mass.contour().tolist())
        weight = node_weight(place, float(sums[0]))
        belief = (for_it, against)
        return Summary(first_largest(theta), theta, belief, plausibility, mass, weight=weight)


def two_class_shares(table: Table, klass: int) -> Floats:
    """Return ``m_i({ω})`` and ``m_i({¬ω})`` of every label, (n, 2), coarsened to the class ω and the rest.

    ``m({¬ω}) = Σ_{A ⊆ ¬ω} m(A) = 1 - pl(ω)``. A label given as a contour is taken as its consonant mass function
    (`quercus.trees.learners.table.consonant`), for which ``m({ω}) = 1 - max_{c ≠ ω} pl(c)``.
    """
    if table.given is None:
        pl = table.contours / table.contours.max(axis=1, keepdims=True)
        others = np.delete(pl, klass, axis=1).max(axis=1)
        return np.column_stack([1.0 - others, 1.0 - pl[:, klass]])
    alone = {mass: dict(mass.focal).get(1 << klass, 0.0) for mass in set(table.given)}
    return np.column_stack([[alone[mass] for mass in table.given], 1.0 - table.contours[:, klass]])


def total_uncertainty_tree(
    table: Table,
    lam: float = DEFAULT_LAMBDA,
    *,
    klass: int = 0,
    min_instances: int = 2,
    max_depth: int | None = None,
    max_cuts: int | None = None,
    wrap: Wrap | None = None,
) -> Node:
    """Grow the tree that tells one class from the rest (ALGORITHMS §5).

    Parameters
    ----------
    table
        The rows. A nominal attribute splits by value, a numeric one at a threshold.
    lam
        λ in [0, 1]: weight of discord, 1 - λ that of nonspecificity. The smaller, the smaller the tree.
    klass
        The class ω. The masses of the nodes are on ω (class 0) and its complement (class 1).
    min_instances
        A node of less weight is a leaf.
    max_depth
        Depth at which every node is a leaf; None for no limit.
    max_cuts
        Most thresholds of a numeric attribute at a node, see `quercus.trees.splits.thresholds`.
    wrap
        Put around the criterion: a forest's choice among random attributes.

    Raises
    ------
    InvalidInput
        When a parameter lies outside its bounds.
    """
    if not 0.0 <= lam <= 1.0:
        raise InvalidInput("lam", f"is {lam!r}, must lie in [0, 1]")
    if not 0 <= klass < table.size:
        raise InvalidInput("klass", f"is {klass}, must lie in [0, {table.size})")
    check_count(min_instances, "min_instances", 1)
    shares = two_class_shares(table, klass)
    criterion: Criterion = LargestGain(table, shares, _Impurity(float(lam)), max_cuts)
    method = Method(
        criterion=wrapped(criterion, wrap),
        branching=ByCode(table),
        stopping=_Stopping(table, min_instances, max_depth),
        leaf=_Leaf(table, shares),
    )
    return grow_tree(root(table), method)


@dataclass(frozen=True, eq=False)
class OneAgainstRest(Learned):
    """A tree a class against the rest, and how their masses become one.

    Parameters
    ----------
    attributes
        Declarations of the columns.
    size
        Number of classes.
    models
        One a class; their class 0 is the class, their class 1 the rest.
    combine
        ``"dempster"`` or ``"mean"`` of the vacuous extensions; the mean also where they conflict totally.
    """

    attributes: tuple[Attribute, ...]
    size: int
    models: tuple[TreeModel, ...]
    combine: Combine = "dempster"

    @property
    def flats(self) -> tuple[FlatTree, ...]:
        """The trees as arrays."""
        return tuple(model.flat for model in self.models)

    def say(self, cells: Cells) -> Predictions:
        """Return what the trees together say of rows of cells."""
        return Predictions.of_masses(self.size, *self._masses(cells))

    def log_commonalities(self, cells: Cells) -> Floats:
        """Return the log commonality of every set, (n, 2^l), of each row's mass; at most 16 classes."""
        masses, index = self._masses(cells)
        return np.array([log_commonalities_of(mass) for mass in masses]).reshape(-1, 1 << self.size)[index]

    def _masses(self, cells: Cells) -> tuple[list[MassFunction], Ints]:
        """Return the different masses of rows, and which of them each row has."""
        parts = [model.say(cells).masses for model in self.models]
        shared = [part for part in parts if isinstance(part, Shared)]  # all of them: their leaves hold masses
        together, index = distinct_rows(np.column_stack([part.which for part in shared]))
        extended = [
            [extend(mass, self.size, klass) for mass in part.distinct] for klass, part in enumerate(shared)
        ]
        masses = [
            self._combined([part[at] for part, at in zip(extended, some, strict=True)])
            for some in together.tolist()
        ]
        return masses, index

    def _combined(self, masses: Sequence[MassFunction]) -> MassFunction:
        if self.combine == "mean":
            return mean(masses)
        try:
            return reduce(dempster, masses)
        except TotalConflict:  # of rows that weigh so much that nothing is left to doubt
            return mean(masses)


def fit_total_uncertainty(
    table: Table,
    lam: float = DEFAULT_LAMBDA,
    *,
    combine: Combine = "dempster",
    min_instances: int = 2,
    max_depth: int | None = None,
    max_cuts: int | None = None,
    wrap: Wrap | None = None,
) -> TreeModel | OneAgainstRest:
    """Grow one tree for two classes, else one tree a class against the rest (ALGORITHMS §5).

    Parameters
    ----------
    combine
        How the trees' masses become one. Dempster's rule makes up to ``2^l`` focal sets: at most 16 classes.
    table, lam, min_instances, max_depth, max_cuts, wrap
        As of `total_uncertainty_tree`.

    Raises
    ------
    InvalidInput
        When a parameter lies outside its bounds.
    """
    if combine not in ("dempster", "mean"):
        raise InvalidInput("combine", f"is {combine!r}, must be 'dempster' or 'mean'")
    if combine == "dempster" and table.size > 16:
        raise InvalidInput("combine", f"is 'dempster', of {table.size} classes; above 16 take 'mean'")
    models = tuple(
        TreeModel.of(
            total_uncertainty_tree(
                table,
                lam,
                klass=c,
                min_instances=min_instances,
                max_depth=max_depth,
                max_cuts=max_cuts,
                wrap=wrap,
            ),
            table.attributes,
        )
        for c in range(1 if table.size == 2 else table.size)
    )
    return models[0] if table.size == 2 else OneAgainstRest(table.attributes, table.size, models, combine)


def choose_lambda(
    table: Table,
    seed: int,
    *,
    lambdas: Sequence[float] = LAMBDAS,
    folds: int = 10,
    combine: Combine = "dempster",
    min_instances: int = 2,
    max_depth: int | None = None,
    max_cuts: int | None = None,
) -> float:
    """Return the λ of least expected error in cross-validation; of tied ones the smallest, for the smaller tree.

    The error of a decision for a row with an uncertain label is ``1 - BetP_i(decided class)``: its expectation
    under the label's pignistic probability, the plain error where labels are precise.

    Parameters
    ----------
    seed
        Of the folds.
    lambdas
        What is tried.
    folds
        At least 2; no more than rows.
    table, combine, min_instances, max_depth, max_cuts
        As of `fit_total_uncertainty`.

    Raises
    ------
    InvalidInput
        When a parameter lies outside its bounds.
    """
    rows = np.flatnonzero(table.weights)
    check_count(folds, "folds", 2)
    if not lambdas or len(rows) < 2:
        raise InvalidInput("lambdas", "must be at least one, and rows to cross-validate on at least two")
    parts = np.array_split(np.random.default_rng(seed).permutation(rows), min(folds, len(rows)))
    tried = sorted(float(lam) for lam in lambdas)
    errors = np.zeros(len(tried))
    for part in parts:
        rest = table.take(np.setdiff1d(rows, part))
        for at, lam in enumerate(tried):
            model = fit_total_uncertainty(
                rest,
                lam,
                combine=combine,
                min_instances=min_instances,
                max_depth=max_depth,
                max_cuts=max_cuts,
            )
            decided = model.predict(table.values[part]).klass
            errors[at] += table.weights[part] @ (1.0 - table.pignistic[part, decided])
    return tried[first_largest((-errors / table.weights.sum()).tolist())]


def extend(mass: MassFunction, size: int, klass: int) -> MassFunction:
    """Return the vacuous extension of a mass on a class (0) and its complement (1) to the whole frame.

    Examples
    --------
    >>> extend(MassFunction(2, ((0b01, 0.5), (0b10, 0.25), (0b11, 0.25))), 3, 1).focal
    ((2, 0.5), (5, 0.25), (7, 0.25))
    """
    whole, single = full_mask(size), 1 << klass
    refined = {0b01: single, 0b10: whole & ~single, 0b11: whole}
    return MassFunction.of(size, [(refined[mask], m) for mask, m in mass.focal])
