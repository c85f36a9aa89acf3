"""The differences between asyncio and threads, in pairs: ``AsyncX`` for asyncio, ``X`` for threads.

Everything else is written once, in `quercus.client.aio`; ``make client`` derives `quercus.client.sync` from it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import queue
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import grpc

from quercus.client.errors import QuercusError, Unavailable

T = TypeVar("T")
JOIN_S = 1.0
"""Maximum seconds to wait for a thread whose call may hang because the server is gone."""

AsyncFuture = asyncio.Future
Future = concurrent.futures.Future
async_sleep = asyncio.sleep
sleep = time.sleep


async def async_result(future: asyncio.Future[T], timeout_s: float) -> T:
    """Return the result of a future; TimeoutError if there is none within ``timeout_s``."""
    return await asyncio.wait_for(future, timeout_s)


def result(future: Future[T], timeout_s: float) -> T:
    """Return the result of a future; TimeoutError if there is none within ``timeout_s``."""
    return future.result(timeout_s)


async def async_connected(channel: grpc.aio.Channel, timeout_s: float) -> None:
    """Wait until a channel is connected; TimeoutError if it is not within ``timeout_s``."""
    await asyncio.wait_for(channel.channel_ready(), timeout_s)


def connected(channel: grpc.Channel, timeout_s: float) -> None:
    """Wait until a channel is connected; TimeoutError if it is not within ``timeout_s``."""
    try:
        grpc.channel_ready_future(channel).result(timeout=timeout_s)
    except grpc.FutureTimeoutError:
        raise TimeoutError from None


class AsyncInbox(Generic[T]):
    """Items that arrive, in order."""

    def __init__(self) -> None:
        self._items: asyncio.Queue[T] = asyncio.Queue()
        self.put = self._items.put_nowait
        self.empty = self._items.empty

    async def get(self, timeout_s: float) -> T:
        """Return the next item; TimeoutError if none arrives within ``timeout_s``."""
        async with asyncio.timeout(timeout_s):
            return await self._items.get()


class Inbox(Generic[T]):
    """Items that arrive, in order."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[T] = queue.SimpleQueue()
        self.put = self._items.put
        self.empty = self._items.empty

    def get(self, timeout_s: float) -> T:
        """Return the next item; TimeoutError if none arrives within ``timeout_s``."""
        try:
            return self._items.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError from None


class AsyncRepeating:
    """Repeats an action every ``interval_s``, from `start` to `stop`, or until the action returns False."""

    def __init__(self, action: Callable[[], Awaitable[bool]], interval_s: float, name: str) -> None:
        self._action, self._interval_s, self._name = action, interval_s, name
        self._task: asyncio.Task[None] | None = None

    async def _run_repeatedly(self) -> None:
        await asyncio.sleep(self._interval_s)
        while await self._action():
            await asyncio.sleep(self._interval_s)

    async def start(self) -> None:
        """Begin; the first repetition is after ``interval_s``."""
        self._task = asyncio.create_task(self._run_repeatedly(), name=self._name)

    async def stop(self) -> None:
        """Stop repeating."""
        if self._task is not None:
            self._task.cancel()


class Repeating:
    """Repeats an action every ``interval_s``, from `start` to `stop`, or until the action returns False."""

    def __init__(self, action: Callable[[], bool], interval_s: float, name: str) -> None:
        self._action, self._interval_s = action, interval_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run_repeatedly, name=name, daemon=True)

    def _run_repeatedly(self) -> None:
        while not self._stopped.wait(self._interval_s) and self._action():
            pass

    def start(self) -> None:
        """Begin; the first repetition is after ``interval_s``."""
        self._thread.start()

    def stop(self) -> None:
        """Stop repeating; an active call to an unreachable server delays this by at most ``JOIN_S``."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout=JOIN_S)


class AsyncBidirectionalCall:
    """A call on which requests go and responses come at any time.

    Parameters
    ----------
    method
        Method of a stub.
    on_event
        Takes each response; at the end, the error that ended the call (of grpc, or a `QuercusError`), or None.
    name
        Name of the reading task.
    """

    def __init__(self, method: Callable[..., Any], on_event: Callable[[Any], object], name: str) -> None:
        self._call = method()
        self._writing = asyncio.Lock()
        self._reader = asyncio.create_task(self._read_responses(on_event), name=name)

    async def _read_responses(self, on_event: Callable[[Any], object]) -> None:
        ended: Exception | None = None
        try:
            async for response in self._call:
                on_event(response)
        except grpc.RpcError as error:
            ended = error
            # grpc.aio calls it INTERNAL if the call ends while a request is written.
            if error.code() is grpc.StatusCode.INTERNAL and error.details() == "Internal error from Core":
                ended = Unavailable("the call ended while a request was written")
        except asyncio.CancelledError:
            on_event(None)
            raise
        except Exception as error:
            ended = _unreadable_error(error)
            self._call.cancel()
        on_event(ended)

    async def write(self, request: Any) -> None:
        """Send a request; if the call is broken, the reader finds out."""
        async with self._writing:
            with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
                await self._call.write(request)

    async def finish(self, timeout_s: float) -> None:
        """Send no more, and wait for the server to end the call: else it counts as cancelled there."""
        with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
            await self._call.done_writing()
        await asyncio.wait({self._reader}, timeout=timeout_s)

    async def cancel(self) -> None:
        """End the call now."""
        self._call.cancel()
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)


class BidirectionalCall:
    """A call on which requests go and responses come at any time.

    Parameters
    ----------
    method
        Method of a stub.
    on_event
        Takes each response; at the end, the error that ended the call (of grpc, or a `QuercusError`), or None. A thread
        calls it.
    name
        Name of the reading thread.
    """

    def __init__(self, method: Callable[..., Any], on_event: Callable[[Any], object], name: str) -> None:
        requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.write = requests.put
        self._call = method(iter(requests.get, None))  # None ends the thread of grpc that takes requests
        self._reader = threading.Thread(target=self._read_responses, args=(on_event,), name=name, daemon=True)
        self._reader.start()

    def _read_responses(self, on_event: Callable[[Any], object]) -> None:
        ended: Exception | None = None
        try:
            for response in self._call:
                on_event(response)
        except grpc.RpcError as error:
            ended = error
        except Exception as error:
            ended = _unreadable_error(error)
            self._call.cancel()
        self.write(None)
        on_event(ended)

    def finish(self, timeout_s: float) -> None:
        """Send no more, and wait for the server to end the call: else it counts as cancelled there."""
        self.write(None)
        self._reader.join(timeout_s)

    def cancel(self) -> None:
        """End the call now."""
        self.write(None)
        self._call.cancel()


def _unreadable_error(error: Exception) -> QuercusError:
    """Return the error that ends a call with an unreadable response; a caller waits for that end."""
    unreadable = QuercusError(f"a message of the server was not understood ({error})")
    unreadable.__cause__ = error
    return unreadable
