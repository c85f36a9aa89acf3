"""Any number of values as a single parameter of a statement, whose text is therefore always the same."""

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
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class _Elements(FunctionElement[str]):
    """A table of the elements of a JSON array, as texts, in the column ``value``."""

    inherit_cache = True


@compiles(_Elements)
def _of_sqlite(called: _Elements, compiler: SQLCompiler, **kw: Any) -> str:
    return f"json_each{compiler.process(called.clause_expr, **kw)}"


@compiles(_Elements, "postgresql")
def _of_postgresql(called: _Elements, compiler: SQLCompiler, **kw: Any) -> str:
    return f"json_array_elements_text{compiler.process(called.clause_expr, **kw)}"


def json_rows(parameter: str) -> TableValuedAlias:
    """Return a table of the texts in a parameter, a JSON array; its column is ``value``."""
    return _Elements(bindparam(parameter, type_=JSON)).table_valued("value")


class _OneOf(FunctionElement[bool]):
    """A condition that the first argument, a column, has one of the values of the second, a subquery."""

    # It has no SQL type: as a boolean, SQLAlchemy would compare it with 1 in SQLite.
    inherit_cache = True


@compiles(_OneOf)
def _is_in(called: _OneOf, compiler: SQLCompiler, **kw: Any) -> str:
    column, values = (compiler.process(each, **kw) for each in called.clauses)
    return f"{column} IN {values}"


@compiles(_OneOf, "postgresql")
def _equals_any(called: _OneOf, compiler: SQLCompiler, **kw: Any) -> str:
    # The planner turns IN into a join, and without statistics reads all rows of a model.
    column, values = (compiler.process(each, **kw) for each in called.clauses)
    return f"{column} = ANY (ARRAY{values})"


def one_of(column: ColumnElement[Any], parameter: str) -> ColumnElement[bool]:
    """Return the condition that a column has one of the values in a parameter, a JSON array."""
    value = json_rows(parameter).c.value
    chosen = select(value if isinstance(column.type, String) else cast(value, BigInteger))
    return _OneOf(column, chosen.scalar_subquery())
