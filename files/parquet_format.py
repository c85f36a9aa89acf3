"""Parquet files: columns as text, row by row, with pyarrow."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from quercus.files.errors import FileError
from quercus.files.table import MAX_COLUMNS, FileColumn, FileRecord, FileTable

ROWS: Final = 1_000
"""Read at once."""


def open_parquet(path: Path) -> FileTable:
    """Open a Parquet file; null and NaN are missing, lists of numbers are text with blanks between them.

    Raises
    ------
    FileError
        When pyarrow is not installed, or the file is no Parquet file.
    """
    with _open_parquet(path) as file:
        names = list(file.schema_arrow.names)
    if not 1 <= len(names) <= MAX_COLUMNS:
        raise FileError(path, f"has {len(names):,} columns, must have 1 to {MAX_COLUMNS:,}")
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise FileError(path, f"has two columns {twice!r}")
    return FileTable(path, tuple(map(FileColumn, names)), lambda: _read_records(path))


def _open_parquet(path: Path) -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - not everybody's
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        raise FileError(path, "Parquet needs pyarrow: pip install pyarrow; or write it as CSV") from None
    try:
        return parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise FileError(path, f"cannot be read as Parquet: {error}") from None


def _read_records(path: Path) -> Iterator[FileRecord]:
    with _open_parquet(path) as file:
        number = 0
        batches = file.iter_batches(batch_size=ROWS)
        while (columns := _next_columns(path, batches)) is not None:
            for cells in zip(*columns, strict=True):
                number += 1
                yield FileRecord(number, [cell_text(cell) for cell in cells])


def _next_columns(path: Path, batches: Iterator[Any]) -> list[list[Any]] | None:
    """Return the columns of the next rows; None after the last. Errors of pyarrow are among those of Python."""
    try:
        batch = next(batches, None)
        return None if batch is None else [column.to_pylist() for column in batch.columns]
    except (OSError, ValueError, OverflowError, NotImplementedError) as error:
        raise FileError(path, f"cannot be read as Parquet: {error}") from None


def cell_text(cell: Any) -> str | None:
    """Return a value as a CSV file would hold it; ``None``: it is missing.

    Examples
    --------
    >>> cell_text(2.0), cell_text(True), cell_text([0.5, None, 2]), cell_text(b"GIF"), cell_text(float("nan"))
    ('2.0', 'true', '0.5 nan 2', 'data:;base64,R0lG', None)
    """
    if cell is None or (isinstance(cell, float) and math.isnan(cell)) or cell in ("", "?"):
        return None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, bytes):
        return f"data:;base64,{base64.b64encode(cell).decode()}"
    if isinstance(cell, list):
        return " ".join("nan" if each is None else str(each) for each in cell) or None
    return str(cell)
