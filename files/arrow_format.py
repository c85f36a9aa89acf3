"""Parquet and Arrow files, read row by row with pyarrow; the types of the file determine the kinds of the columns."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date, time, timedelta
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfoNotFoundError

from quercus.belief.errors import shown
from quercus.belief.missing import is_missing
from quercus.files.arrow_sizes import unpacked_sizes
from quercus.files.errors import FileError
from quercus.files.packing import Unpacking
from quercus.files.table import MAX_COLUMNS, FileColumn, FileRecord, FileTable, flag
from quercus.specification.values import canonical_cell, canonical_text

ROWS: Final = 1_000
"""Rows that are read together."""
ADVICE: Final = "write it as CSV"
"""Advice about a file that unpacks to too much."""
MAGIC: Final = b"ARROW1"
"""First bytes of an Arrow file, but not of an Arrow stream."""


def open_parquet(path: Path) -> FileTable:
    """Open a Parquet file; null and NaN are missing, and lists of numbers become text with blanks between them.

    Raises
    ------
    FileError
        When pyarrow is not installed, or the file is not a Parquet file.
    """
    return _open(path, "Parquet")


def open_arrow(path: Path) -> FileTable:
    """Open an Arrow file, which may be a Feather file, or a stored Arrow stream; cells are as in `open_parquet`.

    Raises
    ------
    FileError
        When pyarrow is not installed, or the file is neither.
    """
    return _open(path, "Arrow")


def _open(path: Path, form: str) -> FileTable:
    with _opened(path, form) as (schema, _):
        names = list(schema.names)
    if not 1 <= len(names) <= MAX_COLUMNS:
        raise FileError(path, f"has {len(names):,} columns, must have 1 to {MAX_COLUMNS:,}")
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise FileError(path, f"has two columns {shown(twice)}")
    index: set[str] = set()
    categories: set[str] = set()
    with suppress(ValueError, TypeError, KeyError, AttributeError):  # metadata of other programs
        said: Any = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        index = {name for name in said.get("index_columns", ()) if isinstance(name, str)}
        categories = {
            each["name"] for each in said.get("columns", ()) if each["pandas_type"] == "categorical"
        }
    columns = tuple(
        replace(_column(path, k, field, categories), is_index=field.name in index)
        for k, field in enumerate(schema)
    )
    return FileTable(path, columns, lambda: _read_records(path, form), missing_mark="null")


def _is_text(kind: Any) -> bool:
    from pyarrow import types  # noqa: PLC0415 - an optional package

    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or getattr(types, "is_string_view", lambda _: False)(kind)
    )


def _column(path: Path, k: int, field: Any, categories: Collection[str]) -> FileColumn:
    """Return the column of a field; one that cannot be an attribute has a fault.

    Categories are names, even if they are numbers.
    """
    from pyarrow import types  # noqa: PLC0415 - an optional package

    name, kind = field.name, field.type
    is_category = types.is_dictionary(kind) or name in categories
    if types.is_dictionary(kind):
        kind = kind.value_type
    if is_category and types.is_integer(kind):
        return FileColumn(name, "nominal")
    if types.is_timestamp(kind) or types.is_date(kind):
        return FileColumn(name, "time")
    if _is_text(kind):
        return FileColumn(name, "nominal" if is_category else "unknown", is_text=True)
    if any(test(kind) for test in (types.is_boolean, types.is_null)):
        return FileColumn(name)
    if any(test(kind) for test in (types.is_integer, types.is_floating, types.is_decimal, types.is_duration)):
        return FileColumn(name, "numeric")
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        what = f"holds lists ({kind})"
        beside = f"labellers see it beside the row with {flag('--beside', f'series:{name}')}"
    elif types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        what = f"holds bytes ({kind})"
        beside = f"labellers see pictures beside the row with {flag('--beside', f'image:{name}')}"
    else:
        what, beside = f"holds values of the type {kind}", "write it as numbers or as text"
    reason = (
        f"{what}, which are neither numbers nor names; leave it out with {flag('--ignore', name)}; {beside}"
    )
    return FileColumn(name, fault=FileError(path, reason, 0, k + 1, name))


@contextmanager
def _opened(path: Path, form: str) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Yield the schema of a file and its batches."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - an optional package
        from pyarrow import ipc, parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        raise FileError(path, f"{form} needs pyarrow: pip install pyarrow; or write it as CSV") from None
    try:
        if form == "Parquet":
            with parquet.ParquetFile(path) as file:
                Unpacking(path, ADVICE).take(file.metadata.num_rows * file.metadata.num_columns)
                yield file.schema_arrow, _parts(path, file.iter_batches(batch_size=ROWS))
            return
        with pa.memory_map(str(path)) as source:
            if is_file := source.read(len(MAGIC)) == MAGIC:
                file = ipc.open_file(source)
                batches = (file.get_batch(k) for k in range(file.num_record_batches))
            else:
                source.seek(0)
                file = batches = ipc.open_stream(source)
            yield file.schema, _parts(path, _unpackable(path, is_file, batches))
    except (
        pa.ArrowException, OSError, EOFError, ValueError, OverflowError, NotImplementedError, struct.error,
    ) as error:  # fmt: skip
        raise FileError(path, f"cannot be read as {form}: {error}") from None


def _unpackable(path: Path, is_file: bool, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches of a file that unpacks to no more than a packed file may, by what it says."""
    import pyarrow as pa  # noqa: PLC0415 - an optional package

    unpacking = Unpacking(path, ADVICE)
    with pa.memory_map(str(path)) as source:
        for size in unpacked_sizes(source, is_file=is_file):
            unpacking.take(size)
    yield from batches


def _parts(path: Path, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield batches in parts of `ROWS`, as long as they are not larger than a packed file may unpack to."""
    unpacking = Unpacking(path, ADVICE)
    for batch in batches:
        # pyarrow trusts the sizes in a file, and would read beyond its end
        batch.validate(full=True)
        unpacking.take(sum(_bytes_of(column) for column in batch.columns))
        names = {k: found for k, each in enumerate(batch.columns) if (found := _name_bytes(each)) is not None}
        for start in range(0, batch.num_rows, ROWS):
            part = batch.slice(start, ROWS)
            unpacking.take(sum(_sum_of(found, part.column(k).indices) for k, found in names.items()))
            yield part


def _bytes_of(column: Any) -> int:
    """Return the bytes of a column, at least one for each cell, without the names of a dictionary."""
    from pyarrow import types  # noqa: PLC0415 - an optional package

    held = column.indices if types.is_dictionary(column.type) else column
    return int(len(column) + held.nbytes)


def _name_bytes(column: Any) -> Any:
    """Return the bytes of each name in the dictionary of a column; None if it has no dictionary of names."""
    from pyarrow import compute, types  # noqa: PLC0415 - an optional package

    if not types.is_dictionary(column.type):
        return None
    kind = column.type.value_type
    return compute.binary_length(column.dictionary).cast("int64") if _is_text(kind) else None


def _sum_of(lengths: Any, indices: Any) -> int:
    from pyarrow import compute  # noqa: PLC0415 - an optional package

    return int(compute.sum(lengths.take(indices)).as_py() or 0)


def _read_records(path: Path, form: str) -> Iterator[FileRecord]:
    number = 0
    with _opened(path, form) as (_, batches):
        for batch in batches:
            columns = [_values(path, batch, k, number) for k in range(batch.num_columns)]
            for cells in zip(*columns, strict=True):
                number += 1
                yield FileRecord(number, [cell_text(cell) for cell in cells])


def _values(path: Path, batch: Any, k: int, before: int) -> list[Any]:
    """Return the values of a column; `FileError` names the row of a value that Python cannot represent."""
    column = batch.column(k)
    unreadable = (ValueError, OverflowError, ZoneInfoNotFoundError)
    try:
        return list(column.to_pylist())
    except unreadable as error:
        for number, value in enumerate(column, before + 1):
            try:
                value.as_py()
            except unreadable:
                held = getattr(value, "value", None)
                what = f"{held} of the type" if isinstance(held, int) else "a value of the type"
                reason = f"holds {what} {column.type}, which cannot be read ({error})"
                raise FileError(path, reason, number, k + 1, batch.schema.names[k]) from None
        raise


def cell_text(cell: Any) -> str | None:
    """Return a value as text for a CSV file; None if it is missing.

    Times are written as in ISO 8601, durations as seconds.

    Examples
    --------
    >>> cell_text(2.0), cell_text(True), cell_text([0.5, None, 2]), cell_text(b"GIF"), cell_text(float("nan"))
    ('2', 'true', '0.5 nan 2', 'data:;base64,R0lG', None)
    >>> from datetime import datetime
    >>> cell_text(date(2026, 1, 31)), cell_text(datetime(2026, 1, 31, 12)), cell_text(timedelta(minutes=1.5))
    ('2026-01-31', '2026-01-31T12:00:00', '90')
    """
    kind = type(cell)
    if kind is str:
        return None if (text := cell.strip()) in ("", "?") else text
    if kind is int:
        return str(cell)
    if kind is float:
        text = str(cell)
        return None if text == "nan" else canonical_text(text) if text.endswith(".0") else text
    if kind is bool:
        return "true" if cell else "false"
    if is_missing(cell):
        return None
    if isinstance(cell, bytes):
        return f"data:;base64,{base64.b64encode(cell).decode()}"
    if isinstance(cell, list):
        return " ".join("nan" if each is None else str(each) for each in cell) or None
    if isinstance(cell, timedelta):
        return canonical_text(str(cell.total_seconds()))
    if isinstance(cell, date | time):
        return cell.isoformat()
    try:
        return canonical_cell(cell)
    except ValueError:  # a struct or a map, which cannot be in an attribute, but may be shown
        return str(cell)
