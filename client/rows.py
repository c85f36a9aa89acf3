"""Rows in the forms that people use, and their encoding for the wire.

Accepted: iterables of dicts (by attribute name), iterables of sequences (in the order of the attributes), numpy arrays
(n, K), and frames: pandas, polars, Arrow tables, batches and readers, others that `narwhals` supports, and objects with
``__arrow_c_stream__``. A reader is read batch by batch. Cells are read by the rules of `quercus.specification.values`.
In a *numeric* numpy array, a nominal column holds indices into the attribute's values.

A frame must have a column for every attribute, and the dicts of the first message a key; later dicts may omit keys,
whose values are then missing. Names that are not attributes are ignored, unless the same row lacks an attribute, since
the name may be misspelt.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput, shown
from quercus.client.errors import invalid
from quercus.client.frames import frame_of
from quercus.client.specifications import Specification
from quercus.client.values import Between, Floats
from quercus.specification.attributes import Attribute, Nominal
from quercus.specification.names import check_controls
from quercus.specification.values import NOTHING, Spellings, canonical_cell, number_of
from quercus.v1 import values_pb2

if TYPE_CHECKING:
    import narwhals as nw

    from quercus.client.results import Model

UNKNOWN = -1.0
"""Code of a nominal value that is not in the model yet; rows with such values are sent by name."""

Row = Mapping[str, Any] | Sequence[Any] | NDArray[Any]
Cells = list[Any]
Parts = dict[tuple[int, int], values_pb2.NamedValue]
"""Values that are sent by name, by row of the chunk and attribute: uncertain and unlisted ones."""


@dataclass(frozen=True)
class Chunk:
    """A piece of the input.

    Raw rows (a list, or a slice of an array or a narwhals frame) that start at row ``start``. In a part of a piece,
    only single rows are checked, since an attribute may occur in another part.
    """

    start: int
    size: int
    rows: Any
    is_part: bool = False


def table_of(given: object, field: str) -> nw.DataFrame[Any] | None:
    """Return a frame of any library as a narwhals frame; ``None`` if the object is not a frame.

    Raises
    ------
    InvalidArgument
        For a frame that cannot be read; the error names `field`.
    """
    try:
        return frame_of(given)
    except ValueError as error:
        raise invalid(field, str(error)) from None


def row_chunks(rows: Any, size: int) -> Iterator[Chunk]:
    """Yield the input in pieces of at most ``size`` rows; never hold more than one piece of an iterable."""
    if type(rows).__name__ == "RecordBatchReader":
        start = 0
        for batch in rows:
            for chunk in row_chunks(batch, size):
                yield replace(chunk, start=start + chunk.start)
            start += len(batch)
        return
    table = rows if isinstance(rows, np.ndarray) else table_of(rows, "rows")
    if table is not None:
        if len(table.shape) != 2:
            raise invalid(
                "rows", f"expected a two-dimensional array (rows, attributes), got shape {table.shape}"
            )
        for start in range(0, len(table), size):
            part = table[start : start + size]
            yield Chunk(start, len(part), part)
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
    """Return some of the rows of a list, an array or a frame, by position."""
    return [rows[place] for place in kept] if isinstance(rows, list) else rows[kept]


def former_widths(model: Model) -> tuple[int, ...]:
    """Return the number of attributes that a model had before each extension by attributes, newest first."""
    widths, width = [], len(model.specification.attributes)
    for each in reversed(model.extensions):
        width -= len(each.attributes)
        if each.attributes:
            widths.append(width)
    return tuple(widths)


def later_attributes(model: Model) -> frozenset[str]:
    """Return the names of the attributes that were added after the model was created."""
    return frozenset(name for each in model.extensions for name in each.attributes)


class RowEncoder:
    """Encoder of the rows of one model.

    Parameters
    ----------
    specification
        Specification of the model, with the nominal values that the server knows.
    former
        Numbers of attributes that the model had before its extensions: rows may lack later ones.
    """

    def __init__(self, specification: Specification, *, former: Sequence[int] = ()) -> None:
        self._former = frozenset(former)
        self.attributes: tuple[Attribute, ...] = tuple(specification.attributes)
        self.names = [attribute.name for attribute in self.attributes]
        self._known = set(self.names)
        self._later = frozenset(self.names[min(former, default=len(self.names)) :])
        self._cells_of = operator.itemgetter(*self.names)
        self._indices = [
            {value: float(i) for i, value in enumerate(a.values)} if isinstance(a, Nominal) else None
            for a in self.attributes
        ]
        self._indexed = np.array([index is not None for index in self._indices])
        self._counts = np.array([_index_count(each) for each in self.attributes])
        self._required = np.array([a.missing == "reject" for a in self.attributes])
        self._spellings = [Spellings(index or ()) for index in self._indices]

    def encode(self, chunk: Chunk) -> tuple[values_pb2.Rows, bool]:
        """Return the message of a chunk, and whether it has nominal values that the model does not list.

        Such a chunk, or one with uncertain values, is sent by name; all others are packed.

        Raises
        ------
        InvalidArgument
            Naming row and attribute.
        """
        if isinstance(chunk.rows, np.ndarray) and chunk.rows.dtype.kind in "fiub":
            values = np.asarray(chunk.rows, dtype=np.float64)
            if values.shape[1] in self._former:
                lacking = len(self.names) - values.shape[1]
                values = np.pad(values, ((0, 0), (0, lacking)), constant_values=np.nan)
            if values.shape[1] != len(self.names):
                reason = f"expected {len(self.names)} values, got {values.shape[1]}"
                raise invalid(f"rows[{chunk.start}]", reason)
            self._check_values(values, chunk.start)
            return _packed_rows(values), False
        parts: Parts = {}
        packed = np.empty((chunk.size, len(self.names)), dtype=np.float64)
        for k, column in enumerate(self._chunk_columns(chunk)):
            packed[:, k] = (
                column
                if isinstance(column, np.ndarray)
                else self._encode_column(k, column, chunk.start, parts)
            )
        self._check_values(packed, chunk.start, parts)
        if not parts:
            return _packed_rows(packed), False
        return self._named_rows(packed, parts), any(
            self._is_unlisted(k, each) for (_, k), each in parts.items()
        )

    def _is_unlisted(self, column: int, value: values_pb2.NamedValue) -> bool:
        """Return whether a value that is sent by name has a name that the model does not list."""
        index = self._indices[column] or {}
        return value.HasField("nominal") or any(name not in index for name in value.nominals.values)

    def _check_values(self, values: Floats, start: int, parts: Parts | None = None) -> None:
        """Refuse values (n, K) that the server would refuse; those in `parts` are checked elsewhere."""
        if (parts is not None or not self._indexed.any()) and np.isfinite(values).all():
            return
        missing = np.isnan(values)
        lowest = np.where(self._indexed, 0.0, -np.inf)
        highest = np.where(self._indexed, self._counts - 1.0, np.inf)
        wrong = np.isinf(values) | (values < lowest) | (values > highest)
        wrong |= self._indexed & ~missing & (values != np.floor(values))
        for row, column in parts or {}:
            missing[row, column] = False
        wrong |= missing & self._required
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

    def _chunk_columns(self, chunk: Chunk) -> Iterable[Cells | Floats]:
        """Return the chunk by column, in the order of the attributes."""
        if not isinstance(chunk.rows, list | np.ndarray):
            return self._frame_columns(chunk.rows)
        if isinstance(chunk.rows, np.ndarray) and chunk.rows.dtype.kind == "U":
            # NumPy turns a missing value into "nan" in an array of strings.
            found = np.argwhere(np.isin(chunk.rows, ("nan", "None", "<NA>")))
            if len(found):
                row, column = found[0].tolist()
                raise invalid(
                    f"rows[{chunk.start + row}]",
                    f"has the text {str(chunk.rows[row, column])!r} in column {column}, which a missing value becomes "
                    "in an array of strings: create the array with dtype=object",
                )
        rows = [self._row_cells(row, chunk.start + i) for i, row in enumerate(chunk.rows)]
        if not chunk.is_part:
            self.check_keys(chunk)
        return [list(column) for column in zip(*rows, strict=True)]

    def _frame_columns(self, frame: nw.DataFrame[Any]) -> Iterator[Cells | Floats]:
        self._refuse_absent([name for name in self.names if name not in frame.columns], frame.columns)
        for name, index in zip(self.names, self._indices, strict=True):
            if name not in frame.columns:  # added by an extension
                yield [None] * len(frame)
                continue
            column = frame[name]
            if index is None and (column.dtype.is_integer() or column.dtype.is_float()):
                yield np.asarray(column.to_numpy(), dtype=np.float64)
            else:
                yield column.to_list()

    def check_keys(self, chunk: Chunk) -> None:
        """Refuse attributes that no dict of the first chunk has."""
        if chunk.start > 0 or not isinstance(chunk.rows, list):
            return
        absent = self.names
        for row in chunk.rows:
            if not isinstance(row, Mapping):
                return
            absent = [name for name in absent if name not in row]
            if not absent:
                return
        self._refuse_absent(absent, list(dict.fromkeys(key for row in chunk.rows for key in row)))

    def _refuse_absent(self, absent: Sequence[str], there: Sequence[Any]) -> None:
        absent = [name for name in absent if name not in self._later]
        if absent:
            raise invalid(
                "rows",
                f"have no {_listed(absent)}, only {_listed(there)}: give the column, or give it without values "
                "(None) if they are unknown",
            )

    def _row_cells(self, row: Any, number: int) -> Sequence[Any]:
        if type(row) is dict and len(row) >= len(self.names) > 1:
            try:
                cells: tuple[Any, ...] = self._cells_of(row)  # fast path: most rows have every attribute
            except KeyError:
                pass
            else:
                return cells
        if isinstance(row, Mapping):
            if not row.keys() <= self._known and not self._known <= row.keys():
                unknown = [key for key in row if key not in self._known]
                raise invalid(
                    f"rows[{number}]",
                    f"no attribute {_listed(unknown)}; the attributes are {', '.join(self.names)}",
                )
            return [row.get(name) for name in self.names]
        if isinstance(row, np.ndarray):
            row = row.tolist()
        if isinstance(row, str | bytes) or not isinstance(row, Sequence):
            raise invalid(f"rows[{number}]", f"expected a dict or a sequence, got {type(row).__name__}")
        if len(row) in self._former:
            return [*row, *[None] * (len(self.names) - len(row))]
        if len(row) != len(self.names):
            raise invalid(f"rows[{number}]", f"expected {len(self.names)} values, got {len(row)}")
        return row

    def _encode_column(self, column: int, cells: Cells, start: int, parts: Parts) -> Floats | list[float]:
        index = self._indices[column]
        if index is not None:  # fast path: a text spelled as in the attribute needs one lookup
            codes = [index.get(cell, UNKNOWN) if type(cell) is str else UNKNOWN for cell in cells]
            if UNKNOWN in codes:
                for i, code in enumerate(codes):
                    if code == UNKNOWN and cells[i] is None:
                        codes[i] = math.nan
                    elif code == UNKNOWN:
                        codes[i] = self._odd_nominal(column, i, cells[i], start, parts)
            return codes
        if {type(cell) for cell in cells} <= {float, int}:
            with contextlib.suppress(OverflowError):  # an integer too large for a float is reported below
                return np.array(cells, dtype=np.float64)
        return [
            math.nan
            if cell is None or self._is_uncertain(column, i, cell, start, parts)
            else cell
            if type(cell) is float
            else self._numeric_value(column, cell, start + i)
            for i, cell in enumerate(cells)
        ]

    def _is_uncertain(self, column: int, offset: int, cell: Any, start: int, parts: Parts) -> bool:
        """Put an uncertain value into `parts`; return whether it is one."""
        nominal = self._indices[column] is not None
        if not isinstance(cell, set | frozenset | Between):
            return False
        if nominal != isinstance(cell, set | frozenset):
            wanted = "a set of names" if nominal else "a Between of numbers"
            raise invalid(
                f"rows[{start + offset}].{self.names[column]}",
                f"is {shown(cell)}, must be a value or {wanted}",
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

    def _odd_nominal(self, column: int, offset: int, cell: Any, start: int, parts: Parts) -> float:
        """Return the index of a value that is not spelled as in the attribute."""
        if self._is_uncertain(column, offset, cell, start, parts):
            return math.nan
        text = self._nominal_text(column, cell, start + offset)
        if text is None:
            return math.nan
        index = self._indices[column]
        if index is not None and text in index:
            return index[text]
        try:
            check_controls(text, f"rows[{start + offset}].{self.names[column]}")
        except InvalidInput as error:
            raise invalid(error.field, error.reason) from None
        parts[offset, column] = values_pb2.NamedValue(nominal=text)
        return math.nan

    def _nominal_text(self, column: int, cell: Any, row: int) -> str | None:
        """Return the name of a value, spelled as in the attribute if listed there; ``None`` for a missing one."""
        try:
            text = canonical_cell(cell)
        except ValueError as error:
            raise invalid(f"rows[{row}].{self.names[column]}", f"the attribute is nominal: {error}") from None
        if text is None:
            return None
        name = self._spellings[column].of(text)
        return name if name is not None else None if text == NOTHING else text

    def _numeric_value(self, column: int, cell: Any, row: int) -> float:
        try:
            number = number_of(cell)
        except ValueError:
            what = (
                f"the text {shown(cell)}"
                if isinstance(cell, str | bytes)
                else f"{shown(cell)} ({type(cell).__name__})"
            )
            raise invalid(
                f"rows[{row}].{self.names[column]}", f"the attribute is numeric, got {what}"
            ) from None
        return math.nan if number is None else number

    def _named_rows(self, packed: Floats, parts: Parts) -> values_pb2.Rows:
        """Return rows by name: uncertain values, and nominal ones that the model does not list, are in `parts`."""
        named = values_pb2.NamedRows()
        for i, numbers in enumerate(packed.tolist()):
            values = named.rows.add().values
            for k, (name, number) in enumerate(zip(self.names, numbers, strict=True)):
                if (i, k) in parts:
                    values[name].CopyFrom(parts[i, k])
                elif not math.isnan(number):
                    attribute = self.attributes[k]
                    if isinstance(attribute, Nominal):
                        values[name].nominal = attribute.values[int(number)]
                    else:
                        values[name].number = number
        return values_pb2.Rows(named=named)


def _index_count(attribute: Attribute) -> int:
    """Return the number of valid indices of packed values: of names, and of the bucket once all names are there."""
    if not isinstance(attribute, Nominal):
        return 0
    is_full = len(attribute.values) == attribute.most_values
    return attribute.index_count if is_full else len(attribute.values)


def _listed(names: Sequence[Any], most: int = 12) -> str:
    return ", ".join(map(repr, names[:most])) + (f", ... ({len(names)} in all)" if len(names) > most else "")


def _packed_rows(values: Floats) -> values_pb2.Rows:
    packed = values_pb2.PackedRows(values=np.ascontiguousarray(values).ravel(), width=values.shape[1])
    return values_pb2.Rows(packed=packed)
