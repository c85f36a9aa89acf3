"""Attributes of a model: columns of names or of numbers."""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal, TypeGuard

from quercus.belief.errors import InvalidInput, shown
from quercus.specification.parameter import check_parameters, with_parameter_docs
from quercus.specification.parameters import (
    BINS,
    BUCKET,
    CUTS,
    MAX_BINS,
    MAX_NAME_CHARS,
    MAX_VALUES,
    MISSING_VALUE,
    NOMINAL_VALUES,
    OVERFLOW,
)

MISSING_NAME = "?"  # of the branch that missing values take
THRESHOLD_SIDES = ("<", "≥")  # branches of a number that nodes split at thresholds

OTHER_NAMES = (
    "(other names)"  # of the bucket of names beyond the bound of an attribute, unless a value has this name
)

Missing = Literal["branch", "reject"]
Overflow = Literal["bucket", "refuse"]
LARGEST_PLAIN = 1e20  # larger numbers are written in powers of ten; times in nanoseconds are below


def plain_number(value: float) -> str:
    """Return a number with six digits, or a large one with two decimals, so that close times or dates differ.

    Examples
    --------
    >>> [plain_number(value) for value in (13.255, 0.12345678, 20231101.5, 1700000600.0, 17e17, -1e300)]
    ['13.255', '0.123457', '20231101.5', '1700000600', '1700000000000000000', '-1e+300']
    """
    whole = len(str(int(abs(value)))) if 1.0 <= abs(value) < LARGEST_PLAIN else 0
    return f"{value:.{max(6, whole + 2)}g}"


def threshold_branch(threshold: float, code: int) -> str:
    """Return the name of a branch of a node that splits a number at a threshold.

    Examples
    --------
    >>> [threshold_branch(1.5, code) for code in range(3)]
    ['< 1.5', '≥ 1.5', '?']
    """
    return (*(f"{side} {plain_number(threshold)}" for side in THRESHOLD_SIDES), MISSING_NAME)[code]


@with_parameter_docs
@dataclass(frozen=True, slots=True)
class Nominal:
    """An attribute with named values.

    Parameters
    ----------
    name
        Not empty.
    values
        Declared values, in order; at most `max_values`, distinct, not empty. Values learned later come after them.

    Raises
    ------
    InvalidInput
        If the name or a value breaks these rules.
    """

    name: str
    values: Sequence[str] = ()
    missing: Missing = MISSING_VALUE.dataclass_field()
    max_values: int | None = NOMINAL_VALUES.dataclass_field()
    overflow: Overflow = OVERFLOW.dataclass_field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        check_name(self.name, "name")
        check_parameters(self)
        if len(self.values) > self.most_values:
            raise InvalidInput(
                "values",
                f"has {len(self.values)} values, at most {self.most_values} are allowed"
                + ("" if self.max_values is None else " (max_values)"),
            )
        for index, value in enumerate(self.values):
            check_name(value, f"values[{index}]")
        check_distinct(self.values, "values")

    @property
    def most_values(self) -> int:
        """Maximum number of names, and so the index of the bucket, which is the first without a name."""
        return MAX_VALUES if self.max_values is None else self.max_values

    @property
    def index_count(self) -> int:
        """Number of indices that a value may have, with that of the bucket if there is one."""
        return self.most_values + (self.overflow == BUCKET)

    @property
    def bound_text(self) -> str:
        """The bound of the names in words, if it is reached or differs from the default; else empty.

        Examples
        --------
        >>> Nominal("X", "ab", max_values=2).bound_text
        '2 names, the most it may have; others count as (other names)'
        >>> Nominal("X", "ab", max_values=9, overflow="refuse").bound_text
        'at most 9 names; rows with others are refused'
        """
        others = (
            "others count as (other names)" if self.overflow == BUCKET else "rows with others are refused"
        )
        if len(self.values) == self.most_values:
            return f"{len(self.values):,} names, the most it may have; {others}"
        is_usual = self.most_values == MAX_VALUES and self.overflow == BUCKET
        return "" if is_usual else f"at most {self.most_values:,} names; {others}"


@with_parameter_docs
@dataclass(frozen=True, slots=True)
class Numeric:
    """An attribute with numbers, cut into bins or split at thresholds.

    Edges set the number of bins. With cuts, a node splits at one threshold, among the declared edges, else among
    quantiles of the model's first rows. The bins are then the intervals between the cuts, and `bins` is ignored.

    Parameters
    ----------
    name
        Not empty.
    edges
        Inner edges, finite and strictly increasing, at most 255; a value at an edge belongs to the bin above. If there
        are none, the bins have equal width over the range of the model's first rows.

    Raises
    ------
    InvalidInput
        If one of these rules is broken.
    """

    name: str
    bins: int = BINS.dataclass_field()
    edges: Sequence[float] = ()
    missing: Missing = MISSING_VALUE.dataclass_field()
    cuts: int | None = CUTS.dataclass_field()

    def __post_init__(self) -> None:
        check_name(self.name, "name")
        check_parameters(self)
        edges = tuple(map(_check_edge, self.edges, range(len(self.edges))))
        object.__setattr__(self, "edges", edges)
        if not edges:
            return
        if len(edges) >= MAX_BINS:
            raise InvalidInput("edges", f"has {len(edges)} edges, at most {MAX_BINS - 1} are allowed")
        for index in range(1, len(edges)):
            if edges[index] <= edges[index - 1]:
                raise InvalidInput(
                    f"edges[{index}]",
                    f"is {edges[index]}, must be greater than the edge before it, {edges[index - 1]}",
                )
        object.__setattr__(self, "bins", len(edges) + 1)
        if self.cuts is not None and self.cuts != len(edges):
            raise InvalidInput("cuts", f"is {self.cuts}, but {len(edges)} edges are declared")


Attribute = Nominal | Numeric


def other_names(names: Collection[str]) -> str:
    """Return the text for the bucket of names beyond the bound, which differs from all `names`.

    Examples
    --------
    >>> other_names(["red"]), other_names(["red", "(other names)"])
    ('(other names)', '((other names))')
    """
    text = OTHER_NAMES
    while text in names:
        text = f"({text})"
    return text


def check_name(name: object, path: str) -> None:
    """Refuse invalid names of attributes and values.

    Raises
    ------
    InvalidInput
        If a name is not text, is blank or is too long.
    """
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(path, f"is {shown(name)}, must be text and not empty")
    if len(name) > MAX_NAME_CHARS:
        raise InvalidInput(path, f"has {len(name)} characters, at most {MAX_NAME_CHARS} are allowed")


def check_distinct(names: Sequence[str], path: str) -> None:
    """Refuse duplicate names.

    Raises
    ------
    InvalidInput
        For the second of two equal names.
    """
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if name in first:
            raise InvalidInput(
                f"{path}[{index}]",
                f"is {shown(name)}, the same as number {first[name] + 1}; must be distinct",
            )
        first[name] = index


def _check_edge(edge: object, index: int) -> float:
    if not is_finite_number(edge):
        raise InvalidInput(f"edges[{index}]", f"is {shown(edge)}, must be a finite number")
    return float(edge)


def is_finite_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a number, not a truth value, that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of hundreds of digits
        return False


def column_names(attributes: Iterable[str], own: Collection[str]) -> list[str]:
    """Return the names of attributes as columns of a table that also has other columns.

    Programs cannot read a Parquet file with two columns of the same name, and keep only one of those of a CSV file.

    Examples
    --------
    >>> column_names(["colour", "label"], own=("id", "label"))
    ['colour', 'value:label']
    """
    return [f"value:{name}" if name in own else name for name in attributes]


class WholeNominal(Nominal):
    """A nominal attribute of a table with fixed rows, in which every index is a value, also that of the bucket."""

    __slots__ = ()

    @classmethod
    def of(cls, attribute: Nominal) -> "WholeNominal":
        """Return an attribute with the bucket of a full one as its last value."""
        return cls(attribute.name, (*attribute.values, other_names(attribute.values)), attribute.missing)

    @property
    def most_values(self) -> int:
        """Maximum number of names, including that of the bucket."""
        return MAX_VALUES + 1
