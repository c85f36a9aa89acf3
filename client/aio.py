"""The asyncio client: the same calls as :class:`quercus.client.Client`, awaited.

An object belongs to the loop in which it was made.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc

from quercus.client import convert, pushing, query_calls, requests, transport
from quercus.client.aio_labelling import LabellingCalls
from quercus.client.aio_streaming import AsyncQueryStream
from quercus.client.classifying import Form, Forms, Wanted
from quercus.client.comparing import same_model
from quercus.client.errors import (
    AlreadyExists,
    DeadlineExceeded,
    FailedPrecondition,
    QuercusError,
    Unavailable,
    from_rpc,
)
from quercus.client.labelling_results import ANY, Filter
from quercus.client.results import (
    Classifications,
    Instance,
    Lease,
    Model,
    PushReport,
    Query,
    Specification,
    Status,
)
from quercus.client.rows import Row, async_chunks
from quercus.client.security import Security
from quercus.client.stream_parts import Terms
from quercus.client.stubs import Stubs
from quercus.client.treeview import Tree, TreeUpdate, Watched, wanted_sequence
from quercus.proto.v1 import admin_pb2, instance_pb2, model_pb2, tree_pb2


class Client(LabellingCalls):
    """A connection to a Quercus server for asyncio programs.

    Parameters
    ----------
    address, timeout_s, outage_s, token, ca
        As in :class:`quercus.client.Client`.

    Examples
    --------
    >>> async with Client() as client:                                                 # doctest: +SKIP
    ...     await client.push("wine", rows)
    ...     async for query in client.queries("wine", labeller="ann"):
    ...         await client.answer(query, "red")
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        timeout_s: float = transport.DEFAULT_TIMEOUT_S,
        outage_s: float = transport.OUTAGE_S,
        token: str | None = None,
        ca: Path | str | None = None,
    ) -> None:
        self.address = transport.server_address(address)
        self.timeout_s = timeout_s
        self._outage = transport.Outage(outage_s)
        self._sequences = transport.Sequences()
        self._forms = Forms()
        self._channel = Security.load(token, ca).aio_channel(self.address)
        self._stubs = Stubs(self._channel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; calls under way fail."""
        await self._channel.close()

    async def _call(
        self, method: Callable[..., Awaitable[Any]], request: Any, timeout_s: float | None = None
    ) -> Any:
        trial = self._outage.trial()
        while True:
            try:
                answer = await method(request, timeout=timeout_s or self.timeout_s)
            except grpc.RpcError as error:
                failed = from_rpc(error, self.address)
                pause_s = trial.pause_s(failed.retry_s) if requests.may_repeat(request, failed) else None
                if pause_s is None:
                    raise failed from None
                await asyncio.sleep(pause_s)
            else:
                trial.succeeded()
                return answer

    async def wait_ready(self, timeout_s: float = 10.0) -> None:
        """Wait until the server answers; :class:`Unavailable` when it does not within ``timeout_s``."""
        try:
            await asyncio.wait_for(self._channel.channel_ready(), timeout_s)
        except TimeoutError:
            raise Unavailable(f"no server answers at {self.address} after {timeout_s:g} s") from None

    # The server

    async def status(self) -> Status:
        """How the server is."""
        return convert.status(await self._call(self._stubs.admin.GetStatus, admin_pb2.GetStatusRequest()))

    async def set_log_level(self, level: str) -> str:
        """Have the server log from ``level`` on (debug, info, warning, error) until it ends; the level before."""
        request = admin_pb2.SetLogLevelRequest(level=level)
        previous: str = (await self._call(self._stubs.admin.SetLogLevel, request)).previous
        return previous

    # Models

    async def create_model(self, name: str, specification: Specification, *, exist_ok: bool = False) -> Model:
        """Create a model.

        Parameters
        ----------
        name
            1 to 63 of ``a-z 0-9 _ -``, a letter first.
        specification
            What is known of the data, and how to learn.
        exist_ok
            Where the name is taken by a model of the same specification, return that one.

        Raises
        ------
        AlreadyExists
            The name is taken; with ``exist_ok``: by a model of another specification, whose differences it names.
        """
        request = model_pb2.CreateModelRequest(
            model_id=name, specification=requests.specification(specification)
        )
        try:
            made = convert.model(await self._call(self._stubs.models.CreateModel, request))
        except AlreadyExists:
            if not exist_ok:
                raise
            return same_model(await self.get_model(name), specification)
        self._sequences.forget(name)
        self._forms.forget(name)
        return made

    async def get_model(self, name: str) -> Model:
        """The model as it is now."""
        request = model_pb2.GetModelRequest(name=convert.model_resource(name))
        found = convert.model(await self._call(self._stubs.models.GetModel, request))
        self._sequences.met(name, found.uid)
        return found

    model = get_model

    async def models(self) -> AsyncIterator[Model]:
        """All models, in order of name."""
        request = model_pb2.ListModelsRequest()
        while True:
            page = await self._call(self._stubs.models.ListModels, request)
            for each in page.models:
                yield convert.model(each)
            request.page_token = page.next_page_token
            if not request.page_token:
                return

    async def update_model(self, name: str, **changes: requests.Change) -> Model:
        """Change alpha, budget, min_instances, max_depth (``None``: no limit), strategy, pruning or prediction_level.

        A pruning of ``None`` is none.
        """
        return convert.model(await self._call(self._stubs.models.UpdateModel, requests.update(name, changes)))

    async def delete_model(self, name: str) -> None:
        """Delete a model with its evidence, queries and trees."""
        request = model_pb2.DeleteModelRequest(name=convert.model_resource(name))
        await self._call(self._stubs.models.DeleteModel, request)
        self._sequences.forget(name)
        self._forms.forget(name)

    async def _form(self, model: str) -> Form:
        """What is remembered of a model, or asked for."""
        form = self._forms.fresh(model)
        if form is None or self._sequences.uid(model) not in {
            "",
            form.uid,
        }:  # the name stands for another now
            found = await self.get_model(model)
            form = self._forms.learn(model, found.specification, found.uid)
        return form

    # Instances

    async def push(
        self,
        model: str,
        rows: AsyncIterable[Row] | Iterable[Row] | Any,
        labels: pushing.Labels = None,
        ids: Iterable[str] | None = None,
        *,
        batch_rows: int = 1000,
        window: int = pushing.WINDOW_BATCHES,
        on_progress: pushing.Progress | None = None,
    ) -> PushReport:
        """Push rows, as :meth:`quercus.client.Client.push` does; ``rows`` may be an async iterable too."""
        pushing.check_sizes(batch_rows, window)
        form = await self._form(model)
        batcher = pushing.Batcher(model, form.specification, labels, ids, batch_rows=batch_rows, uid=form.uid)
        ledger = pushing.Ledger(window, on_progress, self._outage.outage_s)
        line = _PushLine(self._stubs.instances, ledger, self.address, self.timeout_s)
        try:
            async for chunk in async_chunks(rows, batcher.batch_rows):
                if batcher.wants_renewal(chunk):
                    self._forms.forget(model)
                    batcher.renew((await self._form(model)).specification)
                await line.send(batcher.batch(chunk))
                await line.settle(until=window - 1)
            await line.settle(until=0)
            batcher.finish(ledger.report.rows)
        except Exception as error:
            self._forms.forget(model)
            if not pushing.is_final(error):  # a row is wrong: what is on its way still counts
                await line.settle(until=0)
            raise ledger.failed(error) from error.__cause__
        finally:
            if ledger.report.batches:
                self._sequences.saw(model, ledger.report.model_uid, ledger.report.committed_sequence)
            await line.close()
        return ledger.report

    async def get_instance(self, model: str, instance: str) -> Instance:
        """A row with everything that was ever said about its label."""
        classes = tuple((await self.get_model(model)).specification.classes)
        request = instance_pb2.GetInstanceRequest(name=f"models/{model}/instances/{instance}")
        return convert.instance(await self._call(self._stubs.instances.GetInstance, request), classes)

    async def instances(self, model: str) -> AsyncIterator[Instance]:
        """All rows with their label history, in the order they came."""
        classes = tuple((await self.get_model(model)).specification.classes)
        request = instance_pb2.ListInstancesRequest(model=convert.model_resource(model), page_size=1000)
        while True:
            page = await self._call(self._stubs.instances.ListInstances, request)
            for each in page.instances:
                yield convert.instance(each, classes)
            request.page_token = page.next_page_token
            if not request.page_token:
                return

    # Queries

    async def lease(
        self,
        model: str,
        labeller: str,
        *,
        lease_s: float = 60.0,
        wait_s: float = 0.0,
        only: Filter | None = None,
    ) -> Lease:
        """Lease one query, waiting up to ``wait_s`` (at most 60) for one."""
        newest = self._sequences.newest(model)
        ask = query_calls.lease(model, labeller, lease_s, wait_s, newest, only)
        try:
            return await self._ask(ask, self.timeout_s + wait_s)
        except FailedPrecondition as error:
            if not transport.is_beyond(error):
                raise
        self._sequences.forget(model)  # what was seen was of a model that is gone
        self._forms.forget(model)
        return await self._ask(
            query_calls.lease(model, labeller, lease_s, wait_s, 0, only), self.timeout_s + wait_s
        )

    async def queries(
        self,
        model: str,
        labeller: str,
        *,
        lease_s: float = 60.0,
        idle_s: float | None = 10.0,
        only: Filter | None = None,
    ) -> AsyncGenerator[Query, None]:
        """Queries one after another, as :meth:`quercus.client.Client.queries` gives them."""
        patience = requests.Patience(idle_s)
        while True:
            lease = await self.lease(model, labeller, lease_s=lease_s, wait_s=patience.wait_s, only=only)
            if not lease.queries:
                now = await self.get_model(model) if lease.idle == "budget_spent" else None
                if patience.ended(lease, now):
                    return
                continue
            patience.renew()
            query = lease.queries[0]
            keeper = asyncio.create_task(self._keep(query, lease_s))
            try:
                yield query
            except GeneratorExit:
                with contextlib.suppress(QuercusError):  # answered or refused: nothing to give back
                    await self.release(query)
                raise
            finally:
                keeper.cancel()
            if model != ANY and not lease.budget_left and requests.is_spent(await self.get_model(model)):
                return

    def stream_queries(
        self,
        model: str,
        labeller: str,
        *,
        prefetch: int = 3,
        lease_s: float = 60.0,
        idle_s: float | None = 10.0,
        only: Filter | None = None,
    ) -> AsyncQueryStream:
        """A stream of queries to iterate over within ``async with``; see `quercus.client.Client`."""
        return AsyncQueryStream(self, Terms(model, labeller, lease_s, prefetch, only), idle_s)

    async def _keep(self, query: Query, lease_s: float) -> None:
        while True:
            await asyncio.sleep(lease_s / 3)
            try:
                await self.extend_lease(query, lease_s)
            except (Unavailable, DeadlineExceeded):
                continue  # the server may be back before the lease ends
            except QuercusError as error:
                if error.retry_s is None:  # else the server was too busy
                    return  # answered, or another's by now: the answer itself will say so

    # Classification and trees

    async def classify(
        self,
        model: str,
        rows: Iterable[Row] | Any,
        *,
        min_sequence: int = 0,
        want_paths: bool = False,
        want_masses: bool = False,
    ) -> Classifications:
        """Classify rows, as :meth:`quercus.client.Client.classify` does."""
        wanted = Wanted(min_sequence, want_paths, want_masses)
        form = await self._form(model)
        try:
            answers = [
                await self._call(self._stubs.classify.Classify, request)
                for request in form.requests(model, rows, wanted)
            ]
        except QuercusError:
            self._forms.forget(model)
            raise
        return form.result(answers, want_paths)

    async def tree(self, model: str, version: int | None = None, member: int = 0) -> Tree:
        """The newest tree, or any earlier version; of several trees number ``member``."""
        request = tree_pb2.GetTreeRequest(name=convert.tree_resource(model, version), member=member)
        return convert.tree(await self._call(self._stubs.trees.GetTree, request))

    async def render(
        self,
        model: str,
        form: convert.RenderFormat = "text",
        version: int | None = None,
        member: int | None = None,
    ) -> str:
        """A drawing: ``"text"``, ``"dot"`` (Graphviz) or ``"svg"``; of several trees one, or an overview."""
        request = convert.render_request(model, version, form, member)
        return str((await self._call(self._stubs.trees.RenderTree, request)).content)

    async def watch(self, model: str, *, timeout_s: float | None = None) -> AsyncGenerator[TreeUpdate, None]:
        """The newest tree, then every newer one as it is grown (a slow reader skips versions)."""
        async with contextlib.aclosing(self._watch(model, timeout_s, Watched(model))) as updates:
            async for update in updates:
                yield update

    async def _watch(
        self, model: str, timeout_s: float | None, watched: Watched
    ) -> AsyncGenerator[TreeUpdate, None]:
        request = tree_pb2.WatchTreeRequest(model=convert.model_resource(model))
        until = None if timeout_s is None else time.monotonic() + timeout_s
        trial = self._outage.trial()
        while True:
            left_s = None if until is None else max(0.0, until - time.monotonic())
            call = self._stubs.trees.WatchTree(request, timeout=left_s)
            try:
                async for update in call:
                    trial.succeeded()
                    if watched.is_new(update):  # after an outage the newest comes again
                        yield TreeUpdate(convert.tree(update.tree), update.committed_sequence)
                return
            except grpc.RpcError as error:
                failed = from_rpc(error, self.address)
                pause_s = trial.pause_s() if isinstance(failed, Unavailable) else None
                if pause_s is None:
                    raise failed from None
            finally:
                call.cancel()
            await asyncio.sleep(pause_s)

    async def wait_grown(
        self, model: str, sequence: int | None = None, timeout_s: float | None = 60.0
    ) -> Model:
        """Wait until the tree is a function of the log up to ``sequence`` (default: all of it)."""
        before, now = self._sequences.uid(model), await self.get_model(model)
        wanted = wanted_sequence(before, now, sequence)
        try:
            async with contextlib.aclosing(self._watch(model, timeout_s, Watched(model, now.uid))) as updates:
                async for update in updates:
                    if update.tree.as_of >= wanted:
                        return await self.get_model(model)
        except DeadlineExceeded:
            pass  # said better below, with how far growth came
        grown = (await self.get_model(model)).sequence_grown
        raise DeadlineExceeded(f"the tree of {model!r} stood at {grown} of {wanted} after {timeout_s:g} s")


class _PushLine:
    """What an asyncio push travels on; see :class:`quercus.client.pushline.PushLine`."""

    def __init__(self, stub: Any, ledger: pushing.Ledger, address: str, timeout_s: float) -> None:
        self._stub, self._ledger = stub, ledger
        self._address, self._timeout_s = address, timeout_s
        self._call: Any = None
        self._reading: asyncio.Future[Any] | None = None

    async def close(self) -> None:
        """End the stream; what is still unacknowledged is given up."""
        await self._stop_reading()
        if self._call is None:
            return
        if self._ledger.pending:
            self._call.cancel()
        elif not self._call.done():
            await self._call.done_writing()
            ended = asyncio.ensure_future(self._call.code())
            await asyncio.wait({ended}, timeout=pushing.CLOSE_S)  # else the server counts it as cancelled
            ended.cancel()

    async def send(self, batch: pushing.Batch) -> None:
        """Send a batch; when the stream is broken, :meth:`settle` will find out and send it again."""
        self._ledger.sent(batch)
        if batch.is_all:
            return  # in `settle`
        if self._call is None:
            self._call = self._stub.PushInstances()
        await self._write(batch)

    async def _write(self, batch: pushing.Batch) -> None:
        with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
            await self._call.write(batch.request)

    async def settle(self, until: int) -> None:
        """Take the acknowledgements that are there, and wait until at most ``until`` batches are on their way."""
        while (waiting := len(self._ledger.pending)) > until or (waiting and self._is_there()):
            try:
                self._ledger.acknowledged(await self._receive())
            except QuercusError as error:
                pause_s = self._ledger.broken(error)
                await self._stop_reading()
                if self._call is not None:
                    self._call.cancel()
                await asyncio.sleep(pause_s)
                if self._call is not None:
                    await self._send_again()

    async def _send_again(self) -> None:
        self._call = self._stub.PushInstances()
        for batch in self._ledger.pending:
            await self._write(batch)

    async def _stop_reading(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError, grpc.RpcError):
                await reading

    def _is_there(self) -> bool:
        """True when an acknowledgement can be taken without waiting."""
        if self._call is None:
            return False
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._call.read())
        return self._reading.done()

    async def _receive(self) -> instance_pb2.PushInstancesResponse | instance_pb2.PushBatchResponse:
        return await (self._call_alone() if self._call is None else self._next())

    async def _call_alone(self) -> instance_pb2.PushInstancesResponse | instance_pb2.PushBatchResponse:
        (batch,) = self._ledger.pending
        try:
            stored: instance_pb2.PushBatchResponse = await self._stub.PushBatch(
                pushing.alone(batch), timeout=self._timeout_s
            )
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise from_rpc(error, self._address) from None
            await self._send_again()  # a server of an earlier version has streams only
            return await self._next()
        return stored

    async def _next(self) -> instance_pb2.PushInstancesResponse:
        reading = self._reading or asyncio.ensure_future(self._call.read())
        self._reading = None
        try:
            ack = await asyncio.wait_for(reading, self._timeout_s)
        except TimeoutError:
            reason = f"{self._address} did not acknowledge a batch within {self._timeout_s:g} s"
            raise DeadlineExceeded(reason) from None
        except grpc.RpcError as error:
            raise from_rpc(error, self._address) from None
        if not isinstance(ack, instance_pb2.PushInstancesResponse):  # grpc.aio.EOF
            raise Unavailable(f"{self._address} ended the stream with batches unacknowledged")
        return ack
