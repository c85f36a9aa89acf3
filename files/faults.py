"""Faults of a request that was made from a file, with line and column."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from quercus.belief.errors import InvalidInput, shown
from quercus.client.errors import InvalidArgument
from quercus.client.places import Place, faults_of, place_of
from quercus.client.specifications import Specification
from quercus.files.errors import FileError
from quercus.files.table import FileRecord, FileTable


@contextmanager
def naming_columns(
    table: FileTable, specification: Specification, class_column: str | None
) -> Iterator[None]:
    """Add column and line to the refusal of a specification that was made from a file.

    Raises
    ------
    FileError
        Instead of the refusal, if it concerns the name of a column or a name in it.
    """
    try:
        yield
    except (InvalidArgument, InvalidInput) as error:
        for field, reason in faults_of(error):
            place = place_of(field, specification)
            of_class = place.class_name is not None
            column = class_column if of_class else place.attribute
            if column is not None and column in table.names:
                raise _error_in_column(table, column, place, reason) from error
        raise


def _error_in_column(table: FileTable, column: str, place: Place, reason: str) -> FileError:
    name = place.value if place.class_name is None else place.class_name
    k, flag = table.names.index(column), shlex.quote(column)
    if place.class_name is not None:
        advice = "change it in the file, or leave such rows out"
    elif name is not None:
        advice = (
            f"leave the column out with --ignore {flag}; quercus push --beside text:{flag} still shows it"
        )
    else:
        advice = f"rename the column, or leave it out with --ignore {flag}"
        part = f"{place.parameter}: " if place.parameter else "the name "
        return FileError(
            table.path, f"column {k + 1 + table.skipped} ({shown(column)}): {part}{reason}; {advice}"
        )
    for record in table.whole_rows():
        if record.cells[k] == name:
            return table.error(record, k, f"a name {reason}; {advice}")
    return FileError(table.path, f"column {shown(column)}: the name {shown(name)} {reason}; {advice}")


@contextmanager
def naming_lines(table: FileTable, records: Sequence[FileRecord]) -> Iterator[None]:
    """Add line and column to the refusal of one of the rows of a request, which were read from ``records``.

    Raises
    ------
    FileError
        Instead of the refusal, if it concerns a row.
    """
    try:
        yield
    except InvalidArgument as error:
        for field, reason in faults_of(error):
            place = place_of(field)
            if place.row is None or place.row >= len(records):
                continue
            record = records[place.row]
            if place.attribute in table.names:
                raise table.error(record, table.names.index(place.attribute), reason) from error
            raise FileError(table.path, reason, record.line) from error
        raise
