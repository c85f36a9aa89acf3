"""A tree at a terminal: every node, whatever its depth, within 80 columns where they suffice, in ASCII as well."""

import io

import pytest
from rich.console import Console

from quercus.trees import Node, TreeNames, fold_tree
from quercus.view.terminal.trees import INDENT, DrawnTree
from quercus.view.trees.text import to_text
from quercus.view.trees.words import NodeWords

SHARES = {"theta": (0.75, 0.25), "belief": (0.7, 0.2), "plausibility": (0.8, 0.3)}


class Ascii(io.StringIO):
    encoding = "ascii"


def comb(depth: int) -> Node:
    """A leaf at each level, and the rest of the tree beside it."""
    node = Node(None, 0, count=1, **SHARES)
    for level in range(depth, 0, -1):
        leaf = Node(None, 1, count=level, **SHARES)
        node = Node(level - 1, 0, count=depth, children={0: leaf, 1: node}, **SHARES)
    return node


def shown(root: Node, width: int, paper: io.StringIO, **options: object) -> list[str]:
    names = names_for(500)
    folded = fold_tree(root)
    parents = folded.flat.parent.tolist()
    words = [NodeWords.of(folded, index, names) for index in range(folded.flat.size)]
    console = Console(file=paper, width=width, force_terminal=True, _environ={}, **options)  # type: ignore[arg-type]
    console.print(DrawnTree(zip(parents, words, strict=True)), crop=False)
    return paper.getvalue().splitlines()


def names_for(depth: int) -> TreeNames:
    attributes = tuple(f"attribute {k}" for k in range(depth))
    return TreeNames(("yes", "no"), attributes, (("left", "right"),) * depth)


@pytest.mark.parametrize("depth", [0, 1, 5, 30, 400])
def test_no_node_is_lost_however_deep(depth: int) -> None:
    """Rich leaves out what has no room beside the guides; a tree wider than the terminal is drawn all the same."""
    lines = shown(comb(depth), 80, io.StringIO(), color_system=None)
    assert sum("n=" in line for line in lines) == 2 * depth + 1
    assert max(map(len, lines)) <= max(80, INDENT * depth + 40)


def test_a_wide_terminal_shows_what_a_file_contains() -> None:
    assert shown(comb(9), 200, io.StringIO(), color_system=None) == to_text(comb(9), names_for(9)).split("\n")


def test_a_long_line_continues_under_its_own_words() -> None:
    assert shown(comb(2), 46, io.StringIO(), color_system=None) == [
        "yes  n=2  (yes 0.75  no 0.25)  by attribute 0",
        "├── left: no  n=1  (yes 0.75  no 0.25)",
        "└── right: yes  n=2  (yes 0.75  no 0.25)  by ",
        "    attribute 1",
        "    ├── left: no  n=2  (yes 0.75  no 0.25)",
        "    └── right: yes  n=1  (yes 0.75  no 0.25)",
    ]


def test_an_ascii_terminal_shows_the_same_tree() -> None:
    lines = shown(comb(2), 80, Ascii(), color_system=None)
    assert "\n".join(lines).isascii()
    assert lines[1] == "+-- left: no  n=1  (yes 0.75  no 0.25)"


def test_colours_stand_beside_the_words() -> None:
    root = Node(None, 0, count=3, undecided=True, **SHARES)
    (line,) = shown(root, 80, io.StringIO(), color_system="standard")
    assert line == "\x1b[1myes\x1b[0m  n=3  (yes 0.75  no 0.25)\x1b[33m  UNDECIDED\x1b[0m"
