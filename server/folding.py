"""One model as the grower holds it: the log folded into a growth state, published as tree and agenda."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence

from quercus.server import snapshots
from quercus.server.allowance import Allowance
from quercus.server.convert_agenda import encode_asked, encode_reason
from quercus.server.convert_trees import encode_head
from quercus.server.engines import engine_for, specification_of
from quercus.server.limits import (
    AGENDA_LENGTH,
    AGENDA_SAVED_S,
    GROWTH_BYTES,
    GROWTH_ROWS,
    LAG_NOTICE_S,
    LARGE_LAG_S,
    PUBLISH_SHARE,
)
from quercus.storage.records import AgendaEntry, Event, ModelRecord
from quercus.storage.store import Store

_log = logging.getLogger(__name__)


class Folding:
    """The fold of one model's log.

    When a tree is published: at once when a labeller or a specification has spoken and the log is folded, since
    somebody waits for the next query; otherwise at most every `interval_s`, so at once after a rest. And never so
    often that publishing, which makes the tree follow the evidence, starves the folding: as long as anything is left
    to fold, of this model or of another, folding gets `PUBLISH_SHARE` times the time of the last publication. A model
    that learns again from all evidence keeps to that share also where nothing else is to do: new rows that trickle in
    would otherwise have it learn without a pause.

    A tree brings its agenda, as long as choosing queries keeps to `agenda_share` of the time, some of it saved up.
    Where labellers answer faster than that, a tree comes without: the queries of the last agenda are asked on, and the
    next agenda follows as soon as there is time for it. At once, though, where no query would be left.

    Parameters
    ----------
    store : open in this process.
    record : the model when it was first seen.
    keep : tree versions that are kept.
    interval_s : between two trees while rows arrive, in seconds.
    agenda_share : of the time, for choosing queries.
    """

    def __init__(
        self, store: Store, record: ModelRecord, keep: int, interval_s: float, agenda_share: float
    ) -> None:
        self._store = store
        self._keep = keep
        self._interval_s = interval_s
        self._model = record.name
        self.key = record.key
        self._engine = engine_for(specification_of(record.initial_specification))
        self._folded = 0  # newest sequence in the state
        self._awaited = False  # somebody waits for the tree of what is folded
        self._choosing = Allowance(agenda_share, AGENDA_SAVED_S)
        self._is_agenda_due = (
            record.tree_version > 0
        )  # the newest tree came without; who knows, after a restart
        self._outdated = _is_outdated(store, record)
        self._published_at = -math.inf
        self._cost_s = 0.0  # of the last publication
        self._told_at = -math.inf  # that the tree lags
        self.wake_at = math.inf
        """When the next step has something to do, though the store may not change until then (monotonic time)."""

    def is_behind(self, record: ModelRecord) -> bool:
        """Whether there is anything to fold."""
        return record.sequence_committed > self._folded

    def step(self, record: ModelRecord, others_behind: bool = False) -> bool:
        """Fold one chunk of what is new and publish when it is time.

        Parameters
        ----------
        record : the model now.
        others_behind : whether there is anything to fold of other models.

        Returns
        -------
        bool : whether anything was done.
        """
        self._tell_lag(record)
        behind = self.is_behind(record)
        if behind and not self._fold():  # the model was replaced since it was listed
            return False
        tree_at, agenda_at = self._due_at(record, others_behind), self._agenda_at(record)
        now = time.monotonic()
        if now >= tree_at:
            self._publish()
        elif now >= agenda_at:
            self._publish_agenda()
        else:
            self.wake_at = min(tree_at, agenda_at)
            return behind
        self.wake_at = self._choosing.ready_at if self._is_agenda_due else math.inf
        return True

    def _fold(self) -> bool:
        stretch = self._store.read_log(self._model, self._folded, rows=GROWTH_ROWS, size_bytes=GROWTH_BYTES)
        if not stretch.parts:
            return False
        self._engine.fold(stretch.parts)
        self._folded = stretch.last
        self._awaited |= any(isinstance(part, Event) for part in stretch.parts)
        return True

    def _due_at(self, record: ModelRecord, others_behind: bool) -> float:
        news = self._folded - record.sequence_grown
        if news < 0 or (news == 0 and record.tree_version > 0 and not self._outdated):
            return math.inf
        behind = self.is_behind(record)
        if self._awaited and not behind:
            return -math.inf
        share = PUBLISH_SHARE if behind or others_behind or self._engine.costly else 0
        return self._published_at + max(self._interval_s, share * self._cost_s)

    def _agenda_at(self, record: ModelRecord) -> float:
        """When the agenda that the newest tree came without is due; where rows are new it comes with their tree."""
        if not self._is_agenda_due or self._folded != record.sequence_grown:
            return math.inf
        return self._choosing.ready_at if self._store.has_queries(self._model) else -math.inf

    def _tell_lag(self, record: ModelRecord) -> None:
        now, told = time.monotonic(), self._told_at > -math.inf
        if record.lag_s >= LARGE_LAG_S and now - self._told_at >= LAG_NOTICE_S:
            lag = record.sequence_committed - record.sequence_grown
            _log.warning(
                "model %s: the tree lags %d events and %.1f s behind", self._model, lag, record.lag_s
            )
            self._told_at = now
        elif told and record.lag_s == 0.0:
            _log.info("model %s: the tree has caught up", self._model)
            self._told_at = -math.inf

    def _publish(self) -> None:
        started = time.monotonic()
        vocabulary = self._store.vocabulary(self._model)
        grown = self._engine.grown(vocabulary)
        data = snapshots.encode(encode_head(grown.specification, grown.edges, grown.names), grown.model)
        has_time = started >= self._choosing.ready_at or not self._store.has_queries(self._model)
        agenda = self._agenda(vocabulary) if has_time else None
        version = self._store.publish(
            self._model, as_of=self._folded, snapshot=data, agenda=agenda, key=self.key, keep=self._keep
        )
        self._awaited = self._outdated = False
        self._is_agenda_due = agenda is None
        self._published_at = time.monotonic()
        self._cost_s = self._published_at - started
        nodes = sum(flat.size for flat in grown.model.flats)
        _log.debug(
            "model %s: version %d as of %d, %d nodes, %s queries, in %.0f ms",
            self._model, version, self._folded, nodes, "no new" if agenda is None else len(agenda),
            1000 * self._cost_s,
        )  # fmt: skip

    def _publish_agenda(self) -> None:
        agenda = self._agenda(self._store.vocabulary(self._model))
        self._store.publish_agenda(self._model, as_of=self._folded, agenda=agenda, key=self.key)
        self._is_agenda_due = False
        _log.debug("model %s: %d queries as of %d", self._model, len(agenda), self._folded)

    def _agenda(self, vocabulary: Mapping[int, Sequence[str]]) -> list[AgendaEntry]:
        """Choose queries, and write down what that costs."""
        started = time.thread_time()
        queries = self._engine.agenda(AGENDA_LENGTH)
        splits = self._engine.splits(vocabulary) if queries else ()
        strategy = self._engine.strategy
        agenda = [
            AgendaEntry(instance, encode_asked(query.asked), encode_reason(query, splits, strategy))
            for instance, query in queries
        ]
        self._choosing.spend(time.thread_time() - started)
        return agenda


def _is_outdated(store: Store, record: ModelRecord) -> bool:
    """Whether the newest tree is stored in a format of another version: then it is grown and stored anew."""
    return record.tree_version > 0 and not snapshots.is_current(store.snapshot(record.name).data)
