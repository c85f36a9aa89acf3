"""The forest of many memories as the grower holds it: it follows the log, and asks by itself."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from quercus.belief.codec import decode_contours
from quercus.server.growth.grown_trees import GrownTrees, specification_of
from quercus.server.growth.tree_engine import Incremental, as_active
from quercus.server.wire.instances import APART
from quercus.specification.algorithms import ActiveForest
from quercus.specification.model import Specification
from quercus.storage.records import Event, EventKind, InstanceColumns
from quercus.trees.ask.query import Query
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.memory_forest.publishing import forest_of, served
from quercus.trees.memory_forest.reasons import queries

STRATEGY = "forest-margin"
"""What its queries name as their strategy."""


class ForestEngine(Incremental):
    """The forest of a log, and an active tree of the same log beside it, for people to read.

    Parameters
    ----------
    specification : of the model.
    """

    def __init__(self, specification: Specification) -> None:
        super().__init__(specification, as_active)
        self._forest = forest_of(
            algorithm_of(specification), specification.attributes, specification.frame.size
        )

    def fold(self, parts: Sequence[InstanceColumns | Event]) -> None:
        """Take the next part of the log."""
        for part in parts:
            super().fold([part])
            if isinstance(part, Event):
                self._hear(part)
            else:
                size = self._specification.frame.size
                self._forest.observe(part.values, decode_contours(part.labels, size))

    def _hear(self, event: Event) -> None:
        """Take over what the tree now believes of the row that an event is about."""
        if event.kind is EventKind.SPECIFICATION:
            self._forest.level = algorithm_of(specification_of(event.specification or b"")).prediction_level
        elif event.kind not in APART and (event.label is not None or event.kind is EventKind.CORRECTION):
            row = bisect_left(self._instances, event.instance)
            self._forest.tell(row, self._state.contour(row))

    def grown(self, vocabulary: Mapping[int, Sequence[str]]) -> GrownTrees:
        """Return the forest of what is folded, with the tree."""
        grown = super().grown(vocabulary)
        if not isinstance(grown.model, TreeModel):
            raise TypeError(f"{type(grown.model).__name__} is no tree")
        return replace(grown, model=served(self._forest, grown.model))

    @property
    def strategy(self) -> str:
        """Name of the strategy that chooses."""
        return STRATEGY

    def agenda(self, limit: int) -> tuple[tuple[int, Query], ...]:
        """Return up to `limit` queries, each with the sequence of its instance."""
        most = self._state.left_to_ask(limit)
        if most <= 0:
            return ()
        found = islice(queries(self._forest, self._state.desk(), most), most)
        return tuple((self._instances[query.instance], query) for query in found)


def algorithm_of(specification: Specification) -> ActiveForest:
    """Return the forest that a specification names."""
    if not isinstance(specification.algorithm, ActiveForest):
        raise TypeError(f"{specification.algorithm.name} is no {ActiveForest.name}")
    return specification.algorithm
