"""Pruning of grown trees by their class counts, from the leaves up: χ² for ID3, pessimistic errors for C4.5.

Pruning uses only the nodes' class probabilities ``theta`` and weights, whose product is the count of each class. A
pruned node has `Stop.PRUNED`, and keeps its gains. Evidential trees are pruned by their labels
(`quercus.trees.rules.evidential_pruning`).

C4.5's program prunes in two steps (Quinlan 1993, chapter 4). A subtree *collapses* if it makes no fewer errors on its
own rows than a leaf would. Then, from the leaves up, a node is replaced by a leaf, or by the subtree of its largest
branch, if this does not increase the pessimistic number of errors by more than 0.1. A raised subtree keeps its tests,
and gets all rows of the node that it replaces.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

import numpy as np

from quercus.belief.arrays import Floats
from quercus.belief.errors import InvalidInput, shown
from quercus.trees.growth.batch import GrowthRules, NodePrediction, OpenNode, SplitChoice, grow_tree
from quercus.trees.rules.ties import TIE
from quercus.trees.tree.node import Node, Stop

ERROR_SLACK = 0.1  # errors; as in the C4.5 program, which also prunes if the result is this little worse
COLLAPSE_SLACK = 1e-3  # errors; as in the C4.5 program


def prune_idle(tree: Node, is_idle: Callable[[Node], bool]) -> Node:
    """Return `tree` with every node whose split is idle replaced by a leaf, the deepest first.

    Parameters
    ----------
    tree
        The tree, which is not changed.
    is_idle
        Given an inner node whose subtrees are already pruned, returns whether to remove its split.
    """
    rows = list(tree.preorder())
    below: list[dict[int, Node]] = [{} for _ in rows]
    for index in range(len(rows) - 1, -1, -1):  # children before their parents; not recursive
        node, parent, code = rows[index]
        if not node.is_leaf:
            node = replace(node, children=dict(reversed(below[index].items())))
            if is_idle(node):
                node = as_leaf(node)
        if parent < 0:
            break
        below[parent][code] = node
    return node


def as_leaf(node: Node) -> Node:
    """Return a node as a leaf with the same prediction."""
    return replace(node, attribute=None, threshold=None, children={}, undecided=False, stop=Stop.PRUNED)


def check_level(value: float, field: str) -> float:
    """Return a level; raise `InvalidInput` unless it lies in (0, 1)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise InvalidInput(field, f"is {shown(value)}, must lie in (0, 1)")
    return float(value)


def prune_chi_square(tree: Node, significance: float) -> Node:
    """Prune splits that are explained by chance (theory §7).

    A node whose children are all leaves is pruned when ``Δ = Σ_h Σ_c (n_hc - n̂_hc)² / n̂_hc`` is below the
    ``1 - significance`` quantile of χ², with ``n_hc`` the rows of class ``c`` behind branch ``h`` and
    ``n̂_hc = n_c n_h / n``. The degrees of freedom are ``(r - 1)(l - 1)`` for ``r`` populated branches and
    ``l`` classes that occur at the node; other classes have ``n̂_hc = 0`` and add nothing to ``Δ``.

    Parameters
    ----------
    tree
        A tree whose `theta` are relative frequencies of classes, as in ID3 and C4.5.
    significance
        Level of the test, in (0, 1): the smaller, the more is pruned.

    Raises
    ------
    InvalidInput
        If `significance` lies outside (0, 1).
    """
    from scipy.special import chdtri  # noqa: PLC0415  (11 MB of memory that most models do not need)

    level = check_level(significance, "significance")

    def is_chance(node: Node) -> bool:
        children = list(node.children.values())
        if not all(child.is_leaf for child in children):
            return False
        deviation, freedom = chi_square(np.array([np.array(child.theta) * child.size for child in children]))
        return freedom == 0 or deviation < float(chdtri(freedom, level))

    return prune_idle(tree, is_chance)


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


def pessimistic_rate(errors: float, count: float, confidence: float) -> float:
    """Return ``U_CF(E, N)``, the upper confidence limit of an error rate.

    It is the rate ``p`` at which at most ``E`` errors among ``N`` have probability ``CF``: the ``1 - CF`` quantile of
    Beta(E + 1, N - E), which is also defined for fractional rows. For ``E = 0`` it is ``1 - CF^(1/N)``. For other
    ``E``, the C4.5 program approximates the limit, and differs in the third digit: ``U(1, 16)`` is .160, printed .157.

    Examples
    --------
    >>> [round(pessimistic_rate(0, n, 0.25), 3) for n in (1, 6, 9)]
    [0.75, 0.206, 0.143]
    """
    from scipy.special import betaincinv  # noqa: PLC0415  (11 MB of memory that most models do not need)

    if count - errors <= 0:
        return 1.0
    return float(betaincinv(errors + 1, count - errors, 1 - confidence))


def leaf_errors(node: Node, confidence: float) -> float:
    """Return the pessimistic number of errors of a node as a leaf."""
    errors = max(0.0, node.size * (1 - node.theta[node.klass]))
    return node.size * pessimistic_rate(errors, node.size, confidence)


def subtree_errors(node: Node, confidence: float) -> float:
    """Return the pessimistic number of errors of the leaves at and below a node."""
    return sum(leaf_errors(below, confidence) for below, _, _ in node.preorder() if below.is_leaf)


def collapse_errors(tree: Node) -> Node:
    """Return a tree without the subtrees that make no fewer errors on their rows than a leaf."""

    def errors(node: Node) -> float:
        return node.size * (1 - node.theta[node.klass])

    def is_idle(node: Node) -> bool:
        below = sum(errors(leaf) for leaf, _, _ in node.preorder() if leaf.is_leaf)
        return below >= errors(node) - COLLAPSE_SLACK

    return prune_idle(tree, is_idle)


Task = tuple[Node, OpenNode]


def prune_and_raise(tree: Node, place: OpenNode, rules: GrowthRules, confidence: float) -> Node:
    """Return a tree pruned by pessimistic errors: subtrees are replaced by leaves, or raised.

    Parameters
    ----------
    tree, place
        The tree and the rows of its root.
    rules
        The rules that distribute rows among branches, and determine predictions.
    confidence
        ``CF`` in (0, 1): the smaller, the more is pruned.
    """

    def pruned(node: Node, place: OpenNode) -> Generator[Task, Node, Node]:
        """Return the pruned node; yielding the task of another node returns that node pruned."""
        if node.is_leaf:
            return node
        places = {child.path[-1][1]: child for child in rules.branches(place, _choice_of(node))}
        below: dict[int, Node] = {}
        for code, child in node.children.items():
            below[code] = yield child, places[code]
        node = replace(node, children=below)
        largest = max(below.values(), key=lambda child: child.size)  # of equal ones, the first
        raised = grow_tree(place, _Replay(largest, place.depth, rules))
        alone, whole = leaf_errors(node, confidence), subtree_errors(node, confidence)
        above = subtree_errors(raised, confidence)
        if alone <= min(whole, above) + ERROR_SLACK + TIE:
            return as_leaf(node)
        if above <= whole + ERROR_SLACK + TIE:
            return (yield raised, place)
        return node

    waiting = [pruned(tree, place)]  # instead of recursion: a tree may be deeper than Python's stack
    result: Node | None = None
    while waiting:
        try:
            task = next(waiting[-1]) if result is None else waiting[-1].send(result)
        except StopIteration as done:
            waiting.pop()
            result = done.value
        else:
            waiting.append(pruned(*task))
            result = None
    return tree if result is None else result


@dataclass(frozen=True, eq=False)
class _Replay(GrowthRules):
    """Rules that grow an existing tree again from other rows."""

    tree: Node
    depth: int  # of the position where the tree is placed
    rules: GrowthRules

    def _node_at(self, place: OpenNode) -> Node | None:
        """Return the node of the existing tree at this position; None if it has no such branch."""
        node: Node | None = self.tree
        for _, code in place.path[self.depth :]:
            node = None if node is None else node.children.get(code)
        return node

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        node = self._node_at(place)
        return Stop.PRUNED if node is None else node.stop

    def choose_split(self, place: OpenNode) -> SplitChoice | None:
        node = self._node_at(place)
        return None if node is None or node.is_leaf else _choice_of(node)

    def branches(self, place: OpenNode, choice: SplitChoice) -> list[OpenNode]:
        return list(self.rules.branches(place, choice))

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        return self.rules.leaf_prediction(place)


def _choice_of(node: Node) -> SplitChoice:
    if node.attribute is None:
        raise ValueError("a leaf has no split")
    return SplitChoice(node.attribute, node.intervals, threshold=node.threshold)
