"""Pruning as C4.5's program does it: collapse, and subtrees that are raised in the place of their parents.

Both follow Quinlan 1993, chapter 4. A subtree *collapses* that makes no fewer errors on its own rows than a leaf
would. Then, from the leaves up, a node becomes a leaf, or what stands below its largest branch, where the pessimistic
number of errors (`quercus.trees.learners.pruning.pessimistic_rate`) does not suffer by more than 0.1. A subtree that is
raised keeps its tests, and gets all rows of the node that it replaces.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace

from quercus.trees.growth.batch import Branching, GrowthRules, LeafRule, OpenNode, SplitChoice, grow_tree
from quercus.trees.learners.pruning import (
    ERROR_SLACK,
    as_leaf,
    check_level,
    leaf_errors,
    prune_idle,
    subtree_errors,
)
from quercus.trees.rules.ties import TIE
from quercus.trees.tree.node import Node, Stop

COLLAPSE_SLACK = 1e-3  # errors; of C4.5's program

Task = tuple[Node, OpenNode]


def collapse_errors(tree: Node) -> Node:
    """Return a tree without the subtrees that make no fewer errors on their rows than a leaf."""
    return prune_idle(tree, lambda node: _errors_below(node) >= _error_count(node) - COLLAPSE_SLACK)


def prune_and_raise(
    tree: Node, place: OpenNode, branching: Branching, rule: LeafRule, confidence: float
) -> Node:
    """Return a tree pruned by pessimistic errors, subtrees replaced and raised.

    Parameters
    ----------
    tree, place
        The tree and the rows of its root.
    branching, rule
        The rule that distributes rows among branches, and the predictions of nodes.
    confidence
        Confidence of the pessimistic errors, in (0, 1).

    Raises
    ------
    InvalidInput
        When `confidence` lies outside (0, 1).
    """
    check_level(confidence)
    return _run_without_recursion(_Pruner(branching, rule, confidence), (tree, place))


@dataclass(frozen=True, slots=True)
class _Pruner:
    branching: Branching
    rule: LeafRule
    confidence: float

    def pruned_node(self, node: Node, place: OpenNode) -> Generator[Task, Node, Node]:
        """Return the pruned node; a yield of another node's task returns that node pruned."""
        if node.is_leaf:
            return node
        choice = _choice_of(node)
        places = {
            branch.code: OpenNode(
                (*place.path, (branch.attribute, branch.code)), branch.rows, branch.left, branch.weights
            )
            for branch in self.branching.branches(place, choice)
        }
        below: dict[int, Node] = {}
        for code, child in node.children.items():
            below[code] = yield child, places[code]
        node = replace(node, children=below)
        largest = max(below.values(), key=lambda child: child.size)  # of equal ones the first
        raised = grow_tree(place, _replay_rules(largest, place.depth, self.branching, self.rule))
        alone, whole = leaf_errors(node, self.confidence), subtree_errors(node, self.confidence)
        above = subtree_errors(raised, self.confidence)
        if alone <= min(whole, above) + ERROR_SLACK + TIE:
            return as_leaf(node)
        if above <= whole + ERROR_SLACK + TIE:
            return (yield raised, place)
        return node


def _run_without_recursion(pruner: _Pruner, task: Task) -> Node:
    """Run the pruner without recursion: a tree may be deeper than Python's stack."""
    waiting = [pruner.pruned_node(*task)]
    result: Node | None = None
    while True:
        try:
            following = next(waiting[-1]) if result is None else waiting[-1].send(result)
        except StopIteration as done:
            waiting.pop()
            result = done.value
            if not waiting:
                if result is None:
                    raise ValueError("a pruner returns a node") from None
                return result
        else:
            waiting.append(pruner.pruned_node(*following))
            result = None


@dataclass(frozen=True, slots=True, eq=False)
class _ReplayedTree:
    """Criterion and stopping of a tree that is there, for other rows."""

    tree: Node
    depth: int  # of the place where it is put

    def choose_split(self, place: OpenNode) -> SplitChoice | None:
        node = self._replayed_node(place)
        return None if node is None or node.is_leaf else _choice_of(node)

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        node = self._replayed_node(place)
        return Stop.PRUNED if node is None else node.stop  # none: no row took this branch so far

    def stop_after_choice(self, _place: OpenNode, _choice: SplitChoice) -> Stop | None:
        return None

    def _replayed_node(self, place: OpenNode) -> Node | None:
        node: Node | None = self.tree
        for _, code in place.path[self.depth :]:
            node = None if node is None else node.children.get(code)
        return node


def _replay_rules(tree: Node, depth: int, branching: Branching, rule: LeafRule) -> GrowthRules:
    replay = _ReplayedTree(tree, depth)
    return GrowthRules(criterion=replay, branching=branching, stopping=replay, leaf=rule)


def _choice_of(node: Node) -> SplitChoice:
    if node.attribute is None:
        raise ValueError("a leaf has no split")
    return SplitChoice(node.attribute, node.intervals, (node.attribute,), threshold=node.threshold)


def _error_count(node: Node) -> float:
    return node.size * (1 - node.theta[node.klass])


def _errors_below(node: Node) -> float:
    return sum(_error_count(below) for below, _, _ in node.preorder() if below.is_leaf)
