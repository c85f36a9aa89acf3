"""Values as rows of a statement, however many they are: they are one parameter, and its text is always the same."""

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
    """The elements of an array of JSON, as texts, each in a row's column ``value``."""

    inherit_cache = True


@compiles(_Elements)
def _of_sqlite(called: _Elements, compiler: SQLCompiler, **kw: Any) -> str:
    return f"json_each{compiler.process(called.clause_expr, **kw)}"


@compiles(_Elements, "postgresql")
def _of_postgresql(called: _Elements, compiler: SQLCompiler, **kw: Any) -> str:
    return f"json_array_elements_text{compiler.process(called.clause_expr, **kw)}"


def json_rows(parameter: str) -> TableValuedAlias:
    """Return a row for each text of a parameter, an array of JSON; its column is ``value``."""
    return _Elements(bindparam(parameter, type_=JSON)).table_valued("value")


class _OneOf(FunctionElement[bool]):
    """A test that the first of two arguments, a column, has one of the values of the second one, a subquery."""

    # It has no type: beside one of truth values SQLite would be asked whether it equals 1.
    inherit_cache = True


@compiles(_OneOf)
def _is_in(called: _OneOf, compiler: SQLCompiler, **kw: Any) -> str:
    column, values = (compiler.process(each, **kw) for each in called.clauses)
    return f"{column} IN {values}"


@compiles(_OneOf, "postgresql")
def _equals_any(called: _OneOf, compiler: SQLCompiler, **kw: Any) -> str:
    # Of IN its planner makes a join, and reads all rows of a model where it knows nothing of their number.
    column, values = (compiler.process(each, **kw) for each in called.clauses)
    return f"{column} = ANY (ARRAY{values})"


def one_of(column: ColumnElement[Any], parameter: str) -> ColumnElement[bool]:
    """Return the condition that a column has one of the values of a parameter, an array of JSON."""
    value = json_rows(parameter).c.value
    chosen = select(value if isinstance(column.type, String) else cast(value, BigInteger))
    return _OneOf(column, chosen.scalar_subquery())
