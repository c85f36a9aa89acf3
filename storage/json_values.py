"""Any number of values as a single parameter of a statement, whose text is therefore always the same.

The backends compile them, each for its database.
"""

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    ColumnElement,
    String,
    TableValuedAlias,
    bindparam,
    cast,
    select,
)
from sqlalchemy.sql.functions import FunctionElement


class JsonElements(FunctionElement[str]):
    """A table of the elements of a JSON array, as texts, in the column ``value``."""

    inherit_cache = True


def json_rows(parameter: str) -> TableValuedAlias:
    """Return a table of the texts in a parameter, a JSON array; its column is ``value``."""
    return JsonElements(bindparam(parameter, type_=JSON)).table_valued("value")


class OneOf(FunctionElement[bool]):
    """A condition that the first argument, a column, has one of the values of the second, a subquery."""

    # It has no SQL type: as a boolean, SQLAlchemy would compare it with 1 in SQLite.
    inherit_cache = True


def one_of(column: ColumnElement[Any], parameter: str) -> ColumnElement[bool]:
    """Return the condition that a column has one of the values in a parameter, a JSON array."""
    value = json_rows(parameter).c.value
    chosen = select(value if isinstance(column.type, String) else cast(value, BigInteger))
    return OneOf(column, chosen.scalar_subquery())
