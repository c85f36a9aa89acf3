"""A tree that follows the log."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from quercus.belief.codec import decode, decode_contours
from quercus.belief.label import contour
from quercus.server.growth.grown_trees import GrownTrees, specification_of
from quercus.server.wire.agenda import decode_asked
from quercus.server.wire.instances import APART
from quercus.specification import algorithms
from quercus.specification.model import Specification
from quercus.storage.records import Event, EventKind, InstanceColumns
from quercus.trees.ask.query import Query
from quercus.trees.growth import stream
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.tree.encoding import SplitName, split_names


def as_active(specification: Specification) -> Specification:
    """Return the specification of the active tree over the same evidence."""
    return replace(specification, algorithm=algorithms.Abc45())


class Incremental:
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
        self._state = stream.GrowthState.initial(followed(specification))
        self._instances = array("q")  # sequence of each instance, by ordinal

    def fold(self, parts: Sequence[InstanceColumns | Event]) -> None:
        """Take the next part of the log."""
        size = self._specification.frame.size
        self._state = stream.grow(
            self._state, [event for part in parts if (event := self._convert(part, size)) is not None]
        )

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
        return tuple((self._instances[query.instance], query) for query in self._state.agenda(limit))

    def splits(self, vocabulary: Mapping[int, Sequence[str]]) -> tuple[SplitName, ...]:
        """Return what the splits are called that queries name by number."""
        state = self._state
        return split_names(self._specification.attributes, state.edges, state.names(vocabulary))

    def _convert(self, part: InstanceColumns | Event, size: int) -> stream.Event | None:
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
