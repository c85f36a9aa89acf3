"""Prepared statements as texts for PostgreSQL's driver; many rows and several changes become a single statement.

Each statement is a round trip to the database server, during which a call that has locked a model makes all others
wait. Pipelines and COPY would also save round trips, but a client that is suspended in the middle of one would hold its
locks for ever.
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
    """Return the text of a statement, and the values of its constant parameters."""
    compiled = cast(ClauseElement, prepared.statement).compile(dialect=_DIALECT)
    return str(compiled), {name: value for name, value in compiled.params.items() if value is not None}


@cache
def text_together(changes: tuple[Prepared, ...]) -> str:
    """Return the text of one statement that makes several changes, each to as many rows as its arrays have elements.

    The names of a change's parameters begin with the position of the change.
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
    """Return the type of each parameter, by name."""
    asked = {
        each.key: each.type
        for each in iterate(cast(ClauseElement, prepared.statement))
        if isinstance(each, BindParameter) and each.required
    }
    return {name: Text() if isinstance(kind, String) else kind for name, kind in asked.items()}


def _of_many_rows(prepared: Prepared) -> Insert | Update:
    """Return the same insert or update for many rows; its parameters are arrays."""
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
