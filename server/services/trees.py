"""TreeService: versions of trees, the newest tree as it changes, drawings, and explanations of predictions."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator
from typing import Any, Final

from google.protobuf.timestamp_pb2 import Timestamp

from quercus.belief.errors import InvalidInput
from quercus.server.core.service_core import STOPPING, OnCore, ServiceCore
from quercus.server.growth.replaying import ReplayTask, check_size
from quercus.server.growth.replays import Replays
from quercus.server.labelling.answer_pages import seconds_of
from quercus.server.services.tree_drawings import MEDIA_TYPES, draw_tree
from quercus.server.wire.errors import Unavailable
from quercus.server.wire.limits import MAX_WATCHED_TREES
from quercus.server.wire.models import specification_of
from quercus.server.wire.names import parse_instance, parse_model, parse_tree
from quercus.server.wire.trees import decode_snapshot, encode_tree_head
from quercus.storage import BeyondLog, FailedPrecondition, NotFound, Snapshot, Store
from quercus.v1 import tree_pb2 as pb
from quercus.v1 import tree_pb2_grpc

WATCH_POLL_S: Final = 60.0
"""Longest time, in seconds, between two reads of the store by a watch, even without a change signal."""


class TreeService(OnCore, tree_pb2_grpc.TreeServiceServicer):
    """Reads trees and converts them."""

    def __init__(self, core: ServiceCore) -> None:
        super().__init__(core)
        self._trees: dict[str, tuple[tuple[int, int], asyncio.Future[pb.Tree]]] = {}
        self._replays = Replays(core.store.url, core.config.log_format)

    async def GetTree(self, request: pb.GetTreeRequest, context: Any) -> pb.Tree:
        """Return one version of a tree, by default the newest."""
        model, version = parse_tree(request.name)
        return await self._core.read(_read_tree, self._core.store, model, version, request.member)

    async def WatchTree(
        self, request: pb.WatchTreeRequest, context: Any
    ) -> AsyncIterator[pb.WatchTreeResponse]:
        """Send the newest tree, then newer ones; a slow reader misses versions in between.

        After a tree was sent, rows are classified by it, or by a newer one.
        """
        model = parse_model(request.model, "model")
        key, sent = None, 0
        while not self._core.stopping.is_set():
            seen = self._core.changes.change_stamp(model)
            record = (await self._core.model_statuses.get_status(model, fresh=key is None)).record
            if key is not None and record.key != key:
                raise FailedPrecondition(f"model {model} was deleted and another has its name: watch again")
            key = record.key
            if record.tree_version > sent:
                if request.without_nodes:
                    tree = encode_tree_head(model, record.tree_version, record.sequence_grown)
                else:
                    tree = await self._newest_tree(model, (record.key, record.tree_version))
                await self._core.catalogue.reach_tree(model, record.key, record.tree_version)
                sent = tree.version
                yield pb.WatchTreeResponse(
                    tree=tree, committed_sequence=record.sequence_committed, model_uid=record.uid
                )
            else:
                await self._core.wait_or_stop(self._core.changes.wait_for_change(model, seen, WATCH_POLL_S))
        raise Unavailable(STOPPING)

    async def _newest_tree(self, model: str, version: tuple[int, int]) -> pb.Tree:
        """Read and decode the newest tree, at least this version, once for all who watch the model."""
        known = self._trees.pop(model, None)
        if known is None or known[0] != version or (known[1].done() and known[1].exception() is not None):
            known = version, asyncio.ensure_future(self._core.read(_read_tree, self._core.store, model, None))
        self._trees[model] = known
        if len(self._trees) > MAX_WATCHED_TREES:
            del self._trees[next(iter(self._trees))]
        return await asyncio.shield(known[1])

    async def RenderTree(self, request: pb.RenderTreeRequest, context: Any) -> pb.RenderTreeResponse:
        """Draw a tree as text, DOT or SVG."""
        model, version = parse_tree(request.name)
        if request.format not in MEDIA_TYPES:
            raise InvalidInput(
                "format", f"is {request.format}, must be FORMAT_TEXT, FORMAT_DOT or FORMAT_SVG"
            )
        member = request.member if request.HasField("member") else None
        snapshot = await self._core.read(_read_snapshot, self._core.store, model, version)
        depth = request.depth if request.HasField("depth") else None
        return await self._core.read(draw_tree, snapshot, request.format, member, depth)

    async def ExplainRow(self, request: pb.ExplainRowRequest, context: Any) -> pb.ExplainRowResponse:
        """Replay the log of a model for one row."""
        task = await self._core.read(_replay_task, self._core.store, request)
        return await self._replays.explain_row(task)


def _replay_task(store: Store, request: pb.ExplainRowRequest) -> ReplayTask:
    """Return the task of a request; raise if something does not exist, or the log is too long."""
    model, identifier = parse_instance(request.name)
    record = store.get_model(model)
    places = store.places(model, [identifier])
    if identifier not in places:
        raise NotFound("instance", f"{model}/{identifier}")
    now = record.sequence_committed
    check_size(model, now, len(specification_of(record.specification).attributes))
    match request.WhichOneof("then"):
        case "sequence":
            then = request.sequence
            if then < 1:
                raise InvalidInput("sequence", f"is {then}, must be at least 1, the first event")
            BeyondLog.check(then, model, now)
        case "time":
            then = _last_event_at(store, model, now, request.time)
        case _:
            then = places[identifier]
    return ReplayTask(model, record.key, places[identifier], then, now)


def _last_event_at(store: Store, model: str, last: int, time: Timestamp) -> int:
    """Return the last event at or before a time; raise ``FailedPrecondition`` if there is none."""
    seconds_of(time, "time")  # only a check
    until = time.ToNanoseconds() // 1000

    def is_later(sequence: int) -> bool:
        (event,) = store.read_events(model, sequence - 1, 1)
        return round(event.created_at * 1e6) > until

    found = bisect_left(range(1, last + 1), True, key=is_later)
    if not found:
        raise FailedPrecondition(f"the log of {model} begins after this time")
    return found


def _read_tree(store: Store, model: str, version: int | None, member: int = 0) -> pb.Tree:
    return decode_snapshot(model, _read_snapshot(store, model, version), member)


def _read_snapshot(store: Store, model: str, version: int | None) -> Snapshot:
    if version is None and store.get_model(model).tree_version == 0:
        raise FailedPrecondition(f"model {model} has no tree yet: try again in a moment")
    return store.snapshot(model, version)
