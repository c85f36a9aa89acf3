"""Pruning of grown trees, from the leaves up.

`prune_chi_square` and `prune_pessimistic` use only the nodes: class probabilities ``theta`` and the weight of their
rows, whose product is the count of each class. `prune_evidential` uses the labels. A pruned node says so,
`Stop.PRUNED`; it keeps the gains that were looked at.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Floats
from quercus.belief.errors import InvalidInput, shown
from quercus.specification.algorithms import Pruning
from quercus.specification.parameters import CONFIDENCE
from quercus.trees.likelihood.cells import Cells
from quercus.trees.rules.pruning_statistics import NodeEvidence, collapsible_nodes
from quercus.trees.rules.ties import TIE
from quercus.trees.tree.flat import PLAIN, FlatTree
from quercus.trees.tree.node import Node, Stop

ERROR_SLACK = 0.1  # errors; of C4.5's program, which prunes also what is so little worse


def prune_idle(tree: Node, is_idle: Callable[[Node], bool]) -> Node:
    """Return `tree` with every node replaced by a leaf whose split is idle, the deepest first.

    Parameters
    ----------
    tree
        Not changed.
    is_idle
        Given a node that is split, everything below it already pruned, whether the split is to go.
    """
    rows = list(tree.preorder())
    below: list[dict[int, Node]] = [{} for _ in rows]
    for index in range(len(rows) - 1, -1, -1):  # children before their parents; never recursive
        node, parent, code = rows[index]
        if not node.is_leaf:
            node = replace(node, children=dict(reversed(below[index].items())))
            if is_idle(node):
                node = as_leaf(node)
        if parent < 0:
            return node
        below[parent][code] = node
    raise ValueError("a tree has a root")


def prune_evidential(tree: FlatTree, leaves: Cells, contours: Floats, pruning: Pruning) -> FlatTree:
    """Prune splits of an evidential tree that its labels do not need, see `quercus.trees.rules.pruning_statistics`.

    Parameters
    ----------
    tree
        Its nodes' `theta` are maximum likelihood estimates.
    leaves
        A cell a leaf, in pre-order: how often each contour occurs among its rows.
    contours
        (d, l) contours.
    pruning
        The test and its level.
    """
    return collapse_nodes(
        tree, collapsible_nodes(NodeEvidence.of_leaves(tree.parent, tree.theta, leaves, contours), pruning)
    )


def collapse_nodes(tree: FlatTree, found: NDArray[np.bool_]) -> FlatTree:
    """Return a tree whose nodes `found` (nodes,) are leaves, without the nodes below them. No node may hold a mass."""
    fallen = np.zeros(tree.size, dtype=bool)
    for node in np.flatnonzero(found):
        fallen[node + 1 : tree.last_below[node] + 1] = True
    kept = ~fallen
    index = np.cumsum(kept) - 1
    lengths = np.diff(tree.interval_start)
    intervals = np.repeat(kept, lengths)
    columns: dict[str, NDArray[Any]] = {name: getattr(tree, name)[kept] for name in PLAIN}
    columns |= {
        "attribute": np.where(found, -1, tree.attribute)[kept],
        "parent": np.where(tree.parent < 0, -1, index[tree.parent])[kept],
        "undecided": (tree.undecided & ~found)[kept],
        "stop": np.where(found, Stop.PRUNED.value, tree.stop)[kept].astype(np.int8),
        "threshold": np.where(found, np.nan, tree.threshold)[kept],
    }
    return FlatTree(
        **columns,
        interval_start=np.concatenate([[0], np.cumsum(lengths[kept])]),
        interval_attribute=tree.interval_attribute[intervals],
        interval_lower=tree.interval_lower[intervals],
        interval_upper=tree.interval_upper[intervals],
    )


def as_leaf(node: Node) -> Node:
    """Return a node as a leaf with the same prediction."""
    return replace(node, attribute=None, threshold=None, children={}, undecided=False, stop=Stop.PRUNED)


def prune_chi_square(tree: Node, significance: float) -> Node:
    """Prune splits that chance explains (theory §7).

    A node whose children are all leaves is pruned when ``Δ = Σ_h Σ_c (n_hc - n̂_hc)² / n̂_hc`` is below the
    ``1 - significance`` quantile of χ², with ``n_hc`` the rows of class ``c`` behind branch ``h`` and
    ``n̂_hc = n_c n_h / n``. The degrees of freedom are ``(r - 1)(l - 1)`` for ``r`` populated branches and
    ``l`` classes that occur at the node: a class that does not has ``n̂_hc = 0`` and adds nothing to ``Δ``.

    Parameters
    ----------
    tree
        Its nodes' `theta` are relative frequencies of classes, as ID3's and C4.5's.
    significance
        In (0, 1): the smaller, the more is pruned.

    Raises
    ------
    InvalidInput
        When `significance` lies outside (0, 1).
    """
    level = check_level(significance, "significance")
    return prune_idle(tree, partial(_is_chance, level=level))


def chi_square(counts: Floats) -> tuple[float, int]:
    """Return ``Δ`` and its degrees of freedom for counts (branches, classes); see `prune_chi_square`.

    Examples
    --------
    >>> chi_square(np.array([[8.0, 2.0], [2.0, 8.0]]))
    (7.2, 1)
    """
    populated = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    expected = np.outer(populated.sum(axis=1), populated.sum(axis=0)) / populated.sum()
    rows, columns = populated.shape
    return float(((populated - expected) ** 2 / expected).sum()), (rows - 1) * (columns - 1)


def _is_chance(node: Node, level: float) -> bool:
    from scipy.special import chdtri  # noqa: PLC0415  (11 MB of memory that most models do not need)

    children = list(node.children.values())
    if not all(child.is_leaf for child in children):
        return False
    deviation, freedom = chi_square(np.array([class_counts(child) for child in children]))
    return freedom == 0 or deviation < float(chdtri(freedom, level))


def class_counts(node: Node) -> Floats:
    """Return the weight of each class at a node, (l,)."""
    return np.array(node.theta) * node.size


def prune_pessimistic(tree: Node, confidence: float = CONFIDENCE.default) -> Node:
    """Prune splits that do not lower the pessimistic number of errors (Quinlan 1993, chapter 4).

    Of ``N`` rows at a leaf, ``E`` are not of its class. The pessimistic number of errors is ``N U(E, N)`` with
    ``U`` from `pessimistic_rate`; a subtree's is the sum over its leaves. A node is pruned when its own number,
    were it a leaf, exceeds its subtree's by no more than 0.1, as in C4.5's program. Subtrees are replaced, never
    raised; `quercus.trees.learners.subtree_raising` does both.

    Parameters
    ----------
    tree
        See `prune_chi_square`.
    confidence
        ``CF`` in (0, 1): the smaller, the more is pruned.

    Raises
    ------
    InvalidInput
        When `confidence` lies outside (0, 1).
    """
    level = check_level(confidence, "confidence")
    return prune_idle(tree, partial(_is_no_better, confidence=level))


def _is_no_better(node: Node, confidence: float) -> bool:
    return leaf_errors(node, confidence) <= subtree_errors(node, confidence) + ERROR_SLACK + TIE


def pessimistic_rate(errors: float, count: float, confidence: float) -> float:
    """Return ``U_CF(E, N)``, the upper confidence limit of an error rate.

    It is the rate ``p`` at which as few as ``E`` errors among ``N`` have probability ``CF``: the ``1 - CF``
    quantile of Beta(E + 1, N - E), which also serves parts of rows. For ``E = 0`` that is ``1 - CF^(1/N)``. For other
    ``E`` C4.5's program approximates the limit, and differs in the third digit: ``U(1, 16)`` is .160, printed .157.

    Examples
    --------
    >>> [round(pessimistic_rate(0, n, 0.25), 3) for n in (1, 6, 9)]
    [0.75, 0.206, 0.143]
    """
    from scipy.special import betaincinv  # noqa: PLC0415  (11 MB of memory that most models do not need)

    if count - errors <= 0:
        return 1.0
    return float(betaincinv(errors + 1, count - errors, 1 - confidence))


def subtree_errors(node: Node, confidence: float) -> float:
    """Return the pessimistic number of errors of the leaves at and below a node."""
    return sum(leaf_errors(below, confidence) for below, _, _ in node.preorder() if below.is_leaf)


def leaf_errors(node: Node, confidence: float) -> float:
    """Return the pessimistic number of errors of a node, were it a leaf."""
    errors = max(0.0, node.size * (1 - node.theta[node.klass]))
    return node.size * pessimistic_rate(errors, node.size, confidence)


def check_level(value: float, field: str = "confidence") -> float:
    """Return a level, which must lie in (0, 1)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise InvalidInput(field, f"is {shown(value)}, must lie in (0, 1)")
    return float(value)
