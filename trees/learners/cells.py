"""Rows whose attribute values may be uncertain (theory §4), many at once.

A value is a number (for a nominal attribute, an index), a set of numbers, a `Between`, or unknown (None or NaN).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput, shown
from quercus.specification.attributes import Attribute, Nominal
from quercus.specification.parameters import MAX_VALUES


@dataclass(frozen=True, slots=True)
class Between:
    """A number that lies somewhere in ``[low, high]``.

    Raises
    ------
    InvalidInput
        If an end is not a number, or `low` exceeds `high`.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:  # also catches NaN
            raise InvalidInput("value", f"lies between {self.low} and {self.high}, must be in rising order")


Value = float | frozenset[float] | frozenset[int] | Between | None
Range = tuple[float, float]  # both ends included; a number is a range with equal ends


@dataclass(frozen=True, eq=False)
class UncertainValues:
    """The values of n rows.

    Parameters
    ----------
    values
        (n, K) numbers as in `quercus.trees.learners.table.Table`; NaN where unknown or uncertain.
    parts
        Ranges of each uncertain value, at least one, by row and attribute.
    """

    values: Floats
    parts: Mapping[tuple[int, int], tuple[Range, ...]] = field(default_factory=dict)

    @classmethod
    def of_values(cls, values: ArrayLike, attributes: Sequence[Attribute]) -> "UncertainValues":
        """Return rows of known values; NaN means unknown.

        Raises
        ------
        InvalidInput
            When `values` is not an array (n, K) of numbers.
        """
        try:
            array = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InvalidInput(
                "values", f"are {shown(values)}, must be numbers, as many in every row"
            ) from None
        if array.ndim != 2 or array.shape[1] != len(attributes):
            raise InvalidInput("values", f"have shape {array.shape}, must be (rows, {len(attributes)})")
        return cls(array)

    def of_first(self, width: int) -> "UncertainValues":
        """Return the rows with only the first `width` attributes."""
        if self.values.shape[1] <= width:
            return self
        parts = {place: ranges for place, ranges in self.parts.items() if place[1] < width}
        return UncertainValues(self.values[:, :width], parts)

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[Value]], attributes: Sequence[Attribute]) -> "UncertainValues":
        """Return rows of values that may be uncertain.

        Raises
        ------
        InvalidInput
            When a row does not have one value per attribute, a set is empty, a nominal value is not an index or lies
            between two numbers, or a value is not a number. The field names the row and the attribute.
        """
        values = np.full((len(rows), len(attributes)), np.nan)
        parts: dict[tuple[int, int], tuple[Range, ...]] = {}
        for i, row in enumerate(rows):
            if len(row) != len(attributes):
                raise InvalidInput(f"rows[{i}]", f"has {len(row)} values, must have {len(attributes)}")
            for k, value in enumerate(row):
                ranges = _ranges_of(value, attributes[k], f"rows[{i}].{attributes[k].name}")
                if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
                    values[i, k] = ranges[0][0]
                elif ranges:
                    parts[i, k] = ranges
        return cls(values, parts)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def uncertain(self) -> NDArray[np.bool_]:
        """(n,) whether each row has an uncertain value, a set or a range."""
        found = np.zeros(len(self), dtype=bool)
        found[[row for row, _ in self.parts]] = True
        return found

    def take(self, rows: NDArray[np.integer]) -> "UncertainValues":
        """Return these rows, in this order; a row may come more than once."""
        if not self.parts:
            return UncertainValues(self.values[rows])
        cells: dict[int, list[tuple[int, tuple[Range, ...]]]] = {}
        for (row, k), ranges in self.parts.items():
            cells.setdefault(row, []).append((k, ranges))
        kept = {
            (int(place), k): ranges
            for place in np.flatnonzero(self.uncertain[rows])
            for k, ranges in cells[int(rows[place])]
        }
        return UncertainValues(self.values[rows], kept)

    def chunks(self, size: int) -> Iterator["UncertainValues"]:
        """Yield the rows in pieces of at most `size`; an empty piece if there are none."""
        for start in range(0, max(len(self), 1), size):
            yield self.take(np.arange(start, min(start + size, len(self))))

    def ranges(self) -> tuple[Ints, Floats, Floats]:
        """Return every cell as ranges: where those of cell ``row K + k`` begin, (n K + 1,), and the ends of all ranges.

        A known number has one range, an unknown value none.
        """
        flat = self.values.reshape(-1)
        known = ~np.isnan(flat)
        counts = known.astype(np.int64)
        width = self.values.shape[1]
        for (row, k), ranges in self.parts.items():
            counts[row * width + k] = len(ranges)
        start = np.concatenate([[0], np.cumsum(counts)])
        low = np.empty(start[-1])
        low[start[:-1][known]] = flat[known]
        high = low.copy()
        for (row, k), ranges in self.parts.items():
            at = slice(start[row * width + k], start[row * width + k + 1])
            low[at], high[at] = np.array(ranges).T
        return start, low, high


@dataclass(frozen=True, eq=False)
class ColumnParts:
    """The uncertain cells of one attribute.

    Parameters
    ----------
    rows
        (u,) their rows, ascending.
    start
        (u + 1,) start of the ranges of each.
    low, high
        The ends of the ranges, both included.
    """

    rows: Ints
    start: Ints
    low: Floats
    high: Floats

    def among(self, rows: Ints) -> "tuple[Ints, ColumnParts] | None":
        """Return the cells of some rows (m,): their positions among these, and the cells; None if there are none."""
        _, mine, at = np.intersect1d(self.rows, rows, assume_unique=True, return_indices=True)
        return (at, self.take(mine)) if at.size else None

    def take(self, cells: Ints) -> "ColumnParts":
        """Return some of the cells, ascending."""
        length = np.diff(self.start)[cells]
        start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
        at = np.arange(start[-1]) - np.repeat(start[:-1] - self.start[cells], length)
        return ColumnParts(self.rows[cells], start, self.low[at], self.high[at])


def columns_of(parts: Mapping[tuple[int, int], tuple[Range, ...]]) -> dict[int, ColumnParts]:
    """Return the uncertain cells of rows by attribute; attributes without any are absent."""
    by_attribute: dict[int, list[int]] = {}
    for row, k in sorted(parts):
        by_attribute.setdefault(k, []).append(row)
    found = {}
    for k, rows in by_attribute.items():
        ranges = [parts[row, k] for row in rows]
        start = np.concatenate([[0], np.cumsum([len(each) for each in ranges])]).astype(np.int64)
        ends = np.array([end for each in ranges for end in each], dtype=np.float64)
        found[k] = ColumnParts(np.array(rows, np.int64), start, ends[:, 0].copy(), ends[:, 1].copy())
    return found


def _ranges_of(value: Value, attribute: Attribute, field: str) -> tuple[Range, ...]:
    """Return the ranges of a value; empty if it is unknown."""
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return ()
    if isinstance(value, Between):
        if isinstance(attribute, Nominal):
            raise InvalidInput(field, "lies between two numbers, must be named values")
        return ((_number(value.low, field), _number(value.high, field)),)
    some = value if isinstance(value, frozenset | set) else (value,)
    if not some:
        raise InvalidInput(field, "is the empty set, must have a value")
    for part in some:
        if isinstance(part, bool) or not isinstance(part, int | float | np.number):
            raise InvalidInput(field, f"has the value {shown(part)}, must be a number")
        if math.isnan(_number(part, field)):
            raise InvalidInput(field, f"has the value {shown(part)}, must be a number")
        if isinstance(attribute, Nominal) and not (0 <= part <= MAX_VALUES and part == int(part)):
            raise InvalidInput(field, f"is {shown(part)}, must be a whole number in [0, {MAX_VALUES}]")
    return tuple((number, number) for number in sorted({float(part) for part in some}))


def _number(value: float, field: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise InvalidInput(field, f"has the value {shown(value)}, which is too large") from None
