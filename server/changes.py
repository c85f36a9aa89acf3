"""The change signal: notices commits to the store, by any process, and wakes who waits for them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Final

_log = logging.getLogger(__name__)
RETRY_S: Final = 0.2
"""Time between two looks while the store cannot be read."""


class Changes:
    """Polls the store's change token in a thread and tells the event loop.

    Parameters
    ----------
    read_token : cheap, thread-safe; a number that differs after every commit (``Store.change_token``).
    poll_s : time between two looks, in seconds.
    """

    def __init__(self, read_token: Callable[[], int], poll_s: float) -> None:
        self._read_token = read_token
        self._poll_s = poll_s
        self._count = 0
        self._changed = asyncio.Event()
        self._stopping = threading.Event()
        self._trouble = ""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._poll, name="quercus-changes", daemon=True)

    @property
    def count(self) -> int:
        """How many changes were noticed so far; remember it before a read, then wait for a later one."""
        return self._count

    @property
    def trouble(self) -> str:
        """Why the store cannot be read at this moment, empty when it can."""
        return self._trouble

    def start(self) -> None:
        """Begin to poll."""
        self._thread.start()

    async def wait(self, after: int, timeout_s: float | None = None) -> bool:
        """Wait until a change later than `after` was noticed; False when the time was up first."""
        try:
            async with asyncio.timeout(timeout_s):
                while self._count == after:
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def notify(self) -> None:
        """Wake everyone who waits. Runs in the event loop."""
        self._count += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def close(self) -> None:
        """Stop the thread and wake everyone a last time."""
        self._stopping.set()
        await asyncio.to_thread(self._thread.join)
        self.notify()

    def _poll(self) -> None:
        seen: int | None = None
        while not self._stopping.wait(self._poll_s):
            try:
                token = self._read_token()
            except Exception as error:
                if not self._trouble:
                    _log.error("the store cannot be read: %s", error)
                    self._say(str(error) or type(error).__name__)
                self._stopping.wait(RETRY_S)
                continue
            if self._trouble:
                _log.warning("the store can be read again")
                self._say("")
            if token != seen:
                seen = token
                if self._stopping.is_set():
                    return
                self._loop.call_soon_threadsafe(self.notify)

    def _say(self, trouble: str) -> None:
        """Tell those who wait, as for a change."""
        self._trouble = trouble
        if not self._stopping.is_set():
            self._loop.call_soon_threadsafe(self.notify)
