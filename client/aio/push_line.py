"""The connection of one push: a stream, or a single call for a single batch."""

from __future__ import annotations

from typing import Self

import grpc

from quercus.client import pushing
from quercus.client.aio.connection import Connection
from quercus.client.concurrency import AsyncBidirectionalCall, AsyncInbox, async_sleep
from quercus.client.errors import DeadlineExceeded, QuercusError, Unavailable, from_rpc
from quercus.v1 import instance_pb2


class AsyncPushLine:
    """Sends the batches of one push, and waits for acknowledgements; reopens a broken stream.

    Parameters
    ----------
    client
        The connection.
    ledger
        The state of the push.
    """

    def __init__(self, client: Connection, ledger: pushing.PushState) -> None:
        self._client, self._ledger = client, ledger
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
        batch.request.continue_on_error = (
            self._ledger.takes_rejected
        )  # only the first message of a stream counts
        is_alone = batch.is_all and self._call is None and not self._ledger.pending
        self._ledger.record_sent(batch)
        if is_alone or not batch.rows:
            return  # sent by `settle_batches`, unless another batch follows: those of an outbox are each a whole `put`
        if self._call is None:
            await self._send_again()
        else:
            await self._call.write(batch.request)

    async def settle_batches(self, until: int) -> None:
        """Process received acknowledgements, and wait until at most ``until`` batches are unacknowledged."""
        while (waiting := len(self._ledger.pending)) > until or (waiting and not self._arrived.empty()):
            try:
                if self._call is None:
                    await self._call_alone()
                else:
                    await self._receive_acknowledgement()
            except QuercusError as error:
                pause_s = self._ledger.record_break(error)
                await self._close_stream()
                await async_sleep(pause_s)
                if self._call is not None:
                    await self._send_again()

    async def _send_again(self) -> None:
        self._arrived = AsyncInbox()
        method = self._client._methods[instance_pb2.PushInstancesRequest.DESCRIPTOR]
        self._call = AsyncBidirectionalCall(method, self._arrived.put, "quercus-push")
        for batch in self._ledger.pending:
            await self._call.write(batch.request)

    async def _call_alone(self) -> None:
        (batch,) = self._ledger.pending
        # The two requests have the same fields.
        request = instance_pb2.PushBatchRequest.FromString(batch.request.SerializeToString())
        try:
            stored: instance_pb2.PushBatchResponse = await self._client._methods[request.DESCRIPTOR](
                request, timeout=self._client.timeout_s
            )
        except grpc.RpcError as error:
            self._ledger.alone_failed(batch, from_rpc(error, self._client.address))
        else:
            self._ledger.record_response(stored)

    async def _receive_acknowledgement(self) -> None:
        address, timeout_s = self._client.address, self._client.timeout_s
        try:
            arrived = await self._arrived.get(timeout_s)
        except TimeoutError:
            reason = f"{address} did not acknowledge a batch within {timeout_s:g} s"
            raise DeadlineExceeded(reason) from None
        if arrived is None:
            raise Unavailable(f"{address} ended the stream with batches unacknowledged")
        if isinstance(arrived, grpc.RpcError):
            raise from_rpc(arrived, address) from None
        if isinstance(arrived, QuercusError):
            raise arrived
        self._ledger.record_response(arrived)
