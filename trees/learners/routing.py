"""Which node each row of known values ends at, many rows at once."""

import numpy as np

from quercus.trees.learners.splits import branch_codes
from quercus.trees.learners.table import Floats, Ints
from quercus.trees.specification import Attribute
from quercus.trees.tree import Node


def reached(root: Node, attributes: tuple[Attribute, ...], values: Floats) -> tuple[tuple[Node, ...], Ints]:
    """Send rows down a tree.

    A row whose branch the tree has not seen stays at the node above it (ALGORITHMS §3.4); so does one that
    lacks a value where no training row lacked it.

    Parameters
    ----------
    root
        A tree of splits by value and by threshold.
    attributes
        Declarations of the columns.
    values
        (n, K), NaN where missing.

    Returns
    -------
    nodes
        Those where some row ends, and the root.
    index
        (n,) number in `nodes` of the node of each row.
    """
    nodes: list[Node] = []
    index = np.zeros(len(values), dtype=np.int64)
    pending = [(root, np.arange(len(values)))]
    while pending:
        node, rows = pending.pop()
        stay = np.ones(len(rows), dtype=bool)
        if node.attribute is not None:
            k = node.attribute
            codes = branch_codes(attributes[k], node.threshold, values[rows, k])
            for code, child in node.children.items():
                here = codes == code
                if here.any():
                    pending.append((child, rows[here]))
                    stay &= ~here
        if stay.any() or node is root:
            index[rows[stay]] = len(nodes)
            nodes.append(node)
    return tuple(nodes), index
