"""Texts as rows of a statement, however many they are: it has one parameter, and its text is always the same."""

from typing import Any

from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class json_texts(FunctionElement[str]):  # noqa: N801 - a function of SQL
    """Rows of the texts in an array of JSON, each in the column ``value``."""

    inherit_cache = True


@compiles(json_texts)  # type: ignore[no-untyped-call, untyped-decorator]
def _of_sqlite(called: json_texts, compiler: SQLCompiler, **kw: Any) -> str:
    return f"json_each{compiler.process(called.clause_expr, **kw)}"


@compiles(json_texts, "postgresql")  # type: ignore[no-untyped-call, untyped-decorator]
def _of_postgresql(called: json_texts, compiler: SQLCompiler, **kw: Any) -> str:
    return f"json_array_elements_text{compiler.process(called.clause_expr, **kw)}"
