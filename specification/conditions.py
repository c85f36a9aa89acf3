"""Paths of a tree in words: the tests of one attribute merged into one condition."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from quercus.specification.attributes import plain_number

MISSING = "?"
"""The branch of rows whose value is missing."""

_NUMBER = r"(-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf))"
_SIDE = re.compile(rf"([<≥]) {_NUMBER}")
_BIN = re.compile(rf"\[{_NUMBER}, {_NUMBER}\)")


@dataclass(frozen=True)
class Condition:
    """The values of one attribute that lead to a node.

    Attributes
    ----------
    attribute
        Its name.
    low, high
        Bounds of a number: at least ``low``, and below ``high``.
    values
        Values of a nominal attribute that pass; None for a numeric one.
    is_missing
        Whether the value must be missing. Otherwise it must be present.
    is_impossible
        Whether no value passes.
    """

    attribute: str
    low: float = -math.inf
    high: float = math.inf
    values: frozenset[str] | None = None
    is_missing: bool = False
    is_impossible: bool = False

    def holds(self, value: str | float | None) -> bool:
        """Return whether a row with this value of the attribute passes; None is a missing value."""
        if self.is_impossible:
            return False
        if value is None or self.is_missing:
            return value is None and self.is_missing
        if self.values is not None:
            return value in self.values
        return not isinstance(value, str) and self.low <= value < self.high

    @property
    def text(self) -> str:
        """The condition in words.

        Examples
        --------
        >>> Condition("alcohol", 13.26, 13.38).text, Condition("hue", high=0.9).text, Condition("hue", 1.0).text
        ('13.26 ≤ alcohol < 13.38', 'hue < 0.9', 'hue ≥ 1')
        >>> Condition("wind", values=frozenset({"weak"})).text, Condition("wind", is_missing=True).text
        ('wind = weak', 'wind is missing')
        """
        if self.is_impossible:
            return f"no value of {self.attribute}"
        if self.is_missing:
            return f"{self.attribute} is missing"
        if self.values is not None:
            return f"{self.attribute} = {' or '.join(sorted(self.values))}"
        if self.low == -math.inf:
            return f"{self.attribute} < {_end_text(self.high)}"
        if self.high == math.inf:
            return f"{self.attribute} ≥ {_end_text(self.low)}"
        return f"{_end_text(self.low)} ≤ {self.attribute} < {_end_text(self.high)}"


def _end_text(end: float) -> str:
    """Return a bound with all digits that the server used."""
    return f"{end:.15g}" if abs(end) < 1e15 else plain_number(end)


def condition_of(attribute: str, branch: str, *, is_nominal: bool = False) -> Condition:
    """Return the condition of one test.

    Parameters
    ----------
    attribute
        Its name.
    branch
        Name of the branch from the server: a value, ``< 1``, ``[1, 2)``, ``≥ 2``, or ``?`` for a missing value.
    is_nominal
        Whether the attribute is nominal. Its values may look like branches of numbers.
    """
    if branch == MISSING:
        return Condition(attribute, is_missing=True)
    if not is_nominal:
        if side := _SIDE.fullmatch(branch):
            end = float(side[2])
            return Condition(attribute, high=end) if side[1] == "<" else Condition(attribute, low=end)
        if inner := _BIN.fullmatch(branch):
            return Condition(attribute, float(inner[1]), float(inner[2]))
    return Condition(attribute, values=frozenset({branch}))


def merge_conditions(
    path: Iterable[tuple[str, str]], nominal: Collection[str] = frozenset()
) -> tuple[Condition, ...]:
    """Return the conditions of a path, at most one for each attribute, in the order of the tests.

    Parameters
    ----------
    path
        Tests from the root, as (attribute, branch).
    nominal
        Names of the nominal attributes.

    Examples
    --------
    >>> path = [("alcohol", "< 13.38"), ("hue", "≥ 0.9"), ("alcohol", "≥ 13.26")]
    >>> [condition.text for condition in merge_conditions(path)]
    ['13.26 ≤ alcohol < 13.38', 'hue ≥ 0.9']
    """
    merged: dict[str, Condition] = {}
    for attribute, branch in path:
        new = condition_of(attribute, branch, is_nominal=attribute in nominal)
        old = merged.get(attribute)
        merged[attribute] = new if old is None else _conjunction(old, new)
    return tuple(merged.values())


def _conjunction(one: Condition, other: Condition) -> Condition:
    """Return the conjunction of two conditions."""
    never = replace(one, is_impossible=True)
    kinds = (one.values is None, one.is_missing), (other.values is None, other.is_missing)
    if one.is_impossible or (kinds[0] != kinds[1]):
        return never
    if one.values is not None and other.values is not None:
        values = one.values & other.values
        return replace(one, values=values) if values else never
    low, high = max(one.low, other.low), min(one.high, other.high)
    return replace(one, low=low, high=high) if low < high else never


def path_text(path: Sequence[tuple[str, str]], nominal: Collection[str] = frozenset()) -> str:
    """Return a path in words; empty for the root.

    Examples
    --------
    >>> path_text([("hue", "< 0.9"), ("wind", "weak"), ("hue", "≥ 0.4")])
    '0.4 ≤ hue < 0.9 and wind = weak'
    """
    return " and ".join(condition.text for condition in merge_conditions(path, nominal))
