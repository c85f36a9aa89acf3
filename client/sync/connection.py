# Generated from client/aio/connection.py by `make client`; edit that file.
"""The connection that all calls of the client share: single calls, lists and streams, which survive outages."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any, Self, TypeVar

import grpc

from quercus.client import retrying, transport
from quercus.client.concurrency import connected, sleep
from quercus.client.errors import Unavailable, from_rpc
from quercus.client.memory import RowFormats, SeenSequences

T = TypeVar("T")


class Connection:
    """A channel to a server, and this client's memory of the models there."""

    def __init__(
        self,
        address: str | None = None,
        *,
        timeout_s: float = transport.DEFAULT_TIMEOUT_S,
        outage_s: float = retrying.OUTAGE_S,
        token: str | None = None,
        ca: Path | str | None = None,
    ) -> None:
        self.address = transport.server_address(address)
        self.timeout_s = min(timeout_s, transport.MAX_TIMEOUT_S)
        self._outage = retrying.Outage(outage_s)
        self._sequences = SeenSequences()
        self._forms = RowFormats()
        token = transport.load_token(token)
        self.has_token = token is not None
        self._channel = transport.channel(self.address, token, ca)
        self._methods = transport.methods_on(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; calls under way fail."""
        self._channel.close()

    def _call(self, request: Any, timeout_s: float | None = None) -> Any:
        """Return the response to a request; the type of the request determines the method."""
        method = self._methods[request.DESCRIPTOR]
        trial = self._outage.start_attempts()
        while True:
            try:
                answer = method(request, timeout=min(timeout_s or self.timeout_s, transport.MAX_TIMEOUT_S))
            except grpc.RpcError as error:
                failed = from_rpc(error, self.address)
                pause_s = trial.pause_s(failed, is_repeated=retrying.is_repeated(request))
                if pause_s is None:
                    raise failed from None
                sleep(pause_s)
            else:
                trial.note_success()
                return answer

    def _list(self, request: Any, read: Callable[[Any], Iterable[T]]) -> Generator[T, None, None]:
        """Yield what `read` finds in each page of a list."""
        while True:
            page = self._call(request)
            for each in read(page):
                yield each
            request.page_token = page.next_page_token
            if not request.page_token:
                return

    def _stream_messages(
        self,
        request: Any,
        timeout_s: float | None = None,
        *,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Generator[Any, None, None]:
        """Yield the messages of a stream. After an outage, the stream is reopened with the current ``request``.

        Parameters
        ----------
        request
            The consumer updates it with its position.
        timeout_s
            Limit of all streams together; ``None``: no limit.
        is_over
            Function that returns whether the broken stream was complete.
        """
        until = None if timeout_s is None else time.monotonic() + min(timeout_s, transport.MAX_TIMEOUT_S)
        trial = self._outage.start_attempts()
        while True:
            left_s = None if until is None else max(0.0, until - time.monotonic())
            call = self._methods[request.DESCRIPTOR](request, timeout=left_s)
            try:
                for message in call:
                    trial.note_success()
                    yield message
                return
            except grpc.RpcError as error:
                failed = from_rpc(error, self.address)
                pause_s = trial.pause_s(failed)
                if pause_s is None:
                    raise failed from None
            finally:
                call.cancel()
            if is_over():
                return
            sleep(pause_s)

    def on_outage(self, notify: Callable[[float], None]) -> None:
        """Call ``notify`` once per outage, when a server that answered before is unreachable.

        Parameters
        ----------
        notify
            Called with the number of seconds for which calls wait, possibly in a thread of the client.
        """
        self._outage.notify = notify

    def wait_ready(self, timeout_s: float = 10.0) -> None:
        """Wait until the server answers; :class:`Unavailable` if it does not within ``timeout_s``."""
        try:
            connected(self._channel, timeout_s)
        except TimeoutError:
            raise Unavailable(f"no server answers at {self.address} after {timeout_s:g} s") from None
