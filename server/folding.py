"""One model as the grower holds it: the log folded into a growth state, published as tree and agenda."""

from __future__ import annotations

import logging
import math
import time
from array import array
from bisect import bisect_left

from quercus.belief.codec import decode, decode_contours
from quercus.belief.label import contour
from quercus.proto.v1 import model_pb2
from quercus.server import snapshots
from quercus.server.convert_agenda import decode_asked, encode_asked, encode_reason
from quercus.server.convert_models import decode_specification
from quercus.server.convert_trees import encode_head
from quercus.server.limits import (
    AGENDA_LENGTH,
    GROWTH_BYTES,
    GROWTH_ROWS,
    LAG_NOTICE_S,
    LARGE_LAG_S,
    PUBLISH_SHARE,
)
from quercus.storage.records import AgendaEntry, Event, EventKind, ModelRecord, Rows
from quercus.storage.store import Store
from quercus.trees import stream
from quercus.trees.specification import Specification

_log = logging.getLogger(__name__)


class Folding:
    """The fold of one model's log.

    When a tree is published: at once when a labeller or a specification has spoken and the log is folded, since
    somebody waits for the next query; otherwise at most every `interval_s`, so at once after a rest. And never so
    often that publishing, which makes the tree follow the evidence, starves the folding: as long as anything is left
    to fold, of this model or of another, folding gets `PUBLISH_SHARE` times the time of the last publication.

    Parameters
    ----------
    store : open in this process.
    record : the model when it was first seen.
    keep : tree versions that are kept.
    interval_s : between two trees while rows arrive, in seconds.
    """

    def __init__(self, store: Store, record: ModelRecord, keep: int, interval_s: float) -> None:
        self._store = store
        self._keep = keep
        self._interval_s = interval_s
        self._model = record.name
        self.key = record.key
        self._state = stream.GrowthState.initial(_specification(record.initial_specification))
        self._instances = array("q")  # sequence of each instance, by ordinal
        self._folded = 0  # newest sequence in the state
        self._awaited = False  # somebody waits for the tree of what is folded
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
        self.wake_at = self._due_at(record, others_behind)
        if time.monotonic() >= self.wake_at:
            self._publish()
            self.wake_at = math.inf
            return True
        return behind

    def _fold(self) -> bool:
        stretch = self._store.read_log(self._model, self._folded, rows=GROWTH_ROWS, size_bytes=GROWTH_BYTES)
        size = self._state.specification.frame.size
        events = [self._convert(part, size) for part in stretch.parts]
        if not events:
            return False
        self._state = stream.grow(self._state, events)
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
        share = PUBLISH_SHARE if behind or others_behind else 0
        return self._published_at + max(self._interval_s, share * self._cost_s)

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
        state, specification = self._state, self._state.specification
        names = state.names(self._store.vocabulary(self._model))
        attributes = [attribute.name for attribute in specification.attributes]
        flat = state.flat
        data = snapshots.encode(encode_head(specification, state.edges, names), flat)
        agenda = [
            AgendaEntry(
                self._instances[query.instance],
                encode_asked(query.asked),
                encode_reason(query, attributes, names, specification.strategy),
            )
            for query in state.agenda(AGENDA_LENGTH)
        ]
        version = self._store.publish(
            self._model, as_of=self._folded, snapshot=data, agenda=agenda, key=self.key, keep=self._keep
        )
        self._awaited = self._outdated = False
        self._published_at = time.monotonic()
        self._cost_s = self._published_at - started
        _log.debug(
            "model %s: version %d as of %d, %d nodes, %d queries, in %.0f ms",
            self._model, version, self._folded, flat.size, len(agenda), 1000 * self._cost_s,
        )  # fmt: skip

    def _convert(self, part: Rows | Event, size: int) -> stream.Event:
        if isinstance(part, Event):
            return self._settled(part, size)
        self._instances.extend(range(part.first, part.first + len(part.labels)))
        return stream.Observed(part.values, decode_contours(part.labels, size))

    def _settled(self, event: Event, size: int) -> stream.Event:
        if event.kind is EventKind.SPECIFICATION:
            return stream.Respecified(_specification(event.specification or b""))
        ordinal = bisect_left(self._instances, event.instance)
        asked = decode_asked(event.asked or b"")
        if event.label is None:
            return stream.Refused(ordinal, asked)
        said = contour(decode(event.label, size), size)
        return stream.Answered(ordinal, said, event.reliability, asked)


def _is_outdated(store: Store, record: ModelRecord) -> bool:
    """Whether the newest tree is stored in a format of another version: then it is grown and stored anew."""
    return record.tree_version > 0 and not snapshots.is_current(store.snapshot(record.name).data)


def _specification(data: bytes) -> Specification:
    return decode_specification(model_pb2.Specification.FromString(data))
