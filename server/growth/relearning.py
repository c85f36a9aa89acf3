"""Learners that learn again from all evidence: they make a model only from the log up to an event."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from quercus.belief.codec import decode
from quercus.belief.contour import is_vacuous
from quercus.server.growth.engines import (
    MAX_JUDGED_ROWS,
    GrownTrees,
    LabelUpdate,
    LogEvents,
    Names,
    SpecificationUpdate,
    full_attributes,
)
from quercus.server.wire.limits import GROWTH_BYTES, GROWTH_ROWS
from quercus.server.wire.models import first_specification, specification_of
from quercus.server.wire.reports import accuracy_in, encode_report
from quercus.server.wire.snapshots import is_readable
from quercus.server.wire.trees import TreeClassifier
from quercus.specification.attributes import MISSING_NAME, THRESHOLD_SIDES, Nominal
from quercus.specification.model import Specification
from quercus.storage import Event, InstanceColumns, Store
from quercus.trees import (
    AccuracyBlock,
    AverageConfidence,
    Edges,
    LearnedModel,
    LoggedEvidence,
    UncertainValues,
    branch_names,
    count_rows,
    spread_rows,
)


@dataclass(frozen=True)
class LearningTask:
    """A learning task.

    Attributes
    ----------
    model, key : id and key of the model.
    as_of : sequence of the last event to learn from.
    """

    model: str
    key: int
    as_of: int


class ReplacedError(Exception):
    """The model was deleted or replaced."""


class LearnedTrees(NamedTuple):
    """Learned trees.

    Attributes
    ----------
    snapshot : stored form of the trees.
    nodes : number of nodes of all trees.
    report : stored form of the report about the model.
    cost_s : CPU time of learning, in seconds.
    """

    snapshot: bytes
    nodes: int
    report: bytes
    cost_s: float


def learn_model(store: Store, task: LearningTask) -> LearnedTrees:
    """Learn a model, and count the accuracy of the previous trees on rows labelled since.

    Raises
    ------
    NotFound, ReplacedError
        If the model was deleted or replaced.
    """
    started = time.process_time()
    record = store.get_model(task.model)
    if record.key != task.key:
        raise ReplacedError
    learner = RelearningEngine(first_specification(record)[0])
    # the trees that are served, and the event up to which they were learned
    before: LearnedModel | None = None
    before_as_of = last = 0
    if record.tree_version and is_readable((newest := store.snapshot(record.name)).data):
        served = TreeClassifier.of(record.key, newest, specification_of(record.specification))
        before, before_as_of = served.model, newest.as_of
    while last < task.as_of:
        until = before_as_of if last < before_as_of else task.as_of
        rows = min(GROWTH_ROWS, until - last)
        segment = store.read_log(task.model, last, rows=rows, size_bytes=GROWTH_BYTES)
        if not segment.parts or store.get_model(task.model).key != task.key:
            raise ReplacedError
        if segment.extensions != record.shapes.extensions:  # extended meanwhile; the grower drops this task
            return learn_model(store, task)
        learner.fold_events(segment.parts)
        last = segment.last
        if last == before_as_of and before_as_of > record.shapes.since:
            learner.begin_counting(before)
    grown = learner.grown_trees(store.vocabulary(task.model))
    accuracy = learner.with_new_labels(accuracy_in(record.report))
    report = encode_report(
        accuracy,
        confidence=grown.confidence,
        other_names=grown.other_names,
        labelled_rows=learner.labelled_rows,
    )
    snapshot = grown.encode()
    return LearnedTrees(snapshot, grown.node_count, report, time.process_time() - started)


class RelearningEngine:
    """The engine of a learner that learns again from all evidence."""

    def __init__(self, specification: Specification) -> None:
        self._evidence = LoggedEvidence(specification)
        self._log = LogEvents(specification)
        self._judged: LearnedModel | None = None
        self._labelled = np.empty(0, np.bool_)  # rows that were informed when the model was learned
        self._asked: set[int] = set()  # rows about which a query was answered

    def begin_counting(self, model: LearnedModel | None) -> None:
        """Begin to count the accuracy of a model that was learned from the folded events."""
        self._judged, self._labelled = model, ~is_vacuous(self._evidence.contours())

    @property
    def labelled_rows(self) -> int:
        """Number of rows with a label that is not vacuous."""
        return int(np.count_nonzero(~is_vacuous(self._evidence.contours())))

    def with_new_labels(self, blocks: tuple[AccuracyBlock, ...]) -> tuple[AccuracyBlock, ...]:
        """Return the blocks of accuracy, updated with the rows labelled since `begin_counting`."""
        if self._judged is None:
            return blocks
        contours = self._evidence.contours()
        labelled = ~is_vacuous(contours)
        labelled[: len(self._labelled)] &= ~self._labelled
        rows = np.flatnonzero(labelled)[-MAX_JUDGED_ROWS:]
        if not rows.size:
            return blocks
        said = self._judged.predict_cells(self._evidence.cells.take(rows))
        return count_rows(blocks, said.klass, contours[rows], np.isin(rows, list(self._asked)))

    def fold_events(self, parts: Sequence[InstanceColumns | Event]) -> None:
        """Take the next part of the log."""
        evidence = self._evidence
        for entry in self._log.read_entries(parts):
            match entry:
                case InstanceColumns():
                    known = {
                        data: decode(data, evidence.specification.frame.size) for data in set(entry.labels)
                    }
                    evidence.observe(entry.values, [known[data] for data in entry.labels], entry.parts)
                case SpecificationUpdate(specification):
                    evidence.specification = specification
                case LabelUpdate():
                    if entry.asked:
                        self._asked.add(entry.instance)
                    evidence.add_label(entry.instance, entry.reported)

    def grown_trees(self, vocabulary: Mapping[int, Sequence[str]]) -> GrownTrees:
        """Return the trees of the folded events."""
        specification = self._evidence.specification
        edges: Edges = ((),) * len(specification.attributes)
        model, values = self._evidence.learn_model(), self._evidence.values
        said = model.predict_cells(UncertainValues(values[spread_rows(len(values))]))
        own = AverageConfidence.of(said.klass, said.pignistic)
        others = {
            each.name: int(np.count_nonzero(values[:, k] == each.most_values))
            for k, each in full_attributes(specification.attributes, vocabulary)
        }
        names = _branch_names_of(specification, model, vocabulary)
        return GrownTrees(specification, model, edges, names, own, others)


def _branch_names_of(
    specification: Specification, model: LearnedModel, vocabulary: Mapping[int, Sequence[str]]
) -> Names:
    """Return the branch names of trees that split nominal attributes by value, and numbers at thresholds.

    The branches of belief-entropy trees are classes: a row goes to the one where its value is densest.
    """
    if model.branches_are_classes:
        return (tuple(f"like {name}" for name in specification.frame.classes),) * len(
            specification.attributes
        )
    return tuple(
        branch_names((attribute,), ((),), {0: vocabulary.get(k, ())})[0]
        if isinstance(attribute, Nominal)
        else (*THRESHOLD_SIDES, MISSING_NAME)
        for k, attribute in enumerate(specification.attributes)
    )
