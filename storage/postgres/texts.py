"""Prepared statements as PostgreSQL's driver takes them; many rows, and several changes, are one statement.

Each statement is a journey to the database server, and a call that holds a model makes all others wait. They are not
sent in a pipeline, nor rows by a copy: a client that is stopped in the middle of either holds its locks for ever.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, cast

from sqlalchemy import (
    ARRAY,
    BindParameter,
    Insert,
    String,
    TableValuedAlias,
    Text,
    Update,
    bindparam,
    column,
    func,
    insert,
    select,
)
from sqlalchemy.dialects.postgresql.psycopg import dialect as psycopg_dialect
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.sql.visitors import iterate, replacement_traverse
from sqlalchemy.types import TypeEngine

from quercus.storage.prepared import Prepared, Write

_DIALECT: Final = psycopg_dialect()  # type: ignore[no-untyped-call]
_PARAMETER: Final = re.compile(r"%\((\w+)\)s")
_PLACE: Final = "place"


@cache
def text_of(prepared: Prepared) -> tuple[str, Mapping[str, Any]]:
    """Return the text of a statement, and its parameters that never change."""
    compiled = cast(ClauseElement, prepared.statement).compile(dialect=_DIALECT)
    return str(compiled), {name: value for name, value in compiled.params.items() if value is not None}


@cache
def text_together(changes: tuple[Prepared, ...]) -> str:
    """Return the text of one statement that makes several changes, each of as many rows as its arrays have elements.

    The parameters of a change have its place among them in front of their names.
    """
    texts = [
        _PARAMETER.sub(rf"%({place}_\1)s", str(_of_many_rows(each).compile(dialect=_DIALECT)))
        for place, each in enumerate(changes)
    ]
    *before, last = texts
    parts = ", ".join(f"change_{place} AS ({text})" for place, text in enumerate(before))
    return f"WITH {parts} {last}" if before else last


def arrays_of(writes: Sequence[Write]) -> dict[str, list[Any]]:
    """Return the parameters of `text_together` for some rows of each change."""
    return {
        f"{place}_{name}": [None if row[name] is None else plain(row[name]) for row in rows]
        for place, (prepared, rows) in enumerate(writes)
        for name, kind in _parameters(prepared).items()
        for plain in [kind.python_type]  # an array has elements of one type
    }


@cache
def _parameters(prepared: Prepared) -> Mapping[str, TypeEngine[Any]]:
    """The type of each parameter by its name."""
    asked = {
        each.key: each.type
        for each in iterate(cast(ClauseElement, prepared.statement))
        if isinstance(each, BindParameter) and each.required
    }
    return {name: Text() if isinstance(kind, String) else kind for name, kind in asked.items()}


def _of_many_rows(prepared: Prepared) -> Insert | Update:
    """The same insert or update of many rows, whose parameters are arrays."""
    one, given = prepared.statement, _given_rows(prepared)
    if isinstance(one, Insert):
        names = list(_parameters(prepared))
        chosen = select(*(given.c[name] for name in names)).order_by(given.c[_PLACE])
        return insert(one.table).inline().from_select(names, chosen)

    def of_row(element: Any, **_: Any) -> Any:
        return given.c[element.key] if isinstance(element, BindParameter) and element.required else None

    return cast(Update, replacement_traverse(cast(Update, one), {}, of_row))


def _given_rows(prepared: Prepared) -> TableValuedAlias:
    sent = _parameters(prepared)
    arrays = (bindparam(name, type_=ARRAY(kind)) for name, kind in sent.items())
    heads = (column(name, kind) for name, kind in sent.items())
    rows = func.unnest(*arrays).table_valued(*heads, with_ordinality=_PLACE)
    return rows.render_derived(name="given")
