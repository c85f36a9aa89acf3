"""Trees of a table by every learner, also with settings that no user can choose."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import fields

from quercus.trees import (
    C45,
    Abc45,
    Averaging,
    BeliefEntropy,
    BeliefEntropyModel,
    E2m,
    Forest,
    ForestModel,
    Id3,
    LearnedModel,
    Node,
    Rule,
    Table,
    TotalUncertainty,
    TreeLearner,
    Vote,
    fit,
)
from quercus.trees.growth.batch import grow_tree
from quercus.trees.learners import evidential
from quercus.trees.learners.averaging import AveragingRules
from quercus.trees.learners.gain_rules import GainRules, precise_shares
from quercus.trees.learners.pruning import (
    ERROR_SLACK,
    collapse_errors,
    leaf_errors,
    prune_idle,
    subtree_errors,
)
from quercus.trees.learners.splits import root_node
from quercus.trees.learners.total_uncertainty import UncertaintyRules
from quercus.trees.rules.ties import TIE


def id3(table: Table, *, stop_without_gain: bool = False, **parameters: object) -> Node:
    if not stop_without_gain:
        (tree,) = Id3(**parameters).grow(table).trees  # type: ignore[arg-type]
        return tree
    learner = Id3(**parameters)  # type: ignore[arg-type]
    return grow_tree(root_node(table), GainRules(table, precise_shares(table), learner))


def c45(table: Table, *, raising: bool = True, **settings: object) -> Node:
    """Grow a tree of C4.5; settings of its program are those of the class `C45`."""
    learner = special_c45(**settings)
    if raising:
        (tree,) = learner.grow(table).trees
        return tree
    (tree,) = special_c45(**settings | {"confidence": None}).grow(table).trees
    assert learner.confidence is not None
    return prune_pessimistic(collapse_errors(tree), learner.confidence)


def special_c45(**settings: object) -> C45:
    """Return the learner with these parameters, and settings of its program."""
    known = {each.name for each in fields(C45)}
    fixed = {name: value for name, value in settings.items() if name not in known}
    kind = type("C45", (C45,), fixed)
    return kind(**{name: value for name, value in settings.items() if name not in fixed})  # type: ignore[no-any-return]


def prune_pessimistic(tree: Node, confidence: float = 0.25) -> Node:
    """Replace subtrees by leaves where that does not add 0.1 pessimistic errors, and raise none (Quinlan 1993)."""

    def is_no_better(node: Node) -> bool:
        return leaf_errors(node, confidence) <= subtree_errors(node, confidence) + ERROR_SLACK + TIE

    return prune_idle(tree, is_no_better)


def averaging(table: Table, *, stop_without_gain: bool = True, **parameters: object) -> Node:
    learner = Averaging(**parameters)  # type: ignore[arg-type]
    rules = AveragingRules(table, table.pignistic, learner, stop_without_gain=stop_without_gain)
    return grow_tree(root_node(table), rules)


def total_uncertainty_tree(table: Table, lam: float = 0.5, *, klass: int = 0, **parameters: object) -> Node:
    """Grow the tree that separates one class from the rest."""
    learner = TotalUncertainty(lam, **parameters)  # type: ignore[arg-type]
    return grow_tree(root_node(table), UncertaintyRules.of(table, learner, klass))


def fit_total_uncertainty(table: Table, lam: float = 0.5, **parameters: object) -> LearnedModel:
    return fit(TotalUncertainty(lam, **parameters), table)  # type: ignore[arg-type]


def abc45(table: Table, *, cuts: evidential.Cuts | None = None, **parameters: object) -> Node:
    return evidential.abc45(table, Abc45(**parameters), cuts=cuts)  # type: ignore[arg-type]


def e2m(table: Table, **parameters: object) -> Node:
    (tree,) = E2m(**parameters).grow(table).trees  # type: ignore[arg-type]
    return tree


def fit_belief_entropy(table: Table, leaf: Rule = "LBE", **parameters: object) -> BeliefEntropyModel:
    model = fit(BeliefEntropy(leaf, **parameters), table)  # type: ignore[arg-type]
    assert isinstance(model, BeliefEntropyModel)
    return model


def grow_forest(
    table: Table,
    base: TreeLearner,
    seed: int,
    *,
    vote: Vote = "label",
    trees: int = 50,
    executor: Executor | None = None,
) -> ForestModel:
    """Grow a forest that draws the root of the number of attributes."""
    model = fit(Forest(base, trees, vote, "root", seed), table, executor=executor)
    assert isinstance(model, ForestModel)
    return model
