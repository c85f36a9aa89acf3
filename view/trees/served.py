"""The nodes of a tree from the client, in words."""

from __future__ import annotations

from collections.abc import Iterator

from quercus.client.results import Tree
from quercus.view.trees.words import SHOWN_CLASSES, NodeWords, estimate_text, mass_text


def served_words(
    tree: Tree, depth: int | None = None, branches: int | None = None, classes: int = SHOWN_CLASSES
) -> Iterator[tuple[int, NodeWords]]:
    """Yield the nodes in pre-order: the position of the parent (-1 for the root), and the words.

    Parameters
    ----------
    tree
        The tree.
    depth, branches
        Number of levels below the root, and of branches of a node, to show; None: all. A node counts what it hides.
    classes
        Maximum number of classes in an estimate, see `estimate_text`.

    Examples
    --------
    >>> from datetime import datetime, UTC
    >>> from quercus.client.tree_nodes import TreeNode
    >>> root = TreeNode(0, None, 0, None, "a", "x", 3, (1.0,), (1.0,), (1.0,), {}, False, None, (1, 2))
    >>> leaves = [TreeNode(k, 0, 1, str(k), None, "x", 3, (1.0,), (1.0,), (1.0,), {}, False, None, ()) for k in (1, 2)]
    >>> tree = Tree("m", 1, 1, ("x",), (), (root, *leaves), datetime.now(UTC))
    >>> [(parent, words.branch, words.hidden) for parent, words in served_words(tree)]
    [(-1, '', 0), (0, '1', 0), (0, '2', 0)]
    >>> [(parent, words.branch, words.hidden) for parent, words in served_words(tree, branches=1)]
    [(-1, '', 1), (0, '1', 0)]
    """
    size = [1] * len(tree.nodes)
    for node in reversed(tree.nodes):
        if node.parent is not None:
            size[node.parent] += size[node.index]
    has_masses = any(node.mass for node in tree.nodes)
    shown, place = {tree.root.index}, dict[int, int]()
    for node in tree.nodes:
        if node.index not in shown:
            continue
        place[node.index] = len(place)
        parent = None if node.parent is None else tree.nodes[node.parent]
        below = () if node.depth == depth else node.children[:branches]
        is_without_evidence = max(node.belief) <= 0 and min(node.plausibility) >= 1  # theory §3.4
        as_parent = (
            parent is not None and not has_masses and is_without_evidence and node.theta == parent.theta
        )
        mass = (node.mass or {}).items() if node.is_leaf else ()
        yield (
            -1 if node.parent is None else place[node.parent],
            NodeWords(
                node.branch or "",
                node.class_name,
                node.count,
                estimate_text(node.theta, tree.node_classes, classes, as_parent=as_parent),
                node.attribute or "",
                mass_text(mass, len(tree.node_classes), conflict=node.conflict),
                node.undecided,
                sum(size[child] for child in node.children[len(below) :]),
            ),
        )
        shown.update(below)
