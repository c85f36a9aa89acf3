"""Learners that learn again from all evidence: a model of the log up to an event, and of nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quercus.belief.codec import decode
from quercus.server.growth.grown_trees import GrownTrees, Names, specification_of
from quercus.server.growth.log_events import Heard, LogEvents
from quercus.server.wire.limits import GROWTH_BYTES, GROWTH_ROWS
from quercus.specification import algorithms
from quercus.specification.attributes import MISSING_NAME, Nominal
from quercus.specification.model import Specification
from quercus.storage import Event, InstanceColumns, Store
from quercus.trees import THRESHOLD_SIDES, Edges, Evidence, branch_names


@dataclass(frozen=True)
class LearningTask:
    """A learning task.

    Attributes
    ----------
    model, key : its id, and the number of the model that bears it.
    as_of : sequence of the last event to learn from.
    """

    model: str
    key: int
    as_of: int


class ReplacedError(Exception):
    """The model is gone; another may have its id."""


def learn_model(store: Store, task: LearningTask) -> tuple[bytes, int]:
    """Return the trees as they are stored, and how many nodes they have.

    Raises
    ------
    NotFound, ReplacedError
        When the model is gone.
    """
    record = store.get_model(task.model)
    if record.key != task.key:
        raise ReplacedError
    learner = RelearningEngine(specification_of(record.initial_specification))
    last = 0
    while last < task.as_of:
        rows = min(GROWTH_ROWS, task.as_of - last)
        segment = store.read_log(task.model, last, rows=rows, size_bytes=GROWTH_BYTES)
        if not segment.parts or store.get_model(task.model).key != task.key:
            raise ReplacedError
        learner.fold(segment.parts)
        last = segment.last
    grown = learner.grown(store.vocabulary(task.model))
    return grown.encode(), grown.node_count


class RelearningEngine:
    """A learner that learns again from all evidence."""

    def __init__(self, specification: Specification) -> None:
        self._evidence = Evidence(specification)
        self._log = LogEvents(specification.frame.size)

    def fold(self, parts: Sequence[InstanceColumns | Event]) -> None:
        """Take the next part of the log."""
        evidence = self._evidence
        for said in self._log.read(parts):
            match said:
                case InstanceColumns():
                    known = {
                        data: decode(data, evidence.specification.frame.size) for data in set(said.labels)
                    }
                    evidence.observe(said.values, [known[data] for data in said.labels])
                case Specification():
                    evidence.specification = said
                case Heard():
                    evidence.hear(said.instance, said.said)

    def grown(self, vocabulary: Mapping[int, Sequence[str]]) -> GrownTrees:
        """Return the trees of what is folded."""
        specification = self._evidence.specification
        edges: Edges = ((),) * len(specification.attributes)
        return GrownTrees(
            specification, self._evidence.learn(), edges, _branch_names_of(specification, vocabulary)
        )


def _branch_names_of(specification: Specification, vocabulary: Mapping[int, Sequence[str]]) -> Names:
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
