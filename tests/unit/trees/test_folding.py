"""The top of a tree: the same nodes with the same numbers, and every hidden node counted once."""

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from quercus.belief.errors import InvalidInput
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.folding import fold_tree
from quercus.trees.tree.names import TreeNames
from quercus.trees.tree.node import Node
from quercus.view.trees.dot import to_dot
from quercus.view.trees.svg import MAX_NODES, to_svg
from quercus.view.trees.text import to_text

NAMES = TreeNames(("yes", "no"), tuple(f"a{k}" for k in range(12)), (("x", "y"),) * 12)


def full_tree(depth: int, level: int = 0) -> Node:
    leaf = {
        "klass": 0, "theta": (0.75, 0.25), "belief": (0.7, 0.2), "plausibility": (0.8, 0.3),
        "count": 2 ** (depth - level),
    }  # fmt: skip
    if level == depth:
        return Node(attribute=None, **leaf)
    children = {code: full_tree(depth, level + 1) for code in (0, 1)}
    return Node(attribute=level, children=children, intervals={level: (0.1, 0.2), 11: (0.0, 0.1)}, **leaf)


@pytest.mark.parametrize("depth", range(6))
def test_hidden_and_shown_are_all(depth: int) -> None:
    whole = FlatTree.of(full_tree(5))
    folded = fold_tree(whole, depth)
    assert folded.flat.size == 2 ** (depth + 1) - 1
    assert folded.flat.size + folded.hidden.sum() == whole.size
    assert folded.flat.depth == depth
    assert (folded.flat.count == whole.count[folded.number]).all()
    for at, number in enumerate(folded.number):
        assert folded.flat.parent[at] == -1 or folded.number[folded.flat.parent[at]] == whole.parent[number]
        here = slice(*folded.flat.interval_start[at : at + 2])
        there = slice(*whole.interval_start[number : number + 2])
        assert (folded.flat.interval_upper[here] == whole.interval_upper[there]).all()


def test_all_of_a_tree_is_the_tree() -> None:
    whole = FlatTree.of(full_tree(3))
    assert fold_tree(whole).flat is whole
    assert fold_tree(whole, 3).flat is whole
    assert not fold_tree(whole, 9).hidden.any()
    with pytest.raises(InvalidInput, match="depth: is -1, must be at least 0"):
        fold_tree(whole, -1)


def test_a_tree_of_many_lines_fits_a_screen() -> None:
    tree = full_tree(9)
    assert len(to_text(tree, NAMES).splitlines()) == 1023
    lines = to_text(tree, NAMES, 3).splitlines()
    assert len(lines) == 15
    assert sum(line.endswith("… 126 nodes below") for line in lines) == 8
    assert to_dot(tree, NAMES, 3).count(" -> ") == 14


def test_a_picture_has_titles_and_numbers_and_no_page() -> None:
    tree = full_tree(6)
    root = ET.fromstring(to_svg(tree, NAMES, 2))  # noqa: S314 - our own picture
    space = "{http://www.w3.org/2000/svg}"
    assert root.findtext(f"{space}title") == "Decision tree of 127 nodes"
    assert not [rect for rect in root.iter(f"{space}rect") if rect.get("width") == "100%"]
    nodes = [group for group in root.iter(f"{space}g") if "node" in group.get("class", "").split()]
    whole = FlatTree.of(tree)
    assert [int(group.attrib["data-node"]) for group in nodes] == fold_tree(whole, 2).number.tolist()
    titles = [group.findtext(f"{space}title") or "" for group in nodes]
    for group, title in zip(nodes, titles, strict=True):
        assert re.match(rf"node {group.attrib['data-node']}: ", title)
    assert sum("… 30 nodes below" in title for title in titles) == 4


def test_a_tree_too_large_for_a_picture_is_drawn_to_a_depth() -> None:
    chain = np.arange(-1, MAX_NODES + 1)
    size = chain.size
    halves = np.full((size, 2), 0.5)
    inner = np.where(np.arange(size) < size - 1, 0, -1)
    flat = FlatTree(
        attribute=inner, parent=chain, branch=np.where(chain < 0, -1, 0), klass=np.zeros(size, np.int64),
        count=np.ones(size, np.int64), theta=halves, belief=halves, plausibility=halves,
        undecided=np.zeros(size, bool), stop=np.zeros(size, np.int8), interval_start=np.zeros(size + 1, np.int64),
        interval_attribute=np.zeros(0, np.int64), interval_lower=np.zeros(0), interval_upper=np.zeros(0),
    )  # fmt: skip
    with pytest.raises(
        InvalidInput, match=rf"has {size} nodes, a picture shows at most {MAX_NODES}: give a depth"
    ):
        to_svg(flat, NAMES)
    assert f"… {size - 4:,} nodes below" in to_svg(flat, NAMES, 3)
