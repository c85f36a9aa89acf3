"""Replaying a log for one row: the predictions for the row, event by event, and the events that changed them.

Trees are a pure function of the log, so nothing is stored for this: the model is grown again. An event changed the
prediction if the models grown up to it and up to the event before differ in the likeliest class of the row, or in its
path.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from quercus.labelling.history import LabelEvent, label_events, reported_label, stored_cells
from quercus.server.growth.engines import GrownTrees, TreeEngine, learns_again, tree_engine
from quercus.server.growth.relearning import RelearningEngine, ReplacedError
from quercus.server.labelling.answer_pages import encode_answer
from quercus.server.wire.limits import GROWTH_BYTES, GROWTH_ROWS
from quercus.server.wire.models import first_specification, to_timestamp
from quercus.server.wire.schema import ModelSchema
from quercus.server.wire.trees import TreeClassifier
from quercus.specification.model import Specification
from quercus.storage import Event, EventKind, FailedPrecondition, InstanceColumns, Snapshot, Store
from quercus.trees import UncertainValues
from quercus.v1 import tree_pb2 as pb

MAX_EVENTS: Final = 50_000
"""Most events of a log that a replay reads."""
MAX_VALUES: Final = 20_000_000
"""Most values in these events: 160 MB."""
MAX_ANSWERS: Final = 2_000
"""Most answers between then and now; for each, a model is grown."""
MAX_CHANGES: Final = 200
"""Most changes that are returned."""
TIE: Final = 1e-9
"""Probabilities that differ by less count as equal; a tie means that there is no likeliest class."""


@dataclass(frozen=True)
class ReplayTask:
    """A requested replay.

    Attributes
    ----------
    model, key : id and key of the model.
    instance : sequence of the row.
    then, now : the two events to compare; the replay ends with `now`.
    """

    model: str
    key: int
    instance: int
    then: int
    now: int


class _Said(NamedTuple):
    """A prediction for the row: class and path, by which changes are found, and the message."""

    klass: str
    path: tuple[tuple[str, str], ...]
    message: pb.RowPrediction

    def differs_from(self, other: _Said) -> bool:
        return (self.klass, self.path) != (other.klass, other.path)


class _Step(NamedTuple):
    """Events that are folded together: rows that were pushed together, an answer with its combined label, or one event.

    Trees may ignore a single event.
    """

    first: int
    last: int
    event: Event | None = None
    is_ignored: bool = False


def check_size(model: str, events: int, attributes: int) -> None:
    """Raise ``FailedPrecondition`` if a log has more events than a replay reads."""
    most = min(MAX_EVENTS, MAX_VALUES // max(1, attributes))
    if events > most:
        raise FailedPrecondition(
            f"the log of {model} has {events:,} events, a replay with {attributes:,} attributes reads at most {most:,}"
        )


def explain_row(store: Store, task: ReplayTask) -> pb.ExplainRowResponse:
    """Replay a log for a row.

    Raises
    ------
    NotFound, ReplacedError
        If the model was deleted or replaced.
    FailedPrecondition
        If there are more than `MAX_ANSWERS` answers between `then` and `now`.
    """
    record = store.get_model(task.model)
    if record.key != task.key:
        raise ReplacedError
    specification, attributes = first_specification(record)
    log = _Log.read(store, task)
    schema = ModelSchema.read(store, task.model)
    history = store.history(task.model, [task.instance])[task.instance]
    values, ranges = stored_cells(history[0])
    row = UncertainValues(values[None], {(0, k): each for k, each in ranges.items()})

    def say(grown: GrownTrees, as_of: int) -> _Said:
        return _say(grown, row, as_of, task.key, specification)

    steps = log.steps_between(task.then, task.now, specification.frame.size)
    answered = sum(step.event is not None and not step.is_ignored for step in steps)
    if answered > MAX_ANSWERS:
        raise FailedPrecondition(
            f"between events {task.then:,} and {task.now:,} are {answered:,} answers, a replay tries at most "
            f"{MAX_ANSWERS:,}: ask about a later event"
        )
    vocabulary = store.vocabulary(task.model)
    again = learns_again(specification)
    if again:
        before = [each.event.sequence - 1 for each in label_events(history)]
        wanted = [at for at in before if task.then <= at <= task.now]
        found = _search(
            log,
            steps,
            [task.then, *wanted, task.now],
            lambda: RelearningEngine(specification),
            vocabulary,
            say,
        )
    else:
        found = _follow(log, steps, task.then, tree_engine(specification, attributes), vocabulary, say)
    response = pb.ExplainRowResponse(
        classes=specification.frame.classes,
        complete=not again,
        beside=specification.learner.asks == "forest",
    )
    _add_found(response, store, schema, task, steps, found, history)
    for message in _predictions_in(response):
        (event,) = store.read_events(task.model, message.as_of - 1, 1)
        message.create_time.CopyFrom(to_timestamp(event.created_at))
    return response


def _predictions_in(response: pb.ExplainRowResponse) -> list[pb.RowPrediction]:
    before = [each.before for each in response.answers if each.HasField("before")]
    return [response.then, response.now, *before, *(each.after for each in response.changes)]


def _add_found(
    response: pb.ExplainRowResponse,
    store: Store,
    schema: ModelSchema,
    task: ReplayTask,
    steps: Sequence[_Step],
    found: Mapping[int, _Said],
    history: Sequence[Event],
) -> None:
    """Add the predictions of then and now, the answers about the row, and the changes to a response."""
    response.then.CopyFrom(found[task.then].message)
    response.now.CopyFrom(found[task.now].message)
    for words in label_events(history):
        if words.event.sequence > task.now:
            continue
        answer = response.answers.add(answer=encode_answer(words, history, schema, with_values=False))
        before = found.get(words.event.sequence - 1)
        if before is not None:
            answer.before.CopyFrom(before.message)
    changes = []
    for step in steps:
        before, after = found.get(step.first - 1), found.get(step.last)
        if before is not None and after is not None and after.differs_from(before):
            changes.append((step, after))
    response.change_count = len(changes)
    shown = changes[-MAX_CHANGES:]
    spoken = {step.event.instance for step, _ in shown if step.event is not None and step.event.instance}
    histories = store.history(task.model, sorted(spoken)) if spoken else {}
    for step, after in shown:
        change = response.changes.add(first_sequence=step.first, sequence=step.last, after=after.message)
        if step.event is None:
            continue
        if step.event.kind is EventKind.SPECIFICATION:
            change.specification = True
            continue
        said = _voice_of(step.event, label_events(histories[step.event.instance]))
        if said is not None:
            of = histories[step.event.instance]
            change.answer.CopyFrom(encode_answer(said, of, schema, with_values=False))


def _voice_of(event: Event, said: Sequence[LabelEvent]) -> LabelEvent | None:
    """Return the newest answer behind an event: the event itself, or the last one that it combines."""
    upto = [each for each in said if each.event.sequence <= event.sequence]
    return upto[-1] if upto else None


def _follow(
    log: _Log,
    steps: Sequence[_Step],
    then: int,
    engine: TreeEngine,
    vocabulary: Mapping[int, Sequence[str]],
    say: Callable[[GrownTrees, int], _Said],
) -> dict[int, _Said]:
    """Return the predictions of a learner that follows the log after each step, in one pass."""
    engine.fold_events(log.parts_between(0, then))
    found = {then: say(engine.grown_trees(vocabulary), then)}
    for step in steps:
        if step.is_ignored:
            found[step.last] = found[step.first - 1]
            continue
        engine.fold_events(log.parts_between(step.first - 1, step.last))
        found[step.last] = say(engine.grown_trees(vocabulary), step.last)
    return found


def _search(
    log: _Log,
    steps: Sequence[_Step],
    wanted: Sequence[int],
    empty: Callable[[], RelearningEngine],
    vocabulary: Mapping[int, Sequence[str]],
    say: Callable[[GrownTrees, int], _Said],
) -> dict[int, _Said]:
    """Return the predictions of a relearning learner after the `wanted` events, and around changes, by bisection.

    A part of the log with the same prediction at both ends is not divided further.
    """
    found: dict[int, _Said] = {}

    def said_at(sequence: int) -> _Said:
        if sequence not in found:
            engine = empty()
            engine.fold_events(log.parts_between(0, sequence))
            found[sequence] = say(engine.grown_trees(vocabulary), sequence)
        return found[sequence]

    for sequence in wanted:
        said_at(sequence)
    ends = [wanted[0], *(step.last for step in steps)]
    waiting = [(0, len(ends) - 1)]
    while waiting:
        first, last = waiting.pop()
        if last - first > 1 and said_at(ends[first]).differs_from(said_at(ends[last])):
            middle = (first + last) // 2
            said_at(ends[middle])
            waiting += [(first, middle), (middle, last)]
    return found


def _say(
    grown: GrownTrees, row: UncertainValues, as_of: int, key: int, specification: Specification
) -> _Said:
    """Return the prediction of trees for a row, by the server's own classifier of their stored form."""
    classifier = TreeClassifier.of(key, Snapshot(0, as_of, grown.encode(), 0.0), grown.specification)
    answer = classifier.classify(row, want_paths=classifier.names is not None)
    steps = answer.paths[0].steps if answer.paths else ()
    likeliest = np.flatnonzero(np.asarray(answer.theta) >= max(answer.theta) - TIE)
    klass = specification.frame.classes[answer.class_indices[0]] if len(likeliest) == 1 else ""
    message = pb.RowPrediction(
        as_of=as_of,
        class_name=klass,
        theta=answer.theta,
        class_set=[
            name for k, name in enumerate(specification.frame.classes) if answer.class_sets[0] >> k & 1
        ],
        path=steps,
    )
    return _Said(klass, tuple((step.attribute, step.value) for step in steps), message)


@dataclass(frozen=True)
class _Log:
    """A log up to an event, which can be divided."""

    parts: Sequence[InstanceColumns | Event]

    @classmethod
    def read(cls, store: Store, task: ReplayTask) -> _Log:
        """Read the log; raise ``ReplacedError`` if the model was replaced or extended meanwhile."""
        parts: list[InstanceColumns | Event] = []
        last, extensions = 0, store.get_model(task.model).shapes.extensions
        while last < task.now:
            rows = min(GROWTH_ROWS, task.now - last)
            segment = store.read_log(task.model, last, rows=rows, size_bytes=GROWTH_BYTES)
            if not segment.parts or segment.extensions != extensions:
                raise ReplacedError
            parts += segment.parts
            last = segment.last
        if store.get_model(task.model).key != task.key:
            raise ReplacedError
        return cls(parts)

    @cached_property
    def _starts(self) -> list[int]:
        return [part.first if isinstance(part, InstanceColumns) else part.sequence for part in self.parts]

    def parts_between(self, after: int, last: int) -> list[InstanceColumns | Event]:
        """Return the events after `after` and up to `last`."""
        found: list[InstanceColumns | Event] = []
        begun = max(0, bisect_right(self._starts, after) - 1)
        for part in self.parts[begun : bisect_right(self._starts, last)]:
            if isinstance(part, InstanceColumns):
                begin, end = max(0, after + 1 - part.first), min(len(part.labels), last + 1 - part.first)
                if begin < end:
                    parts = {
                        (at - begin, k): ranges for (at, k), ranges in part.parts.items() if begin <= at < end
                    }
                    found.append(
                        InstanceColumns(
                            part.first + begin, part.values[begin:end], part.labels[begin:end], parts
                        )
                    )
            elif part.sequence > after:
                found.append(part)
        return found

    def steps_between(self, after: int, last: int, size: int) -> list[_Step]:
        """Return the steps in which the log is replayed."""
        steps: list[_Step] = []
        for part in self.parts_between(after, last):
            if isinstance(part, InstanceColumns):
                steps.append(_Step(part.first, part.first + len(part.labels) - 1))
            else:
                first = steps.pop().first if steps and _is_joint(steps[-1], part) else part.sequence
                is_taken = part.kind is EventKind.SPECIFICATION or reported_label(part, size) is not None
                steps.append(_Step(first, part.sequence, part, not is_taken))
        return steps


def _is_joint(before: _Step, event: Event) -> bool:
    """Return whether an event is the combined label that was stored with the answer before it."""
    answer = before.event
    return (
        answer is not None
        and event.kind is EventKind.CORRECTION
        and not event.query
        and (answer.sequence + 1, answer.instance, answer.created_at)
        == (event.sequence, event.instance, event.created_at)
    )
