"""The ids of a file's rows: a column's, or the numbers of the rows."""

from __future__ import annotations

from collections.abc import Iterator

from quercus.files import FileRecord, FileTable


def row_ids(
    table: FileTable, records: Iterator[FileRecord], column: str | None, prefix: str = ""
) -> Iterator[str]:
    """Yield an id for each row: that in a column, or without one the number of the row, counted from 0."""
    if column is None:
        return (f"{prefix}{row}" for row, _ in enumerate(records))
    k = table.position(column, "--id-column")
    return (prefix + id_of(table, record, k) for record in records)


def id_of(table: FileTable, record: FileRecord, position: int) -> str:
    """Return the id in a cell.

    Raises
    ------
    FileError
        When there is none.
    """
    cell = record.cells[position]
    if cell is None:
        raise table.error(record, position, "the id is missing")
    return cell
