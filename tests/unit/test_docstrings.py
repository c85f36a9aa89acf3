"""Parameters that a docstring describes are parameters of the signature, or fields of the class."""

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from support.checkout import PARTS, ROOT


def documented(text: str) -> Iterator[str]:
    """Yield the names under ``Parameters``, in either form: a line of their own, or before a colon."""
    lines = text.splitlines()
    for at in range(len(lines) - 1):
        if lines[at].strip() != "Parameters" or set(lines[at + 1].strip()) != {"-"}:
            continue
        indent = len(lines[at]) - len(lines[at].lstrip())
        for line, below in pairwise([*lines[at + 2 :], ""]):
            if below.strip() and set(below.strip()) == {"-"}:  # the heading of the next section
                break
            if not line.strip() or len(line) - len(line.lstrip()) != indent:
                continue
            names = line.split(" : ")[0] if " : " in line else line
            for name in names.split(","):
                if name.strip().lstrip("*").isidentifier():
                    yield name.strip().lstrip("*")


def known(node: ast.AST) -> set[str]:
    """Return the names of a function's parameters, or of a class's fields and of its constructor's parameters."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        given = node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        return {each.arg for each in every if each is not None}
    assert isinstance(node, ast.ClassDef)
    found: set[str] = set()
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            found.add(item.target.id)
        if isinstance(item, ast.FunctionDef) and item.name in {"__init__", "__new__"}:
            found |= known(item)
    return found


def wrong(file: Path) -> Iterator[str]:
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.ClassDef) and node.bases and not known(node):
            continue  # the fields are those of a base class
        allowed = known(node)
        for name in documented(ast.get_docstring(node) or ""):
            if name not in allowed:
                yield f"{file.relative_to(ROOT)}:{node.lineno}: {node.name} has no parameter {name!r}"


def test_parameters_of_docstrings_exist() -> None:
    files = [file for folder in PARTS.values() for file in sorted((ROOT / folder).rglob("*.py"))]
    found = [line for file in files if "_pb2" not in file.name for line in wrong(file)]
    assert not found, "\n".join(found)
