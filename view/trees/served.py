"""The nodes of a tree that a client received, in words."""

from __future__ import annotations

from collections.abc import Iterator

from quercus.client.results import Tree
from quercus.client.tree_nodes import TreeNode
from quercus.view.trees.words import NodeWords, estimate_text, mass_text


def served_words(tree: Tree, depth: int | None = None) -> Iterator[tuple[int, NodeWords]]:
    """Yield the nodes down to a depth in pre-order: the place of each one's parent, -1 for the root, and its words.

    Examples
    --------
    >>> from datetime import datetime, UTC
    >>> root = TreeNode(0, None, 0, None, "a", "x", 3, (1.0,), (1.0,), (1.0,), {}, False, None, (1,))
    >>> leaf = TreeNode(1, 0, 1, "< 2", None, "x", 3, (1.0,), (1.0,), (1.0,), {}, False, None, ())
    >>> tree = Tree("m", 1, 1, ("x",), (), (root, leaf), datetime.now(UTC))
    >>> [(parent, words.branch, words.hidden) for parent, words in served_words(tree)]
    [(-1, '', 0), (0, '< 2', 0)]
    >>> [(parent, words.branch, words.hidden) for parent, words in served_words(tree, 0)]
    [(-1, '', 1)]
    """
    below = [0] * len(tree.nodes)
    for node in reversed(tree.nodes):
        if node.parent is not None:
            below[node.parent] += below[node.index] + 1
    has_masses = any(node.mass for node in tree.nodes)
    place: dict[int, int] = {}
    for node in tree.nodes:
        if depth is not None and node.depth > depth:
            continue
        place[node.index] = len(place)
        parent = None if node.parent is None else tree.nodes[node.parent]
        yield (
            -1 if node.parent is None else place[node.parent],
            NodeWords(
                node.branch or "",
                node.class_name,
                node.count,
                estimate_text(
                    node.theta,
                    tree.node_classes,
                    as_parent=parent is not None and not has_masses and _predicts_like(node, parent),
                ),
                node.attribute or "",
                mass_text((node.mass or {}).items(), len(tree.node_classes), conflict=node.conflict)
                if node.is_leaf
                else "",
                node.undecided,
                below[node.index] if node.depth == depth else 0,
            ),
        )


def _predicts_like(node: TreeNode, parent: TreeNode) -> bool:
    """Return whether a node has no evidence, so that it has its parent's estimate (theory §3.4)."""
    return max(node.belief) <= 0 and min(node.plausibility) >= 1 and node.theta == parent.theta
