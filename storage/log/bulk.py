"""Rows of the log in bulk: the database takes the columns whole and cuts the rows out of them, in one statement.

A statement a row costs twice as much, and takes and gives back the interpreter's lock at every row, in competition
with the threads that answer calls. Where SQLite has no JSON, SQLAlchemy inserts row by row.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from sqlalchemy import Connection, false, insert, literal_column
from sqlalchemy.exc import IntegrityError

from quercus.labelling.event import EventKind
from quercus.storage.clocks import Timestamps
from quercus.storage.log.event_log import SOURCE
from quercus.storage.prepared import driver_of
from quercus.storage.schema import log

ROWS_PER_STATEMENT: Final = 1000
"""Most rows of one statement: its columns are copied once more in memory."""

REPEATED: Final = (IntegrityError, sqlite3.IntegrityError)
"""Errors of SQLAlchemy and of the driver for an id that exists already."""

ROW_BY_ROW: Final = insert(log).values(
    kind=literal_column(str(int(EventKind.INSTANCE))),
    author=literal_column(f"'{SOURCE}'"),
    reliability=literal_column("1.0"),
    conflict=false(),
)

# Every id has its number in the array as key. Of no bytes substr makes NULL.
_TOGETHER: Final = f"""
INSERT INTO log (model_id, sequence, id, "values", label, created_at, clock, kind, author, reliability, conflict)
SELECT ?, ? + key, value, substr(?, 1 + key * ?, ?), coalesce(substr(?, 1 + key * ?, ?), x''), ?, ?,
    {int(EventKind.INSTANCE)}, '{SOURCE}', 1.0, 0
FROM json_each(?)
"""  # noqa: S608 - constants of ours
_WITH_JSON: Final = (3, 38)  # from then on SQLite has it unless it is left out


def insert_instances(
    connection: Connection,
    model_id: int,
    first: int,
    ids: Sequence[str],
    values: Sequence[bytes],
    labels: Sequence[bytes],
    now: Timestamps,
) -> None:
    """Insert INSTANCE events `first`, `first` + 1, ...; one of `REPEATED` when an id is there already.

    Parameters
    ----------
    connection : connection with a write transaction; the caller holds the model.
    model_id : key of the model.
    first : sequence of the first row.
    ids, values, labels : columns of the rows.
    now : time of the push.
    """
    if connection.dialect.name == "postgresql":
        from quercus.storage.postgres.bulk import insert_together  # noqa: PLC0415  (a separate extra)

        insert_together(connection, model_id, first, ids, values, labels, now)
        return
    if sqlite3.sqlite_version_info < _WITH_JSON:
        columns = zip(range(first, first + len(ids)), ids, values, labels, strict=True)
        rows = [
            {
                "model_id": model_id,
                "sequence": at,
                "id": each,
                "values": row,
                "label": label,
                "created_at": now.wall,
                "clock": now.clock,
            }
            for at, each, row, label in columns
        ]
        connection.execute(ROW_BY_ROW, rows)
        return
    for start, end, width, length in _equal_length_runs(values, labels):
        data, said, names = b"".join(values[start:end]), b"".join(labels[start:end]), ids[start:end]
        text = json.dumps(names, ensure_ascii=False)
        row = (model_id, first + start, data, width, width, said, length, length, now.wall, now.clock, text)
        driver_of(connection).execute(_TOGETHER, row)


def _equal_length_runs(
    values: Sequence[bytes], labels: Sequence[bytes]
) -> Iterator[tuple[int, int, int, int]]:
    """Stretches of rows with values of one length and labels of one length: start, end, the lengths."""
    start = 0
    for (width, length), same in groupby(zip(map(len, values), map(len, labels), strict=True)):
        stop = start + sum(1 for _ in same)
        for at in range(start, stop, ROWS_PER_STATEMENT):
            yield at, min(at + ROWS_PER_STATEMENT, stop), width, length
        start = stop
