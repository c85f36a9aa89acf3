"""What folds a model's log into trees and an agenda.

ABC4.5 and E2M trees follow the log; other learners learn again from all evidence. Queries are chosen by an active
tree: a model of another learner has one beside it, which asks for it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from quercus.belief.codec import decode, decode_contours
from quercus.belief.label import contour
from quercus.proto.v1 import model_pb2
from quercus.server.convert_agenda import decode_asked
from quercus.server.convert_instances import APART
from quercus.server.convert_models import decode_specification
from quercus.storage.records import Event, EventKind, Rows
from quercus.trees import algorithms, stream
from quercus.trees.encoding import THRESHOLD_SIDES, Edges, SplitName, branch_names, split_names
from quercus.trees.learners.predicting import Learned, TreeModel
from quercus.trees.query import Query
from quercus.trees.relearning import Evidence
from quercus.trees.specification import MISSING_NAME, Nominal, Specification

Names = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class Grown:
    """What an engine has grown.

    Attributes
    ----------
    specification : in force.
    model : the trees.
    edges : inner edges in force of each attribute; none where numbers are split at thresholds.
    names : branch names of each attribute.
    """

    specification: Specification
    model: Learned
    edges: Edges
    names: Names


class Engine(Protocol):
    """Folds the log of one model."""

    costly: bool
    """Whether growing costs the same however little is new."""

    def fold(self, parts: Sequence[Rows | Event]) -> None:
        """Take the next part of the log."""

    def grown(self, vocabulary: Mapping[int, Sequence[str]]) -> Grown:
        """Return the trees of what is folded; `vocabulary` names the nominal values learned by attribute."""


class Asking(Engine, Protocol):
    """An engine that also chooses whom to ask about."""

    @property
    def strategy(self) -> str:
        """Name of the strategy that chooses."""

    def agenda(self, limit: int) -> tuple[tuple[int, Query], ...]:
        """Return up to `limit` queries, each with the sequence of its instance."""

    def splits(self, vocabulary: Mapping[int, Sequence[str]]) -> tuple[SplitName, ...]:
        """Return what the splits are called that queries name by number."""


def engine_for(specification: Specification) -> Asking:
    """Return the engine of a new model."""
    match specification.algorithm:
        case algorithms.Abc45():
            return Incremental(specification, as_active)
        case algorithms.E2m(informed_only=False):
            return Advised(Incremental(specification, at_level_one), specification)
        case _:
            return Advised(Relearning(specification), specification)


def as_active(specification: Specification) -> Specification:
    """Return the specification of the active tree over the same evidence."""
    return replace(specification, algorithm=algorithms.Abc45())


def at_level_one(specification: Specification) -> Specification:
    """Return the specification of the active tree that an E2M tree is."""
    return replace(specification, alpha=1.0, algorithm=algorithms.Abc45())


class Incremental:
    """A tree that follows the log.

    Parameters
    ----------
    specification : of the model.
    followed : returns the specification of the active tree that grows, from the model's.
    """

    costly = False

    def __init__(
        self, specification: Specification, followed: Callable[[Specification], Specification]
    ) -> None:
        self._specification = specification
        self._followed = followed
        self._state = stream.GrowthState.initial(followed(specification))
        self._instances = array("q")  # sequence of each instance, by ordinal

    def fold(self, parts: Sequence[Rows | Event]) -> None:
        """Take the next part of the log."""
        size = self._specification.frame.size
        self._state = stream.grow(
            self._state, [event for part in parts if (event := self._convert(part, size)) is not None]
        )

    def grown(self, vocabulary: Mapping[int, Sequence[str]]) -> Grown:
        """Return the tree of what is folded."""
        state, specification = self._state, self._specification
        model = TreeModel(specification.attributes, specification.frame.size, state.flat, state.edges)
        return Grown(specification, model, state.edges, state.names(vocabulary))

    @property
    def strategy(self) -> str:
        """Name of the strategy that chooses."""
        return self._specification.strategy

    def agenda(self, limit: int) -> tuple[tuple[int, Query], ...]:
        """Return up to `limit` queries, each with the sequence of its instance."""
        return tuple((self._instances[query.instance], query) for query in self._state.agenda(limit))

    def splits(self, vocabulary: Mapping[int, Sequence[str]]) -> tuple[SplitName, ...]:
        """Return what the splits are called that queries name by number."""
        state = self._state
        return split_names(self._specification.attributes, state.edges, state.names(vocabulary))

    def _convert(self, part: Rows | Event, size: int) -> stream.Event | None:
        if isinstance(part, Event):
            return self._settled(part, size)
        self._instances.extend(range(part.first, part.first + len(part.labels)))
        return stream.Observed(part.values, decode_contours(part.labels, size))

    def _settled(self, event: Event, size: int) -> stream.Event | None:
        if event.kind is EventKind.SPECIFICATION:
            self._specification = specification_of(event.specification or b"")
            return stream.Respecified(self._followed(self._specification))
        if event.kind in APART:
            return None  # what several say together comes later
        ordinal = bisect_left(self._instances, event.instance)
        if event.kind is EventKind.CORRECTION:
            known = None if event.label is None else contour(decode(event.label, size), size)
            return stream.Corrected(ordinal, known, event.reliability)
        asked = decode_asked(event.asked or b"")
        if event.label is None:
            return stream.Refused(ordinal, asked)
        said = contour(decode(event.label, size), size)
        return stream.Answered(ordinal, said, event.reliability, asked)


class Advised:
    """A learner that is asked for by an active tree beside it, which follows the same log.

    Parameters
    ----------
    learner : what is served.
    specification : of the model; the active tree has its level, strategy and budget.
    """

    def __init__(self, learner: Engine, specification: Specification) -> None:
        self._learner = learner
        self._adviser = Incremental(specification, as_active)
        self.costly = learner.costly

    def fold(self, parts: Sequence[Rows | Event]) -> None:
        """Take the next part of the log."""
        self._learner.fold(parts)
        self._adviser.fold(parts)

    def grown(self, vocabulary: Mapping[int, Sequence[str]]) -> Grown:
        """Return the learner's trees."""
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


class Relearning:
    """A learner that learns again from all evidence."""

    costly = True

    def __init__(self, specification: Specification) -> None:
        self._evidence = Evidence(specification)
        self._instances = array("q")  # sequence of each instance, by ordinal

    def fold(self, parts: Sequence[Rows | Event]) -> None:
        """Take the next part of the log."""
        evidence = self._evidence
        size = evidence.specification.frame.size
        for part in parts:
            if isinstance(part, Event):
                self._settle(part, size)
                continue
            self._instances.extend(range(part.first, part.first + len(part.labels)))
            known = {data: decode(data, size) for data in set(part.labels)}
            evidence.observe(part.values, [known[data] for data in part.labels])

    def grown(self, vocabulary: Mapping[int, Sequence[str]]) -> Grown:
        """Return the trees of what is folded."""
        specification = self._evidence.specification
        edges: Edges = ((),) * len(specification.attributes)
        return Grown(specification, self._evidence.learn(), edges, _names(specification, vocabulary))

    def _settle(self, event: Event, size: int) -> None:
        if event.kind is EventKind.SPECIFICATION:
            self._evidence.specification = specification_of(event.specification or b"")
            return
        ordinal = bisect_left(self._instances, event.instance)
        if event.kind is EventKind.CORRECTION:
            label = None if event.label is None else decode(event.label, size)
            self._evidence.correct(ordinal, label, event.reliability)
        elif event.label is not None and event.kind not in APART:
            self._evidence.answer(ordinal, decode(event.label, size), event.reliability)


def specification_of(data: bytes) -> Specification:
    """Return a stored specification."""
    return decode_specification(model_pb2.Specification.FromString(data))


def _names(specification: Specification, vocabulary: Mapping[int, Sequence[str]]) -> Names:
    """Return the names of the branches of trees that split nominal attributes by value, numbers at thresholds.

    Those of belief-entropy trees are classes: a row goes where its value is densest.
    """
    algorithm = specification.algorithm
    base = algorithm.base if isinstance(algorithm, algorithms.Forest) else algorithm
    if isinstance(base, algorithms.BeliefEntropy):
        return (tuple(f"like {name}" for name in specification.frame.classes),) * len(
            specification.attributes
        )
    return tuple(
        branch_names((attribute,), ((),), {0: vocabulary.get(k, ())})[0]
        if isinstance(attribute, Nominal)
        else (*THRESHOLD_SIDES, MISSING_NAME)
        for k, attribute in enumerate(specification.attributes)
    )
