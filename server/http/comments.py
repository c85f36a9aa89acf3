"""The comments of ``.proto`` files: generated code does not have them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_BLOCK: Final = re.compile(r"(message|enum|service|oneof|rpc)\s+(\w+)")
_FIELD: Final = re.compile(r"(?:(?:repeated|optional)\s+)?(?:map<[^>]*>|[\w.]+)\s+(\w+)\s*=\s*\d+")
_VALUE: Final = re.compile(r"(\w+)\s*=\s*-?\d+\s*[;\[]")
_PACKAGE: Final = re.compile(r"package\s+([\w.]+)\s*;")


def comments_of(text: str) -> dict[str, str]:
    r"""Return the comment before each part of a file, by its full name.

    Parameters
    ----------
    text : a file of the protocol.

    Examples
    --------
    >>> comments_of("package a;\n// A thing.\nmessage T {\n  // Its\n  // name.\n  string n = 1;\n}\n")
    {'a.T': 'A thing.', 'a.T.n': 'Its name.'}
    """
    found: dict[str, str] = {}
    package, before = "", []
    scopes: list[str | None] = []  # None: braces that name nothing
    for line in text.splitlines():
        words = line.strip()
        if words.startswith("//"):
            before.append(words.removeprefix("//").strip())
            continue
        code = _STRING.sub('""', words)
        block = _BLOCK.match(code)
        named = block[2] if block is not None else _name_of(code)
        if (given := _PACKAGE.match(code)) is not None:
            package = given[1]
        elif named is not None and before and None not in scopes:
            found[".".join([package, *filter(None, scopes), named])] = " ".join(before)
        before = []
        for brace in re.findall(r"[{}]", code):
            if brace == "}":
                scopes.pop()
            elif block is None or block[1] == "rpc":
                scopes.append(None)
            else:
                scopes.append("" if block[1] == "oneof" else block[2])  # its fields are those of the message
    return found


def _name_of(code: str) -> str | None:
    match = _FIELD.match(code) or _VALUE.match(code)
    return None if match is None else match[1]


@cache
def protocol_comments() -> Mapping[str, str]:
    """Return the comments of all files of the protocol, by full names."""
    found: dict[str, str] = {}
    for package in ("quercus.v1", "quercus.inference"):
        for file in files(package).iterdir():
            if file.name.endswith(".proto"):
                found |= comments_of(file.read_text(encoding="utf-8"))
    return found
