"""Rows of the log in bulk: the columns go whole, in binary, and PostgreSQL makes rows of them."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection

from quercus.labelling.event import EventKind
from quercus.storage.clocks import Timestamps
from quercus.storage.log.event_log import SOURCE

ROWS_PER_STATEMENT: Final = 10_000
"""Rows of one statement: its columns are copied once more in memory."""

_TOGETHER: Final = f"""
INSERT INTO log (model_id, sequence, id, "values", label, created_at, clock, kind, author, reliability, conflict)
SELECT %b::bigint, %b::bigint + place - 1, row.id, row.numbers, row.label, %b::float8, %b::float8,
    {int(EventKind.INSTANCE)}, '{SOURCE}', 1.0, false
FROM unnest(%b::text[], %b::bytea[], %b::bytea[]) WITH ORDINALITY AS row (id, numbers, label, place)
"""  # noqa: S608 - constants of ours


def insert_together(
    connection: Connection,
    model_id: int,
    first: int,
    ids: Sequence[str],
    values: Sequence[bytes],
    labels: Sequence[bytes],
    now: Timestamps,
) -> None:
    """Insert the rows; see `quercus.storage.log.bulk.insert_instances`."""
    for start in range(0, len(ids), ROWS_PER_STATEMENT):
        columns = (list(column[start : start + ROWS_PER_STATEMENT]) for column in (ids, values, labels))
        connection.exec_driver_sql(_TOGETHER, (model_id, first + start, now.wall, now.clock, *columns))
