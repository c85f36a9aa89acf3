"""Inserting pushed rows by one statement: SQLite gets each column as one value, and cuts the rows out of it.

With `insert_rows`, a push of 1,000 rows through a server takes 15 µs of the server's CPU time per row instead of 10
(medians of three, alternating), and a stream of pushes must reach 0.7 of the rate of raw SQLite commits
(`bench/service.py`). Apart from `insert_rows`, this is the only insert with hand-written SQL.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from sqlalchemy import Connection

from quercus.labelling.event import SOURCE, EventKind
from quercus.storage.clocks import Timestamps
from quercus.storage.sqlite.texts import driver_of

FEWEST: Final = 8  # for fewer rows, `insert_rows` is as fast
HAS_JSON: Final = sqlite3.sqlite_version_info >= (3, 38)  # since then, JSON is built in by default
_ROWS: Final = 1000  # most rows of a statement, because it copies the columns once more in memory

# `key` is the position of an id in the array. coalesce: substr of an empty blob is NULL.
_TOGETHER: Final = f"""
INSERT INTO log (model_id, sequence, id, "values", label, created_at, clock, kind, author, reliability, conflict)
SELECT ?, ? + key, value, substr(?, 1 + key * ?, ?), coalesce(substr(?, 1 + key * ?, ?), x''), ?, ?,
    {int(EventKind.INSTANCE)}, '{SOURCE}', 1.0, 0
FROM json_each(?)
"""  # noqa: S608 - constants of ours


def insert_together(
    connection: Connection,
    model_id: int,
    first: int,
    ids: Sequence[str],
    values: Sequence[bytes],
    labels: Sequence[bytes],
    now: Timestamps,
) -> bool:
    """Insert INSTANCE events `first`, `first` + 1, ..., unless there are few; return whether they were inserted.

    Raises
    ------
    sqlite3.IntegrityError
        If an id exists already.
    """
    if len(ids) < FEWEST or not HAS_JSON:
        return False
    for start, end, width, length in _equal_length_runs(values, labels):
        data, said = b"".join(values[start:end]), b"".join(labels[start:end])
        names = json.dumps(ids[start:end], ensure_ascii=False)
        row = (model_id, first + start, data, width, width, said, length, length, now.wall, now.clock, names)
        driver_of(connection).execute(_TOGETHER, row)
    return True


def _equal_length_runs(
    values: Sequence[bytes], labels: Sequence[bytes]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield runs of rows with values of equal length and labels of equal length: start, end, and both lengths."""
    start = 0
    for (width, length), same in groupby(zip(map(len, values), map(len, labels), strict=True)):
        stop = start + sum(1 for _ in same)
        for at in range(start, stop, _ROWS):
            yield at, min(at + _ROWS, stop), width, length
        start = stop
