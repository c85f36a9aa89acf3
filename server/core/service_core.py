"""The base of all services: the store with its writer and reader threads, caches, and signals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from google.protobuf.message import Message

from quercus.belief.errors import InvalidInput
from quercus.server.config import Config
from quercus.server.core.catalogue import Catalogue
from quercus.server.core.changes import ChangeSignal
from quercus.server.core.damaged_models import DamagedModels
from quercus.server.core.estimates import Estimates
from quercus.server.core.fair_queue import FairQueue
from quercus.server.core.leasable_models import LeasableModels
from quercus.server.core.model_status import ModelStatusCache
from quercus.server.core.row_index import RowIndexes
from quercus.server.core.writer import NoWriter, Writer
from quercus.server.wire.errors import Unavailable
from quercus.server.wire.limits import INLINE_BYTES, MessageLimits
from quercus.server.wire.schema import ModelSchema
from quercus.server.wire.trees import TreeClassifier
from quercus.server.workers.board import Tally
from quercus.storage import GroupCall, Store

P = ParamSpec("P")
T = TypeVar("T")
Request = TypeVar("Request", bound=Message)
STOPPING = "the server is stopping: connect again in a moment"


class ServiceCore:
    """The store, its threads, caches and signals. Create and use it in one event loop.

    Parameters
    ----------
    store : the open store; `close` closes it.
    config : configuration of the server.
    made : number of changes that each worker of the server has made; None if this is the only process.
    writes : whether this process, and not another worker, writes to the store.
    """

    def __init__(
        self, store: Store, config: Config, made: Tally | None = None, *, writes: bool = True
    ) -> None:
        self.store = store
        self.config = config
        self.stopping = asyncio.Event()
        self.rows_pushed = self.rows_classified = 0  # for the metrics
        made = Tally() if made is None else made
        self.changes = ChangeSignal(store, config.poll_ms / 1000)
        writer = Writer if writes else NoWriter
        self.writer = writer(store, made, committed=self.changes.look_soon)
        self._pool = ThreadPoolExecutor(config.read_threads, thread_name_prefix="quercus-read")
        self.catalogue = Catalogue(store, self.read, self.changes, made)
        self.model_statuses = ModelStatusCache(store, self.read, self.changes)
        self.damaged = DamagedModels(store, self.read)
        self.leasable_models = LeasableModels(store, self.read, self.changes)
        self.fair_queue: FairQueue[Any, Any] = FairQueue()
        self.estimates: Estimates[Any] = Estimates()
        self.agreements: Estimates[Any] = Estimates()
        self.gold_scores: Estimates[Any] = Estimates()
        self.row_indexes = RowIndexes(store)
        self._refresh: asyncio.Task[None] | None = None
        self._awaited: set[asyncio.Timeout] = set()  # deadlines of waits for messages

    def start(self) -> None:
        """Start the threads."""
        self.writer.start()
        self.changes.start()
        self._refresh = asyncio.create_task(self.catalogue.refresh_forever(), name="quercus-refresh")

    async def close(self) -> None:
        """Finish queued writes, end the threads, and close the store."""
        if self._refresh is not None:
            self._refresh.cancel()
            await asyncio.wait([self._refresh])
        await self.fair_queue.close()
        await self.writer.close()
        await self.changes.close()
        await asyncio.to_thread(self._pool.shutdown)
        await asyncio.to_thread(self.estimates.close)
        await asyncio.to_thread(self.agreements.close)
        await asyncio.to_thread(self.gold_scores.close)
        await asyncio.to_thread(self.row_indexes.close)
        await asyncio.to_thread(self.store.close)

    async def read(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that reads the store, or computes for long, in a thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, partial(function, *args, **kwargs))

    async def write(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that writes to the store in the writer thread."""
        return await self.writer.queue_write(partial(function, *args, **kwargs))

    async def run_grouped(self, call: GroupCall) -> Any:
        """Run a lease or an answer in the writer thread, in one transaction with others that wait."""
        (future,) = self.writer.queue_grouped([call])
        return await future

    async def convert_message(
        self, message: Message, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a conversion of `message`: at once if it is small, otherwise in a thread."""
        if message.ByteSize() <= INLINE_BYTES:
            return function(*args, **kwargs)
        return await self.read(function, *args, **kwargs)

    async def answer_by_tree(
        self,
        request: Request,
        answer: Callable[[Request, ModelSchema, TreeClassifier, MessageLimits], T],
        model: str,
        min_sequence: int,
    ) -> T:
        """Answer a request by the newest tree; if it seems invalid, try again with the schema read again."""
        sizes = self.config.message_limits
        classifier, schema = await self.catalogue.classifier_and_schema(model, min_sequence)
        try:
            return await self.convert_message(request, answer, request, schema, classifier, sizes)
        except InvalidInput:  # another server may have just learned a value, or replaced the model
            if await self.catalogue.reload_schema(model) == schema:
                raise
        classifier, schema = await self.catalogue.classifier_and_schema(model, min_sequence)
        return await self.convert_message(request, answer, request, schema, classifier, sizes)

    async def wait_or_stop(self, awaited: Coroutine[Any, Any, object]) -> None:
        """Wait for something, or until the server stops."""
        waiting = asyncio.ensure_future(awaited)
        stop = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait({waiting, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            stop.cancel()

    def begin_stop(self) -> None:
        """Announce that the server stops, and interrupt calls that wait for a message of a stream."""
        self.stopping.set()
        for each in self._awaited:
            each.reschedule(0.0)

    async def requests_until_stop(self, stream: AsyncIterator[T]) -> AsyncIterator[T]:
        """Yield the messages of a stream until it ends; raise ``Unavailable`` if the server stops first."""
        messages = aiter(stream)
        while not self.stopping.is_set():
            # `begin_stop` sets this deadline. Waiting for the stop in a task beside each message would take longer than
            # everything else about reading a message.
            wait = asyncio.timeout(None)
            try:
                async with wait:
                    self._awaited.add(wait)
                    try:
                        message = await anext(messages)
                    finally:
                        self._awaited.discard(wait)
            except StopAsyncIteration:
                return
            except TimeoutError:
                if not wait.expired():
                    raise
                break
            yield message
        raise Unavailable(STOPPING)


class OnCore:
    """The common part of a service."""

    def __init__(self, core: ServiceCore) -> None:
        self._core = core
