"""The engines, which fold a model's log into trees and an agenda.

ABC4.5 and E2M trees and the forest of many memories follow the log; other learners learn again from all evidence, in a
separate process (`quercus.server.growth.relearning`). An active tree selects the queries: the model of another
learner has one beside it for this. The forest of many memories selects its queries itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pkgutil import resolve_name
from typing import Protocol

from quercus.server.growth.grown_trees import GrownTrees
from quercus.server.growth.saved_columns import SavedEngine
from quercus.server.growth.tree_engine import ActiveTreeEngine, IncrementalEngine, as_active
from quercus.specification.model import Specification
from quercus.storage import Event, InstanceColumns
from quercus.trees import Abc45, AccuracyBlock, Query, SplitName


class QueryEngine(Protocol):
    """Folds the log of one model and selects queries."""

    @property
    def strategy_name(self) -> str:
        """Name of the strategy that chooses."""

    def fold_events(self, parts: Sequence[InstanceColumns | Event]) -> None:
        """Take the next part of the log."""

    def choose_queries(self, limit: int) -> tuple[tuple[int, Query], ...]:
        """Return up to `limit` queries, each with the sequence of its instance."""

    def saved_state(self) -> SavedEngine | None:
        """Return the folded state, to be saved; None if it cannot be saved."""

    def restore_state(self, saved: SavedEngine) -> None:
        """Continue from a saved state, before anything is folded; ``ValueError`` if it does not fit."""

    def named_splits(self, vocabulary: Mapping[int, Sequence[str]]) -> tuple[SplitName, ...]:
        """Return the names of the splits, which queries name by number."""


class TreeEngine(QueryEngine, Protocol):
    """An engine whose trees follow the log."""

    def grown_trees(self, vocabulary: Mapping[int, Sequence[str]]) -> GrownTrees:
        """Return the trees of the folded events; `vocabulary` names the learned nominal values by attribute."""

    @property
    def accuracy(self) -> tuple[AccuracyBlock, ...]:
        """Accuracy of its trees on rows whose label came later, in blocks, the oldest first."""

    @property
    def is_settled(self) -> bool | None:
        """True if the active tree is settled; None if it asks regardless."""

    def resume_accuracy(self, accuracy: tuple[AccuracyBlock, ...]) -> None:
        """Continue from the counts of an earlier grower."""


def learns_again(specification: Specification) -> bool:
    """Return whether the learner learns from all evidence each time; others follow the log."""
    return not specification.algorithm.engine


def tree_engine(specification: Specification) -> TreeEngine:
    """Return the engine of a new model whose trees follow the log."""
    engine: TreeEngine = resolve_name(specification.algorithm.engine)(specification)
    return engine


def query_engine(specification: Specification) -> QueryEngine:
    """Return the engine that asks for a new model whose learner learns again."""
    return ActiveTreeEngine(specification)


def at_level_one(specification: Specification) -> Specification:
    """Return the specification of the active tree that an E2M tree is."""
    return replace(specification, alpha=1.0, algorithm=Abc45())


class ActiveE2mEngine:
    """An E2M tree that is asked for by an active tree beside it, which follows the same log.

    Parameters
    ----------
    specification : specification of the model; the active tree has its level, strategy and budget.
    """

    def __init__(self, specification: Specification) -> None:
        self._specification = specification
        self._learner = IncrementalEngine(specification, at_level_one)
        self._active_tree = IncrementalEngine(specification, as_active)

    def fold_events(self, parts: Sequence[InstanceColumns | Event]) -> None:
        """Take the next part of the log."""
        self._learner.fold_events(parts)
        self._active_tree.fold_events(parts)

    def grown_trees(self, vocabulary: Mapping[int, Sequence[str]]) -> GrownTrees:
        """Return the E2M tree."""
        return self._learner.grown_trees(vocabulary)

    @property
    def accuracy(self) -> tuple[AccuracyBlock, ...]:
        """Accuracy of the E2M trees on rows whose label came later, in blocks, the oldest first."""
        return self._learner.accuracy

    def resume_accuracy(self, accuracy: tuple[AccuracyBlock, ...]) -> None:
        """Continue from the counts of an earlier grower."""
        self._learner.resume_accuracy(accuracy)

    @property
    def is_settled(self) -> bool | None:
        """True if the active tree is settled; None if it asks regardless."""
        return self._active_tree.is_settled

    @property
    def strategy_name(self) -> str:
        """Name of the strategy that chooses."""
        return self._active_tree.strategy_name

    def choose_queries(self, limit: int) -> tuple[tuple[int, Query], ...]:
        """Return up to `limit` queries of the active tree, each with the sequence of its instance."""
        return self._active_tree.choose_queries(limit)

    def named_splits(self, vocabulary: Mapping[int, Sequence[str]]) -> tuple[SplitName, ...]:
        """Return the names of the splits of the active tree."""
        return self._active_tree.named_splits(vocabulary)

    def saved_state(self) -> SavedEngine | None:
        """Return the folded state, to be saved."""
        learner, active_tree = self._learner.saved_state(), self._active_tree.saved_state()
        if learner is None or active_tree is None:
            return None
        return learner.under_name("learner").merged_with(active_tree.under_name("adviser"))

    def restore_state(self, saved: SavedEngine) -> None:
        """Continue from a saved state, both trees or neither."""
        learner = IncrementalEngine(self._specification, at_level_one)
        active_tree = IncrementalEngine(self._specification, as_active)
        learner.restore_state(saved.part_named("learner"))
        active_tree.restore_state(saved.part_named("adviser"))
        learner.resume_accuracy(self._learner.accuracy)
        self._learner, self._active_tree = learner, active_tree
