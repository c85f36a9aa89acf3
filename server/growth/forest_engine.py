"""The forest of many memories as the grower holds it: it follows the log, and asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from quercus.belief.codec import decode_contours
from quercus.server.growth.grown_trees import GrownTrees
from quercus.server.growth.log_events import LabelUpdate
from quercus.server.growth.saved_columns import SavedEngine
from quercus.server.growth.tree_engine import ActiveTreeEngine
from quercus.specification.model import Specification
from quercus.storage import Event, InstanceColumns
from quercus.trees import (
    AccuracyBlock,
    ActiveForest,
    AverageConfidence,
    MemoryForest,
    Query,
    SavedForest,
    TreeModel,
    forest_of,
    grow,
    restore_forest,
    saved_forest,
    served_forest,
    spread_rows,
)


class ForestEngine(ActiveTreeEngine):
    """The forest of a log, and an active tree of the same log beside it, for people to read.

    Parameters
    ----------
    specification : specification of the model.
    """

    def __init__(self, specification: Specification) -> None:
        super().__init__(specification)
        self._forest = self._empty_forest()

    def _empty_forest(self) -> MemoryForest:
        specification = self._specification
        return forest_of(algorithm_of(specification), specification.attributes, specification.frame.size)

    def fold_events(self, parts: Sequence[InstanceColumns | Event]) -> None:
        """Take the next part of the log."""
        for entry in self._log.read_entries(parts):
            self._state = grow(self._state, [self._to_tree_event(entry)])
            self._update_forest(entry)

    def _update_forest(self, entry: InstanceColumns | LabelUpdate | Specification) -> None:
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

    def grown_trees(self, vocabulary: Mapping[int, Sequence[str]]) -> GrownTrees:
        """Return the forest of the folded events, with the tree."""
        grown = super().grown_trees(vocabulary)
        if not isinstance(grown.model, TreeModel):
            raise TypeError(f"{type(grown.model).__name__} is no tree")
        theta = self._forest.theta_of_rows(spread_rows(len(self._forest.evidence)))
        own = AverageConfidence.of(theta.argmax(axis=1), theta)
        return replace(grown, model=served_forest(self._forest, grown.model), confidence=own)

    @property
    def accuracy(self) -> tuple[AccuracyBlock, ...]:
        """Accuracy of the forest on the last labelled rows: a function of the log, whenever the forest was grown."""
        return self._forest.accuracy

    def saved_state(self) -> SavedEngine | None:
        """Return the folded state, to be saved; None if the forest must be grown first."""
        forest, tree = saved_forest(self._forest), super().saved_state()
        if forest is None or tree is None:
            return None
        begun = [forest.begun, forest.piece_begun]
        mine = SavedEngine({"begun": begun}, forest.columns, SavedForest.GROWING)
        return tree.under_name("tree").merged_with(mine.under_name("forest"))

    def restore_state(self, saved: SavedEngine) -> None:
        """Continue from a saved state, forest and tree or neither."""
        tree, mine = saved.part_named("tree"), saved.part_named("forest")
        forest = self._empty_forest()
        begun, piece_begun = map(int, mine.head["begun"])
        restore_forest(forest, SavedForest(begun, piece_begun, mine.columns))
        if len(forest.evidence) != len(tree.columns["sequences"]):
            raise ValueError(
                f"the forest has {len(forest.evidence)} rows, the tree {len(tree.columns['sequences'])}"
            )
        super().restore_state(tree)
        forest.level = algorithm_of(self._specification).prediction_level
        self._forest = forest

    def choose_queries(self, limit: int) -> tuple[tuple[int, Query], ...]:
        """Return up to `limit` queries, each with the sequence of its instance."""
        queries = self._state.agenda(limit, forest=self._forest, strategy=self._specification.strategy)
        return tuple((self._log.sequence_of(query.instance), query) for query in queries)


def algorithm_of(specification: Specification) -> ActiveForest:
    """Return the forest that a specification names."""
    if not isinstance(specification.algorithm, ActiveForest):
        raise TypeError(f"{specification.algorithm.name} is no {ActiveForest.name}")
    return specification.algorithm
