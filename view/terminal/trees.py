"""Trees at a terminal: Rich draws the branches, and wraps long lines under their own text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text
from rich.tree import Tree as Branches

from quercus.view.trees.words import NodeWords

INDENT: Final = 4
"""Width of a level, in cells: that of Rich's guides."""
LEAST: Final = 40
"""Minimum width for the text of the lowest node, in cells."""
_STYLES: Final = {"class_name": "bold", "undecided": "yellow", "hidden": "dim"}


class DrawnTree:
    """A tree that a Rich console can print.

    Rich omits nodes whose guides fill the width, so a tree that is too deep is drawn wider than the terminal, which
    then wraps the lines of the lowest nodes.

    Parameters
    ----------
    nodes
        In pre-order: the number of each node's parent, -1 for the root, and its words.
    cut
        Whether to cut lines that are too long, so that each node has one line.
    """

    def __init__(self, nodes: Iterable[tuple[int, NodeWords]], *, cut: bool = False) -> None:
        drawn: list[Branches] = []
        levels: list[int] = []
        for parent, words in nodes:
            styled = ((text, _STYLES.get(name, "")) for name, text in words.parts)
            label = Text.assemble(*styled, no_wrap=cut, overflow="ellipsis" if cut else None)
            drawn.append(drawn[parent].add(label) if drawn else Branches(label, guide_style="dim"))
            levels.append(levels[parent] + 1 if levels else 0)
        self._root, self._depth = drawn[0], max(levels)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines."""
        width = max(options.max_width, INDENT * self._depth + LEAST)
        yield from console.render(self._root, options.update(width=width))
