"""Pieces of a log: Parquet files with the columns of an exported log."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BufferedIOBase
from itertools import islice
from pathlib import Path
from typing import Any, Final

from sqlalchemy import BigInteger, Boolean, Double, LargeBinary, SmallInteger

from quercus.specification.distribution import install_command
from quercus.storage.admin.durable import open_plain
from quercus.storage.admin.transfer_lines import COLUMNS, DISPLAY, NAMES
from quercus.storage.archive.manifest import Piece
from quercus.storage.errors import CorruptStore, StoreError

BATCH: Final = 10_000
"""Events of a row group, which are in memory together."""
INSTALL: Final = f"archives need pyarrow: {install_command('archive')}"
Event = Mapping[str, Any]
"""The cells of an event by column; an empty cell is None or absent."""


class EventDigest:
    """SHA-256 of events in order.

    It depends neither on the database nor on empty cells, so it stays the same when the log gets a new column.
    """

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self.count = 0

    def add_events(self, events: Iterable[Event]) -> None:
        """Add events."""
        for event in events:
            cells = [(name, cell) for name in _SORTED if (cell := event.get(name)) is not None]
            self._sha256.update(repr(cells).encode())
            self.count += 1

    def count_and_digest(self) -> tuple[int, str]:
        """Return number and digest of the events."""
        return self.count, self._sha256.hexdigest()


def load_pyarrow() -> tuple[Any, Any]:
    """Return the modules `pyarrow` and `pyarrow.parquet`.

    Raises
    ------
    StoreError
        If they are not installed; the message says how to install them.
    """
    try:
        import pyarrow  # noqa: PLC0415 - an extra
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        raise StoreError(INSTALL) from None
    return pyarrow, parquet


def write_events(
    stream: BufferedIOBase, events: Iterator[Event], progress: Callable[[int], None]
) -> tuple[int, str]:
    """Write events as Parquet; return their number and digest."""
    pyarrow, parquet = load_pyarrow()
    digest, schema = EventDigest(), _parquet_schema()
    with parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
        while batch := list(islice(events, BATCH)):
            digest.add_events(batch)
            writer.write_table(pyarrow.Table.from_pylist(batch, schema=schema))
            progress(digest.count)
    stream.flush()
    return digest.count_and_digest()


def read_events(stream: BufferedIOBase, path: Path) -> Iterator[list[dict[str, Any]]]:
    """Yield the events of a Parquet file in batches.

    Raises
    ------
    CorruptStore
        If it is not a Parquet file, or has a column that a log does not have.
    """
    pyarrow, parquet = load_pyarrow()
    try:
        file = parquet.ParquetFile(stream)
        _check_columns(file.schema_arrow, path)
        for batch in file.iter_batches(batch_size=BATCH, use_threads=False):
            yield batch.to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise CorruptStore(f"{path} cannot be read as Parquet: {error}") from error


def read_last_events(folder: Path, piece: Piece) -> list[dict[str, Any]]:
    """Return the last events of a piece, without reading the whole file.

    Raises
    ------
    CorruptStore
        If the file is missing or damaged.
    """
    pyarrow, parquet = load_pyarrow()
    path = folder / piece.file_name
    with open_plain(path) as stream:
        try:
            file = parquet.ParquetFile(stream)
            _check_columns(file.schema_arrow, path)
            events: list[dict[str, Any]] = file.read_row_group(file.num_row_groups - 1).to_pylist()
        except (pyarrow.ArrowException, OSError, ValueError, IndexError) as error:
            raise CorruptStore(f"{path} cannot be read as Parquet: {error}") from error
    if not events or not isinstance(events[0].get("sequence"), int):
        raise CorruptStore(f"{path} has no events at its end")
    return events


def file_sha256(stream: BufferedIOBase) -> str:
    """Return the SHA-256 of a file."""
    stream.seek(0)
    return hashlib.file_digest(stream, "sha256").hexdigest()


def read_piece(folder: Path, piece: Piece) -> Iterator[list[dict[str, Any]]]:
    """Compare the file of a piece with the manifest, and yield its events in batches.

    Raises
    ------
    CorruptStore
        If the file differs from the manifest; the message says how.
    """
    path = folder / piece.file_name
    with open_plain(path) as stream:
        size, count = os.fstat(stream.fileno()).st_size, 0
        if size != piece.bytes:
            raise CorruptStore(f"{path} is damaged: it has {size:,} bytes, must have {piece.bytes:,}")
        if (found := file_sha256(stream)) != piece.sha256:
            raise CorruptStore(f"{path} is damaged: its SHA-256 is {found}, must be {piece.sha256}")
        for events in read_events(stream, path):
            count += len(events)
            if count > piece.events:
                break
            yield events
    if count != piece.events:
        raise CorruptStore(
            f"{path} has {'more' if count > piece.events else count} events, must have {piece.events}"
        )


def _parquet_schema() -> Any:
    pyarrow, _ = load_pyarrow()
    types: tuple[tuple[type, Any], ...] = (
        (Boolean, pyarrow.bool_()),
        (Double, pyarrow.float64()),
        (LargeBinary, pyarrow.binary()),
        (SmallInteger, pyarrow.int16()),
        (BigInteger, pyarrow.int64()),
    )
    columns = [
        (
            column.name,
            next((found for kind, found in types if isinstance(column.type, kind)), pyarrow.string()),
        )
        for column in COLUMNS
    ]
    return pyarrow.schema([*columns, (DISPLAY, pyarrow.binary())])


def _check_columns(found: Any, path: Path) -> None:
    """Check names and types of columns; a file of an earlier version may lack some."""
    types = {field.name: field.type for field in _parquet_schema()}
    for field in found:
        if field.type != types.get(field.name):
            raise CorruptStore(
                f"{path} has the column {field.name!r} of type {field.type}, a piece has "
                + ", ".join(f"{name} ({kind})" for name, kind in types.items())
            )


_SORTED: Final = sorted(NAMES)
