"""Evidential decision trees: likelihood, intervals of entropy, growth, queries, learners.

``likelihood`` evidential likelihood, its maximiser, certified intervals of entropy
``rules``      the rules of a split: gain, dominance, significance
``growth``     trees from a sample (`batch`), and from a log (`stream`, `incremental`)
``tree``       a tree as a value: nodes, arrays, branch codes, names
``ask``        which label to ask for: queries, candidates, strategies
``learners``   the trees of the literature behind one interface
``memory_forest``  the forest of many memories: members, weights, queries

The names below are for use outside this package. Each is imported on first use.
"""

if __name__ != "quercus.trees":  # under another name every class would exist twice
    raise ImportError(f"import quercus.trees, not {__name__}")

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quercus.trees.ask.query import Query, QueryContext, QueryPosition
    from quercus.trees.ask.reasons import CHILD, Reason
    from quercus.trees.ask.strategies.absent import AbsentStrategy
    from quercus.trees.ask.strategies.leaf_queries import LeafRows
    from quercus.trees.ask.strategies.strategy import Strategy
    from quercus.trees.growth.abc45 import Induction, induce
    from quercus.trees.growth.sample import Sample
    from quercus.trees.growth.saved import SavedEvidence, restored_state, saved_evidence
    from quercus.trees.growth.stream import (
        Answered,
        Corrected,
        GrowthState,
        Observed,
        Refused,
        Respecified,
        grow,
    )
    from quercus.trees.learners.average_confidence import AverageConfidence, spread_rows
    from quercus.trees.learners.averaging import Averaging
    from quercus.trees.learners.belief_entropy import BeliefEntropy
    from quercus.trees.learners.c45 import C45
    from quercus.trees.learners.cells import Between, Range, UncertainValues, Value
    from quercus.trees.learners.conformal import Basis, Calibration, check_coverage
    from quercus.trees.learners.doubt import Doubt
    from quercus.trees.learners.drift import (
        RECENT_ROWS,
        REFERENCE_ROWS,
        STEP_ROWS,
        Drift,
        accuracy_fall,
        changed_attributes,
    )
    from quercus.trees.learners.entropy_model import BeliefEntropyModel, Rule
    from quercus.trees.learners.evidential import Abc45, E2m
    from quercus.trees.learners.forest import FORESTS, Forest, ForestModel, Share, Vote
    from quercus.trees.learners.id3 import Id3
    from quercus.trees.learners.learner import Learner, TreeLearner, fit
    from quercus.trees.learners.metrics import expected_accuracy, undominated, undominated_mask
    from quercus.trees.learners.one_against_rest import Combine, OneAgainstRest
    from quercus.trees.learners.predicting import LearnedModel, TreeModel
    from quercus.trees.learners.predictions import Predictions, RepeatedMasses, first_most_likely
    from quercus.trees.learners.recent_accuracy import AccuracyBlock, count_rows
    from quercus.trees.learners.relearning import LoggedEvidence
    from quercus.trees.learners.table import Table
    from quercus.trees.learners.total_uncertainty import TotalUncertainty
    from quercus.trees.learners.weights import repeat_rows
    from quercus.trees.likelihood.interval import entropy_interval, entropy_intervals
    from quercus.trees.memory_forest.asking import ChosenRow
    from quercus.trees.memory_forest.forest import MemoryForest
    from quercus.trees.memory_forest.learner import ActiveForest, forest_of
    from quercus.trees.memory_forest.publishing import served_forest
    from quercus.trees.memory_forest.saved import SavedForest, restore_forest, saved_forest
    from quercus.trees.memory_forest.strategies import Margin
    from quercus.trees.tree.encoding import (
        Edges,
        SplitName,
        branch_names,
        check_uncertain,
        check_values,
        cut_counts,
        split_names,
    )
    from quercus.trees.tree.flat import FlatTree
    from quercus.trees.tree.folding import FoldedTree, fold_tree
    from quercus.trees.tree.names import TreeNames
    from quercus.trees.tree.node import Node

_PLACES = {
    "ask.query": ["Query", "QueryContext", "QueryPosition"],
    "ask.reasons": ["CHILD", "Reason"],
    "ask.strategies.leaf_queries": ["LeafRows"],
    "ask.strategies.absent": ["AbsentStrategy"],
    "ask.strategies.strategy": ["Strategy"],
    "growth.abc45": ["Induction", "induce"],
    "growth.sample": ["Sample"],
    "growth.saved": ["SavedEvidence", "restored_state", "saved_evidence"],
    "growth.stream": ["Answered", "Corrected", "GrowthState", "Observed", "Refused", "Respecified", "grow"],
    "learners.average_confidence": ["AverageConfidence", "spread_rows"],
    "learners.averaging": ["Averaging"],
    "learners.belief_entropy": ["BeliefEntropy"],
    "learners.c45": ["C45"],
    "learners.cells": ["Between", "Range", "UncertainValues", "Value"],
    "learners.conformal": ["Basis", "Calibration", "check_coverage"],
    "learners.doubt": ["Doubt"],
    "learners.drift": [
        "RECENT_ROWS",
        "REFERENCE_ROWS",
        "STEP_ROWS",
        "Drift",
        "accuracy_fall",
        "changed_attributes",
    ],
    "learners.entropy_model": ["BeliefEntropyModel", "Rule"],
    "learners.evidential": ["Abc45", "E2m"],
    "learners.forest": ["FORESTS", "Forest", "ForestModel", "Share", "Vote"],
    "learners.id3": ["Id3"],
    "learners.learner": ["Learner", "TreeLearner", "fit"],
    "learners.metrics": ["expected_accuracy", "undominated", "undominated_mask"],
    "learners.one_against_rest": ["Combine", "OneAgainstRest"],
    "learners.predicting": ["LearnedModel", "TreeModel"],
    "learners.predictions": ["Predictions", "RepeatedMasses", "first_most_likely"],
    "learners.recent_accuracy": ["AccuracyBlock", "count_rows"],
    "learners.relearning": ["LoggedEvidence"],
    "learners.table": ["Table"],
    "learners.total_uncertainty": ["TotalUncertainty"],
    "learners.weights": ["repeat_rows"],
    "likelihood.interval": ["entropy_interval", "entropy_intervals"],
    "memory_forest.asking": ["ChosenRow"],
    "memory_forest.forest": ["MemoryForest"],
    "memory_forest.learner": ["ActiveForest", "forest_of"],
    "memory_forest.publishing": ["served_forest"],
    "memory_forest.saved": ["SavedForest", "restore_forest", "saved_forest"],
    "memory_forest.strategies": ["Margin"],
    "tree.encoding": [
        "Edges",
        "SplitName",
        "branch_names",
        "check_uncertain",
        "check_values",
        "cut_counts",
        "split_names",
    ],
    "tree.flat": ["FlatTree"],
    "tree.folding": ["FoldedTree", "fold_tree"],
    "tree.names": ["TreeNames"],
    "tree.node": ["Node"],
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

__all__ = [
    "C45",
    "CHILD",
    "FORESTS",
    "RECENT_ROWS",
    "REFERENCE_ROWS",
    "STEP_ROWS",
    "Abc45",
    "AbsentStrategy",
    "AccuracyBlock",
    "ActiveForest",
    "Answered",
    "AverageConfidence",
    "Averaging",
    "Basis",
    "BeliefEntropy",
    "BeliefEntropyModel",
    "Between",
    "Calibration",
    "ChosenRow",
    "Combine",
    "Corrected",
    "Doubt",
    "Drift",
    "E2m",
    "Edges",
    "FlatTree",
    "FoldedTree",
    "Forest",
    "ForestModel",
    "GrowthState",
    "Id3",
    "Induction",
    "LeafRows",
    "LearnedModel",
    "Learner",
    "LoggedEvidence",
    "Margin",
    "MemoryForest",
    "Node",
    "Observed",
    "OneAgainstRest",
    "Predictions",
    "Query",
    "QueryContext",
    "QueryPosition",
    "Range",
    "Reason",
    "Refused",
    "RepeatedMasses",
    "Respecified",
    "Rule",
    "Sample",
    "SavedEvidence",
    "SavedForest",
    "Share",
    "SplitName",
    "Strategy",
    "Table",
    "TotalUncertainty",
    "TreeLearner",
    "TreeModel",
    "TreeNames",
    "UncertainValues",
    "Value",
    "Vote",
    "accuracy_fall",
    "branch_names",
    "changed_attributes",
    "check_coverage",
    "check_uncertain",
    "check_values",
    "count_rows",
    "cut_counts",
    "entropy_interval",
    "entropy_intervals",
    "expected_accuracy",
    "first_most_likely",
    "fit",
    "fold_tree",
    "forest_of",
    "grow",
    "induce",
    "repeat_rows",
    "restore_forest",
    "restored_state",
    "saved_evidence",
    "saved_forest",
    "served_forest",
    "split_names",
    "spread_rows",
    "undominated",
    "undominated_mask",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that a server which only reads trees does not load the learners."""
    if name not in _PLACE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
