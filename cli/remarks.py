"""Remarks about a data file: what looks wrong, what was left out, and the flags that change it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from rich.text import Text

from quercus.cli.common import PlainConsole
from quercus.files.looking import Remark

_ORDER: Final = ("refused", "left out", "said")
_SHOWN: Final = {
    "refused": ("refused", "bold red"),
    "left out": ("left out", "yellow"),
    "said": ("note", "cyan"),
}


def print_remarks(remarks: Iterable[Remark], console: PlainConsole) -> None:
    """Print remarks, a line for each: first what is refused, then what is left out."""
    for each in sorted(remarks, key=lambda each: _ORDER.index(each.outcome)):
        word, style = _SHOWN[each.outcome]
        console.print(Text.assemble((f"{word}:", style), f" {each}"), soft_wrap=True)


def remark_json(remark: Remark) -> dict[str, Any]:
    """Return a remark as JSON."""
    return {
        "kind": remark.kind,
        "column": remark.column or None,
        "line": remark.line or None,
        "outcome": remark.outcome,
        "says": remark.says,
        "advice": remark.advice,
    }
