"""The connection of one push: a stream, or a single call for a single batch."""

from __future__ import annotations

from typing import Any, Self

import grpc

from quercus.client import pushing
from quercus.client.concurrency import AsyncBidirectionalCall, AsyncInbox, async_sleep
from quercus.client.errors import DeadlineExceeded, QuercusError, Unavailable, from_rpc
from quercus.v1 import instance_pb2


class AsyncPushLine:
    """Sends the batches of one push, and waits for acknowledgements; a stream that breaks is opened again.

    Parameters
    ----------
    stub
        Stub of the service of instances.
    ledger
        The state of the push.
    address
        Address of the server, for errors.
    timeout_s
        Deadline of each acknowledgement.
    """

    def __init__(self, stub: Any, ledger: pushing.PushState, address: str, timeout_s: float) -> None:
        self._stub, self._ledger = stub, ledger
        self._address, self._timeout_s = address, timeout_s
        self._call: AsyncBidirectionalCall | None = None
        self._arrived: AsyncInbox[
            instance_pb2.PushInstancesResponse | grpc.RpcError | QuercusError | None
        ] = AsyncInbox()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close_stream()

    async def _close_stream(self) -> None:
        if self._call is None:
            return
        if not self._ledger.pending:
            await self._call.finish(pushing.CLOSE_S)
        await self._call.cancel()

    async def send_batch(self, batch: pushing.Batch) -> None:
        """Send a batch; if the stream is broken, :meth:`settle_batches` finds out and sends it again."""
        batch.request.continue_on_error = self._ledger.takes_rejected  # counts in the first of a stream
        is_alone = batch.is_all and self._call is None and not self._ledger.pending
        self._ledger.record_sent(batch)
        if is_alone or not batch.rows:
            return  # in `settle_batches`, unless another comes before: an outbox has many that are all of a `put`
        if self._call is None:
            await self._send_again()
        else:
            await self._call.write(batch.request)

    async def settle_batches(self, until: int) -> None:
        """Take received acknowledgements, and wait until at most ``until`` batches are on their way."""
        while (waiting := len(self._ledger.pending)) > until or (waiting and not self._arrived.empty()):
            try:
                await self._receive_acknowledgement()
            except QuercusError as error:
                pause_s = self._ledger.record_break(error)
                await self._close_stream()
                await async_sleep(pause_s)
                if self._call is not None:
                    await self._send_again()

    async def _send_again(self) -> None:
        self._arrived = AsyncInbox()
        self._call = AsyncBidirectionalCall(self._stub.PushInstances, self._arrived.put, "quercus-push")
        for batch in self._ledger.pending:
            await self._call.write(batch.request)

    async def _receive_acknowledgement(self) -> None:
        if self._call is None:
            await self._call_alone()
        else:
            self._ledger.record_response(await self._next_acknowledgement())

    async def _call_alone(self) -> None:
        (batch,) = self._ledger.pending
        try:
            stored: instance_pb2.PushBatchResponse = await self._stub.PushBatch(
                pushing.single_request(batch), timeout=self._timeout_s
            )
        except grpc.RpcError as error:
            self._ledger.alone_failed(batch, from_rpc(error, self._address))
        else:
            self._ledger.record_response(stored)

    async def _next_acknowledgement(self) -> instance_pb2.PushInstancesResponse:
        try:
            arrived = await self._arrived.get(self._timeout_s)
        except TimeoutError:
            reason = f"{self._address} did not acknowledge a batch within {self._timeout_s:g} s"
            raise DeadlineExceeded(reason) from None
        if arrived is None:
            raise Unavailable(f"{self._address} ended the stream with batches unacknowledged")
        if isinstance(arrived, grpc.RpcError):
            raise from_rpc(arrived, self._address) from None
        if isinstance(arrived, QuercusError):
            raise arrived
        return arrived
