"""Rows in the forms that people use, packed for the wire.

Accepted: iterables of dicts (by attribute name), iterables of sequences (in the order of the attributes), numpy arrays
(n, K), and data frames of pandas, polars, Arrow and whatever else `narwhals` reads. Numbers stay numbers, moments
become seconds since 1970 UTC, nominal values become indices (:mod:`quercus.specification.values` says which cell is
which value), ``None`` and NaN are missing. In a *numeric* numpy array a nominal column holds indices into the
attribute's values already.

A frame has a column for each attribute, and may have others. A dict leaves out what is missing, and has no key that is
no attribute: a misspelt key would be missing for ever.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.belief.missing import is_missing
from quercus.client.errors import invalid
from quercus.client.results import Between, Floats, Specification
from quercus.proto.v1 import values_pb2
from quercus.specification.attributes import Attribute, Nominal
from quercus.specification.names import check_controls
from quercus.specification.values import Spellings, canonical_cell, seconds_of

UNKNOWN = -1.0
"""Code of a nominal value that the model does not list yet; such rows are sent by name."""

Row = Mapping[str, Any] | Sequence[Any] | NDArray[Any]
Cells = list[Any]
Parts = dict[tuple[int, int], values_pb2.NamedValue]  # uncertain values by row of the chunk and attribute


@dataclass(frozen=True)
class Chunk:
    """A piece of the input.

    Raw rows (a list, an array slice or a frame slice) that start at row ``start``.
    """

    start: int
    size: int
    rows: Any


def is_frame(rows: object) -> bool:
    """Return whether an object is a data frame or a table of any library; none is imported for this test."""
    return hasattr(type(rows), "columns")


def frame_of(rows: Any, field: str) -> Any:
    """Return a data frame of any library as one of narwhals.

    Raises
    ------
    InvalidArgument
        Narwhals knows no such frame, or it holds no data yet, as a query of polars or Dask.
    """
    import narwhals.stable.v2 as narwhals  # noqa: PLC0415 - who has no frame need not wait for it

    try:
        return narwhals.from_native(rows, eager_only=True)
    except TypeError:
        reason = f"{type(rows).__module__}.{type(rows).__name__} is no frame that holds its data"
        raise invalid(field, f"{reason}: collect it, or convert it to Arrow or pandas") from None


def row_chunks(rows: Any, size: int) -> Iterator[Chunk]:
    """Yield the input in pieces of at most ``size`` rows; never hold more than one piece of an iterable."""
    if is_frame(rows):
        rows = frame_of(rows, "rows")
    if isinstance(rows, np.ndarray) or is_frame(rows):
        if isinstance(rows, np.ndarray) and rows.ndim != 2:
            raise invalid(
                "rows", f"expected a two-dimensional array (rows, attributes), got shape {rows.shape}"
            )
        for start in range(0, len(rows), size):
            piece = rows[start : start + size]
            yield Chunk(start, len(piece), piece)
        return
    if isinstance(rows, str | bytes | Mapping):
        raise invalid("rows", f"expected many rows, got one {type(rows).__name__}; put it into a list")
    start, source = 0, iter(rows)
    while piece := list(itertools.islice(source, size)):
        yield Chunk(start, len(piece), piece)
        start += len(piece)


async def async_row_chunks(rows: Any, size: int) -> AsyncIterator[Chunk]:
    """Yield pieces of an async iterable, or of anything that :func:`row_chunks` takes."""
    if not isinstance(rows, AsyncIterable):
        for chunk in row_chunks(rows, size):
            yield chunk
        return
    start = 0
    piece: list[Any] = []
    async for row in rows:
        piece.append(row)
        if len(piece) == size:
            yield Chunk(start, size, piece)
            start, piece = start + size, []
    if piece:
        yield Chunk(start, len(piece), piece)


def pick_rows(rows: Any, kept: Sequence[int]) -> Any:
    """Return some of the rows of a list, an array or a frame, by their places."""
    if isinstance(rows, list):
        return [rows[place] for place in kept]
    return rows[list(kept)]


class RowEncoder:
    """Encoder of the rows of one model.

    Parameters
    ----------
    specification
        Specification of the model, with the nominal values that the server knows.
    uncertain
        Whether a value may be a set of names, or a `Between`.
    """

    def __init__(self, specification: Specification, *, uncertain: bool = False) -> None:
        self._uncertain = uncertain
        self.attributes: tuple[Attribute, ...] = tuple(specification.attributes)
        self.names = [attribute.name for attribute in self.attributes]
        self._known = set(self.names)
        self._indices = [
            {value: float(i) for i, value in enumerate(a.values)} if isinstance(a, Nominal) else None
            for a in self.attributes
        ]
        self._spellings = [Spellings(index or ()) for index in self._indices]
        self._indexed = np.array([index is not None for index in self._indices])
        self._counts = np.array([_index_count(each) for each in self.attributes])
        self._required = np.array([a.missing == "reject" for a in self.attributes])

    def encode(self, chunk: Chunk) -> tuple[values_pb2.Rows, bool]:
        """Return the message of a chunk, and whether it holds nominal values that the model does not list.

        Such a chunk travels by name, and so does one with uncertain values; every other one packed.

        Raises
        ------
        InvalidArgument
            Naming row and attribute.
        """
        if isinstance(chunk.rows, np.ndarray) and chunk.rows.dtype.kind in "fiub":
            return _packed_rows(self._check_values(self._numeric_array(chunk), chunk.start)), False
        columns = self._chunk_columns(chunk)
        parts: Parts = {}
        packed = np.empty((chunk.size, len(self.names)), dtype=np.float64)
        for k, column in enumerate(columns):
            packed[:, k] = self._encode_column(k, column, chunk.start, parts)
        self._check_values(packed, chunk.start, parts)
        if parts:
            return self._named_rows(columns, packed, parts, chunk.start), True
        if bool((packed == UNKNOWN).any()):
            nominal = [k for k, index in enumerate(self._indices) if index is not None]
            if bool((packed[:, nominal] == UNKNOWN).any()):
                return self._named_rows(columns, packed, parts, chunk.start), True
        return _packed_rows(packed), False

    def _numeric_array(self, chunk: Chunk) -> Floats:
        if chunk.rows.shape[1] != len(self.names):
            reason = f"expected {len(self.names)} values, got {chunk.rows.shape[1]}"
            raise invalid(f"rows[{chunk.start}]", reason)
        return np.asarray(chunk.rows, dtype=np.float64)

    def _check_values(self, values: Floats, start: int, parts: Parts | None = None) -> Floats:
        """Refuse values (n, K) that the server would refuse; `UNKNOWN` stands for a name that it may learn."""
        if (parts is not None or not self._indexed.any()) and np.isfinite(values).all():
            return values
        unsaid = np.isnan(values)
        missing = unsaid.copy()
        for row, column in parts or {}:
            missing[row, column] = False
        known = np.where(self._indexed, self._counts, np.inf)
        lowest = np.where(self._indexed, 0.0 if parts is None else UNKNOWN, -np.inf)
        wrong = np.isinf(values) | (missing & self._required)
        wrong |= (
            (values < lowest) | (values >= known) | (self._indexed & (values != np.floor(values)) & ~unsaid)
        )
        if wrong.any():
            row, k = np.argwhere(wrong)[0].tolist()
            value = float(values[row, k])
            if math.isnan(value):
                reason = "is missing, which the attribute does not accept"
            elif self._indices[k] is None:
                reason = f"is {value}, must be a finite number, or None for missing"
            else:
                reason = (
                    f"is {value}, must be an index into its {int(self._counts[k])} values, or NaN for missing"
                )
            raise invalid(f"rows[{start + row}].{self.names[k]}", reason)
        return values

    def _chunk_columns(self, chunk: Chunk) -> list[Cells]:
        """Return the chunk by column, in the order of the attributes."""
        if is_frame(chunk.rows):
            return self._frame_columns(chunk.rows)
        rows = [self._row_cells(row, chunk.start + i) for i, row in enumerate(chunk.rows)]
        return [list(column) for column in zip(*rows, strict=True)]

    def _frame_columns(self, frame: Any) -> list[Cells]:
        missing = [name for name in self.names if name not in frame.columns]
        if missing:
            there = f"its columns are {', '.join(map(repr, frame.columns[:12]))}"
            raise invalid("rows", f"the frame has no column {', '.join(map(repr, missing))}; {there}")
        return [frame[name].to_list() for name in self.names]

    def _row_cells(self, row: Any, number: int) -> Sequence[Any]:
        if isinstance(row, Mapping):
            if not row.keys() <= self._known:
                unknown = ", ".join(repr(key) for key in row if key not in self._known)
                known = ", ".join(self.names)
                raise invalid(f"rows[{number}]", f"no attribute {unknown}; the attributes are {known}")
            return [row.get(name) for name in self.names]
        if isinstance(row, np.ndarray):
            row = row.tolist()
        if isinstance(row, str | bytes) or not isinstance(row, Sequence):
            raise invalid(f"rows[{number}]", f"expected a dict or a sequence, got {type(row).__name__}")
        if len(row) != len(self.names):
            raise invalid(f"rows[{number}]", f"expected {len(self.names)} values, got {len(row)}")
        return row

    def _encode_column(self, column: int, cells: Cells, start: int, parts: Parts) -> Floats | list[float]:
        index = self._indices[column]
        if index is not None:
            return [
                found
                if type(cell) is str and (found := index.get(cell)) is not None
                else float("nan")
                if self._is_uncertain(column, i, cell, start, parts)
                else self._odd_nominal(column, cell, start + i)
                for i, cell in enumerate(cells)
            ]
        if {type(cell) for cell in cells} <= {float, int}:
            with contextlib.suppress(OverflowError):  # an integer that no float holds is named below
                return np.array(cells, dtype=np.float64)
        return [
            float("nan")
            if self._is_uncertain(column, i, cell, start, parts)
            else self._numeric_value(column, cell, start + i)
            for i, cell in enumerate(cells)
        ]

    def _is_uncertain(self, column: int, offset: int, cell: Any, start: int, parts: Parts) -> bool:
        """Put an uncertain value into `parts`; return whether it is one."""
        nominal = self._indices[column] is not None
        if not self._uncertain or not isinstance(cell, set | frozenset | Between):
            return False
        if nominal != isinstance(cell, set | frozenset):
            wanted = "a set of names" if nominal else "a Between of numbers"
            raise invalid(
                f"rows[{start + offset}].{self.names[column]}", f"is {cell!r}, must be a value or {wanted}"
            )
        value = values_pb2.NamedValue()
        if isinstance(cell, Between):
            value.range.low = self._numeric_value(column, cell.low, start + offset)
            value.range.high = self._numeric_value(column, cell.high, start + offset)
        else:
            names = sorted(filter(None, (self._nominal_text(column, each, start + offset) for each in cell)))
            value.nominals.SetInParent()
            value.nominals.values.extend(names)
        parts[offset, column] = value
        return True

    def _odd_nominal(self, column: int, cell: Any, row: int) -> float:
        text = self._nominal_text(column, cell, row)
        index = self._indices[column]
        if text is None or index is None:
            return float("nan")
        return index.get(text, UNKNOWN)

    def _nominal_text(self, column: int, cell: Any, row: int) -> str | None:
        """Return a nominal value as the attribute spells it; ``None`` for a missing one.

        A value that the attribute does not have yet may have another spelling among those that it has learned since:
        the server decides.
        """
        try:
            text = canonical_cell(cell)
        except ValueError as error:
            raise invalid(f"rows[{row}].{self.names[column]}", str(error)) from None
        return None if text is None else self._spellings[column].of(text) or text

    def _numeric_value(self, column: int, cell: Any, row: int) -> float:
        if is_missing(cell):
            return float("nan")
        seconds = seconds_of(cell)
        if seconds is not None:
            return seconds
        if isinstance(cell, str | bytes | np.timedelta64):
            kind = "text" if isinstance(cell, str) else type(cell).__name__
            raise invalid(
                f"rows[{row}].{self.names[column]}", f"the attribute is numeric, got the {kind} {cell!r}"
            )
        try:
            return float(cell)
        except (TypeError, ValueError, OverflowError):
            reason = f"the attribute is numeric, got {cell!r} ({type(cell).__name__})"
            raise invalid(f"rows[{row}].{self.names[column]}", reason) from None

    def _named_rows(self, columns: list[Cells], packed: Floats, parts: Parts, start: int) -> values_pb2.Rows:
        """Return rows by name, which may have uncertain values and nominal ones that the model does not list yet."""
        named = values_pb2.NamedRows()
        for i in range(len(packed)):
            values = named.rows.add().values
            for k, name in enumerate(self.names):
                if (i, k) in parts:
                    values[name].CopyFrom(parts[i, k])
                    continue
                if np.isnan(packed[i, k]):
                    continue
                if self._indices[k] is None:
                    values[name].number = packed[i, k]
                else:
                    text = self._nominal_text(k, columns[k][i], start + i) or ""
                    if packed[i, k] == UNKNOWN:
                        _check_new_name(text, f"rows[{start + i}].{name}")
                    values[name].nominal = text
        return values_pb2.Rows(named=named)


def _index_count(attribute: Attribute) -> int:
    """Return the number of indices that packed values may have: of names, and of the bucket once they are all there."""
    if not isinstance(attribute, Nominal):
        return 0
    is_full = len(attribute.values) == attribute.most_values
    return attribute.index_count if is_full else len(attribute.values)


def _check_new_name(text: str, field: str) -> None:
    """Refuse a nominal value that no attribute can learn."""
    if not text.strip():
        raise invalid(field, f"is {text!r}, must be a value that is not blank")
    try:
        check_controls(text, field)
    except InvalidInput as error:
        raise invalid(error.field, error.reason) from None


def _packed_rows(values: Floats) -> values_pb2.Rows:
    return values_pb2.Rows(packed=values_pb2.PackedRows(values=np.ascontiguousarray(values).ravel()))
