"""What a tree says of a row, also where the row's values are uncertain (ALGORITHMS §4).

A value is a number (of a nominal attribute: the index of the value), a set of them, a `Between`, or unknown
(None or NaN). The row goes down every branch that it may take. The leaves that it reaches are put together
by the disjunctive rule where they hold mass functions: at least one of them is right; otherwise their
probabilities are averaged by the weight of the branches, as C4.5 does.

An unknown value takes the branch of missing values where the node has one, which means that they were seen in
training, else all branches. Where no branch is for the value, the node itself predicts (ALGORITHMS §3.4).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quercus.belief.errors import InvalidInput, shown
from quercus.belief.mass import MassFunction
from quercus.belief.measures import pignistic
from quercus.belief.rules import disjunctive
from quercus.trees.dominance import TIE, first_largest
from quercus.trees.learners.splits import ABOVE, BELOW, NO_NUMBER, branch_codes
from quercus.trees.learners.table import Floats, Ints
from quercus.trees.specification import Attribute, Nominal
from quercus.trees.tree import Node


@dataclass(frozen=True, slots=True)
class Between:
    """A number that lies somewhere in ``[low, high]``.

    Raises
    ------
    InvalidInput
        When an end is not a number, or `low` exceeds `high`.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:  # also catches NaN
            raise InvalidInput("value", f"lies between {self.low} and {self.high}, must be in rising order")


Value = float | frozenset[float] | frozenset[int] | Between | None


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a tree says of one row.

    Parameters
    ----------
    klass
        Index of the predicted class: the likeliest, of tied ones the first.
    theta
        (l,) probability of each class; BetP of `mass` where there is one.
    belief, plausibility
        (l,) bounds of each.
    mass
        Of trees whose leaves hold mass functions, else None.
    """

    klass: int
    theta: tuple[float, ...]
    belief: tuple[float, ...]
    plausibility: tuple[float, ...]
    mass: MassFunction | None

    @property
    def classes(self) -> tuple[int, ...]:
        """The set-valued prediction: every class that none dominates, in declared order.

        A class dominates another when its belief exceeds the other's plausibility (interval dominance).
        """
        bar = max(self.belief) - TIE
        return tuple(c for c, upper in enumerate(self.plausibility) if upper >= bar)


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """A node where a row may end, and the share of it that does, by the weight of the branches on the way."""

    node: Node
    share: float


def predict(tree: Node, row: Sequence[Value], attributes: Sequence[Attribute]) -> Prediction:
    """Return what `tree` says of a row.

    Parameters
    ----------
    tree
        Of a learner of this package.
    row
        (K,) values, see the module.
    attributes
        The declarations that the tree was grown with.

    Raises
    ------
    InvalidInput
        When the row does not have a value an attribute, or a set is empty.
    """
    ends = list(reach(tree, row, attributes))
    masses = [end.node.mass for end in ends if end.node.mass is not None]
    if len(masses) == len(ends):
        mass = reduce(disjunctive, masses)
        theta = tuple(pignistic(mass).tolist())
        known = dict(mass.focal)
        belief = tuple(known.get(1 << c, 0.0) for c in range(mass.size))
        return Prediction(first_largest(theta), theta, belief, tuple(mass.contour().tolist()), mass)
    theta = _mean([(end.share, end.node.theta) for end in ends])
    return Prediction(
        klass=first_largest(theta),
        theta=theta,
        belief=_mean([(end.share, end.node.belief) for end in ends]),
        plausibility=_mean([(end.share, end.node.plausibility) for end in ends]),
        mass=None,
    )


def reach(tree: Node, row: Sequence[Value], attributes: Sequence[Attribute]) -> Iterator[Reached]:
    """Yield the nodes where a row may end, in pre-order, with shares that sum to 1; arguments as of `predict`."""
    if len(row) != len(attributes):
        raise InvalidInput("row", f"has {len(row)} values, must have {len(attributes)}")
    values = tuple(_checked(value, attribute) for value, attribute in zip(row, attributes, strict=True))
    pending: list[tuple[Node, tuple[Value, ...], float]] = [(tree, values, 1.0)]
    while pending:
        node, values, share = pending.pop()
        ways = _ways(node, values, attributes)
        if not ways:
            yield Reached(node, share)
            continue
        total = math.fsum(child.size for child, _ in ways)
        pending.extend((child, left, share * child.size / total) for child, left in reversed(ways))


def probabilities(tree: Node, values: ArrayLike, attributes: Sequence[Attribute]) -> Floats:
    """Return the probability of each class for many rows, (n, l), as `predict` gives it.

    Parameters
    ----------
    tree, attributes
        As of `predict`.
    values
        (n, K) numbers, NaN for unknown ones.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != len(attributes):
        raise InvalidInput("values", f"have shape {array.shape}, must be (rows, {len(attributes)})")
    result = np.zeros((len(array), len(tree.theta)))
    ends = np.zeros(len(array), dtype=np.int64)
    pending: list[tuple[Node, Ints, Floats]] = [(tree, np.arange(len(array)), np.ones(len(array)))]
    while pending:
        node, rows, shares = pending.pop()
        if node.attribute is None:
            staying = np.ones(len(rows), dtype=bool)
        else:
            column, declared = array[rows, node.attribute], attributes[node.attribute]
            staying, below = _parted(node, rows, shares, column, declared)
            pending.extend(below)
        result[rows[staying]] += shares[staying, np.newaxis] * np.array(node.theta)
        ends[rows[staying]] += 1
    if tree.mass is not None:  # leaves are not averaged there
        for row in np.flatnonzero(ends > 1):
            result[row] = predict(tree, array[row].tolist(), attributes).theta
    return result


def _parted(
    node: Node, rows: Ints, shares: Floats, column: Floats, attribute: Attribute
) -> tuple[NDArray[np.bool_], list[tuple[Node, Ints, Floats]]]:
    """Return which rows stay at a node, and what goes down each branch."""
    codes = branch_codes(attribute, node.threshold, column)
    spread = np.isnan(column) & (_missing_code(attribute) not in node.children)
    total = math.fsum(child.size for child in node.children.values())
    staying = ~spread
    below = []
    for code, child in node.children.items():
        own = (codes == code) & ~spread
        staying &= ~own
        part = np.where(spread, child.size / total, 1.0)
        going = own | spread
        if going.any():
            below.append((child, rows[going], shares[going] * part[going]))
    return staying, below


def _ways(
    node: Node, values: tuple[Value, ...], attributes: Sequence[Attribute]
) -> list[tuple[Node, tuple[Value, ...]]]:
    """Return the children that a row may go to, and what is left of its values there."""
    k = node.attribute
    if k is None:
        return []
    value = values[k]
    if value is None:
        alone = node.children.get(_missing_code(attributes[k]))
        return [(child, values) for child in ([alone] if alone is not None else node.children.values())]
    ways = []
    for code, child in node.children.items():
        left = _narrowed(value, code, node.threshold)
        if left is not None:
            ways.append((child, (*values[:k], left, *values[k + 1 :])))
    return ways


def _narrowed(value: Value, code: int, threshold: float | None) -> Value:
    """Return what is left of a known value behind a branch, None when nothing is."""
    if isinstance(value, Between):
        if code == NO_NUMBER or threshold is None:
            return None
        return value if (value.low < threshold if code == BELOW else value.high >= threshold) else None
    if isinstance(value, frozenset):
        return frozenset(v for v in value if _narrowed(v, code, threshold) is not None) or None
    if threshold is None:
        return value if value == code else None
    return value if code == (BELOW if value is not None and value < threshold else ABOVE) else None


def _missing_code(attribute: Attribute) -> int:
    return len(attribute.values) if isinstance(attribute, Nominal) else NO_NUMBER


def _checked(value: Value, attribute: Attribute) -> Value:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, Between):
        if isinstance(attribute, Nominal):
            raise InvalidInput(attribute.name, "lies between two numbers, must be named values")
        return value
    parts = value if isinstance(value, frozenset | set) else (value,)
    if not parts:
        raise InvalidInput(attribute.name, "is the empty set, must have a value")
    limit = len(attribute.values) if isinstance(attribute, Nominal) else math.inf
    for part in parts:
        if not isinstance(part, int | float | np.number) or math.isnan(part):
            raise InvalidInput(attribute.name, f"has the value {shown(part)}, must be a number")
        if isinstance(attribute, Nominal) and not (0 <= part < limit and part == int(part)):
            raise InvalidInput(attribute.name, f"is {shown(part)}, must be a whole number in [0, {limit})")
    return frozenset(parts) if isinstance(value, frozenset | set) else value


def _mean(parts: list[tuple[float, tuple[float, ...]]]) -> tuple[float, ...]:
    return tuple(math.fsum(share * values[c] for share, values in parts) for c in range(len(parts[0][1])))
