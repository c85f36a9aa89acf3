"""The columns of X, numeric or nominal by dtype, and their conversion into the values of a table.

Nominal: columns of dtype category, string or object, the latter unless all its cells are numbers or moments. Numeric:
all others. Cells are read by the rules of `quercus.specification.values`: ``True``, ``"TRUE"`` and ``"true"`` are one
name, as are ``101`` and ``101.0``; moments are seconds since 1970 UTC. A missing cell (None, NaN, NA) is unknown, and
so is, when predicting, a name that did not occur when fitting. A cell may also be a set of values (one of them is true)
or a range of numbers: a pair ``(low, high)``, or a ``Between`` of the client or of `quercus.trees.learners.cells`.
"""

import datetime
import math
import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quercus.belief.arrays import Floats
from quercus.belief.errors import InvalidInput, shown
from quercus.belief.missing import is_missing
from quercus.client.frames import frame_of
from quercus.client.values import Between as GivenBetween
from quercus.specification.attributes import (
    MISSING_NAME,
    Attribute,
    Nominal,
    Numeric,
    WholeNominal,
    other_names,
)
from quercus.specification.parameters import MAX_NAME_CHARS, MAX_VALUES
from quercus.specification.values import NOTHING, Spellings, canonical_cell, is_truth, number_of
from quercus.trees import Between, UncertainValues, Value


def is_frame(X: object) -> bool:
    """Return whether `X` is a frame of pandas, polars, Arrow or another library, without importing any of them."""
    return _is_pandas(X) or frame_of(X) is not None


def _is_pandas(X: object) -> bool:
    return hasattr(type(X), "columns") and hasattr(X, "iloc")


UNCERTAIN = (set, frozenset, tuple, Between, GivenBetween)
"""Types of cells that are sets of values, or ranges of numbers."""
_NUMBERS = (int, float, np.number, datetime.date, datetime.timedelta, np.datetime64)
_NO_NAMES = ("", NOTHING)
NOT_IN_A_POOL = "sets and ranges of values are allowed in rows to fit and to predict, not in those of a pool"


def as_array(X: object) -> object:
    """Return lists of rows as an array, of objects if a cell is text, a set or a range; anything else unchanged."""
    if not isinstance(X, list | tuple):
        return X
    rows = [row for row in X if isinstance(row, list | tuple)]
    widths = {len(row) for row in rows}
    if len(widths) == 1 and len(rows) == len(X) and any(isinstance(c, tuple) for row in rows for c in row):
        cells = np.empty((len(rows), *widths), dtype=object)  # NumPy would make a pair two cells
        for place in np.ndindex(cells.shape):
            cells[place] = rows[place[0]][place[1]]
        return cells
    array = np.asarray(X)
    return np.asarray(X, dtype=object) if array.dtype.kind in "US" else array


class Codes:
    """The values of a nominal column, and the index of each.

    Parameters
    ----------
    texts
        The texts of its cells, in order; several may stand for the same value.
    known
        Codes whose values come first, with their texts.
    as_they_come
        Whether the value of a text depends only on the texts before it, not on all texts.
    has_bucket
        Whether there are more names than an attribute may have, so that the rest share a bucket.
    """

    def __init__(
        self,
        texts: Sequence[str],
        known: "Codes | None" = None,
        *,
        as_they_come: bool = False,
        has_bucket: bool = False,
    ) -> None:
        self.has_bucket: bool = has_bucket or (known is not None and known.has_bucket)
        truth = not as_they_come and is_truth(texts)
        self.names: list[str] = [] if known is None else list(known.names)
        self._index: dict[str, int] = {} if known is None else dict(known._index)
        for text in texts:
            if text not in self._index:
                if as_they_come:
                    truth = is_truth([text]) and is_truth([*self.names, text])
                name = text.lower() if truth else text
                if name not in self._index:
                    if len(self.names) == MAX_VALUES:
                        self.has_bucket = True
                        continue
                    self._index[name] = len(self.names)
                    self.names.append(name)
                self._index[text] = self._index[name]  # its meaning is fixed, whatever names come later
        self._spellings = Spellings(self.names)

    def index(self, text: str) -> int | None:
        """Return the index of the value of a text, or of the bucket; None if it has neither."""
        found = self._index.get(text)
        if found is not None:
            return found
        if (name := self._spellings.of(text)) is not None:
            return self._index[name]
        return MAX_VALUES if self.has_bucket and text not in _NO_NAMES else None


@dataclass(frozen=True)
class FittedColumns:
    """The columns that an estimator was fitted with.

    Parameters
    ----------
    attributes
        Their declarations, in order.
    codes
        The values of a nominal column; None for a numeric one.
    """

    attributes: tuple[Attribute, ...]
    codes: tuple[Codes | None, ...]

    @classmethod
    def of(cls, X: Any, nominal: object = "from_dtype", *, as_they_come: bool = False) -> "FittedColumns":
        """Return the columns of `X`, with their kinds.

        Parameters
        ----------
        X
            DataFrame or array (n, K).
        nominal
            ``"from_dtype"``, or the columns that are names regardless of their dtype: numbers or names of columns, or a
            mask (K,); the others are then numbers.
        as_they_come
            Whether names are in the order of their first rows, as in `with_new_names`, rather than sorted. Categories
            keep their order.

        Raises
        ------
        InvalidInput
            If `nominal` names no column.
        TypeError
            If a cell is neither text nor number.
        """
        columns = list(named_columns(X))  # two columns may have the same name
        forced = _forced_nominal(nominal, [name for name, _ in columns])
        codes: list[Codes | None] = []
        for k, (name, column) in enumerate(columns):
            named = _is_nominal(column, name) if forced is None else k in forced
            known = _codes_of(column, name, as_they_come=as_they_come) if named else None
            _warn_of_bucket(column, name, known)
            codes.append(known)
        names = distinct_names(name for name, _ in columns)
        attributes = tuple(_declare_attribute(name, known) for name, known in zip(names, codes, strict=True))
        return cls(attributes, tuple(codes))

    def with_new_names(self, X: Any) -> "FittedColumns":
        """Return the columns with the new names of `X` in addition to the known ones, which keep their places."""
        more = tuple(
            None
            if known is None
            else Codes(_nominal_texts(column, name, as_they_come=True), known, as_they_come=True)
            for (name, column), known in zip(named_columns(X), self.codes, strict=True)
        )
        for (name, column), codes in zip(named_columns(X), more, strict=True):
            _warn_of_bucket(column, name, codes)
        attributes = tuple(
            old if codes is None else _declare_attribute(old.name, codes)
            for old, codes in zip(self.attributes, more, strict=True)
        )
        return FittedColumns(attributes, more)

    def values(self, X: Any) -> Floats:
        """Return `X` as (n, K) numbers: indices of nominal values, NaN where unknown.

        Raises
        ------
        ValueError
            If a numeric column has a cell that is not a number, or an infinite one.
        """
        numeric = all(codes is None for codes in self.codes)
        if numeric and isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
            return X.astype(np.float64)
        columns = [
            _numeric_column(column, name)
            if codes is None
            else np.array([_code_of(codes, cell, name, i) for i, cell in enumerate(_python_cells(column))])
            for (name, column), codes in zip(named_columns(X), self.codes, strict=True)
        ]
        return np.column_stack(columns).astype(np.float64)

    def cells(self, X: Any) -> UncertainValues:
        """Return `X` as rows of values, some of which may be sets or ranges; see `values`."""
        rows = self.uncertain_rows(X)
        if rows is None:
            return UncertainValues(self.values(X))
        return UncertainValues.of_rows(rows, self.attributes)

    def uncertain_rows(self, X: Any) -> list[list[Value]] | None:
        """Return the rows as lists of values if any cell is a set or a range; else None.

        Raises
        ------
        ValueError
            If a cell is not a value; the message names row and column.
        """
        parts = [list(_python_cells(column)) for _, column in named_columns(X) if column.dtype.kind == "O"]
        if not any(isinstance(cell, UNCERTAIN) for column in parts for cell in column):
            return None
        rows = [
            [_value_of(codes, cell, name, row) for row, cell in enumerate(_python_cells(column))]
            for (name, column), codes in zip(named_columns(X), self.codes, strict=True)
        ]
        return [list(row) for row in zip(*rows, strict=True)]


def distinct_names(values: Iterable[Hashable], most: int = MAX_NAME_CHARS) -> tuple[str, ...]:
    """Return a name for each value: its text, or its ``repr`` if the text is not a valid name or is taken.

    No name has more than `most` characters.

    Examples
    --------
    >>> distinct_names(["a", 1, "1", "", "?"])
    ('a', '1', "'1'", "''", "'?'")
    """
    names: dict[str, None] = {}
    for value in values:
        text = str(value)[: most - 8]
        if not text.strip() or text == MISSING_NAME or text in names:
            text = repr(value)[: most - 8]
        number = len(names)
        while text in names:
            text, number = f"{repr(value)[: most - 8]} #{number}", number + 1
        names[text] = None
    return tuple(names)


def _declare_attribute(name: str, codes: Codes | None) -> Attribute:
    if codes is None:
        return Numeric(name)
    try:
        attribute = Nominal(name, distinct_names(codes.names))
        return WholeNominal.of(attribute) if codes.has_bucket else attribute
    except InvalidInput as error:
        raise InvalidInput(f"column {shown(name)}, {error.field}", error.reason) from None


def _warn_of_bucket(column: Any, name: Hashable, codes: Codes | None) -> None:
    """Warn of rows whose name is not kept."""
    if codes is None or not codes.has_bucket:
        return
    rows = sum(
        any(_code_of(codes, part, name, row) == MAX_VALUES for part in _parts_of(cell))
        for row, cell in enumerate(_python_cells(column))
    )
    if rows:
        said = f"column {shown(name)} has more than {MAX_VALUES:,} names: the first {MAX_VALUES:,} are kept"
        count = f"{rows:,} row{'' if rows == 1 else 's'}"
        warnings.warn(
            f"{said}, and those of {count} count as {other_names(codes.names)}", UserWarning, stacklevel=2
        )


def named_columns(X: Any) -> Iterable[tuple[Hashable, Any]]:
    """Yield the name and the cells of each column; unnamed ones are ``x0``, ``x1``, ..."""
    if _is_pandas(X):
        return ((name, X.iloc[:, k]) for k, name in enumerate(X.columns))
    frame = frame_of(X)
    if frame is not None:
        return ((name, plain_column(frame[name])) for name in frame.columns)
    return ((f"x{k}", X[:, k]) for k in range(X.shape[1]))


def plain_column(column: Any) -> np.ndarray[Any, Any]:
    """Return a column of a frame of narwhals as an array: of numbers, or of objects."""
    kind = column.dtype
    if kind.is_integer() or kind.is_float():
        return np.asarray(column.to_numpy())
    cells = column.to_list()
    if str(kind) == "Boolean" and None not in cells:
        return np.array(cells, dtype=bool)
    found = np.empty(len(cells), dtype=object)
    found[:] = cells
    return found


def _forced_nominal(nominal: object, names: list[Hashable]) -> set[int] | None:
    """Return the numbers of the nominal columns; None if they follow from the dtypes."""
    if isinstance(nominal, str) and nominal == "from_dtype":
        return None
    if nominal is None:
        return set()
    chosen = np.atleast_1d(np.asarray(nominal))
    if chosen.dtype == np.bool_:
        if chosen.shape != (len(names),):
            raise InvalidInput(
                "categorical_features", f"is a mask of {chosen.shape}, must be ({len(names)},)"
            )
        return set(np.flatnonzero(chosen).tolist())
    picked: set[int] = set()
    for each in chosen.tolist():
        is_number = isinstance(each, int) and 0 <= each < len(names)
        found = [each] if is_number else [k for k, name in enumerate(names) if name == each]
        if not found:
            raise InvalidInput("categorical_features", f"names {shown(each)}, which is not a column")
        picked.update(found)
    return picked


def _is_nominal(column: Any, name: Hashable) -> bool:
    kind = column.dtype
    if str(kind) in {"category", "string", "str"} or kind.kind in "US":
        return True
    if kind.kind != "O":
        if kind.kind not in "fiubmM":
            raise TypeError(
                f"column {shown(name)} is of dtype {kind}: the argument must be a string or a number"
            )
        return False
    return not all(
        isinstance(part, _NUMBERS) or is_missing(part) for cell in column for part in _parts_of(cell)
    )


def _parts_of(cell: object) -> Iterable[object]:
    """Return the values in a cell: those of a set, the ends of a range, or the cell itself."""
    if isinstance(cell, Between | GivenBetween):
        return cell.low, cell.high
    return cell if isinstance(cell, set | frozenset | tuple) else (cell,)


def _codes_of(column: Any, name: Hashable, *, as_they_come: bool) -> Codes:
    """Return the values of a nominal column; if too many, the first in the order of its rows (or categories)."""
    texts = _nominal_texts(column, name, as_they_come=as_they_come)
    if len(texts) <= MAX_VALUES:
        return Codes(texts, as_they_come=as_they_come)
    first = frozenset(_nominal_texts(column, name, as_they_come=True)[:MAX_VALUES])
    return Codes([text for text in texts if text in first], as_they_come=as_they_come, has_bucket=True)


def _nominal_texts(column: Any, name: Hashable, *, as_they_come: bool = False) -> Sequence[str]:
    """Return the texts of a nominal column: its categories in order, else sorted, numbers before text."""
    if str(column.dtype) == "category":
        texts = [_text_of(each, name, 0) for each in column.cat.categories.tolist()]
        return [text for text in texts if text not in _NO_NAMES]
    found: dict[str, Any] = {}
    for row, cell in enumerate(_python_cells(column)):
        for part in sorted(cell, key=str) if isinstance(cell, set | frozenset) else (cell,):
            if _has_value(part, name, row):
                found.setdefault(_text_of(part, name, row), part)
    for text in _NO_NAMES:
        found.pop(text, None)
    if as_they_come:
        return tuple(found)
    return sorted(
        found, key=lambda text: (True, text) if isinstance(found[text], str) else (False, found[text])
    )


def _text_of(cell: Any, name: Hashable, row: int) -> str:
    """Return the name of a cell; empty if it has none."""
    try:
        return canonical_cell(cell) or ""
    except ValueError as error:
        raise ValueError(f"rows[{row}], column {shown(name)}: {error}") from None


def _has_value(cell: object, name: Hashable, row: int) -> bool:
    """Return whether a cell of a nominal column has a value."""
    if is_missing(cell):
        return False
    if not isinstance(cell, str | bytes | int | float | np.generic):
        reason = f"the argument must be a string or a number, not {type(cell).__name__!r}"
        hint = f"; {NOT_IN_A_POOL}" if isinstance(cell, UNCERTAIN) else ""
        raise TypeError(f"rows[{row}], column {shown(name)}: {reason}{hint}")
    return True


def _python_cells(column: Any) -> list[Any]:
    """Return the cells as plain Python objects."""
    plain: list[Any] = column.tolist()
    return plain


def _numeric_column(column: Any, name: Hashable) -> Floats:
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiub":
        numbers = np.asarray(column, dtype=np.float64)
    else:
        numbers = np.array(
            [
                math.nan if is_missing(cell) else _cell_number(cell, name, row)
                for row, cell in enumerate(_python_cells(column))
            ]
        )
    if np.isinf(numbers).any():
        raise _not_finite(name, int(np.isinf(numbers).argmax()))
    return numbers


def _cell_number(cell: Any, name: Hashable, row: int) -> float:
    if isinstance(cell, UNCERTAIN):
        raise ValueError(
            f"rows[{row}], column {shown(name)} holds numbers, not {shown(cell)}: {NOT_IN_A_POOL}"
        )
    try:
        number = cell if isinstance(cell, int | float) else number_of(cell)
        return math.nan if number is None else float(number)
    except OverflowError:
        raise _not_finite(name, row) from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"rows[{row}], column {shown(name)} holds numbers: {error}") from None


def _not_finite(name: Hashable, row: int) -> ValueError:
    return ValueError(f"rows[{row}], column {shown(name)} holds a number that is infinite or too large")


def _code_of(codes: Codes, cell: Any, name: Hashable, row: int) -> float:
    if isinstance(cell, UNCERTAIN):
        raise ValueError(f"rows[{row}], column {shown(name)} holds names, not {shown(cell)}: {NOT_IN_A_POOL}")
    index = codes.index(_text_of(cell, name, row))
    return math.nan if index is None else index


def _value_of(codes: Codes | None, cell: Any, name: Hashable, row: int) -> Value:
    if isinstance(cell, tuple | Between | GivenBetween):
        return _range_of(cell, name, row)
    if isinstance(cell, frozenset | set):
        indices = (
            _cell_number(each, name, row) if codes is None else _code_of(codes, each, name, row)
            for each in cell
        )
        known = frozenset(index for index in indices if not math.isnan(index))
        if codes is None and any(map(math.isinf, known)):
            raise _not_finite(name, row)
        return None if cell and not known else known
    if is_missing(cell):
        return None
    found = _cell_number(cell, name, row) if codes is None else _code_of(codes, cell, name, row)
    if math.isinf(found):
        raise _not_finite(name, row)
    return None if math.isnan(found) else found


def _range_of(cell: Any, name: Hashable, row: int) -> Between:
    ends = cell if isinstance(cell, tuple) else (cell.low, cell.high)
    numbers = [end for end in ends if isinstance(end, int | float | np.number) and not isinstance(end, bool)]
    if not len(ends) == len(numbers) == 2 or not numbers[0] <= numbers[1]:
        reason = f"is {shown(cell)}, must be a range (low, high) of two numbers in rising order"
        raise InvalidInput(f"rows[{row}].{name}", reason)
    return Between(_cell_number(numbers[0], name, row), _cell_number(numbers[1], name, row))
