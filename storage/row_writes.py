"""Changes of single rows, and the same of many rows in one statement, where the database takes arrays of parameters."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    Insert,
    Integer,
    LargeBinary,
    String,
    Table,
    TableValuedAlias,
    Text,
    Update,
    bindparam,
    cast,
    column,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeEngine

Change: TypeAlias = Insert | Update
_PLACE: Final = "place"  # of a row among those sent


class RowWrite:
    """A change of one row. Parameters have unique names: the statement may be part of another one.

    Parameters
    ----------
    one : the change of one row.
    many : the change of many rows, which come as one text.
    sent : name of its parameter; see `as_text`.
    """

    def __init__(self, one: Change, many: Change, sent: str) -> None:
        self.one = one
        self.many = many
        self.sent = sent

    def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Change these rows, now."""
        if len(rows) == 1:
            connection.execute(self.one, rows[0])
        elif rows and takes_arrays(connection):
            connection.execute(self.many, {self.sent: as_text(rows)})
        elif rows:
            connection.execute(self.one, rows)


def takes_arrays(connection: Connection) -> bool:
    """Return whether a parameter may be an array."""
    return connection.dialect.name == "postgresql"


def as_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the parameters of many rows, as `RowWrite.many` takes them.

    JSON: as an array a column, the driver would convert them value by value in Python, which took a third of the time
    of a group of leases.
    """
    placed = [{_PLACE: place, **row} for place, row in enumerate(rows)]
    return json.dumps(placed, default=bytes.hex, ensure_ascii=False, allow_nan=False)


def inserting(table: Table, prefix: str, leave: Iterable[str] = ()) -> RowWrite:
    """Insertion of rows, in order; the parameter of a column is its name behind a prefix.

    Parameters
    ----------
    table : into which.
    prefix : prefix of the parameters.
    leave : columns with the table's defaults.
    """
    columns = {each.name: f"{prefix}{each.name}" for each in table.c if each.name not in set(leave)}
    # inline: the new ids of rows are not used
    one = insert(table).inline().values({name: bindparam(sent) for name, sent in columns.items()})
    name = prefix + "rows"
    rows = _text_rows(name, {sent: table.c[column].type for column, sent in columns.items()})
    chosen = select(*(_value(rows, table, *each) for each in columns.items())).order_by(rows.c[_PLACE])
    return RowWrite(one, insert(table).inline().from_select(list(columns), chosen), name)


def updating(table: Table, keys: Mapping[str, str], columns: Mapping[str, str]) -> RowWrite:
    """Update of `columns` of the row that `keys` name: name of each column, and of its parameter."""
    mine = [table.c[name] == bindparam(sent) for name, sent in keys.items()]
    one = update(table).where(*mine).values({name: bindparam(sent) for name, sent in columns.items()})
    name, every = "rows_" + "_".join(keys.values()), {**keys, **columns}
    rows = _text_rows(name, {sent: table.c[column].type for column, sent in every.items()})
    same = [table.c[column] == rows.c[sent] for column, sent in keys.items()]
    values = {column: _value(rows, table, column, sent) for column, sent in columns.items()}
    return RowWrite(one, update(table).where(*same).values(values), name)


def _text_rows(name: str, columns: Mapping[str, TypeEngine[Any]]) -> TableValuedAlias:
    """Rows that come as a text (`as_text`), with columns of these names, and `place`; bytes are hexadecimal digits."""
    heads: list[ColumnElement[Any]] = [column(_PLACE, Integer)]
    heads += [
        column(sent, Text() if isinstance(kind, LargeBinary) else _plain(kind))
        for sent, kind in columns.items()
    ]
    sent_text = cast(bindparam(name, type_=Text), JSONB)
    return func.jsonb_to_recordset(sent_text).table_valued(*heads, name=name).render_derived(with_types=True)


def _value(rows: TableValuedAlias, table: Table, name: str, sent: str) -> ColumnElement[Any]:
    """The value of a column of the table, as it came."""
    return func.decode(rows.c[sent], "hex") if isinstance(table.c[name].type, LargeBinary) else rows.c[sent]


def sent_rows(name: str, columns: Mapping[str, TypeEngine[Any]]) -> TableValuedAlias:
    """Rows that are sent with a statement, as arrays under the names of their columns, in order of `place`."""
    plain = {sent: _plain(kind) for sent, kind in columns.items()}
    arrays = (bindparam(sent, type_=ARRAY(kind)) for sent, kind in plain.items())
    heads: list[ColumnElement[Any]] = [column(sent, kind) for sent, kind in plain.items()]
    return func.unnest(*arrays).table_valued(*heads, with_ordinality=_PLACE, name=name).render_derived()


def _plain(kind: TypeEngine[Any]) -> TypeEngine[Any]:
    """Return the type without what only a column of a table has."""
    if isinstance(kind, String):
        return Text()
    return BigInteger() if isinstance(kind, BigInteger) else kind
