"""A proxy between a client and a server: it hands calls on, refuses them, or loses the server's responses."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

WORDS = "the proxy is broken"


class Proxy(grpc.GenericRpcHandler):
    """Hands bytes on to a server, but for the methods that `concerns` names.

    Parameters
    ----------
    server : its address.

    Attributes
    ----------
    address : where the proxy listens.
    concerns : regular expression of a part of the names of methods.
    broken : with what such calls are refused; None: they are handed on.
    retry_s : said with a refusal; None: nothing is.
    delay_s : how long each answer to such a call takes more, as over a slow line.
    loses : how many answers to such calls do not come back: the server has done what it was asked.
    passes : how many answers to such calls come back before any is lost.
    refused, asked : how many of them were refused, and came in all.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self.address = ""
        self.concerns = "/Push"
        self.broken: grpc.StatusCode | None = None
        self.retry_s: float | None = None
        self.delay_s = 0.0
        self.passes = self.loses = self.refused = self.asked = 0

    def service(self, details: Any) -> Any:
        """Return the handler of a method."""
        is_concerned = re.search(self.concerns, details.method) is not None

        async def forward(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            self.asked += is_concerned
            if is_concerned and self.broken is not None:
                self.refused += 1
                await context.abort(self.broken, WORDS, self._metadata(self.broken))
            async with grpc.aio.insecure_channel(self._server) as channel:
                try:
                    async for response in channel.stream_stream(details.method)(requests):
                        if is_concerned and self.passes:
                            self.passes -= 1
                        elif is_concerned and self.loses:
                            self.loses -= 1
                            await context.abort(grpc.StatusCode.UNAVAILABLE, "the answer is lost")
                        if is_concerned:
                            await asyncio.sleep(self.delay_s)
                        yield response
                except grpc.aio.AioRpcError as error:
                    await context.abort(error.code(), error.details() or "", tuple(error.trailing_metadata()))

        return grpc.stream_stream_rpc_method_handler(forward)

    def _metadata(self, code: grpc.StatusCode) -> tuple[tuple[str, bytes], ...]:
        if self.retry_s is None:
            return ()
        status = status_pb2.Status(code=code.value[0], message=WORDS)
        pause = Duration(nanos=round(self.retry_s * 1e9))
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=pause))
        return (("grpc-status-details-bin", status.SerializeToString()),)


@contextmanager
def running_proxy(server: str) -> Iterator[Proxy]:
    """Run a proxy before a server."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    made = Proxy(server)

    async def start() -> tuple[grpc.aio.Server, int]:
        listening = grpc.aio.server(handlers=[made])
        port = listening.add_insecure_port("127.0.0.1:0")
        await listening.start()
        return listening, port

    listening, port = asyncio.run_coroutine_threadsafe(start(), loop).result(30)
    try:
        made.address = f"127.0.0.1:{port}"
        yield made
    finally:
        asyncio.run_coroutine_threadsafe(listening.stop(None), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
