# Generated from client/aio/push_line.py by `make client`; edit that file.
"""The connection of one push: a stream, or a single call for a single batch."""

from __future__ import annotations

from typing import Any, Self

import grpc

from quercus.client import pushing
from quercus.client.concurrency import BidirectionalCall, Inbox, sleep
from quercus.client.errors import DeadlineExceeded, QuercusError, Unavailable, from_rpc
from quercus.v1 import instance_pb2


class PushLine:
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
        self._call: BidirectionalCall | None = None
        self._arrived: Inbox[instance_pb2.PushInstancesResponse | grpc.RpcError | QuercusError | None] = (
            Inbox()
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close_stream()

    def _close_stream(self) -> None:
        if self._call is None:
            return
        if not self._ledger.pending:
            self._call.finish(pushing.CLOSE_S)
        self._call.cancel()

    def send_batch(self, batch: pushing.Batch) -> None:
        """Send a batch; if the stream is broken, :meth:`settle_batches` finds out and sends it again."""
        batch.request.continue_on_error = self._ledger.takes_rejected  # counts in the first of a stream
        is_alone = batch.is_all and self._call is None and not self._ledger.pending
        self._ledger.record_sent(batch)
        if is_alone or not batch.rows:
            return  # in `settle_batches`, unless another comes before: an outbox has many that are all of a `put`
        if self._call is None:
            self._send_again()
        else:
            self._call.write(batch.request)

    def settle_batches(self, until: int) -> None:
        """Take received acknowledgements, and wait until at most ``until`` batches are on their way."""
        while (waiting := len(self._ledger.pending)) > until or (waiting and not self._arrived.empty()):
            try:
                self._receive_acknowledgement()
            except QuercusError as error:
                pause_s = self._ledger.record_break(error)
                self._close_stream()
                sleep(pause_s)
                if self._call is not None:
                    self._send_again()

    def _send_again(self) -> None:
        self._arrived = Inbox()
        self._call = BidirectionalCall(self._stub.PushInstances, self._arrived.put, "quercus-push")
        for batch in self._ledger.pending:
            self._call.write(batch.request)

    def _receive_acknowledgement(self) -> None:
        if self._call is None:
            self._call_alone()
        else:
            self._ledger.record_response(self._next_acknowledgement())

    def _call_alone(self) -> None:
        (batch,) = self._ledger.pending
        try:
            stored: instance_pb2.PushBatchResponse = self._stub.PushBatch(
                pushing.single_request(batch), timeout=self._timeout_s
            )
        except grpc.RpcError as error:
            self._ledger.alone_failed(batch, from_rpc(error, self._address))
        else:
            self._ledger.record_response(stored)

    def _next_acknowledgement(self) -> instance_pb2.PushInstancesResponse:
        try:
            arrived = self._arrived.get(self._timeout_s)
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
