"""One model as the grower holds it: the log folded into a growth state, published as tree and agenda."""

from __future__ import annotations

import logging
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from quercus.belief.codec import decode, decode_contours
from quercus.belief.label import contour
from quercus.proto.v1 import model_pb2
from quercus.server import snapshots
from quercus.server.convert_agenda import decode_asked, encode_asked, encode_reason
from quercus.server.convert_models import decode_specification
from quercus.server.convert_trees import encode_head
from quercus.server.limits import AGENDA_LENGTH, GROWTH_CHUNK, PUBLISH_EVERY_S, PUBLISH_SHARE
from quercus.storage.records import AgendaEntry, Event, EventKind, ModelRecord
from quercus.storage.store import Store
from quercus.trees import stream
from quercus.trees.flat import FlatTree
from quercus.trees.specification import Specification

_log = logging.getLogger(__name__)


class Folding:
    """The fold of one model's log.

    Parameters
    ----------
    store : open in this process.
    record : the model when it was first seen.
    keep : tree versions that are kept.
    """

    def __init__(self, store: Store, record: ModelRecord, keep: int) -> None:
        self._store = store
        self._keep = keep
        self._model = record.name
        self.key = record.key
        self._state = stream.GrowthState.initial(_specification(record.initial_specification))
        self._instances = array("q")  # sequence of each instance, by ordinal
        self._folded = 0  # newest sequence in the state
        self._publish_at = 0.0  # not before this time while there is a backlog

    def step(self, record: ModelRecord) -> bool:
        """Fold one chunk of what is new and publish when it is time.

        Parameters
        ----------
        record : the model now.

        Returns
        -------
        bool : whether anything was done.
        """
        behind = record.sequence_committed > self._folded
        if behind:
            events = self._store.read_events(self._model, self._folded, GROWTH_CHUNK)
            if not events:  # the model was replaced since it was listed
                return False
            self._state = stream.grow(self._state, self._convert(events))
            self._folded = events[-1].sequence
        unpublished = self._folded > record.sequence_grown or record.tree_version == 0
        caught_up = self._folded >= record.sequence_committed
        if unpublished and (caught_up or time.monotonic() >= self._publish_at):
            started = time.monotonic()
            self._publish()
            now = time.monotonic()
            self._publish_at = now + max(PUBLISH_EVERY_S, PUBLISH_SHARE * (now - started))
            return True
        return behind

    def _publish(self) -> None:
        state, specification = self._state, self._state.specification
        names = state.names(self._store.vocabulary(self._model))
        attributes = [attribute.name for attribute in specification.attributes]
        flat = FlatTree.of(state.tree)
        data = snapshots.encode(encode_head(specification, state.edges, names), flat)
        agenda = [
            AgendaEntry(
                self._instances[query.instance],
                encode_asked(query.asked),
                encode_reason(query, attributes, names),
            )
            for query in state.agenda(AGENDA_LENGTH)
        ]
        version = self._store.publish(
            self._model, as_of=self._folded, snapshot=data, agenda=agenda, key=self.key, keep=self._keep
        )
        _log.debug(
            "model %s: version %d as of %d, %d nodes, %d queries",
            self._model, version, self._folded, flat.size, len(agenda),
        )  # fmt: skip

    def _convert(self, events: Sequence[Event]) -> Iterator[stream.Event]:
        size = self._state.specification.frame.size
        for kind, group in groupby(events, key=lambda event: event.kind):
            if kind is EventKind.INSTANCE:
                yield self._observed(list(group), size)
                continue
            for event in group:
                yield self._settled(event, size)

    def _observed(self, events: Sequence[Event], size: int) -> stream.Observed:
        self._instances.extend(event.sequence for event in events)
        flat = np.frombuffer(b"".join(event.values or b"" for event in events), dtype="<f8")
        return stream.Observed(
            flat.reshape(len(events), -1), decode_contours([event.label or b"" for event in events], size)
        )

    def _settled(self, event: Event, size: int) -> stream.Event:
        if event.kind is EventKind.SPECIFICATION:
            return stream.Respecified(_specification(event.specification or b""))
        ordinal = bisect_left(self._instances, event.instance)
        asked = decode_asked(event.asked or b"")
        if event.label is None:
            return stream.Refused(ordinal, asked)
        said = contour(decode(event.label, size), size)
        return stream.Answered(ordinal, said, event.reliability, asked)


def _specification(data: bytes) -> Specification:
    return decode_specification(model_pb2.Specification.FromString(data))
