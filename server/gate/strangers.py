"""Bounds on callers who show no token: they make the server hold little, for a short time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

from quercus.belief.errors import InvalidInput
from quercus.server.wire.errors import ResourceExhausted

MAX_READINGS: Final = 8
"""Requests of strangers that are read at a time; each may have `max_message_bytes` before its length is known."""

READING_S: Final = 5.0
"""Longest time that a request of a stranger takes to arrive."""

MAX_PROBE_BYTES: Final = 4 * 1024
"""Longest request of a stranger: it names a service."""

RETRY_S: Final = 0.2


class ProbeReadings:
    """The requests of strangers that are being read.

    There are few at a time, and the oldest gives way to the next: a probe arrives together with its request, so an old
    request was never meant to arrive.
    """

    def __init__(self) -> None:
        self._under_way: deque[asyncio.Future[None]] = deque()

    async def read_request(self, requests: AsyncIterator[bytes]) -> bytes:
        """Return the first message of a call; empty if there is none.

        Raises
        ------
        ResourceExhausted
            When it has not arrived in time, or gave way.
        InvalidInput
            When it is too long for a probe.
        """
        if len(self._under_way) >= MAX_READINGS:
            self._under_way.popleft().set_result(None)
        giving_way: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._under_way.append(giving_way)
        # What gives way is ended by the end of its call: gRPC would leak a message that arrives as it is cancelled.
        reading = asyncio.ensure_future(_first_of(requests))
        reading.add_done_callback(_forget_error)
        try:
            await asyncio.wait((reading, giving_way), timeout=READING_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not giving_way.done():
                self._under_way.remove(giving_way)
                giving_way.cancel()
        if not reading.done():
            raise ResourceExhausted("the request of a caller without a token did not arrive in time", RETRY_S)
        if len(data := reading.result()) > MAX_PROBE_BYTES:
            raise InvalidInput("request", f"has {len(data):,} bytes, a probe has at most {MAX_PROBE_BYTES:,}")
        return data


async def _first_of(requests: AsyncIterator[bytes]) -> bytes:
    return await anext(requests, b"")


def _forget_error(reading: asyncio.Task[bytes]) -> None:
    """Take the error of a request that no one waits for: its call has ended."""
    if not reading.cancelled():
        reading.exception()
