"""The engines, which fold a model's log into trees and an agenda.

ABC4.5 and E2M trees and the forest of many memories follow the log; other learners learn again from all evidence, in a
separate process (`quercus.server.growth.relearning`). Queries are chosen by an active tree, which other learners have
beside them for this purpose; the forest of many memories chooses its queries itself.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pkgutil import resolve_name
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quercus.belief.codec import decode_contours
from quercus.belief.contour import is_vacuous
from quercus.belief.evidence import ReportedLabel
from quercus.belief.label import Label, contour
from quercus.labelling.history import reported_label
from quercus.server.growth.saved_columns import SavedEngine
from quercus.server.wire import snapshots
from quercus.server.wire.agenda import decode_asked, encode_asked
from quercus.server.wire.models import attribute_count, specification_of
from quercus.server.wire.trees import encode_head
from quercus.specification.attributes import Attribute, Nominal
from quercus.specification.model import Specification
from quercus.specification.parameters import BUCKET
from quercus.specification.strategies import chosen_strategy
from quercus.storage import Event, EventKind, InstanceColumns
from quercus.trees import (
    RECENT_ROWS,
    REFERENCE_ROWS,
    STEP_ROWS,
    Abc45,
    AccuracyBlock,
    ActiveForest,
    Answered,
    AverageConfidence,
    Corrected,
    Drift,
    Edges,
    GrowthState,
    LearnedModel,
    MemoryForest,
    Observed,
    Query,
    Refused,
    Respecified,
    SavedEvidence,
    SavedForest,
    SplitName,
    TreeModel,
    accuracy_fall,
    changed_attributes,
    count_rows,
    forest_of,
    grow,
    restore_forest,
    restored_state,
    saved_evidence,
    saved_forest,
    served_forest,
    split_names,
    spread_rows,
)

MAX_JUDGED_ROWS: Final = 2_000
"""Most rows of a part of the log whose predictions are counted; the blocks of accuracy would not keep more."""


def learns_again(specification: Specification) -> bool:
    """Return whether the learner learns again from all evidence each time, instead of following the log."""
    return not specification.learner.engine


def tree_engine(specification: Specification, attributes: int | None = None) -> TreeEngine:
    """Return the engine of a new model whose trees follow the log.

    Parameters
    ----------
    specification : that of the model, with all attributes and classes that it has now.
    attributes : number of attributes before the first event; None for all.
    """
    engine: TreeEngine = resolve_name(specification.learner.engine)(specification, attributes)
    return engine


def as_active(specification: Specification) -> Specification:
    """Return the specification of the active tree on the same evidence. Beside a forest, it asks no queries."""
    is_asked = specification.learner.asks == "tree"
    strategy = chosen_strategy(specification.strategy if is_asked else None, "tree")
    return replace(specification, learner=Abc45(), strategy=strategy)


def at_level_one(specification: Specification) -> Specification:
    """Return the specification of an E2M tree as an active tree of level 1."""
    return replace(specification, alpha=1.0, learner=Abc45())


Names = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class GrownTrees:
    """The trees of an engine.

    Attributes
    ----------
    specification : the specification in force.
    model : the trees.
    edges : inner bin edges of each attribute; empty if numbers are split at thresholds.
    names : branch names of each attribute.
    confidence : the trees' own confidence on the rows of the log; None without rows.
    other_names : number of rows with a name beyond the limit of an attribute, by attribute.
    """

    specification: Specification
    model: LearnedModel
    edges: Edges
    names: Names
    confidence: AverageConfidence | None = None
    other_names: Mapping[str, int] = field(default_factory=dict)

    @property
    def node_count(self) -> int:
        """Number of nodes of all trees."""
        return sum(flat.size for flat in self.model.flat_trees)

    def encode(self) -> bytes:
        """Return the stored form, see `quercus.server.wire.snapshots`."""
        return snapshots.encode_snapshot(encode_head(self.specification, self.edges, self.names), self.model)


def full_attributes(
    attributes: Sequence[Attribute], vocabulary: Mapping[int, Sequence[str]]
) -> Iterator[tuple[int, Nominal]]:
    """Yield the attributes, with their positions, that have all the names they may, so that a bucket takes others."""
    for k, each in enumerate(attributes):
        if not isinstance(each, Nominal) or each.overflow != BUCKET:
            continue
        if len(each.values) + len(vocabulary.get(k, ())) >= each.most_values:
            yield k, each


class LabelUpdate(NamedTuple):
    """An event about the label of an instance.

    Attributes
    ----------
    instance : ordinal of the instance.
    reported : the label that the event reports.
    asked : `AgendaEntry.asked` of the query that the event settles; empty if there is none.
    """

    instance: int
    reported: ReportedLabel[Label]
    asked: bytes


class SpecificationUpdate(NamedTuple):
    """A specification in force from now on, with the attributes and classes of the whole log.

    Attributes
    ----------
    specification : the new specification.
    attributes : number of attributes that exist by now.
    """

    specification: Specification
    attributes: int


class LogEvents:
    """The events of one log, and its instances so far.

    Parameters
    ----------
    specification : that of the model, with the attributes and classes of the whole log.
    """

    def __init__(self, specification: Specification) -> None:
        self._whole = specification
        self._size = specification.frame.size
        self._instances = array("q")  # sequence of each instance, by ordinal
        self.specification = b""
        """The stored specification of the newest SPECIFICATION event; empty if there was none."""

    def sequence_of(self, instance: int) -> int:
        """Return the sequence of an instance."""
        return self._instances[instance]

    @property
    def sequences(self) -> NDArray[np.int64]:
        """The sequence of each instance, by ordinal."""
        return np.array(self._instances, np.int64)  # a copy, because a view would keep the array from growing

    def restore_instances(self, sequences: NDArray[np.int64], specification: bytes) -> None:
        """Continue after these instances."""
        self._instances = array("q", sequences.tobytes())
        self.specification = specification

    def read_specification(self, data: bytes) -> SpecificationUpdate:
        """Return a stored specification."""
        found = specification_of(data, like=self._whole)
        return SpecificationUpdate(found, attribute_count(data))

    def read_entries(
        self, parts: Sequence[InstanceColumns | Event]
    ) -> Iterator[InstanceColumns | LabelUpdate | SpecificationUpdate]:
        """Yield the next part of the log: rows, label events, and new specifications."""
        for part in parts:
            if isinstance(part, InstanceColumns):
                self._instances.extend(range(part.first, part.first + len(part.labels)))
                yield part
            elif part.kind is EventKind.SPECIFICATION:
                self.specification = part.specification or b""
                yield self.read_specification(self.specification)
            elif (reported := reported_label(part, self._size)) is not None:
                yield LabelUpdate(bisect_left(self._instances, part.instance), reported, part.asked or b"")


class TreeEngine:
    """An active tree that follows the log, and chooses queries.

    Parameters
    ----------
    specification, attributes : see `tree_engine`.
    followed : returns the specification of the tree for that of the model.
    """

    def __init__(
        self,
        specification: Specification,
        attributes: int | None = None,
        followed: Callable[[Specification], Specification] = as_active,
    ) -> None:
        self._specification = specification
        self._attributes = attributes
        self._followed = followed
        self._state = GrowthState.initial(followed(specification), attributes)
        self._log = LogEvents(specification)
        self._grown: TreeModel | None = None  # the last tree, whose predictions for the next rows are counted
        self._accuracy: tuple[AccuracyBlock, ...] = ()
        # the cached `changed_attributes`, with the end of the rows and the edges that they were computed for
        self._changed: tuple[object, list[tuple[int, float]]] = None, []

    def fold_events(self, parts: Sequence[InstanceColumns | Event]) -> None:
        """Take the next part of the log."""
        events = [self._to_tree_event(entry) for entry in self._log.read_entries(parts)]
        first = self._state.instance_count
        heard = {event.instance for event in events if isinstance(event, Answered | Corrected)}
        unlabelled = [row for row in sorted(heard) if row < first and is_vacuous(self._state.contour(row))]
        self._state = state = grow(self._state, events)
        # as long as the bins of numbers still change, codes before and after differ, and nothing is counted
        if self._grown is None or self._grown.edges != state.edges:
            return
        sample = state.evidence
        rows = np.append(np.array(unlabelled, np.int64), np.arange(first, state.instance_count))
        rows = rows[~sample.table.vacuous[sample.ids[rows]]][-MAX_JUDGED_ROWS:]
        if rows.size:
            codes, flat = sample.codes[rows], self._grown.flat
            ends = flat.route(codes, _numbers_of(codes, state.edges))
            contours = sample.table.contours[sample.ids[rows]]
            asked = np.isin(rows, [event.instance for event in events if isinstance(event, Answered)])
            self._accuracy = count_rows(self._accuracy, flat.klass[ends], contours, asked)

    @property
    def accuracy(self) -> tuple[AccuracyBlock, ...]:
        """Accuracy of the trees on rows whose label came later, in blocks, oldest first."""
        return self._accuracy

    @property
    def labelled_rows(self) -> int:
        """Number of rows with a label that is not vacuous."""
        sample = self._state.evidence
        return int(np.count_nonzero(~sample.table.vacuous[sample.ids]))

    def resume_accuracy(self, accuracy: tuple[AccuracyBlock, ...]) -> None:
        """Continue from the counts of an earlier grower."""
        self._accuracy = accuracy

    @property
    def changed_attributes(self) -> list[tuple[int, float]]:
        """Attributes whose values have changed recently, by the folded rows."""
        count = self._state.instance_count
        end = count // STEP_ROWS * STEP_ROWS
        if self._changed[0] != (end, self._state.edges):
            first = max(0, end - RECENT_ROWS - REFERENCE_ROWS)
            codes = self._state.evidence.codes[first:end]
            starts = np.maximum(self._state.attribute_starts - first, 0)
            self._changed = (end, self._state.edges), changed_attributes(codes, starts)
        return self._changed[1]

    @property
    def attribute_names(self) -> list[str]:
        """Names of the attributes."""
        return [each.name for each in self._specification.attributes]

    def find_drift(self, accuracy: Sequence[AccuracyBlock]) -> Drift:
        """Return recent changes of `accuracy`, that of this engine, and of attributes."""
        return Drift(accuracy_fall(accuracy), tuple(self.changed_attributes))

    def grown_trees(self, vocabulary: Mapping[int, Sequence[str]]) -> GrownTrees:
        """Return the trees of the folded events; `vocabulary` names the learned nominal values by attribute."""
        state, specification = self._state, self._specification
        model = TreeModel(specification.attributes, specification.frame.size, state.flat, state.edges)
        self._grown = model
        own = AverageConfidence.of_tree(state.flat)
        names, codes = state.names(vocabulary), state.evidence.codes
        others = {  # the last branch is the bucket
            each.name: int(np.count_nonzero(codes[:, k] == len(names[k]) - 1))
            for k, each in full_attributes(specification.attributes, vocabulary)
        }
        return GrownTrees(specification, model, state.edges, names, own, others)

    @property
    def strategy_name(self) -> str:
        """Name of the strategy that chooses queries."""
        return self._specification.strategy.name

    def choose_queries(self, limit: int) -> tuple[tuple[int, Query], ...]:
        """Return up to `limit` queries, each with the sequence of its instance."""
        return tuple((self._log.sequence_of(query.instance), query) for query in self._state.agenda(limit))

    def named_splits(self, vocabulary: Mapping[int, Sequence[str]]) -> tuple[SplitName, ...]:
        """Return the names of the splits, which queries refer to by number."""
        state = self._state
        return split_names(self._specification.attributes, state.edges, state.names(vocabulary))

    def saved_state(self) -> SavedEngine | None:
        """Return the state for saving; None if it cannot be saved now."""
        evidence = saved_evidence(self._state)
        head = {
            "specification": self._log.specification.hex(),
            "answers": evidence.answers,
            "asked": None if evidence.asked is None else encode_asked(evidence.asked).decode(),
        }
        return SavedEngine(head, {**evidence.columns, "sequences": self._log.sequences})

    def restore_state(self, saved: SavedEngine) -> None:
        """Continue from a saved state, before anything is folded; raise ``ValueError`` if it does not fit."""
        stored, asked = bytes.fromhex(saved.head["specification"]), saved.head["asked"]
        specification = self._log.read_specification(stored).specification if stored else self._specification
        evidence = SavedEvidence(
            int(saved.head["answers"]), None if asked is None else decode_asked(asked.encode()), saved.columns
        )
        state = restored_state(self._followed(specification), evidence)
        if len(saved.columns["sequences"]) != state.instance_count:
            raise ValueError(f"{state.instance_count} rows have {len(saved.columns['sequences'])} sequences")
        self._specification, self._state = specification, state
        self._log.restore_instances(saved.columns["sequences"], stored)

    def _to_tree_event(
        self, entry: InstanceColumns | LabelUpdate | SpecificationUpdate
    ) -> Observed | Answered | Refused | Corrected | Respecified:
        size = self._specification.frame.size
        match entry:
            case InstanceColumns():
                return Observed(entry.values, decode_contours(entry.labels, size), entry.parts)
            case SpecificationUpdate(specification, attributes):
                self._specification = specification
                return Respecified(self._followed(specification), attributes)
            case LabelUpdate():
                label, reliability, replaces = entry.reported
                known = None if label is None else contour(label, size)
                if replaces:
                    return Corrected(entry.instance, known, reliability)
                asked = decode_asked(entry.asked)
                if known is None:
                    return Refused(entry.instance, asked)
                return Answered(entry.instance, known, reliability, asked)


def _numbers_of(codes: NDArray[np.integer], edges: Edges) -> NDArray[np.float64]:
    """Return a number from each bin (n, K), NaN if missing, for trees that split at thresholds.

    Examples
    --------
    >>> _numbers_of(np.array([[0], [1], [2], [3]]), ((1.5, 4.0),)).ravel().tolist()
    [-inf, 1.5, 4.0, nan]
    """
    found = np.zeros(codes.shape)
    for k, cuts in enumerate(edges):
        if cuts:
            of_bins = np.array([-np.inf, *cuts, np.nan])
            found[:, k] = of_bins[np.minimum(codes[:, k], len(cuts) + 1)]
    return found


class ActiveE2mEngine(TreeEngine):
    """An E2M tree, and beside it an active tree of the same log, which chooses queries.

    Parameters
    ----------
    specification, attributes : see `tree_engine`; the active tree has the model's level, strategy and budget.
    """

    def __init__(self, specification: Specification, attributes: int | None = None) -> None:
        super().__init__(specification, attributes)
        self._learner = TreeEngine(specification, attributes, at_level_one)

    def fold_events(self, parts: Sequence[InstanceColumns | Event]) -> None:
        """Take the next part of the log."""
        self._learner.fold_events(parts)
        super().fold_events(parts)

    def grown_trees(self, vocabulary: Mapping[int, Sequence[str]]) -> GrownTrees:
        """Return the E2M tree."""
        return self._learner.grown_trees(vocabulary)

    @property
    def accuracy(self) -> tuple[AccuracyBlock, ...]:
        """Accuracy of the E2M trees on rows whose label came later, in blocks, oldest first."""
        return self._learner.accuracy

    def resume_accuracy(self, accuracy: tuple[AccuracyBlock, ...]) -> None:
        """Continue from the counts of an earlier grower."""
        self._learner.resume_accuracy(accuracy)

    def saved_state(self) -> SavedEngine | None:
        """Return the state of both trees for saving; None if it cannot be saved now."""
        learner, adviser = self._learner.saved_state(), super().saved_state()
        if learner is None or adviser is None:
            return None
        return learner.under_name("learner").merged_with(adviser.under_name("adviser"))

    def restore_state(self, saved: SavedEngine) -> None:
        """Continue both trees from a saved state, or neither."""
        learner = TreeEngine(self._specification, self._attributes, at_level_one)
        learner.restore_state(saved.part_named("learner"))
        learner.resume_accuracy(self._learner.accuracy)
        super().restore_state(saved.part_named("adviser"))
        self._learner = learner


class ForestEngine(TreeEngine):
    """The forest of many memories, and beside it an active tree of the same log, for people to read."""

    def __init__(self, specification: Specification, attributes: int | None = None) -> None:
        super().__init__(specification, attributes)
        self._forest = self._empty_forest()

    def _empty_forest(self) -> MemoryForest:
        specification = self._specification
        size = specification.frame.size
        return forest_of(_forest_in(specification), specification.attributes, size, self._attributes)

    def fold_events(self, parts: Sequence[InstanceColumns | Event]) -> None:
        """Take the next part of the log; the forest takes the label of a row from the tree."""
        for entry in self._log.read_entries(parts):
            self._state = grow(self._state, [self._to_tree_event(entry)])
            match entry:
                case InstanceColumns():
                    size = self._specification.frame.size
                    self._forest.observe(entry.values, decode_contours(entry.labels, size), entry.parts)
                case SpecificationUpdate(specification, attributes):
                    self._forest.level = _forest_in(specification).prediction_level
                    self._forest.begin_attributes(attributes)
                case LabelUpdate(row):
                    self._forest.replace_contour(row, self._state.contour(row), asked=bool(entry.asked))

    def grown_trees(self, vocabulary: Mapping[int, Sequence[str]]) -> GrownTrees:
        """Return the forest together with the tree."""
        grown = super().grown_trees(vocabulary)
        if not isinstance(grown.model, TreeModel):
            raise TypeError(f"{type(grown.model).__name__} is not a tree")
        theta = self._forest.theta_of_rows(spread_rows(len(self._forest.evidence)))
        own = AverageConfidence.of(theta.argmax(axis=1), theta)
        return replace(grown, model=served_forest(self._forest, grown.model), confidence=own)

    @property
    def accuracy(self) -> tuple[AccuracyBlock, ...]:
        """Accuracy of the forest on the last labelled rows; it depends only on the log, not on when the forest grew."""
        return self._forest.accuracy

    def saved_state(self) -> SavedEngine | None:
        """Return the state for saving; None if the forest must be grown first."""
        forest, tree = saved_forest(self._forest), super().saved_state()
        if forest is None or tree is None:
            return None
        begun = [forest.begun, forest.piece_begun]
        mine = SavedEngine({"begun": begun}, forest.columns, SavedForest.GROWING)
        return tree.under_name("tree").merged_with(mine.under_name("forest"))

    def restore_state(self, saved: SavedEngine) -> None:
        """Continue forest and tree from a saved state, or neither."""
        tree, mine = saved.part_named("tree"), saved.part_named("forest")
        forest = self._empty_forest()
        begun, piece_begun = map(int, mine.head["begun"])
        restore_forest(forest, SavedForest(begun, piece_begun, mine.columns))
        if len(forest.evidence) != len(tree.columns["sequences"]):
            raise ValueError(
                f"the forest has {len(forest.evidence)} rows, the tree {len(tree.columns['sequences'])}"
            )
        super().restore_state(tree)
        forest.level = _forest_in(self._specification).prediction_level
        self._forest = forest

    def choose_queries(self, limit: int) -> tuple[tuple[int, Query], ...]:
        """Return up to `limit` queries, each with the sequence of its instance."""
        queries = self._state.agenda(limit, forest=self._forest, strategy=self._specification.strategy)
        return tuple((self._log.sequence_of(query.instance), query) for query in queries)


def _forest_in(specification: Specification) -> ActiveForest:
    if not isinstance(specification.learner, ActiveForest):
        raise TypeError(f"{specification.learner.name} is no {ActiveForest.name}")
    return specification.learner
