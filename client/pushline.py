"""The stream that a synchronous push travels on."""

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
    """The stream of one push.

    Sends batches, waits for acknowledgements, opens a new stream when one breaks.
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
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _open(self) -> None:
        outgoing: queue.SimpleQueue[instance_pb2.PushInstancesRequest | None] = queue.SimpleQueue()
        arrived: queue.SimpleQueue[instance_pb2.PushInstancesResponse | grpc.RpcError | None] = (
            queue.SimpleQueue()
        )
        call = self._stub.PushInstances(iter(outgoing.get, None))
        self._outgoing, self._arrived, self._call = outgoing, arrived, call
        threading.Thread(target=_read, args=(call, arrived), name="quercus-push", daemon=True).start()

    def _close(self) -> None:
        self._outgoing.put(None)  # ends grpc's thread that reads our requests
        if self._ledger.pending:
            self._call.cancel()

    def send(self, batch: pushing.Batch) -> None:
        """Send a batch."""
        self._ledger.sent(batch)
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
                self._open()
                for batch in self._ledger.pending:
                    self._outgoing.put(batch.request)

    def _receive(self) -> instance_pb2.PushInstancesResponse:
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
