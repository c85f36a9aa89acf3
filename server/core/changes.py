"""The change signal, which notices the changes that any process commits, and wakes calls that wait for them.

If nothing happens for a while, it polls the store more rarely, but at once when this process commits or a call begins
to wait.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

from quercus.server.wire.limits import MAX_REMEMBERED_CHANGES, QUIET_S, REST_POLL_S
from quercus.storage import Change

_log = logging.getLogger(__name__)
RETRY_S: Final = 0.2
"""Seconds between two reads while the store fails."""
READ_SHARE: Final = 0.05
"""Greatest share of time that is spent reading.

If threads compete for the interpreter's lock, a read takes milliseconds, and delays the threads that answer calls.
"""
LONGEST_PAUSE_S: Final = 0.1
"""Longest pause between two reads, in seconds, however long they take."""


class ChangeSource(Protocol):
    """The source of changes: a store."""

    def change_token(self) -> int:
        """Return a number that differs after every commit; cheap and thread-safe."""

    def changes(self, seen: int) -> Sequence[Change]:
        """Return the models that commits after number `seen` changed."""


class ChangeSignal:
    """Polls the store's change token in a thread, reads what changed, and tells the event loop.

    Parameters
    ----------
    source : the store.
    poll_s : seconds between two reads; more if a read takes more than `READ_SHARE` of them, or if nothing has happened
        for `QUIET_S`.
    """

    def __init__(self, source: ChangeSource, poll_s: float) -> None:
        self._source = source
        self._poll_s = poll_s
        self._count = 0
        self._all = 0  # the count when all calls were last woken
        self._counts: dict[str, int] = {}  # of models that changed since
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._listeners: list[Callable[[Sequence[Change]], None]] = []
        self._stopping = threading.Event()
        self._called = threading.Event()  # end the rest, and poll at once
        self._trouble = ""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._poll_store, name="quercus-changes", daemon=True)

    @property
    def trouble(self) -> str:
        """The reason why the store cannot be read now; empty if it can."""
        return self._trouble

    @property
    def change_count(self) -> int:
        """Number of changes noticed so far."""
        return self._count

    def start(self) -> None:
        """Begin to poll."""
        self._thread.start()

    def add_listener(self, listener: Callable[[Sequence[Change]], None]) -> None:
        """Register a function that is called in the event loop with every noticed change."""
        self._listeners.append(listener)

    def change_stamp(self, model: str) -> int:
        """Return a stamp that differs after every change of a model; take it before a read, then wait for a change."""
        return self._counts.get(model, self._all)

    def look_soon(self) -> None:
        """Make a resting thread poll at once, because something happened in this process. Thread-safe."""
        if not self._called.is_set():
            self._called.set()

    async def wait_for_change(self, model: str, seen: int, timeout_s: float | None = None) -> bool:
        """Wait until a model has changed since the stamp `seen`; return False if the time runs out first."""
        if self.change_stamp(model) != seen:
            return True
        self.look_soon()
        mine: asyncio.Future[None] = self._loop.create_future()
        waiting = self._waiting.setdefault(model, set())
        waiting.add(mine)
        try:
            async with asyncio.timeout(timeout_s):
                await mine
        except TimeoutError:
            return False
        finally:
            waiting.discard(mine)
            if not waiting and self._waiting.get(model) is waiting:
                del self._waiting[model]
        return True

    def notify_waiting(self, changes: Sequence[Change]) -> None:
        """Wake calls that wait for one of these models. Runs in the event loop."""
        self._count += 1
        for change in changes:
            self._counts[change.name] = self._count
            _wake_all(self._waiting.pop(change.name, ()))
        for listener in self._listeners:
            listener(changes)
        if len(self._counts) > MAX_REMEMBERED_CHANGES:
            self.notify_all()

    def notify_all(self) -> None:
        """Wake all waiting calls. Runs in the event loop."""
        self._count += 1
        self._all = self._count
        self._counts.clear()
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            _wake_all(each)
        for listener in self._listeners:
            listener(())

    async def catch_up(self, read: Callable[..., Awaitable[Any]], seen: int) -> Sequence[Change]:
        """Read the changes after number `seen`, wake the calls that wait for them, and return them.

        Parameters
        ----------
        read : runs a function in the threads that read the store.
        seen : number of the newest change that the caller knows.
        """
        changes: Sequence[Change] = await read(self._source.changes, seen)
        if changes:
            self.notify_waiting(changes)
        return changes

    async def close(self) -> None:
        """Stop the thread, and wake all waiting calls for the last time."""
        self._stopping.set()
        self._called.set()
        await asyncio.to_thread(self._thread.join)
        self.notify_all()

    def _poll_store(self) -> None:
        token: int | None = None
        newest = 0  # at the first read everything has changed
        pause_s, quiet_since = self._poll_s, time.monotonic()
        while True:
            if self._stopping.wait(pause_s):
                break
            if pause_s < REST_POLL_S and time.monotonic() - quiet_since >= QUIET_S:
                self._called.wait(REST_POLL_S - pause_s)
                if self._stopping.is_set():
                    break
            started = time.monotonic()
            self._called.clear()
            try:
                found = self._source.change_token()
                if found != token and (changes := self._source.changes(newest)):
                    self._call_in_loop(self.notify_waiting, changes)
                    newest = changes[-1].number
            except Exception as error:
                if not self._trouble:
                    _log.error("the store cannot be read: %s", error)
                    self._publish_trouble(str(error) or type(error).__name__)
                self._stopping.wait(RETRY_S)
                continue
            if found != token:
                token, quiet_since = found, started
            if self._trouble:
                _log.warning("the store can be read again")
                self._publish_trouble("")
            took_s = time.monotonic() - started
            pause_s = max(self._poll_s, min(took_s / READ_SHARE, LONGEST_PAUSE_S))

    def _publish_trouble(self, trouble: str) -> None:
        """Set `trouble`, and wake the waiting calls."""
        self._trouble = trouble
        self._call_in_loop(self.notify_all)

    def _call_in_loop(self, function: Callable[..., None], *args: Sequence[Change]) -> None:
        if not self._stopping.is_set():
            self._loop.call_soon_threadsafe(function, *args)


def _wake_all(waiting: set[asyncio.Future[None]] | tuple[()]) -> None:
    for each in waiting:
        if not each.done():
            each.set_result(None)
