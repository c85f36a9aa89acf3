"""Functions of `trees/` are short; compiled kernels alone may be longer (CONTRIBUTING, code style)."""

import ast

from support.checkout import ROOT

MOST = 40  # lines of a body, without its docstring


def lines(function: ast.FunctionDef) -> int:
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_what_is_not_compiled_is_short() -> None:
    found = [
        (path.name, each)
        for path in (ROOT / "trees").rglob("*.py")
        for each in ast.walk(ast.parse(path.read_text()))
        if isinstance(each, ast.FunctionDef)
    ]
    assert len(found) > 500
    long = [(name, each) for name, each in found if lines(each) > MOST]
    assert [f"{name}: {each.name}" for name, each in long if not each.decorator_list] == []
    assert {ast.unparse(d) for _, each in long for d in each.decorator_list} <= {
        "borrowing",
        "compact",
        "compiled",
    }
