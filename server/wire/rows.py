"""Conversion of rows, packed or by name, to a float64 array and back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput, shown
from quercus.server.wire.limits import FEW_NUMBERS, MessageLimits
from quercus.server.wire.refusals import WHOLE, RowFault, RowFaults
from quercus.server.wire.schema import AttributeColumn, ModelSchema
from quercus.specification.names import check_controls
from quercus.specification.parameters import MAX_VALUES
from quercus.specification.values import NOTHING, Spellings, canonical_cell, number_of
from quercus.storage import NewValue
from quercus.trees import Range
from quercus.v1 import values_pb2

_SIZES: Final = MessageLimits()
ONE_THREAD: Final = 8_192
"""Most numbers of a dot product that numpy computes in one thread.

Several threads wait for one another: 13,000 numbers take 2 µs, or 30 ms if other processes use the cores.
"""


class DecodedRows(NamedTuple):
    """Rows as numbers.

    Attributes
    ----------
    values : float64 (n, K): numbers, indices of nominal values, NaN for missing values. Indices beyond the column's
        known values stand for `new_values`; the index ``most`` of the column stands for its bucket, or for no branch.
    new_values : nominal values that the model learns, in order of first appearance.
    parts : ranges of uncertain values, by row and attribute; `values` has NaN there.
    unseen : counts of names that the model does not know, by attribute.
    """

    values: NDArray[np.float64]
    new_values: tuple[NewValue, ...] = ()
    parts: Mapping[tuple[int, int], tuple[Range, ...]] = MappingProxyType({})
    unseen: Sequence[values_pb2.UnseenNames] = ()


def count_rows(rows: values_pb2.Rows, schema: ModelSchema, sizes: MessageLimits = _SIZES) -> int:
    """Return the number of rows of either form.

    Raises
    ------
    InvalidInput
        If there are none or too many, or packed values do not make whole rows.
    """
    match rows.WhichOneof("kind"):
        case "packed":
            given, width = len(rows.packed.values), _width_of(rows.packed, schema)
            count, rest = divmod(given, width)
            if rest:
                raise InvalidInput(
                    "rows.packed.values", f"has {given} values, must be a multiple of the {width} attributes"
                )
        case "named":
            count = len(rows.named.rows)
        case _:
            raise InvalidInput("rows", "is missing: give packed or named rows")
    if not 1 <= count <= sizes.max_batch_rows:
        raise InvalidInput(
            "rows", f"has {count} rows, must have 1 to {sizes.max_batch_rows} (max_batch_rows)"
        )
    return count


def _width_of(packed: values_pb2.PackedRows, schema: ModelSchema) -> int:
    """Return the number of values of each row: that of the model's attributes, now or before an extension."""
    most = len(schema.columns)
    width = packed.width or most
    if width != most and width not in schema.shapes.widths:
        raise InvalidInput("rows.packed.width", f"is {width}, but the model has {most} attributes")
    return width


def decode_rows(
    rows: values_pb2.Rows,
    schema: ModelSchema,
    *,
    learn: bool,
    sizes: MessageLimits = _SIZES,
    faults: RowFaults = WHOLE,
) -> DecodedRows:
    """Convert rows of either form, and check every value.

    Parameters
    ----------
    rows : the received rows.
    schema : schema of the model.
    learn : if true, an unknown nominal value becomes one of `new_values`, or goes to the bucket once the attribute is
        full. If false, it gets the index of the bucket, which no branch of a tree has before the attribute is full.
    sizes : limits of rows, values and names.
    faults : receives the faults of rows, whose values then have no meaning. Rows that have a fault already add no new
        values.

    Raises
    ------
    InvalidInput
        If there are no rows, too many, or an invalid one that `faults` raises; the error names the field, the row, the
        attribute, the value and the bound.
    """
    count = count_rows(rows, schema, sizes)
    if rows.HasField("packed"):
        few = _few_known(rows.packed, schema, count)
        if few is not None:
            return DecodedRows(np.array(few).reshape(count, -1))
        values = np.array(rows.packed.values, dtype=np.float64).reshape(count, -1)
        if more := len(schema.columns) - values.shape[1]:
            values = np.concatenate([values, np.full((count, more), np.nan)], axis=1)
        finite = _are_finite(values)
        for k, column in enumerate(schema.columns):
            if finite and column.values is None:
                continue
            bad, why = column_faults(values[:, k], column)
            for row in np.flatnonzero(bad).tolist():
                reason = f"is {float(values[row, k])!r}, {why}"
                faults.add(RowFault(row, f"rows[{row}].{column.name}", reason))
        decoded = DecodedRows(values)
    else:
        decoded = _decode_named(rows.named, schema, learn, sizes, faults)
    if not _are_finite(decoded.values):
        decoded.values[np.isnan(decoded.values)] = (
            np.nan
        )  # all NaN with the same bits, so that retries are equal
    return decoded


def encode_row(
    values: NDArray[np.float64],
    schema: ModelSchema,
    parts: Mapping[int, tuple[Range, ...]] = MappingProxyType({}),
) -> values_pb2.NamedRow:
    """Convert one row, float64 (K,), to a row by name; a missing value has no kind.

    `parts` has the ranges of uncertain values, by attribute.
    """
    row = values_pb2.NamedRow()
    for k, (column, value) in enumerate(zip(schema.columns, values.tolist(), strict=True)):
        cell = row.values[column.name]
        if k in parts and column.values is None:
            cell.range.low, cell.range.high = parts[k][0][0], parts[k][-1][1]
            continue
        if k in parts:
            cell.nominals.values.extend(column.name_of(int(low)) for low, _ in parts[k])
            continue
        if math.isnan(value):
            continue
        if column.values is None:
            cell.number = value
        else:
            index = int(value)
            if index < column.most:
                cell.nominal = column.values[index]
            else:
                cell.other = column.other_names
    return row


def _are_finite(values: NDArray[np.float64]) -> bool:
    """Return whether all values (n, K) are finite; a dot product takes a third of the time of testing each."""
    flat = values.ravel()
    if flat.size <= ONE_THREAD:
        with np.errstate(over="ignore"):
            if math.isfinite(flat.dot(flat)):
                return True
    return bool(np.isfinite(flat).all())  # needed because the squares of finite values may add up to infinity


def known_row(rows: values_pb2.Rows, schema: ModelSchema) -> list[float] | None:
    """Return the values (K,) of a single packed row if all are present and valid; otherwise None."""
    if len(rows.packed.values) != len(schema.columns) or rows.packed.width not in {0, len(schema.columns)}:
        return None
    return _few_known(rows.packed, schema, 1)


def _few_known(packed: values_pb2.PackedRows, schema: ModelSchema, count: int) -> list[float] | None:
    """Return the values, row after row, if they are few, and all present and valid; otherwise None."""
    width = len(schema.columns)
    if len(packed.values) != count * width or count * width > FEW_NUMBERS:
        return None
    values = list(packed.values)
    if not math.isfinite(sum(values)):
        return None
    for k, known in schema.nominal_counts:
        if not all(value.is_integer() and 0 <= value < known for value in values[k::width]):
            return None
    return values


def column_faults(values: NDArray[np.float64], column: AttributeColumn) -> tuple[NDArray[np.bool_], str]:
    """Return a mask of the invalid values (n,) of a packed column, and the requirement as text."""
    missing = np.isnan(values)
    if not column.missing and missing.any():
        return missing, "but a missing value is not accepted here"
    if column.values is None:
        return np.isinf(values), "must be a finite number, or NaN for missing"
    known = column.index_count
    fine = missing | ((values >= 0) & (values < known) & (values == np.floor(values)))
    return (
        ~fine,
        f"must be an index into its {len(column.values)} values, 0 to {known - 1}, or NaN for missing",
    )


def _decode_named(
    named: values_pb2.NamedRows, schema: ModelSchema, learn: bool, sizes: MessageLimits, faults: RowFaults
) -> DecodedRows:
    values = np.full((len(named.rows), len(schema.columns)), np.nan)
    new: list[NewValue] = []
    known = [_Names(k, column, new) for k, column in enumerate(schema.columns)]
    parts: dict[tuple[int, int], tuple[Range, ...]] = {}
    unseen = UnseenCounter()
    names = {column.name: k for k, column in enumerate(schema.columns)}
    required = [column for column in schema.columns if not column.missing]

    def learned_ranges(
        value: values_pb2.NamedValue, names_of: _Names, field: str, ranges: tuple[Range, ...]
    ) -> tuple[Range, ...]:
        """Return the ranges of a value of a row to learn from; new names in a set are learned too."""
        if schema.refusal_of_uncertain:
            raise InvalidInput(field, schema.refusal_of_uncertain)
        if names_of.column.values is None:
            return ranges
        texts = dict.fromkeys(names_of.spellings.name(name) for name in value.nominals.values)
        if not texts.keys().isdisjoint({"", NOTHING}) and names_of.column.index_of(NOTHING) is None:
            raise InvalidInput(field, "is a set with a missing value: name its values, or give no value")
        numbers = {float(names_of.index_of(text, field, sizes, learn=True)) for text in texts}
        return tuple((number, number) for number in sorted(numbers))

    def decode_row(i: int, row: values_pb2.NamedRow) -> list[tuple[AttributeColumn, Sequence[str], bool]]:
        """Fill in a row; return its unknown names by column, and whether they are beyond the limit."""
        found: list[tuple[AttributeColumn, Sequence[str], bool]] = []
        for name in row.values:
            if name not in names:
                raise InvalidInput(
                    f"rows[{i}].{name if len(name) <= 60 else f'{name[:57]}...'}",
                    f"is not an attribute of the model; its attributes are {_listed_names(list(names))}",
                )
        for column in required:
            if column.name not in row.values:
                raise InvalidInput(
                    f"rows[{i}].{column.name}", "is missing, but a missing value is not accepted here"
                )
        # Only given values must cost time, because a tiny message may have thousands of empty rows. The declared order
        # makes the numbers of new values independent of the order of the map.
        for k in sorted(names[name] for name in row.values):
            column = schema.columns[k]
            field = f"rows[{i}].{column.name}"
            ranges = _uncertain_ranges(row.values[column.name], column, field, learn)
            if ranges:
                if learn:
                    ranges = learned_ranges(row.values[column.name], known[k], field, ranges)
                strange = [
                    name for name in row.values[column.name].nominals.values if column.index_of(name) is None
                ]
                if strange:
                    found.append((column, strange, column.fills_bucket))
                if learn and len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
                    values[i, k] = ranges[0][0]
                else:
                    parts[i, k] = ranges
                continue
            number = _named_number(row, column, field, learn)
            if isinstance(number, str):
                text = known[k].spellings.name(number)
                number = known[k].index_of(text, field, sizes, learn=learn)
                if number >= len(column.index):
                    beyond = number == column.most and (learn or column.fills_bucket)
                    found.append((column, (text,), beyond))
            values[i, k] = number
        return found

    for i, row in enumerate(named.rows):
        if i in faults.by_row:
            continue
        before = len(new)
        try:
            found = decode_row(i, row)
        except InvalidInput as error:
            for value in new[before:]:  # a refused row adds no new values
                known[value.attribute].forget(value.value)
            del new[before:]
            faults.add(RowFault(i, error.field, error.reason))
            continue
        for column, strange, beyond in found:
            unseen.count_row(column.name, *strange, beyond=beyond)
    return DecodedRows(values, tuple(new), parts, unseen.messages())


class _Names:
    """The values of attribute `k`, with those that a message adds, which are also added to `new`."""

    def __init__(self, k: int, column: AttributeColumn, new: list[NewValue]) -> None:
        self.k, self.column, self.new = k, column, new
        self.learned: dict[str, int] = {}
        self.spellings = column.spellings

    def index_of(self, text: str, field: str, sizes: MessageLimits, *, learn: bool) -> int:
        """Return the index of a value; an unknown one is learned, or gets the index `most`."""
        column = self.column
        found = column.index.get(text, self.learned.get(text))
        if found is None and learn:
            found = _new_index(text, column, len(self.learned), field, sizes)
            if found < column.most:
                self.learned[text] = found
                self.new.append(NewValue(self.k, found - column.declared, text))
                self._respell()
        return column.most if found is None else found

    def forget(self, text: str) -> None:
        """Forget the last learned value, because its row was refused."""
        del self.learned[text]
        self._respell()

    def _respell(self) -> None:
        # The spelling of a boolean must not depend on the other names in the message.
        self.spellings = Spellings((*self.column.index, *self.learned))


def _uncertain_ranges(
    value: values_pb2.NamedValue, column: AttributeColumn, field: str, learn: bool
) -> tuple[Range, ...] | None:
    """Return the ranges of an uncertain value; None for any other value."""
    kind = value.WhichOneof("kind")
    if kind not in ("nominals", "range"):
        return None
    if kind == "range":
        low, high = value.range.low, value.range.high
        if column.values is not None:
            raise InvalidInput(
                field,
                f"is the range {low!r} to {high!r}, but the attribute is nominal: give some of its values",
            )
        if learn and (math.isinf(low) or math.isinf(high)):
            raise InvalidInput(field, f"is the range {low!r} to {high!r}, must have finite ends")
        if not low <= high or (math.isinf(low) and low > 0) or (math.isinf(high) and high < 0):
            raise InvalidInput(
                field, f"is the range {low!r} to {high!r}: the first must be a number not above the second"
            )
        return ((low, high),)
    names = list(dict.fromkeys(value.nominals.values))
    if column.values is None:
        raise InvalidInput(
            field, f"is {_listed_names(names)}, but the attribute is numeric: give a number or a range"
        )
    if not names:
        raise InvalidInput(field, "is a set without values, must have at least one")
    most = MAX_VALUES
    if learn:
        most = column.index_count if column.is_full else column.most + column.has_bucket
    if len(names) > most:
        raise InvalidInput(field, f"is a set of {len(names)} values, at most {most} are allowed")
    return value_ranges(names, column)


def value_ranges(names: Iterable[str], column: AttributeColumn) -> tuple[Range, ...]:
    """Return a set of values as ranges; an unknown name gets the column's index `most`."""
    found = (column.index_of(name) for name in names)
    numbers = sorted({float(column.most if index is None else index) for index in found})
    return tuple((number, number) for number in numbers)


def _named_number(row: values_pb2.NamedRow, column: AttributeColumn, field: str, learn: bool) -> float | str:
    """Return the number of a value, or its text if it is an unknown nominal value."""
    value = row.values[column.name]
    kind = value.WhichOneof("kind")
    found: float | str
    if kind is None:
        found = math.nan
    elif column.values is None and kind == "number":
        found = value.number
        if math.isinf(found):
            raise InvalidInput(field, f"is {found!r}, must be a finite number, or NaN for missing")
    elif column.values is None:
        if kind == "other":
            raise InvalidInput(field, f"is the text {shown(value.other)}, must be a number")
        try:
            number = number_of(value.nominal)
        except ValueError:
            raise InvalidInput(field, f"is the text {shown(value.nominal)}, must be a number") from None
        found = math.nan if number is None else number
    elif kind == "nominal":
        found = _index_or_text(value.nominal, column)
    elif kind == "other":
        if learn and not column.fills_bucket:
            raise InvalidInput(
                field,
                f"is one of the names beyond the bound, but the attribute has {len(column.index)} values, and its "
                f"bound is {column.most}: give the name",
            )
        found = column.most
    else:
        try:
            name = canonical_cell(value.number) or ""
        except ValueError as error:
            raise InvalidInput(field, f"is of a nominal attribute: {error}") from None
        found = _index_or_text(name, column)
    if not isinstance(found, str) and math.isnan(found) and not column.missing:
        raise InvalidInput(field, "is missing, but a missing value is not accepted here")
    return found


def _index_or_text(text: str, column: AttributeColumn) -> float | str:
    index = column.index_of(text)
    if index is not None:
        return index
    return math.nan if text.strip() in {"", NOTHING} else text


def _new_index(text: str, column: AttributeColumn, learned: int, field: str, sizes: MessageLimits) -> int:
    """Return the index of an unknown nominal value: the next free one, or that of the bucket.

    The first names in the order of the log get indices of their own, however rows are divided into messages.
    """
    longest = sizes.max_name_characters
    if not text.strip() or len(text) > longest:
        raise InvalidInput(
            field, f"is {shown(text)}, must be a value of 1 to {longest} characters, not blank"
        )
    check_controls(text, field)
    index = len(column.index) + learned
    if index >= column.most and not column.has_bucket:
        raise InvalidInput(
            field,
            f"is {shown(text)}, but the attribute has {index} values, the most it may (max_values), and refuses "
            "others (overflow)",
        )
    return index  # never above `most`, because no value is learned beyond it


def _listed_names(names: Sequence[str]) -> str:
    text = ", ".join(shown(name, 24) for name in names[:8])
    return text + (f", ... ({len(names)} in all)" if len(names) > 8 else "")


MAX_EXAMPLES: Final = 100
"""Most names of one attribute that a response lists."""


class UnseenCounter:
    """Counts the rows of a message with names that the model does not know."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, None]] = {}
        self._rows: dict[str, int] = {}
        self._beyond: dict[str, int] = {}

    def count_row(self, attribute: str, *names: str, beyond: bool) -> None:
        """Count a row with such names; `beyond` is true if they are beyond the limit of the attribute."""
        self._names.setdefault(attribute, {}).update(dict.fromkeys(names))
        self._rows[attribute] = self._rows.get(attribute, 0) + 1
        self._beyond[attribute] = self._beyond.get(attribute, 0) + beyond

    def messages(self) -> list[values_pb2.UnseenNames]:
        """Return the counts of each attribute that has such names."""
        return [
            values_pb2.UnseenNames(
                attribute=attribute,
                rows=self._rows[attribute],
                names=len(names),
                examples=list(names)[:MAX_EXAMPLES],
                rows_beyond=self._beyond[attribute],
            )
            for attribute, names in self._names.items()
        ]
