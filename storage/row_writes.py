"""Changes of single rows, and the same of many rows in one statement, where the database takes arrays of parameters."""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, TypeAlias

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    Insert,
    String,
    Table,
    TableValuedAlias,
    Text,
    Update,
    bindparam,
    column,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.types import TypeEngine

from quercus.storage.backend import backend_of
from quercus.storage.prepared import Prepared

Change: TypeAlias = Insert | Update
_PLACE: Final = "place"  # of a row among those sent


class RowWrite:
    """A change of one row. Parameters have unique names: the statement may be part of another one.

    Parameters
    ----------
    one : the change of one row.
    many : the change of many rows, whose parameters are arrays of the same names.
    columns : names of the parameters.
    """

    def __init__(self, one: Change, many: Change, columns: Iterable[str]) -> None:
        self.one = one
        self.many = many
        self._columns = tuple(columns)
        self._prepared = Prepared(one)

    def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Change these rows, now."""
        if not takes_arrays(connection):
            self._prepared.run_for_each(connection, rows)
        elif len(rows) == 1:
            connection.execute(self.one, rows[0])
        elif rows:
            connection.execute(self.many, self.array_parameters(rows))

    def array_parameters(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
        """Return the parameters of `many` for these rows."""
        picked = zip(*map(itemgetter(*self._columns), rows), strict=True)
        return dict(zip(self._columns, map(list, picked), strict=True))


def takes_arrays(connection: Connection) -> bool:
    """Return whether a parameter may be an array."""
    return backend_of(connection).takes_arrays


def row_insert(table: Table, prefix: str, leave: Iterable[str] = ()) -> RowWrite:
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
    rows = sent_rows(prefix + "rows", {sent: table.c[column].type for column, sent in columns.items()})
    chosen = select(*(rows.c[sent] for sent in columns.values())).order_by(rows.c[_PLACE])
    return RowWrite(one, insert(table).inline().from_select(list(columns), chosen), columns.values())


def row_update(table: Table, keys: Mapping[str, str], columns: Mapping[str, str]) -> RowWrite:
    """Update of `columns` of the row that `keys` name: name of each column, and of its parameter."""
    mine = [table.c[name] == bindparam(sent) for name, sent in keys.items()]
    one = update(table).where(*mine).values({name: bindparam(sent) for name, sent in columns.items()})
    name, every = "rows_" + "_".join(keys.values()), {**keys, **columns}
    rows = sent_rows(name, {sent: table.c[column].type for column, sent in every.items()})
    same = [table.c[column] == rows.c[sent] for column, sent in keys.items()]
    values = {column: rows.c[sent] for column, sent in columns.items()}
    return RowWrite(one, update(table).where(*same).values(values), every.values())


def sent_rows(name: str, columns: Mapping[str, TypeEngine[Any]]) -> TableValuedAlias:
    """Rows that are sent with a statement, as arrays under the names of their columns, in order of `place`."""
    plain = {sent: _bare_type(kind) for sent, kind in columns.items()}
    arrays = (bindparam(sent, type_=ARRAY(kind)) for sent, kind in plain.items())
    heads: list[ColumnElement[Any]] = [column(sent, kind) for sent, kind in plain.items()]
    return func.unnest(*arrays).table_valued(*heads, with_ordinality=_PLACE, name=name).render_derived()


def _bare_type(kind: TypeEngine[Any]) -> TypeEngine[Any]:
    """Return the type without what only a column of a table has."""
    if isinstance(kind, String):
        return Text()
    return BigInteger() if isinstance(kind, BigInteger) else kind
