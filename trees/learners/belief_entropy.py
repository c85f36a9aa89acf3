"""Belief-entropy trees (ALGORITHMS §6; Gao, Wang, Ma 2022): OBE, LBE and IBE.

A node fits, for each attribute, one density a class (`quercus.trees.learners.components`), turns every value
into a nested mass function, and splits by the attribute whose masses have the smallest mean Deng entropy.
There is a branch a class; a row goes where its densest class is. The three trees are the same, they differ in
what they predict: OBE from the labels of the node's rows, LBE from the masses that led these rows there, IBE
from the masses of the very instance that is classified.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from operator import attrgetter
from typing import Literal

import numpy as np

from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.belief.rules import disjunctive
from quercus.trees.dominance import TIE, first_largest
from quercus.trees.growth import Branch, Criterion, Method, Place, Summary, Verdict, grow_tree
from quercus.trees.learners.components import Component, branch_of, fit_components
from quercus.trees.learners.mixture import column_floor
from quercus.trees.learners.nested import (
    MAX_CLASSES,
    Nested,
    log_commonalities,
    mass_function,
    normalised,
    pignistic_of,
)
from quercus.trees.learners.pieces import Wrap, node_weight
from quercus.trees.learners.predicting import Between, Prediction, Value
from quercus.trees.learners.splits import root
from quercus.trees.learners.table import Floats, Ints, Table
from quercus.trees.learners.total_uncertainty import prediction, two_class_shares
from quercus.trees.specification import check_count
from quercus.trees.tree import Node, Path, Stop

Kind = Literal["OBE", "LBE", "IBE"]
MAX_ALTERNATIVES = 4_096
"""Most combinations of uncertain attribute values of one row."""


@dataclass(frozen=True, slots=True)
class Chosen(Verdict):
    """The attribute of smallest entropy, and its densities."""

    component: Component | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LeastEntropy:
    """Criterion: smallest mean Deng entropy; of tied attributes, the first declared.

    The gain of an attribute, as the tree shows it, is minus its mean entropy.
    """

    table: Table
    floor: Floats

    def judge(self, place: Place) -> Chosen | None:
        """Return the choice, or None when no attribute is left."""
        if not place.attributes:
            return None
        components = fit_components(self.table, place.rows, place.attributes, self.floor)
        columns = self.table.values[place.rows][:, place.attributes].T
        logs = np.stack([c.log_densities(x) for c, x in zip(components, columns, strict=True)])
        weights = self.table.weights[place.rows]
        mean = Nested.of(logs).deng_entropy() @ weights / weights.sum()
        at = first_largest((-mean).tolist())
        gains = {k: (-bits, -bits) for k, bits in zip(place.attributes, mean.tolist(), strict=True)}
        return Chosen(place.attributes[at], gains, (place.attributes[at],), component=components[at])


@dataclass(frozen=True, slots=True, eq=False)
class ByDensestClass:
    """Branching: a branch for every class that is densest for some row; the attribute is spent.

    What was fitted for the splits is kept: prediction needs it.
    """

    table: Table
    components: dict[Path, Component] = field(default_factory=dict)
    log_contours: dict[Path, tuple[Ints, Floats]] = field(default_factory=dict)

    def branches(self, place: Place, verdict: Verdict) -> list[Branch]:
        """Return the populated branches, in order of class."""
        if not isinstance(verdict, Chosen) or verdict.component is None:
            raise TypeError("the criterion must be LeastEntropy, or stand around it")
        k, component = verdict.attribute, verdict.component
        column = self.table.values[place.rows, k]
        logs = component.log_densities(column)
        codes = branch_of(component, column, logs)
        self.components[place.path] = component
        self.log_contours[place.path] = place.rows, Nested.of(logs).log_contours()
        left = tuple(a for a in place.attributes if a != k)
        return [Branch(k, int(code), place.rows[codes == code], left) for code in np.unique(codes)]


@dataclass(frozen=True, slots=True, eq=False)
class _Stopping:
    table: Table
    min_instances: int
    max_depth: int | None

    def before(self, place: Place) -> Stop | None:
        if self.table.weights[place.rows].sum() < self.min_instances - TIE:
            return Stop.FEW_INSTANCES
        contours = self.table.contours[place.rows] > 0.0
        if self.table.precise[place.rows].all() and (contours == contours[0]).all():
            return Stop.PURE
        return Stop.MAX_DEPTH if self.max_depth is not None and place.depth >= self.max_depth else None

    def after(self, _place: Place, _verdict: Verdict) -> Stop | None:
        return None


@dataclass(frozen=True, slots=True, eq=False)
class ByLabels:
    """Leaf rule of OBE: ``argmax_k Σ_i w_i pl_ik``; ``theta`` are these sums, normalised.

    Belief and plausibility are those of the mean of the labels' mass functions.
    """

    table: Table
    alone: Floats  # (n, l) m_i({c})

    @classmethod
    def of(cls, table: Table) -> "ByLabels":
        """Make the rule for a table."""
        return cls(table, np.column_stack([two_class_shares(table, c)[:, 0] for c in range(table.size)]))

    def summary(self, place: Place) -> Summary:
        """Return the prediction of the node, were it a leaf."""
        weights = self.table.weights[place.rows]
        sums = weights @ self.table.contours[place.rows]
        total = float(weights.sum())
        share = weights / total
        belief = np.minimum(share @ self.alone[place.rows], 1.0)
        plausibility = np.minimum(share @ self.table.contours[place.rows], 1.0)
        theta = tuple((sums / sums.sum()).tolist())
        bounds = tuple(belief.tolist()), tuple(plausibility.tolist())
        return Summary(first_largest(theta), theta, *bounds, weight=node_weight(place, total))


@dataclass(frozen=True, slots=True, eq=False)
class ByPaths:
    """Leaf rule of LBE: Dempster's rule over the masses along the path, and over the node's rows.

    A root has no path: there the labels decide, as in OBE. Total conflict cannot be: every mass gives something
    to each class that is possible for a row of the node, and nothing underflows in logarithms.
    """

    labels: ByLabels
    branching: ByDensestClass
    commonalities: dict[Path, Floats] = field(default_factory=dict)

    def summary(self, place: Place) -> Summary:
        """Return the prediction of the node, were it a leaf."""
        if not place.path:
            return self.labels.summary(place)
        weights = self.labels.table.weights[place.rows]
        total = np.zeros(1 << self.labels.table.size)
        for depth in range(len(place.path)):
            rows, logs = self.branching.log_contours[place.path[:depth]]
            here = log_commonalities(logs[np.searchsorted(rows, place.rows)])
            total += weights @ here
        masses, _ = normalised(total)
        self.commonalities[place.path] = total - total[1 << np.arange(self.labels.table.size)].max()
        mass = mass_function(masses)
        theta = tuple(pignistic_of(masses).tolist())
        belief = masses[1 << np.arange(mass.size)]
        return Summary(
            first_largest(theta), theta, tuple(belief.tolist()), tuple(mass.contour().tolist()), mass
        )


@dataclass(frozen=True, slots=True, eq=False)
class BeliefEntropyModel:
    """A belief-entropy tree, ready to classify.

    Parameters
    ----------
    kind
        What it predicts with.
    size, columns
        Number of classes, and of attributes.
    root
        The tree. The codes of its branches are classes.
    components
        What was fitted at each inner node, by its path.
    commonalities
        Log commonalities (2^l,) of the nodes' masses, by path; for LBE alone.
    """

    kind: Kind
    size: int
    columns: int
    root: Node
    components: Mapping[Path, Component]
    commonalities: Mapping[Path, Floats]

    def classify(self, values: Floats) -> Ints:
        """Return the class of rows of values (n, K): of the largest probability, of tied ones the first."""
        theta = self.probabilities(values)
        first: Ints = np.argmax(theta >= theta.max(axis=1, keepdims=True) - TIE, axis=1)
        return first

    def probabilities(self, values: Floats) -> Floats:
        """Return ``BetP`` (LBE, IBE) or the shares of the labels' plausibility (OBE), (n, l)."""
        if self.kind != "IBE":
            theta = np.empty((len(values), self.size))
            for _, node, rows, _ in self._ends(values):
                theta[rows] = node.theta
            return theta
        return pignistic_of(normalised(self.log_commonalities(values))[0])

    def masses(self, values: Floats) -> tuple[MassFunction, ...]:
        """Return what the model says of each row; at most 16 classes."""
        return tuple(mass_function(row) for row in normalised(self.log_commonalities(values))[0])

    def predict(self, row: Sequence[Value]) -> Prediction:
        """Return what the model says of one row, whose values may be sets of numbers or unknown.

        Every combination of the numbers that the tree tests is tried. Their masses are put together by the
        disjunctive rule: one of them is right. OBE, which has none, averages. An unknown value tells no class
        from another, and takes the branch of the commonest.

        Raises
        ------
        InvalidInput
            When the row does not have a value an attribute, a value is an interval (over which a density says
            nothing by itself) or an empty set, or there are more than 4,096 combinations.
        """
        values = self._alternatives(row)
        if self.kind != "OBE":
            return prediction(reduce(disjunctive, self.masses(values[self._different(values)])))
        nodes = {id(node): (node, len(rows)) for _, node, rows, _ in self._ends(values)}.values()
        share = np.array([rows for _, rows in nodes]) / len(values)
        theta, belief, plausibility = (
            tuple((share @ np.array([part(node) for node, _ in nodes])).tolist())
            for part in (attrgetter("theta"), attrgetter("belief"), attrgetter("plausibility"))
        )
        return Prediction(first_largest(theta), theta, belief, plausibility, None)

    def _different(self, values: Floats) -> list[int]:
        """Return one row of each leaf (LBE), or of each choice of the values tested on the way (IBE).

        The disjunctive rule counts what is said twice, so the same must not be said again.
        """
        chosen: dict[tuple[Path, bytes], int] = {}
        for path, node, rows, _ in self._ends(values):
            tested = [k for k, _ in path] + ([] if node.attribute is None else [node.attribute])
            for row in rows.tolist():
                known = values[row, tested].tobytes() if self.kind == "IBE" else b""
                chosen.setdefault((path, known), row)
        return sorted(chosen.values())

    def _alternatives(self, row: Sequence[Value]) -> Floats:
        if len(row) != self.columns:
            raise InvalidInput("row", f"has {len(row)} values, must have {self.columns}")
        tested = {node.attribute for node, *_ in self.root.preorder()}
        choices: list[list[float]] = []
        for k, value in enumerate(row):
            if isinstance(value, Between) or value == frozenset():
                raise InvalidInput(f"row[{k}]", f"is {value}, must be a number, some numbers, or unknown")
            some = sorted(value) if isinstance(value, frozenset) else [np.nan if value is None else value]
            choices.append([float(v) for v in (some if k in tested else some[:1])])
        if math.prod(map(len, choices)) > MAX_ALTERNATIVES:
            raise InvalidInput("row", f"has more than {MAX_ALTERNATIVES} combinations of values")
        return np.array(list(product(*choices)))

    def log_commonalities(self, values: Floats) -> Floats:
        """Return the log commonalities of each row's mass, up to a constant in a row, (n, 2^l).

        OBE has no masses: its shares stand for a Bayesian one. So they do for a root that is a leaf.

        Raises
        ------
        InvalidInput
            With more than 16 classes.
        """
        _check_size(self.size)
        found = np.empty((len(values), 1 << self.size))
        singles = 1 << np.arange(self.size)
        for path, node, rows, logs in self._ends(values):
            shares = np.full(1 << self.size, -np.inf)
            with np.errstate(divide="ignore"):
                shares[singles] = np.log(node.theta)
            found[rows] = self.commonalities.get(path, shares)
            if self.kind == "IBE" and logs:
                found[rows] = sum((log_commonalities(step) for step in logs), np.zeros(1))
        return found

    def _ends(self, values: Floats) -> Iterator[tuple[Path, Node, Ints, tuple[Floats, ...]]]:
        """Yield the nodes where rows end: path, node, rows, and their log contours at the splits passed.

        A row whose branch no training row took stays at the node above.
        """
        every = np.arange(len(values))
        pending: list[tuple[Path, Node, Ints, tuple[Floats, ...]]] = [((), self.root, every, ())]
        while pending:
            path, node, rows, passed = pending.pop()
            if node.attribute is None:
                yield path, node, rows, passed
                continue
            component, column = self.components[path], values[rows, node.attribute]
            logs = component.log_densities(column)
            codes = branch_of(component, column, logs)
            passed = (*passed, Nested.of(logs).log_contours())
            stay = np.ones(len(rows), dtype=bool)
            for code, child in node.children.items():
                here = codes == code
                stay &= ~here
                if here.any():
                    step = (*path, (node.attribute, code))
                    pending.append((step, child, rows[here], tuple(p[here] for p in passed)))
            if stay.any():
                yield path, node, rows[stay], tuple(p[stay] for p in passed)


def fit_belief_entropy(
    table: Table,
    kind: Kind = "LBE",
    *,
    min_instances: int | None = None,
    max_depth: int | None = None,
    wrap: Wrap | None = None,
) -> BeliefEntropyModel:
    """Grow a belief-entropy tree (ALGORITHMS §6).

    Parameters
    ----------
    table
        The rows. Numeric attributes have Gaussians, nominal ones frequencies.
    kind
        ``"OBE"``, ``"LBE"`` or ``"IBE"``; the latter two for at most 16 classes.
    min_instances
        A node of less weight is a leaf; default 5 a class, for a deviation cannot be told from less.
    max_depth
        Depth at which every node is a leaf; None for no limit. No path tests an attribute twice.
    wrap
        Put around the criterion: a forest's choice among random attributes.

    Raises
    ------
    InvalidInput
        When a parameter lies outside its bounds.
    """
    if kind not in ("OBE", "LBE", "IBE"):
        raise InvalidInput("kind", f"is {kind!r}, must be 'OBE', 'LBE' or 'IBE'")
    if kind != "OBE":
        _check_size(table.size)
    least = check_count(5 * table.size if min_instances is None else min_instances, "min_instances", 1)
    criterion: Criterion = LeastEntropy(table, column_floor(table.values, table.contours, table.weights))
    branching, labels = ByDensestClass(table), ByLabels.of(table)
    paths = ByPaths(labels, branching)
    method = Method(
        criterion=criterion if wrap is None else wrap(criterion),
        branching=branching,
        stopping=_Stopping(table, least, max_depth),
        leaf=paths if kind == "LBE" else labels,
    )
    tree = grow_tree(root(table), method)
    return BeliefEntropyModel(
        kind, table.size, len(table.attributes), tree, branching.components, paths.commonalities
    )


def _check_size(size: int) -> None:
    if size > MAX_CLASSES:
        raise InvalidInput("classes", f"are {size}, LBE and IBE combine masses of at most {MAX_CLASSES}")
