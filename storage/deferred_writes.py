"""The last writes of a transaction: one statement where the database takes several changes in one, else one by one.

Every statement is a round trip to the database server, and a call that holds a model makes all others wait.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias, cast

from sqlalchemy import Connection, Delete, Insert, Update

from quercus.storage.driver_reads import commit_with
from quercus.storage.prepared import Prepared
from quercus.storage.row_writes import RowWrite, takes_arrays

Change: TypeAlias = Insert | Update | Delete
Rows: TypeAlias = list[Mapping[str, Any]]

LONG: Final = 100_000
"""Bytes of a value that goes as it is, not as part of a message with other statements."""

_WAITING: Final = "quercus_waiting"  # writes that the transaction has not sent yet


@dataclass(frozen=True, slots=True)
class Write:
    """A statement that is made once, and its parameters, which no other statement of the transaction shares.

    Several of them may change one table, but not one row of it: which comes first is not said.

    Attributes
    ----------
    statement : RowWrite, Insert, Update or Delete
    rows : sequence of mappings
        The parameters.
    counts : str
        Not empty: the statement adds to the numbers of a row, which this parameter names. Writes of one row are one.
    """

    statement: RowWrite | Change
    rows: Sequence[Mapping[str, Any]]
    counts: str = ""


def begin_transaction(connection: Connection) -> None:
    """Prepare a transaction that writes: nothing waits to be sent."""
    connection.info[_WAITING] = []


def write_last(connection: Connection, *writes: Write) -> None:
    """Write this before the transaction commits. The transaction must call `send_waiting` before it reads any of it."""
    if takes_arrays(connection):
        connection.info[_WAITING] += [write for write in writes if write.rows]
        return
    for write in writes:
        if isinstance(write.statement, RowWrite):
            write.statement.run(connection, write.rows)
        elif write.rows:
            connection.execute(write.statement, write.rows)


def write_prepared(connection: Connection, prepared: Prepared, values: Mapping[str, Any]) -> None:
    """Do `write_last` with a prepared statement that returns nothing, and is written once in a transaction."""
    if takes_arrays(connection):
        connection.info[_WAITING].append(Write(cast(Change, prepared.statement), [values]))
    else:
        prepared.run(connection, **values)


def is_waiting(connection: Connection) -> bool:
    """Return whether any write waits to be sent."""
    return bool(connection.info[_WAITING])


def send_waiting(connection: Connection, *more: Write, commits: bool = False) -> None:
    """Send what waits, and `more`. `commits`: the transaction may end with it, if it is anything."""
    writes = [*connection.info[_WAITING], *more]
    connection.info[_WAITING] = []
    rows: dict[RowWrite | Change, Rows] = {}
    counts: dict[RowWrite | Change, str] = {}
    for write in writes:
        rows.setdefault(write.statement, []).extend(write.rows)
        if write.counts:
            counts[write.statement] = write.counts
    for statement, key in counts.items():
        rows[statement] = _added_up(rows[statement], key)
    several = any(len(many) > 1 for many in rows.values())
    chosen: list[Change] = []
    values: dict[str, Any] = {}
    for statement, many in rows.items():
        if several and isinstance(statement, RowWrite):
            chosen.append(statement.many)
            values |= statement.array_parameters(many)
        elif len(many) > 1:
            connection.execute(_single_row_change(statement), many)
        else:
            chosen.append(_single_row_change(statement))
            values |= many[0]
    if (
        chosen
        and commits
        and not any(isinstance(value, bytes) and len(value) > LONG for value in values.values())
    ):
        commit_with(connection, _as_one(tuple(chosen)), values)
    elif chosen:
        connection.execute(_as_one(tuple(chosen)), values)


def _single_row_change(statement: RowWrite | Change) -> Change:
    return statement.one if isinstance(statement, RowWrite) else statement


def _added_up(rows: Rows, key: str) -> Rows:
    """One row for each value of the parameter `key`; the others are numbers, and are added."""
    by_key: defaultdict[Any, Rows] = defaultdict(list)
    for row in rows:
        by_key[row[key]].append(row)
    return [
        {name: value if name == key else sum(row[name] for row in same) for name, value in same[0].items()}
        for same in by_key.values()
    ]


@cache  # there are few sets of them, and to make one takes longer than to run it
def _as_one(statements: tuple[Change, ...]) -> Change:
    *others, last = statements
    return last.add_cte(*(each.cte(f"write_{place}") for place, each in enumerate(others)))
