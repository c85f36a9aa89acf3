"""The last writes of a transaction: one statement where the database takes several changes in one, else one by one.

Every statement is a journey to the database server, and whoever holds a model has all others wait for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias, cast

from sqlalchemy import Connection, Insert, Update

from quercus.storage.prepared import Prepared

Change: TypeAlias = Insert | Update

_WAITING: Final = "quercus_waiting"  # writes that the transaction has not sent yet


@dataclass(frozen=True, slots=True)
class Write:
    """A statement that is made once, and its parameters, which no other statement of the transaction shares.

    Several of them may change one table, but not one row of it: which comes first is not said.
    """

    statement: Change
    rows: Sequence[Mapping[str, Any]]


def begin(connection: Connection) -> None:
    """A transaction that writes begins."""
    connection.info[_WAITING] = []


def takes_several(connection: Connection) -> bool:
    """Whether the database takes several changes in one statement."""
    return connection.dialect.name == "postgresql"


def write_last(connection: Connection, *writes: Write) -> None:
    """Write this before the transaction commits, which reads nothing of it any more, unless it calls `send` first."""
    if takes_several(connection):
        connection.info[_WAITING] += [write for write in writes if write.rows]
        return
    for write in writes:
        if write.rows:
            connection.execute(write.statement, write.rows)


def write_prepared(connection: Connection, prepared: Prepared, values: Mapping[str, Any]) -> None:
    """As `write_last`, of a statement that returns nothing and changes one row."""
    if takes_several(connection):
        connection.info[_WAITING].append(Write(cast(Change, prepared.statement), [values]))
    else:
        prepared.run(connection, **values)


def is_waiting(connection: Connection) -> bool:
    """Whether anything is to be sent."""
    return bool(connection.info[_WAITING])


def send(connection: Connection, *more: Write) -> None:
    """Send what waits, and `more`."""
    writes = [*connection.info[_WAITING], *more]
    connection.info[_WAITING] = []
    rows: dict[Change, list[Mapping[str, Any]]] = {}
    for write in writes:
        rows.setdefault(write.statement, []).extend(write.rows)
    for statement, many in rows.items():
        if len(many) > 1:
            connection.execute(statement, many)
    single = {statement: one[0] for statement, one in rows.items() if len(one) == 1}
    if single:
        values = {name: value for row in single.values() for name, value in row.items()}
        connection.execute(_as_one(tuple(single)), values)


@cache  # there are few sets of them, and to make one takes longer than to run it
def _as_one(statements: tuple[Change, ...]) -> Change:
    *others, last = statements
    return last.add_cte(*(each.cte(f"write_{place}") for place, each in enumerate(others)))
