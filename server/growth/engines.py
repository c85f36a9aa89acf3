"""Engines fold a model's log into trees and an agenda.

ABC4.5 and E2M trees follow the log; other learners learn again from all evidence, in a process of their own
(`quercus.server.growth.relearning`). Queries are chosen by an active tree: a model of another learner has one
beside it, which asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from quercus.belief.codec import decode_contours
from quercus.belief.label import contour
from quercus.server.growth.grown_trees import GrownTrees
from quercus.server.growth.log_events import Heard, LogEvents
from quercus.server.wire.agenda import decode_asked
from quercus.specification import algorithms
from quercus.specification.model import Specification
from quercus.storage import Event, InstanceColumns
from quercus.trees import (
    Answered,
    Corrected,
    GrowthState,
    Observed,
    Query,
    Refused,
    Respecified,
    SplitName,
    TreeModel,
    grow,
    split_names,
)


class QueryEngine(Protocol):
    """Folds the log of one model and selects queries."""

    @property
    def strategy(self) -> str:
        """Name of the strategy that chooses."""

    def fold(self, parts: Sequence[InstanceColumns | Event]) -> None:
        """Take the next part of the log."""

    def agenda(self, limit: int) -> tuple[tuple[int, Query], ...]:
        """Return up to `limit` queries, each with the sequence of its instance."""

    def splits(self, vocabulary: Mapping[int, Sequence[str]]) -> tuple[SplitName, ...]:
        """Return what the splits are called that queries name by number."""


class TreeEngine(QueryEngine, Protocol):
    """An engine whose trees follow the log."""

    def grown(self, vocabulary: Mapping[int, Sequence[str]]) -> GrownTrees:
        """Return the trees of what is folded; `vocabulary` names the nominal values learned by attribute."""


def learns_again(specification: Specification) -> bool:
    """Whether the learner learns again from all evidence, where others follow the log."""
    match specification.algorithm:
        case algorithms.Abc45() | algorithms.E2m(informed_only=False):
            return False
    return True


def tree_engine(specification: Specification) -> TreeEngine:
    """Return the engine of a new model whose trees follow the log."""
    if isinstance(specification.algorithm, algorithms.E2m):
        return AdvisedE2mEngine(specification)
    return IncrementalEngine(specification, as_active)


def query_engine(specification: Specification) -> QueryEngine:
    """Return the engine that asks for a new model whose learner learns again."""
    return IncrementalEngine(specification, as_active)


def as_active(specification: Specification) -> Specification:
    """Return the specification of the active tree over the same evidence."""
    return replace(specification, algorithm=algorithms.Abc45())


def at_level_one(specification: Specification) -> Specification:
    """Return the specification of the active tree that an E2M tree is."""
    return replace(specification, alpha=1.0, algorithm=algorithms.Abc45())


class IncrementalEngine:
    """A tree that follows the log.

    Parameters
    ----------
    specification : of the model.
    followed : returns the specification of the active tree that grows, from the model's.
    """

    def __init__(
        self, specification: Specification, followed: Callable[[Specification], Specification]
    ) -> None:
        self._specification = specification
        self._followed = followed
        self._state = GrowthState.initial(followed(specification))
        self._log = LogEvents(specification.frame.size)

    def fold(self, parts: Sequence[InstanceColumns | Event]) -> None:
        """Take the next part of the log."""
        self._state = grow(self._state, [self._event(said) for said in self._log.read(parts)])

    def grown(self, vocabulary: Mapping[int, Sequence[str]]) -> GrownTrees:
        """Return the tree of what is folded."""
        state, specification = self._state, self._specification
        model = TreeModel(specification.attributes, specification.frame.size, state.flat, state.edges)
        return GrownTrees(specification, model, state.edges, state.names(vocabulary))

    @property
    def strategy(self) -> str:
        """Name of the strategy that chooses."""
        return self._specification.strategy

    def agenda(self, limit: int) -> tuple[tuple[int, Query], ...]:
        """Return up to `limit` queries, each with the sequence of its instance."""
        return tuple((self._log.sequence(query.instance), query) for query in self._state.agenda(limit))

    def splits(self, vocabulary: Mapping[int, Sequence[str]]) -> tuple[SplitName, ...]:
        """Return what the splits are called that queries name by number."""
        state = self._state
        return split_names(self._specification.attributes, state.edges, state.names(vocabulary))

    def _event(
        self, said: InstanceColumns | Heard | Specification
    ) -> Observed | Answered | Refused | Corrected | Respecified:
        size = self._specification.frame.size
        match said:
            case InstanceColumns():
                return Observed(said.values, decode_contours(said.labels, size))
            case Specification():
                self._specification = said
                return Respecified(self._followed(said))
            case Heard():
                label, reliability, replaces = said.said
                known = None if label is None else contour(label, size)
                if replaces:
                    return Corrected(said.instance, known, reliability)
                asked = decode_asked(said.asked)
                if known is None:
                    return Refused(said.instance, asked)
                return Answered(said.instance, known, reliability, asked)


class AdvisedE2mEngine:
    """An E2M tree that is asked for by an active tree beside it, which follows the same log.

    Parameters
    ----------
    specification : of the model; the active tree has its level, strategy and budget.
    """

    def __init__(self, specification: Specification) -> None:
        self._learner = IncrementalEngine(specification, at_level_one)
        self._adviser = IncrementalEngine(specification, as_active)

    def fold(self, parts: Sequence[InstanceColumns | Event]) -> None:
        """Take the next part of the log."""
        self._learner.fold(parts)
        self._adviser.fold(parts)

    def grown(self, vocabulary: Mapping[int, Sequence[str]]) -> GrownTrees:
        """Return the E2M tree."""
        return self._learner.grown(vocabulary)

    @property
    def strategy(self) -> str:
        """Name of the strategy that chooses."""
        return self._adviser.strategy

    def agenda(self, limit: int) -> tuple[tuple[int, Query], ...]:
        """Return up to `limit` queries of the active tree, each with the sequence of its instance."""
        return self._adviser.agenda(limit)

    def splits(self, vocabulary: Mapping[int, Sequence[str]]) -> tuple[SplitName, ...]:
        """Return what the splits of the active tree are called."""
        return self._adviser.splits(vocabulary)
