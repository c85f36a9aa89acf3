"""What a synchronous push travels on: a stream, or for one batch a call of its own."""

from __future__ import annotations

import queue
import threading
import time
from types import TracebackType
from typing import Any, Self

import grpc

from quercus.client import pushing
from quercus.client.errors import DeadlineExceeded, QuercusError, Unavailable, from_rpc
from quercus.proto.v1 import instance_pb2


class PushLine:
    """The way of one push.

    Sends batches, waits for acknowledgements, opens a new stream when one breaks. A push of one batch needs none.
    """

    def __init__(
        self,
        stub: Any,
        ledger: pushing.Ledger,
        address: str,
        timeout_s: float,
    ) -> None:
        self._stub = stub
        self._address = address
        self._timeout_s = timeout_s
        self._ledger = ledger
        self._call: Any = None
        self._reader: threading.Thread | None = None
        self._outgoing: queue.SimpleQueue[instance_pb2.PushInstancesRequest | None] = queue.SimpleQueue()
        self._arrived: queue.SimpleQueue[instance_pb2.PushInstancesResponse | grpc.RpcError | None] = (
            queue.SimpleQueue()
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _open(self) -> None:
        self._outgoing, self._arrived = queue.SimpleQueue(), queue.SimpleQueue()
        self._call = self._stub.PushInstances(iter(self._outgoing.get, None))
        self._reader = threading.Thread(
            target=_read, args=(self._call, self._arrived), name="quercus-push", daemon=True
        )
        self._reader.start()

    def _close(self) -> None:
        if self._call is None:
            return
        self._outgoing.put(None)  # ends grpc's thread that reads our requests
        if self._ledger.pending:
            self._call.cancel()
        elif self._reader is not None:
            self._reader.join(
                pushing.CLOSE_S
            )  # the server ends the stream, and counts it as one that went well

    def send(self, batch: pushing.Batch) -> None:
        """Send a batch."""
        is_alone = batch.is_all and self._call is None and not self._ledger.pending
        self._ledger.sent(batch)
        if is_alone:
            return  # in `settle`, unless another comes before: an outbox has many that are all of a `put`
        if self._call is None:
            self._send_again()
        else:
            self._outgoing.put(batch.request)

    def settle(self, until: int) -> None:
        """Take the acknowledgements that are there, and wait until at most ``until`` batches are on their way."""
        while (waiting := len(self._ledger.pending)) > until or (waiting and not self._arrived.empty()):
            try:
                self._ledger.acknowledged(self._receive())
            except QuercusError as error:
                pause_s = self._ledger.broken(error)
                self._close()
                time.sleep(pause_s)
                if self._call is not None:
                    self._send_again()

    def _send_again(self) -> None:
        self._open()
        for batch in self._ledger.pending:
            self._outgoing.put(batch.request)

    def _receive(self) -> instance_pb2.PushInstancesResponse | instance_pb2.PushBatchResponse:
        return self._call_alone() if self._call is None else self._next()

    def _call_alone(self) -> instance_pb2.PushInstancesResponse | instance_pb2.PushBatchResponse:
        (batch,) = self._ledger.pending
        try:
            stored: instance_pb2.PushBatchResponse = self._stub.PushBatch(
                pushing.alone(batch), timeout=self._timeout_s
            )
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise from_rpc(error, self._address) from None
            self._send_again()  # a server of an earlier version has streams only
            return self._next()
        return stored

    def _next(self) -> instance_pb2.PushInstancesResponse:
        timeout_s, address = self._timeout_s, self._address
        try:
            ack = self._arrived.get(timeout=timeout_s)
        except queue.Empty:
            raise DeadlineExceeded(f"{address} did not acknowledge a batch within {timeout_s:g} s") from None
        if ack is None:
            raise Unavailable(f"{address} ended the stream with batches unacknowledged")
        if isinstance(ack, grpc.RpcError):
            raise from_rpc(ack, address) from None
        return ack


def _read(call: Any, arrived: queue.SimpleQueue[Any]) -> None:
    try:
        for ack in call:
            arrived.put(ack)
        arrived.put(None)
    except grpc.RpcError as error:
        arrived.put(error)
