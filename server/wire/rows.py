"""Attribute values: packed and by-name rows to one float64 array and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput, shown
from quercus.proto.v1 import values_pb2
from quercus.server.wire.limits import FEW_NUMBERS, MessageLimits
from quercus.server.wire.refusals import WHOLE, RowFault, RowFaults
from quercus.server.wire.schema import AttributeColumn, ModelSchema
from quercus.specification.names import check_controls
from quercus.specification.parameters import MAX_VALUES
from quercus.storage import NewValue
from quercus.trees import Range

_SIZES: Final = MessageLimits()
ONE_THREAD: Final = 8_192
"""Most numbers whose sum of products numpy's linear algebra computes in one thread.

Several threads wait for one another: 13,000 numbers take 2 µs, or 30 ms if other processes use the cores.
"""


@dataclass(frozen=True, eq=False)
class DecodedRows:
    """Rows as numbers.

    Attributes
    ----------
    values : float64 (n, K): numbers, indices of nominal values, NaN for missing. An index from the
        column's number of known values on stands for a value of `new_values`.
    new_values : nominal values the model has not seen, in order of first appearance.
    parts : ranges of values that are uncertain, by row and attribute; `values` has NaN there.
    """

    values: NDArray[np.float64]
    new_values: tuple[NewValue, ...] = ()
    parts: Mapping[tuple[int, int], tuple[Range, ...]] = field(default_factory=dict)


def count_rows(rows: values_pb2.Rows, schema: ModelSchema, sizes: MessageLimits = _SIZES) -> int:
    """Return the number of rows of either form.

    Raises
    ------
    InvalidInput
        When there are none, or too many, or the values of packed rows are those of no whole number of rows.
    """
    match rows.WhichOneof("kind"):
        case "packed":
            given, width = len(rows.packed.values), len(schema.columns)
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


def decode_rows(
    rows: values_pb2.Rows,
    schema: ModelSchema,
    *,
    learn: bool,
    sizes: MessageLimits = _SIZES,
    faults: RowFaults = WHOLE,
) -> DecodedRows:
    """Convert rows of either form, checking every value.

    Parameters
    ----------
    rows : the received rows.
    schema : schema of the model.
    learn : whether a nominal value that the model has not seen becomes one of `new_values`; otherwise it
        gets the index ``MAX_VALUES``, which no branch of any tree has, and values may be uncertain.
    sizes : bounds of rows, values and names.
    faults : receives the faults of rows, whose values then mean nothing. Rows with one already bring no new values.

    Raises
    ------
    InvalidInput
        Naming the field, the row, the attribute, the value and the bound.
    """
    count = count_rows(rows, schema, sizes)
    if rows.HasField("packed"):
        few = _decode_few(rows.packed, schema, count)
        if few is not None:
            return DecodedRows(few)
        decoded = DecodedRows(_decode_packed(rows.packed, schema, count, faults))
    else:
        decoded = _decode_named(rows.named, schema, learn, sizes, faults)
    if not _are_finite(decoded.values):
        decoded.values[np.isnan(decoded.values)] = np.nan  # one NaN of the many: a retry has the same bytes
    return decoded


def encode_row(values: NDArray[np.float64], schema: ModelSchema) -> values_pb2.NamedRow:
    """Convert one row, float64 (K,), to its form by name; missing values are left out."""
    row = values_pb2.NamedRow()
    for column, value in zip(schema.columns, values.tolist(), strict=True):
        if math.isnan(value):
            continue
        if column.values is None:
            row.values[column.name].number = value
        else:
            row.values[column.name].nominal = column.values[int(value)]
    return row


def _are_finite(values: NDArray[np.float64]) -> bool:
    """Return whether no value (n, K) is NaN or infinite; for few values in a third of the time of a test of each."""
    flat = values.ravel()
    if flat.size <= ONE_THREAD:
        with np.errstate(over="ignore"):
            if math.isfinite(flat.dot(flat)):
                return True
    return bool(np.isfinite(flat).all())  # the squares of finite values may add up to infinity


def _decode_few(packed: values_pb2.PackedRows, schema: ModelSchema, count: int) -> NDArray[np.float64] | None:
    """Convert a few values (n, K), all present and right; None when there are many, or one is not."""
    width = len(schema.columns)
    if count * width > FEW_NUMBERS:
        return None
    values = list(packed.values)
    if not math.isfinite(sum(values)):
        return None
    for k, known in schema.nominal_counts:
        if not all(value.is_integer() and 0 <= value < known for value in values[k::width]):
            return None
    return np.array(values).reshape(count, width)


def _decode_packed(
    packed: values_pb2.PackedRows, schema: ModelSchema, count: int, faults: RowFaults
) -> NDArray[np.float64]:
    values = np.array(packed.values, dtype=np.float64).reshape(count, len(schema.columns))
    finite = _are_finite(values)
    for k, column in enumerate(schema.columns):
        if finite and column.values is None:
            continue
        bad, why = column_faults(values[:, k], column)
        for row in np.flatnonzero(bad).tolist():
            faults.add(RowFault(row, f"rows[{row}].{column.name}", f"is {float(values[row, k])!r}, {why}"))
    return values


def column_faults(values: NDArray[np.float64], column: AttributeColumn) -> tuple[NDArray[np.bool_], str]:
    """Return which values (n,) of a packed column are invalid, and the requirement in words."""
    missing = np.isnan(values)
    if not column.missing and missing.any():
        return missing, "but a missing value is not accepted here"
    if column.values is None:
        return np.isinf(values), "must be a finite number, or NaN for missing"
    known = len(column.values)
    fine = missing | ((values >= 0) & (values < known) & (values == np.floor(values)))
    return ~fine, f"must be an index into its {known} values, 0 to {known - 1}, or NaN for missing"


def _decode_named(
    named: values_pb2.NamedRows, schema: ModelSchema, learn: bool, sizes: MessageLimits, faults: RowFaults
) -> DecodedRows:
    values = np.full((len(named.rows), len(schema.columns)), np.nan)
    learned: list[dict[str, int]] = [{} for _ in schema.columns]
    new: list[NewValue] = []
    parts: dict[tuple[int, int], tuple[Range, ...]] = {}
    names = {column.name: k for k, column in enumerate(schema.columns)}
    required = [column for column in schema.columns if not column.missing]

    def decode_row(i: int, row: values_pb2.NamedRow) -> None:
        for name in row.values:
            if name not in names:
                raise InvalidInput(
                    f"rows[{i}].{_cut_name(name)}",
                    f"is no attribute of the model; its attributes are {_listed_names(list(names))}",
                )
        for column in required:
            if column.name not in row.values:
                raise InvalidInput(
                    f"rows[{i}].{column.name}", "is missing, but a missing value is not accepted here"
                )
        # Only given values cost time: a tiny message may contain thousands of empty rows. In declared order,
        # so that new values get their numbers in the same order whatever the order of the map.
        for k in sorted(names[name] for name in row.values):
            column = schema.columns[k]
            field = f"rows[{i}].{column.name}"
            ranges = _uncertain_ranges(row.values[column.name], column, field, learn)
            if ranges:
                parts[i, k] = ranges
                continue
            number = _named_number(row, column, field)
            if isinstance(number, str):
                text, number = number, MAX_VALUES
                if learn and text not in learned[k]:
                    index = _new_index(text, column, learned[k], field, sizes)
                    new.append(NewValue(k, index - column.declared, text))
                if learn:
                    number = learned[k][text]
            values[i, k] = number

    for i, row in enumerate(named.rows):
        if i in faults.by_row:
            continue
        before = len(new)
        try:
            decode_row(i, row)
        except InvalidInput as error:
            for value in new[before:]:  # a refused row brings none
                del learned[value.attribute][value.value]
            del new[before:]
            faults.add(RowFault(i, error.field, error.reason))
    return DecodedRows(values, tuple(new), parts)


def _cut_name(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:57]}..."


def _uncertain_ranges(
    value: values_pb2.NamedValue, column: AttributeColumn, field: str, learn: bool
) -> tuple[Range, ...] | None:
    """Return the ranges of a value that is uncertain, None for any other."""
    kind = value.WhichOneof("kind")
    if kind not in ("nominals", "range"):
        return None
    if learn:
        raise InvalidInput(
            field, "is uncertain, which only a row to classify may be: push it without a value"
        )
    if kind == "range":
        low, high = value.range.low, value.range.high
        if column.values is not None:
            raise InvalidInput(
                field,
                f"is the range {low!r} to {high!r}, but the attribute is nominal: give some of its values",
            )
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
    if len(names) > MAX_VALUES:
        raise InvalidInput(field, f"is a set of {len(names)} values, at most {MAX_VALUES} are allowed")
    numbers = sorted({float(column.index.get(name, MAX_VALUES)) for name in names})
    return tuple((number, number) for number in numbers)


def _named_number(row: values_pb2.NamedRow, column: AttributeColumn, field: str) -> float | str:
    """Return the number of one value; the text itself when it is a nominal value that is not known."""
    value = row.values[column.name]
    kind = value.WhichOneof("kind")
    if kind is None or (kind == "number" and math.isnan(value.number)):
        if not column.missing:
            raise InvalidInput(field, "is missing, but a missing value is not accepted here")
        return math.nan
    if column.values is None:
        if kind == "nominal":
            raise InvalidInput(field, f"is the text {shown(value.nominal)}, must be a number")
        if math.isinf(value.number):
            raise InvalidInput(field, f"is {value.number!r}, must be a finite number, or NaN for missing")
        return value.number
    if kind == "number":
        raise InvalidInput(field, f"is the number {value.number!r}, must be one of its nominal values")
    return column.index.get(value.nominal, value.nominal)


def _new_index(
    text: str, column: AttributeColumn, learned: dict[str, int], field: str, sizes: MessageLimits
) -> int:
    """Return the next free index for a nominal value that the model has not seen."""
    longest = sizes.max_name_characters
    if not text.strip() or len(text) > longest:
        raise InvalidInput(
            field, f"is {shown(text)}, must be a value of 1 to {longest} characters, not blank"
        )
    check_controls(text, field)
    index = len(column.index) + len(learned)
    if index >= sizes.max_values:
        raise InvalidInput(
            field,
            f"is {shown(text)}, but the attribute has {index} values, the most it may: {sizes.max_values}",
        )
    learned[text] = index
    return index


def _listed_names(names: Sequence[str]) -> str:
    text = ", ".join(shown(name, 24) for name in names[:8])
    return text + (f", ... ({len(names)} in all)" if len(names) > 8 else "")
