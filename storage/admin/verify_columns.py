"""Check of every cell of every table: its type, its bounds, and the numbers of enumerations.

The rules are derived from the schema, so they cover every column. SQLite lets a cell hold a value of any type, so types
are checked there; PostgreSQL guarantees them. Bounds are checked in both.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Double,
    Integer,
    String,
    Table,
    and_,
    case,
    false,
    func,
    or_,
    select,
    type_coerce,
)
from sqlalchemy.types import NullType

from quercus.labelling.checks import MAX_TIME
from quercus.labelling.event import EVENT_FIELDS, EventKind
from quercus.labelling.lifecycle import QueryState, Step
from quercus.labelling.policy import Combination, Corrections, Reliability
from quercus.storage.backend import Backend, backend_of
from quercus.storage.schema import log, metadata, model, policy, query, query_history

MAX_NAMED: Final = 20
"""Most damaged cells of a table that are reported."""

ENUMERATIONS: Final[Mapping[Column[Any], type[IntEnum]]] = {
    log.c.kind: EventKind,
    query.c.state: QueryState,
    query_history.c.step: Step,
    query_history.c.state: QueryState,
    policy.c.reliability: Reliability,
    policy.c.corrections: Corrections,
    policy.c.combination: Combination,
}
"""Columns with numbers of an enumeration: all columns of type SmallInteger."""

WALL_TIMES: Final = frozenset({"created_at", "at", "expires_at", "revoked_at"})
"""Names of the columns with seconds since 1970."""

RANGES: Final[Mapping[Column[Any], tuple[float, float]]] = {
    policy.c.max_conflict: (0.0, 1.0),
    **{log.c[name]: stored.bounds for name, stored in EVENT_FIELDS.items() if stored.bounds is not None},
}
"""Bounds of numbers that are not times."""

MAX_INTEGER: Final = 2**62


@dataclass(frozen=True, slots=True)
class CellFault:
    """A cell with an impossible value.

    Attributes
    ----------
    text : table, row, column and fault, for the user.
    model_id : key of the model that the row belongs to; None if it belongs to none.
    """

    text: str
    model_id: int | None


def cell_faults(connection: Connection, key: int | None = None) -> Iterator[CellFault]:
    """Yield the damaged cells of a store with this version's schema, at most `MAX_NAMED` of each table.

    With `key`, check only the rows of the model with this key.
    """
    backend = backend_of(connection)
    backend.prepare_check(connection)
    for table in metadata.sorted_tables:
        if key is None or _owner_of(table) is not None:
            yield from _faults_of_table(connection, table, backend, key)


def _owner_of(table: Table) -> Column[Any] | None:
    """Return the column with the key of the model that a row belongs to."""
    return model.c.id if table is model else table.c.get("model_id")


def _faults_of_table(
    connection: Connection, table: Table, backend: Backend, key: int | None
) -> Iterator[CellFault]:
    rules = [
        (column, rule, words)
        for column in table.columns
        for rule, words in ((_rule_of(column, backend), _words_of(column)),)
    ]
    wrong = case(*((rule, number) for number, (_, rule, _) in enumerate(rules)), else_=len(rules))
    place = [backend.printed(column) for column in table.primary_key]
    owner = _owner_of(table)
    wanted = [type_coerce(wrong, Integer), *place]
    if owner is not None:
        wanted.append(type_coerce(owner, NullType()))
    damaged = select(*wanted).where(or_(false(), *(rule for _, rule, _ in rules))).limit(MAX_NAMED)
    found = connection.execute(damaged if key is None or owner is None else damaged.where(owner == key))
    for number, *rest in found:
        column, _, words = rules[number]
        of = rest.pop() if owner is not None else None
        names = (each.name for each in table.primary_key)
        where = ", ".join(f"{name} {value}" for name, value in zip(names, rest, strict=True))
        yield CellFault(
            f"table {table.name}, row {where}: {column.name} {words}", of if isinstance(of, int) else None
        )


def _rule_of(column: Column[Any], backend: Backend) -> ColumnElement[bool]:
    """Return the condition under which a cell of the column is damaged."""
    cell: ColumnElement[Any] = type_coerce(column, NullType())
    wrong = or_(false(), *backend.type_faults(column), *_bounds_of(column, cell))
    missing = cell.is_(None)
    return and_(~missing, wrong) if column.nullable else or_(missing, wrong)


def _bounds_of(column: Column[Any], cell: ColumnElement[Any]) -> list[ColumnElement[bool]]:
    if column in ENUMERATIONS:
        return [cell.not_in([int(each) for each in ENUMERATIONS[column]])]
    if isinstance(column.type, Boolean):
        return []
    if isinstance(column.type, Double):
        return [~cell.between(*float_range(column))]  # excludes NaN, which PostgreSQL sorts above all numbers
    if isinstance(column.type, Integer):
        return [~cell.between(0, MAX_INTEGER)]
    if isinstance(column.type, String) and column.type.length is not None:
        return [func.length(cell) > column.type.length]
    return []


def float_range(column: Column[Any]) -> tuple[float, float]:
    """Return the bounds of a column of floating-point numbers; times of the lease clock may be negative."""
    return RANGES.get(column, (0.0 if column.name in WALL_TIMES else -MAX_TIME, MAX_TIME))


def _words_of(column: Column[Any]) -> str:
    """Return a text that says what a cell of the column must be."""
    if column in ENUMERATIONS:
        kind = ENUMERATIONS[column]
        must = f"one of {[int(each) for each in kind]} ({kind.__name__})"
    elif isinstance(column.type, Boolean):
        must = "0 or 1"
    elif isinstance(column.type, Double):
        must = "a number in [{:.12g}, {:.12g}]".format(*float_range(column))
    elif isinstance(column.type, Integer):
        must = "a whole number, not negative"
    elif isinstance(column.type, String):
        length = column.type.length
        must = "text in UTF-8" + (f" of at most {length} characters" if length else "")
    else:
        must = "bytes"
    return f"must be {must}" + ("" if column.nullable else ", and not NULL")
