"""The growth of one model: its log is folded into an engine, and trees and agendas are published.

Trees that follow the log are grown here (`LogFolder`); those of learners that learn again come from a separate process
(`RelearningFolder`).
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence

from quercus.server.growth.engines import TreeEngine, tree_engine
from quercus.server.growth.learner_pool import LearnerPool, LearningFailedError, RunningTask
from quercus.server.growth.relearning import LearningTask
from quercus.server.growth.saved_growth import FoldedPart, SavedGrowth
from quercus.server.growth.time_shares import TimeBudget
from quercus.server.wire import snapshots
from quercus.server.wire.agenda import encode_asked, encode_reasons
from quercus.server.wire.limits import (
    AGENDA_LENGTH,
    AGENDA_SAVED_S,
    GROWTH_BYTES,
    GROWTH_ROWS,
    LAG_NOTICE_S,
    LARGE_LAG_S,
    PUBLISH_SHARE,
    UNREAD_SHARE,
)
from quercus.server.wire.models import encode_model, first_specification, specification_of
from quercus.server.wire.reports import accuracy_in, encode_report, stopped_above, with_changes
from quercus.specification.model import Specification
from quercus.storage import AgendaEntry, Change, Event, EventKind, Fence, ModelRecord, Store

_log = logging.getLogger(__name__)


class LogFolder:
    """Folds one model's log, and publishes its trees.

    After a label or a specification, a tree is published as soon as the log is folded, since somebody waits for the
    next query; otherwise at most every `interval_s`, so at once after a pause. Publishing must not starve folding: as
    long as there is anything to fold, of this model or another, folding gets `PUBLISH_SHARE` times the time of the last
    publication.

    A few rows are left unread until their tree is due, because reading and folding a single row costs as much as
    hundreds.

    A tree is published with its agenda as long as choosing queries keeps within `agenda_share` of the time, some of
    which is saved up. If labellers answer faster, the tree is published alone: the last agenda stays in force, and the
    next one follows as soon as there is time, or at once if no query would be left.

    Parameters
    ----------
    store : store, open in this process.
    record : the model when it was first seen.
    keep : number of tree versions that are kept.
    interval_s : seconds between two trees while rows arrive.
    agenda_share : share of the time for choosing queries.
    """

    def __init__(
        self, store: Store, record: ModelRecord, keep: int, interval_s: float, agenda_share: float
    ) -> None:
        self._store = store
        self.fence: Callable[[], Fence | None] = lambda: None
        """Returns the right to publish, if several growers share the store."""
        self._keep = keep
        self._interval_s = interval_s
        self._model = record.name
        self.key = record.key
        self.extensions = record.shapes.extensions
        """Number of extensions of the model: the folded events have the shape of that time."""
        self._extended_by = record.shapes.since
        self._engine = self._make_engine(*first_specification(record), record.report)
        if reason := encode_model(record, {}).asking_stopped:
            _log.warning("model %s asks nothing: %s", record.name, reason)
        self._saved = SavedGrowth(store, record)
        loaded = self._saved.restore_engine(self._engine)
        self._folded = loaded.sequence  # newest sequence in the state
        self._other_events = loaded.heard  # number of events in the state that are not rows
        # whether somebody waits for the tree of the folded events
        self._awaited = loaded.sequence > record.sequence_grown
        self._is_resting = False  # until `wake_at`, with rows unread
        self._choosing = TimeBudget(agenda_share, AGENDA_SAVED_S)
        # the newest tree may have been published without an agenda; without rows, there is nothing to ask
        self._is_agenda_due = record.tree_version > 0 and record.instance_count > 0
        # trees of another version's format, and of models that had been stopped, are grown again
        is_unreadable = record.tree_version > 0 and not snapshots.is_readable(
            store.snapshot(record.name).data
        )
        self._outdated = is_unreadable or stopped_above(record.report) > 0
        self._published_at = -math.inf
        self._cost_s = 0.0  # of the last publication
        self._lag_logged_at = -math.inf
        self.wake_at = math.inf
        """Monotonic time when the next step has work, even if the store does not change until then."""

    def _make_engine(self, specification: Specification, attributes: int, report: bytes) -> TreeEngine:
        engine = tree_engine(specification, attributes)
        engine.resume_accuracy(accuracy_in(report))
        return engine

    def close(self) -> None:
        """Stop work in other processes, because the model is dropped."""

    def forget_saved(self) -> None:
        """Remove the saved growth, because the model was deleted, or its folded state may be wrong."""
        self._saved.remove_file()

    def is_behind(self, record: ModelRecord) -> bool:
        """Return whether there are events to fold."""
        return record.sequence_committed > self._folded

    def is_ahead(self, record: ModelRecord) -> bool:
        """Return whether events were folded that the log has lost, because a standby database server took over."""
        return record.sequence_committed < self._folded

    def may_rest(self, record: ModelRecord | Change) -> bool:
        """Return whether only a few rows are left to fold, and nobody waits for them."""
        return (
            record.sequence_committed - self._folded <= GROWTH_ROWS // UNREAD_SHARE
            and record.sequence_committed - record.instance_count == self._other_events
            and not self._is_agenda_due
        )

    def is_resting(self, change: Change) -> bool:
        """Return whether a change has no events to fold, or only rows that may stay unread until `wake_at`."""
        has_news = change.sequence_committed != self._folded or self._lag_logged_at > -math.inf
        return (self._is_resting or not has_news) and self.may_rest(change)

    def run_step(self, record: ModelRecord, others_behind: bool = False) -> bool:
        """Fold one chunk of new events, and publish if a tree is due.

        Parameters
        ----------
        record : the model now.
        others_behind : whether other models have events to fold.

        Returns
        -------
        bool : whether anything was done.
        """
        done = self._fold_or_publish(record, others_behind)
        save_at = self._saved.due_at
        if save_at > time.monotonic():
            self.wake_at = min(self.wake_at, save_at)
        elif not self._awaited:
            self.save_growth()
        return done

    def save_growth(self) -> None:
        """Save the folded state, so that another process can continue from it."""
        self._saved.save_engine(self._engine, FoldedPart(self._folded, self._other_events))

    def _fold_or_publish(self, record: ModelRecord, others_behind: bool) -> bool:
        self._log_lag(record)
        self._is_resting = False
        behind = self.is_behind(record)
        if behind and self.may_rest(record):
            due_at = self._next_at(others_behind)
            if time.monotonic() < due_at:
                self.wake_at, self._is_resting = due_at, True
                return False
        if behind and not self._fold_chunk():  # the model was replaced or extended since it was listed
            return False
        tree_at, agenda_at = self._due_at(record, others_behind), self._agenda_at(record)
        now = time.monotonic()
        if now >= tree_at:
            self._publish_trees()
        elif now >= agenda_at:
            self._publish_agenda()
        else:
            self.wake_at = min(tree_at, agenda_at)
            return behind
        self.wake_at = self._choosing.ready_at if self._is_agenda_due else math.inf
        return True

    def _fold_chunk(self) -> bool:
        started = time.thread_time()
        segment = self._store.read_log(self._model, self._folded, rows=GROWTH_ROWS, size_bytes=GROWTH_BYTES)
        if not segment.parts or segment.extensions != self.extensions:  # a new folder will begin again
            return False
        self._engine.fold_events(segment.parts)
        self._folded = segment.last
        self._note_events([part for part in segment.parts if isinstance(part, Event)])
        self._saved.add_folding_time(time.thread_time() - started)
        return True

    def _note_events(self, events: Sequence[Event]) -> None:
        """Count the folded events of labellers and specifications."""
        self._other_events += len(events)
        self._awaited |= bool(events)

    def _next_at(self, is_busy: bool) -> float:
        """Return the time when the next tree is due if it contains anything new and nobody waits for it."""
        return self._published_at + max(self._interval_s, PUBLISH_SHARE * self._cost_s if is_busy else 0)

    def _due_at(self, record: ModelRecord, others_behind: bool) -> float:
        news = self._folded - record.sequence_grown
        if self._folded < self._extended_by:  # a tree of this state would have fewer classes or attributes
            return math.inf
        if news < 0 or (news == 0 and record.tree_version > 0 and not self._outdated):
            return math.inf
        behind = self.is_behind(record)
        if self._awaited and not behind:
            return -math.inf
        return self._next_at(behind or others_behind)

    def _agenda_at(self, record: ModelRecord) -> float:
        """Return the time when the agenda of a tree published without one is due, unless a new tree will bring it."""
        if not self._is_agenda_due or self._folded != record.sequence_grown:
            return math.inf
        return self._choosing.ready_at if self._store.has_queries(self._model) else -math.inf

    def _log_lag(self, record: ModelRecord) -> None:
        now, is_logged = time.monotonic(), self._lag_logged_at > -math.inf
        if record.lag_s >= LARGE_LAG_S and now - self._lag_logged_at >= LAG_NOTICE_S:
            lag = record.sequence_committed - record.sequence_grown
            _log.warning(
                "model %s: the tree lags %d events and %.1f s behind", self._model, lag, record.lag_s
            )
            self._lag_logged_at = now
        elif is_logged and record.lag_s == 0.0:
            _log.info("model %s: the tree has caught up", self._model)
            self._lag_logged_at = -math.inf

    def _publish_trees(self) -> None:
        started = time.monotonic()
        vocabulary = self._store.vocabulary(self._model)
        grown = self._engine.grown_trees(vocabulary)
        data = grown.encode()
        agenda = self._choose_agenda(vocabulary) if self._has_time(started) else None
        accuracy = self._engine.accuracy
        report = encode_report(
            accuracy,
            grown.confidence,
            grown.other_names,
            self._engine.labelled_rows,
            self._engine.find_drift(accuracy),
            self._engine.attribute_names,
        )
        version = self._store.publish(
            self._model, as_of=self._folded, snapshot=data, agenda=agenda, key=self.key, keep=self._keep,
            fence=self.fence(), report=report,
        )  # fmt: skip
        self._awaited = self._outdated = False
        self._is_agenda_due = agenda is None
        self._published_at = time.monotonic()
        self._cost_s = self._published_at - started
        _log.debug(
            "model %s: version %d as of %d, %d nodes, %s queries, in %.0f ms",
            self._model, version, self._folded, grown.node_count, "no new" if agenda is None else len(agenda),
            1000 * self._cost_s,
        )  # fmt: skip

    def _has_time(self, now: float) -> bool:
        """Return whether queries may be chosen now, because there is time for it, or no query is left."""
        return now >= self._choosing.ready_at or not self._store.has_queries(self._model)

    def _publish_agenda(self) -> None:
        agenda = self._choose_agenda(self._store.vocabulary(self._model))
        fence = self.fence()
        self._store.publish_agenda(self._model, as_of=self._folded, agenda=agenda, key=self.key, fence=fence)
        self._is_agenda_due = False
        _log.debug("model %s: %d queries as of %d", self._model, len(agenda), self._folded)

    def _choose_agenda(self, vocabulary: Mapping[int, Sequence[str]]) -> list[AgendaEntry]:
        """Choose the next queries, and record the cost."""
        started = time.thread_time()
        queries = self._engine.choose_queries(AGENDA_LENGTH)
        splits = self._engine.named_splits(vocabulary) if queries else ()
        strategy = self._engine.strategy_name
        asked = {each: encode_asked(each) for each in {query.asked for _, query in queries}}
        reasons = encode_reasons((query for _, query in queries), splits, strategy)
        agenda = [
            AgendaEntry(instance, asked[query.asked], reason)
            for (instance, query), reason in zip(queries, reasons, strict=True)
        ]
        self._choosing.spend_seconds(time.thread_time() - started)
        return agenda


class RelearningFolder(LogFolder):
    """Folds the log of a model whose learner learns again from all evidence each time, in a separate process.

    When a tree is due, the learner learns from all events folded by then, and folding continues meanwhile. Learning
    keeps within its share of time even if nothing else is to do: it starts again only after `PUBLISH_SHARE` times the
    CPU time of the last run, unless somebody waits for the tree. A specification with other parameters of the learner
    stops a run, and so does the deletion of the model.

    The active tree chooses queries at once after an answer, without waiting for the learner.

    Parameters
    ----------
    store, record, keep, interval_s, agenda_share : see `LogFolder`.
    learners : the processes that learn.
    """

    def __init__(
        self,
        store: Store,
        record: ModelRecord,
        keep: int,
        interval_s: float,
        agenda_share: float,
        *,
        learners: LearnerPool,
    ) -> None:
        super().__init__(store, record, keep, interval_s, agenda_share)
        self._learners = learners
        in_force = record.specification if self._folded else record.initial_specification
        self._learner = specification_of(in_force).learner
        self._learning: RunningTask | None = None
        self._asked_of = -1  # newest event that the agenda takes into account

    def _make_engine(self, specification: Specification, attributes: int, report: bytes) -> TreeEngine:
        return TreeEngine(specification, attributes)  # only for queries

    def may_rest(self, record: ModelRecord | Change) -> bool:
        """Return whether `LogFolder.may_rest` holds, and no model is being learned, whose result would have to wait."""
        return self._learning is None and super().may_rest(record)

    def close(self) -> None:
        """Stop learning."""
        if self._learning is not None:
            self._learners.cancel_task(self._learning)
            self._learning = None

    def _note_events(self, events: Sequence[Event]) -> None:
        super()._note_events(events)
        self._is_agenda_due |= bool(events)
        for event in events:
            if event.kind is EventKind.SPECIFICATION:
                learner = specification_of(event.specification or b"").learner
                if learner != self._learner:
                    self.close()
                self._learner = learner

    def _due_at(self, record: ModelRecord, others_behind: bool) -> float:
        if self._learning is not None:
            return math.inf if self._learning.outcome is None else -math.inf
        return super()._due_at(record, others_behind)

    def _next_at(self, is_busy: bool) -> float:
        # learning keeps within its share of time even if nothing else is to do
        return super()._next_at(is_busy=True)

    def _agenda_at(self, record: ModelRecord) -> float:
        if not self._is_agenda_due or self.is_behind(record):
            return math.inf
        return -math.inf if self._has_time(time.monotonic()) else self._choosing.ready_at

    def _publish_trees(self) -> None:
        """Publish the learned trees, or begin to learn; the agenda comes first, so that it is never older."""
        now = time.monotonic()
        if self._asked_of < self._folded and self._has_time(now):
            self._publish_agenda()
        learning = self._learning
        if learning is None:
            self._learning = self._learners.queue_task(LearningTask(self._model, self.key, self._folded))
            self._awaited = False
            return
        if isinstance(learning.outcome, LearningFailedError):
            self._learning = None
        learnt, as_of = learning.get_outcome(), learning.task.as_of
        report = with_changes(learnt.report, self._engine.changed_attributes, self._engine.attribute_names)
        version = self._store.publish(
            self._model, as_of=as_of, snapshot=learnt.snapshot, agenda=None, key=self.key, keep=self._keep,
            fence=self.fence(), report=report,
        )  # fmt: skip
        self._learning = None  # only now, so that these trees are published later if the store refuses them
        self._outdated = False
        self._published_at, self._cost_s = now, learnt.cost_s
        _log.debug(
            "model %s: version %d as of %d, %d nodes, learned in %.0f ms of CPU time",
            self._model, version, as_of, learnt.nodes, 1000 * learnt.cost_s,
        )  # fmt: skip

    def _publish_agenda(self) -> None:
        super()._publish_agenda()
        self._asked_of = self._folded
