"""The fenced blocks of the documentation: their contents and output, and whether a test runs them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.checkout import ROOT

DOCS = ROOT / "docs"
RUN = ("python", "sh", "pycon")
"""Languages of blocks that a test runs, unless a comment before the block gives a reason not to."""
SHOWN = ("text", "math", "toml", "csv", "json")
"""Languages of blocks that are only shown; after a block that is run, `text` is its output."""
_FENCE = re.compile(
    r"(?:^<!-- not run: (?P<why>[^\n]+?) -->\n)?^```(?P<language>[^\n]*)\n(?P<code>.*?)^```$", re.M | re.S
)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes
    ----------
    line : where it begins.
    language : after the fence.
    code : its contents.
    why_not : the reason why no test runs it; None: a test does.
    output : the block of text that follows directly, if any.
    """

    line: int
    language: str
    code: str
    why_not: str | None
    output: str | None


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page, without Sphinx's directives."""
    text = page.read_text()
    found = [match for match in _FENCE.finditer(text) if not match["language"].startswith("{")]
    for i, match in enumerate(found):
        after = found[i + 1] if i + 1 < len(found) else None
        follows = (
            after is not None
            and after["language"] == "text"
            and not text[match.end() : after.start()].strip()
        )
        yield Block(
            text.count("\n", 0, match.start()) + 1,
            match["language"],
            match["code"],
            match["why"],
            after["code"] if follows and after is not None else None,
        )


def pages() -> list[Path]:
    """Return every page of the documentation, the README among them."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
