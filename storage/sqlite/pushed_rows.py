"""Pushed rows in one statement: SQLite takes the columns whole, and cuts the rows out of them.

Why not `insert_rows`: a push of 1,000 rows through a server then takes 15 µs of its CPU time a row instead of 10
(medians of three, in turns), and a stream of pushes is to reach 0.7 of what raw commits of SQLite do
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
from quercus.storage.prepared import driver_of

FEWEST: Final = 8  # fewer rows take no longer by `insert_rows`
HAS_JSON: Final = sqlite3.sqlite_version_info >= (3, 38)  # from then on, unless it is left out
_ROWS: Final = 1000  # of one statement: its columns are copied once more in memory

# Every id has its number in the array as key. Of no bytes substr makes NULL.
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
    """Insert INSTANCE events `first`, `first` + 1, ..., unless there are few; return whether it was done.

    Raises
    ------
    sqlite3.IntegrityError
        When an id is there already.
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
    """Stretches of rows with values of one length and labels of one length: start, end, the lengths."""
    start = 0
    for (width, length), same in groupby(zip(map(len, values), map(len, labels), strict=True)):
        stop = start + sum(1 for _ in same)
        for at in range(start, stop, _ROWS):
            yield at, min(at + _ROWS, stop), width, length
        start = stop
