"""Encoding of values as branch codes: small integers, one column per attribute.

- The code of a declared nominal value is its index, and that of a number its bin, counted from 0.
- A missing value has the number of declared values or of bins as its code, so it follows everything that is declared.
- A nominal value that is learned after the declaration has its index plus 1, so no code moves when a value is learned.

Names beyond the bound of an attribute share the index after its last one.
`UNKNOWN` means "no branch": a missing value of an attribute that rejects them. The forest of many memories has codes of
its own, in which a missing value comes first (`quercus.trees.memory_forest.codes`).

Where nodes split numbers at thresholds, the edges are the candidate cuts, and the bins lie between them
(`quercus.trees.tree.splits`).
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Floats
from quercus.belief.errors import InvalidInput
from quercus.specification.attributes import (
    MISSING_NAME,
    THRESHOLD_SIDES,
    Attribute,
    Nominal,
    Numeric,
    other_names,
    threshold_branch,
)
from quercus.specification.model import Specification
from quercus.specification.parameters import BUCKET, MAX_VALUES
from quercus.trees.tree.splits import midpoints

UNKNOWN = -1
EDGE_TOLERANCE = 1e-9  # of the range: a value no further than this below an edge counts as at the edge

Range = tuple[float, float]  # both ends included
Parts = Mapping[tuple[int, int], tuple[Range, ...]]  # of uncertain values, by row and attribute
Codes = NDArray[np.int16]
Edges = tuple[tuple[float, ...], ...]  # inner edges in force, one tuple per attribute; () for a nominal one


def equal_width_edges(column: Floats, bins: int) -> tuple[float, ...]:
    """Return the inner edges of equal-width bins over the range of `column` (theory §8).

    Edge ``i`` is ``lo + i (hi - lo) / bins``, lowered by 1e-9 of the range, so that a plain ``value >= edge``
    puts a value at an edge, or below it by no more than rounding, into the bin above.

    Parameters
    ----------
    column
        (n,) numbers; NaN means missing and is left out. Without any number, the edges are 0.
    bins
        Number of bins.

    Returns
    -------
    tuple of float
        ``bins - 1`` edges, not decreasing.

    Examples
    --------
    >>> [round(edge, 6) for edge in equal_width_edges(np.array([0.0, 8.0, 3.0]), 4)]
    [2.0, 4.0, 6.0]
    """
    known = column[~np.isnan(column)]
    if known.size == 0:
        return (0.0,) * (bins - 1)
    lo, hi = float(known.min()), float(known.max())
    tolerance = EDGE_TOLERANCE * hi - EDGE_TOLERANCE * lo
    half = hi / 2 - lo / 2  # the range of huge numbers may overflow
    return tuple(2 * (lo / 2 + half * (i / bins)) - tolerance for i in range(1, bins))


def quantile_cuts(column: Floats, cuts: int) -> tuple[float, ...]:
    """Return the candidate cuts of a column: midpoints between distinct values, if too many those nearest to quantiles.

    Parameters
    ----------
    column
        (n,) numbers; NaN means missing and is left out.
    cuts
        Greatest number of cuts, see `quercus.trees.tree.splits.midpoints`.

    Returns
    -------
    tuple of float
        1 to `cuts` of them, ascending. The cut of a column with a single distinct number is that number, and the cut of
        one without any number is 0.

    Examples
    --------
    >>> quantile_cuts(np.array([3.0, 1.0, 2.0, 1.0]), 8), quantile_cuts(np.arange(8.0), 3)
    ((1.5, 2.5), (1.5, 3.5, 5.5))
    """
    found = midpoints(column, cuts)
    if found.size:
        return tuple(found.tolist())
    known = column[~np.isnan(column)]
    return (float(known[0]) if known.size else 0.0,)


def edges_in_force(specification: Specification, values: Floats) -> Edges:
    """Return the inner edges of every attribute.

    Parameters
    ----------
    specification
        Declares the attributes.
    values
        (n, K) values of the log so far; the first ``warmup_rows`` rows set the edges that are not declared.
    """
    warmup = values[: specification.warmup_rows]
    return tuple(
        attribute_edges(attribute, warmup[:, k]) for k, attribute in enumerate(specification.attributes)
    )


def attribute_edges(attribute: Attribute, column: Floats) -> tuple[float, ...]:
    """Return the inner edges of an attribute: the declared ones, or those set by its values (n,)."""
    if isinstance(attribute, Nominal):
        return ()
    if attribute.edges:
        return tuple(attribute.edges)
    if attribute.cuts is None:
        return equal_width_edges(column, attribute.bins)
    return quantile_cuts(column, attribute.cuts)


# Up to this many rows, coding value by value is faster than by columns: a row of 13 numbers took 7 µs instead of 111.
FEW_ROWS = 3


@dataclass(frozen=True, slots=True)
class Encoder:
    """Turns rows of values into rows of branch codes.

    Parameters
    ----------
    attributes
        The attributes of the specification.
    edges
        Inner edges in force of each attribute, see `edges_in_force`.
    """

    attributes: tuple[Attribute, ...]
    edges: Edges

    def code(self, k: int, value: float) -> int:
        """Return the code of one value of attribute `k`, see `codes`."""
        return _code_of(self.attributes[k], self.edges[k], value)

    def codes(self, values: Floats) -> Codes:
        """Return the codes of `values` (n, K): numbers, indices of nominal values, NaN for missing.

        Returns
        -------
        (n, K) int16, in column-major order; `UNKNOWN` where the attribute has no branch for the value.
        """
        codes = np.empty(values.shape, dtype=np.int16, order="F")
        if len(values) <= FEW_ROWS:
            rows = [list(map(_code_of, self.attributes, self.edges, row)) for row in values.tolist()]
            codes[:] = np.array(rows, dtype=np.int16).reshape(values.shape)
            return codes
        named = [k for k, attribute in enumerate(self.attributes) if isinstance(attribute, Nominal)]
        codes[:, named] = self._nominal_codes(
            named, values if len(named) == values.shape[1] else values[:, named]
        )
        for k, attribute in enumerate(self.attributes):
            if isinstance(attribute, Numeric):
                missing = np.isnan(values[:, k])
                codes[:, k] = np.searchsorted(np.array(self.edges[k]), values[:, k], side="right")
                codes[missing, k] = _missing_code(attribute)
        return codes

    def code_parts(self, parts: Parts) -> dict[tuple[int, int], tuple[Range, ...]]:
        """Return the ranges of codes that uncertain values allow, by row and attribute; both ends included."""
        return {
            (row, k): tuple((self.code(k, low), self.code(k, high)) for low, high in ranges)
            for (row, k), ranges in parts.items()
        }

    def _nominal_codes(self, chosen: Sequence[int], columns: Floats) -> Codes:
        """Return the codes of all nominal columns at once."""
        missing = np.isnan(columns)
        codes = np.clip(np.where(missing, 0, columns) if missing.any() else columns, 0, MAX_VALUES).astype(
            np.int16
        )
        attributes = [self.attributes[k] for k in chosen]
        branching = [attribute.missing == "branch" for attribute in attributes]
        if any(branching):  # values learned later follow the code of missing values
            codes += (codes >= [declared_count(attribute) for attribute in attributes]) & branching
        return np.where(
            missing, np.array([_missing_code(attribute) for attribute in attributes], np.int16), codes
        )


def _missing_code(attribute: Attribute) -> int:
    """Return the code of a missing value."""
    return declared_count(attribute) if attribute.missing == "branch" else UNKNOWN


def _code_of(attribute: Attribute, edges: tuple[float, ...], value: float) -> int:
    """Return the code of one value, as `Encoder.codes` does for many."""
    if math.isnan(value):
        return declared_count(attribute) if attribute.missing == "branch" else UNKNOWN
    if isinstance(attribute, Numeric):
        return bisect_right(edges, value)
    code = int(min(max(value, 0), MAX_VALUES))
    return code + (attribute.missing == "branch" and code >= len(attribute.values))


def declared_count(attribute: Attribute) -> int:
    """Return the number of declared values, or of bins, including bins that no cut in force creates."""
    if isinstance(attribute, Nominal):
        return len(attribute.values)
    return attribute.bins if attribute.cuts is None else attribute.cuts + 1


def cut_counts(attributes: Sequence[Attribute]) -> tuple[int, ...]:
    """Return how many cuts each attribute may be split at; 0 if its codes are the branches."""
    return tuple(
        0 if isinstance(attribute, Nominal) or attribute.cuts is None else attribute.cuts
        for attribute in attributes
    )


def branch_names(
    attributes: Sequence[Attribute],
    edges: Edges,
    learned: Mapping[int, Sequence[str]] | None = None,
) -> tuple[tuple[str, ...], ...]:
    """Return the names of the branches of every attribute: of every code, or of the sides of a cut.

    Parameters
    ----------
    attributes, edges
        See `Encoder`.
    learned
        Nominal values learned after the declaration, in order, by attribute index.

    Examples
    --------
    >>> attributes = [Nominal("colour", ("red", "blue")), Numeric("size", edges=(1.5, 2.5))]
    >>> branch_names(attributes, ((), (1.5, 2.5)))
    (('red', 'blue', '?'), ('< 1.5', '[1.5, 2.5)', '≥ 2.5', '?'))
    """
    named = learned or {}
    names = []
    for k, attribute in enumerate(attributes):
        if isinstance(attribute, Nominal):
            declared = attribute.values
        else:
            declared = _bin_names(edges[k]) if attribute.cuts is None else THRESHOLD_SIDES
        missing = (MISSING_NAME,) if attribute.missing == "branch" else ()
        more = named.get(k, ())
        if isinstance(attribute, Nominal) and len(declared) + len(more) == attribute.most_values:
            more = (*more, other_names({*declared, *more})) if attribute.overflow == BUCKET else more
        names.append((*declared, *missing, *more))
    return tuple(names)


@dataclass(frozen=True, slots=True)
class SplitName:
    """The name of a split (`quercus.trees.tree.splits`), for display.

    Parameters
    ----------
    attribute
        Name of its attribute.
    threshold
        The cut, None for a split by codes.
    branches
        Name of every branch.
    is_nominal
        Whether the branches are names of nominal values, which may look like sides of a cut.
    """

    attribute: str
    threshold: float | None
    branches: tuple[str, ...]
    is_nominal: bool = False


def split_names(
    attributes: Sequence[Attribute], edges: Edges, branches: Sequence[Sequence[str]]
) -> tuple[SplitName, ...]:
    """Return the name of every split, in order of its number.

    Parameters
    ----------
    attributes, edges
        See `Encoder`.
    branches
        Names of the branches of every attribute, as in `branch_names`.

    Examples
    --------
    >>> size = [Numeric("size", edges=(1.5, 2.5), cuts=2)]
    >>> [name.branches for name in split_names(size, ((1.5, 2.5),), branch_names(size, ((1.5, 2.5),)))]
    [('< 1.5', '≥ 1.5', '?'), ('< 2.5', '≥ 2.5', '?')]
    """
    names = []
    for k, (attribute, cuts) in enumerate(zip(attributes, cut_counts(attributes), strict=True)):
        if not cuts:
            names.append(
                SplitName(attribute.name, None, tuple(branches[k]), is_nominal=isinstance(attribute, Nominal))
            )
        for cut in range(cuts):  # a cut that is not in force has the name of the last one that is
            threshold = edges[k][min(cut, len(edges[k]) - 1)]
            sides = (threshold_branch(threshold, code) for code in range(len(THRESHOLD_SIDES)))
            missing = branches[k][len(THRESHOLD_SIDES) :]
            names.append(SplitName(attribute.name, threshold, (*sides, *missing)))
    return tuple(names)


def _bin_names(edges: tuple[float, ...]) -> tuple[str, ...]:
    texts = _short_edges(edges)
    inner = [f"[{a}, {b})" for a, b in pairwise(texts)]
    return (f"< {texts[0]}", *inner, f"≥ {texts[-1]}")


def _short_edges(edges: tuple[float, ...]) -> list[str]:
    # the fewest digits that distinguish the edges
    texts: list[str] = []
    for digits in range(4, 18):
        texts = [f"{edge:.{digits}g}" for edge in edges]
        if len(set(texts)) == len(set(edges)):
            break
    return texts


def check_values(specification: Specification, values: Floats) -> Floats:
    """Return `values` as float64 (n, K) if every one is possible.

    Raises
    ------
    InvalidInput
        If the number of columns is wrong, a value is missing where that is rejected, a number is infinite, or a nominal
        value is not the index of a name or of the bucket. The field names the row and the attribute.
    """
    array = np.asarray(values, dtype=np.float64)
    attributes = specification.attributes
    if array.ndim != 2 or array.shape[1] != len(attributes):
        raise InvalidInput("values", f"have shape {array.shape}, must be (rows, {len(attributes)})")
    if _every_value_possible(attributes, array):
        return array
    for k, attribute in enumerate(attributes):
        column = array[:, k]
        missing = np.isnan(column)
        if attribute.missing == "reject":
            _refuse_value(missing, attribute, column, "must not be missing")
        if isinstance(attribute, Numeric):
            _refuse_value(np.isinf(column), attribute, column, "must be finite")
        else:
            most = attribute.index_count
            fine = missing | ((column >= 0) & (column < most) & (column == np.floor(column)))
            _refuse_value(~fine, attribute, column, f"must be a whole number in [0, {most})")
    return array


def check_uncertain(specification: Specification, values: Floats, parts: Parts) -> Floats:
    """Return `values` as `check_values` does, with NaN where a value is uncertain, after checking `parts` too.

    Raises
    ------
    InvalidInput
        As `check_values` and `check_parts`.
    """
    if not parts:
        return check_values(specification, values)
    check_parts(parts, specification.attributes, lambda each: each.index_count)
    filled = np.array(values, dtype=np.float64)
    for cell, ranges in parts.items():
        filled[cell] = ranges[0][0]
    checked = check_values(specification, filled)
    for cell in parts:
        checked[cell] = math.nan
    return checked


def check_parts(parts: Parts, attributes: Sequence[Attribute], count_of: Callable[[Nominal], int]) -> None:
    """Raise an error if a training row cannot have these uncertain values.

    Parameters
    ----------
    parts, attributes
        The uncertain values, and the attributes that their cells belong to.
    count_of
        Returns how many values a nominal attribute has.

    Raises
    ------
    InvalidInput
        If a set is empty or has a value that the attribute does not have, or a range is reversed, infinite or NaN.
        The field names the row and the attribute.
    """
    for (row, k), ranges in parts.items():
        attribute = attributes[k]
        where = f"values[{row}].{attribute.name}"
        if not ranges:
            raise InvalidInput(where, "is the empty set, must have a value")
        for low, high in ranges:
            if isinstance(attribute, Nominal):
                count = count_of(attribute)
                if low != high or low != np.floor(low) or not 0 <= low < count:
                    found = f"{low:g}" if low == high else f"{low:g} to {high:g}"
                    raise InvalidInput(where, f"is a set with {found}, must be whole numbers in [0, {count})")
            elif not (np.isfinite(low) and np.isfinite(high) and low <= high):
                raise InvalidInput(
                    where, f"is the range {low:g} to {high:g}, must have finite ends in rising order"
                )


def middle_codes(parts: Parts) -> dict[tuple[int, int], int]:
    """Return, for each uncertain cell, the middle one of the codes that it allows, as a single code to represent it.

    Examples
    --------
    >>> middle_codes({(0, 0): ((1.0, 1.0), (4.0, 4.0), (5.0, 5.0)), (1, 0): ((2.0, 5.0),)})
    {(0, 0): 4, (1, 0): 3}
    """
    found = {}
    for cell, ranges in parts.items():
        codes = sorted(code for low, high in ranges for code in range(int(low), int(high) + 1))
        found[cell] = codes[(len(codes) - 1) // 2]
    return found


def _every_value_possible(attributes: tuple[Attribute, ...], array: Floats) -> bool:
    """Return whether all values are possible, tested as arrays."""
    missing = np.isnan(array)
    if (missing & [attribute.missing == "reject" for attribute in attributes]).any():
        return False
    numbers = np.array([isinstance(attribute, Numeric) for attribute in attributes])
    most = [attribute.index_count if isinstance(attribute, Nominal) else 0 for attribute in attributes]
    whole = (array >= 0) & (array < most) & (array == np.floor(array))
    return bool((missing | np.where(numbers, ~np.isinf(array), whole)).all())


def _refuse_value(wrong: NDArray[np.bool_], attribute: Attribute, column: Floats, rule: str) -> None:
    if wrong.any():
        row = int(wrong.argmax())
        raise InvalidInput(f"values[{row}].{attribute.name}", f"is {column[row]}, {rule}")
