"""The forest of many memories as the grower holds it: it follows the log, and asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from quercus.belief.codec import decode_contours
from quercus.server.growth.grown_trees import GrownTrees
from quercus.server.growth.log_events import LabelUpdate
from quercus.server.growth.saved_columns import SavedEngine
from quercus.server.growth.tree_engine import IncrementalEngine, as_active
from quercus.specification.algorithms import ActiveForest
from quercus.specification.model import Specification
from quercus.storage import Event, InstanceColumns
from quercus.trees import (
    AccuracyBlock,
    MemoryForest,
    Query,
    SavedForest,
    TreeModel,
    forest_of,
    forest_queries,
    grow,
    restore_forest,
    saved_forest,
    served_forest,
)


class ForestEngine(IncrementalEngine):
    """The forest of a log, and an active tree of the same log beside it, for people to read.

    Parameters
    ----------
    specification : specification of the model.
    """

    def __init__(self, specification: Specification) -> None:
        super().__init__(specification, as_active)
        self._forest = self._empty()

    def _empty(self) -> MemoryForest:
        specification = self._specification
        return forest_of(algorithm_of(specification), specification.attributes, specification.frame.size)

    def fold(self, parts: Sequence[InstanceColumns | Event]) -> None:
        """Take the next part of the log."""
        for entry in self._log.read(parts):
            self._state = grow(self._state, [self._event(entry)])
            self._follow(entry)

    def _follow(self, entry: InstanceColumns | LabelUpdate | Specification) -> None:
        """Update the forest; the label of a row is the one that the tree has."""
        match entry:
            case InstanceColumns():
                self._forest.observe(
                    entry.values, decode_contours(entry.labels, self._specification.frame.size)
                )
            case Specification():
                self._forest.level = algorithm_of(entry).prediction_level
            case LabelUpdate(row):
                self._forest.replace_contour(row, self._state.contour(row))

    def grown(self, vocabulary: Mapping[int, Sequence[str]]) -> GrownTrees:
        """Return the forest of the folded events, with the tree."""
        grown = super().grown(vocabulary)
        if not isinstance(grown.model, TreeModel):
            raise TypeError(f"{type(grown.model).__name__} is no tree")
        return replace(grown, model=served_forest(self._forest, grown.model))

    @property
    def accuracy(self) -> tuple[AccuracyBlock, ...]:
        """Accuracy of the forest on the last labelled rows: a function of the log, whenever the forest was grown."""
        return self._forest.accuracy

    def saved(self) -> SavedEngine | None:
        """Return the folded state, to be saved; None if the forest must be grown first."""
        forest, tree = saved_forest(self._forest), super().saved()
        if forest is None or tree is None:
            return None
        begun = [forest.begun, forest.piece_begun]
        mine = SavedEngine({"begun": begun}, forest.columns, SavedForest.GROWING)
        return tree.named("tree").beside(mine.named("forest"))

    def restore(self, saved: SavedEngine) -> None:
        """Continue from a saved state, forest and tree or neither."""
        tree, mine = saved.of("tree"), saved.of("forest")
        forest = self._empty()
        begun, piece_begun = map(int, mine.head["begun"])
        restore_forest(forest, SavedForest(begun, piece_begun, mine.columns))
        if len(forest.evidence) != len(tree.columns["sequences"]):
            raise ValueError(
                f"the forest has {len(forest.evidence)} rows, the tree {len(tree.columns['sequences'])}"
            )
        super().restore(tree)
        forest.level = algorithm_of(self._specification).prediction_level
        self._forest = forest

    def agenda(self, limit: int) -> tuple[tuple[int, Query], ...]:
        """Return up to `limit` queries, each with the sequence of its instance."""
        most = self._state.left_to_ask(limit)
        if most <= 0:
            return ()
        queries = forest_queries(
            self._forest, self._state.context(), most, strategy=self._specification.strategy
        )
        found = islice(queries, most)
        return tuple((self._log.sequence(query.instance), query) for query in found)


def algorithm_of(specification: Specification) -> ActiveForest:
    """Return the forest that a specification names."""
    if not isinstance(specification.algorithm, ActiveForest):
        raise TypeError(f"{specification.algorithm.name} is no {ActiveForest.name}")
    return specification.algorithm
