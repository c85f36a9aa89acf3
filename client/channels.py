"""A channel over as many connections as its long calls need.

A server takes a bounded number of calls at a time on one connection, and gRPC holds further ones back until one has
ended, without a word. Streams, and calls that wait for queries, last: they would hold back each other for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, Final

LONG_CALLS_OF_CONNECTION: Final = 90
"""Long calls of one connection. A server takes 100 calls (docs/protocol.md); the rest is for short ones."""

MAX_CONNECTIONS: Final = 64
"""Connections of one client; beyond them, long calls wait for others to end."""

WAITING: Final = frozenset({"LeaseQueries"})
"""Methods that are no streams and last all the same."""


class _Member:
    """One connection, and the number of long calls on it."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.long_calls = 0


class SpreadChannel:
    """A channel, synchronous or asyncio, that opens another connection when one has no room for a long call.

    Parameters
    ----------
    open_channel : opens a channel; each has a connection of its own.
    """

    def __init__(self, open_channel: Callable[[], Any]) -> None:
        self._open = open_channel
        self._lock = threading.RLock()
        self._members = [_Member(open_channel())]
        self._is_closed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._members[0].channel, name)

    @property
    def long_calls(self) -> int:
        """Number of long calls that are open."""
        return sum(member.long_calls for member in self._members)

    def close(self) -> Any:
        """Close all connections; an asyncio channel must be awaited."""
        with self._lock:
            self._is_closed = True
        closings = [member.channel.close() for member in self._members]
        return _all_of(closings) if closings[0] is not None else None

    def _take(self) -> _Member:
        """Return the connection for another long call, and count the call."""
        with self._lock:
            chosen = min(self._members, key=_long_calls)
            is_full = chosen.long_calls >= LONG_CALLS_OF_CONNECTION
            if is_full and len(self._members) < MAX_CONNECTIONS and not self._is_closed:
                chosen = _Member(self._open())
                self._members.append(chosen)
            chosen.long_calls += 1
            return chosen

    def _release(self, member: _Member) -> None:
        with self._lock:
            member.long_calls -= 1

    def _spread(self, kind: str, path: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        @cache
        def made(member: _Member) -> Any:
            return getattr(member.channel, kind)(path, *args, **kwargs)

        def method_of(member: _Member) -> Any:
            """Return the method on a connection; gRPC crashes if one is made on a connection that is closed."""
            with self._lock:
                return made(self._members[0] if self._is_closed else member)

        made(self._members[0])

        def short(*args: Any, **kwargs: Any) -> Any:
            return method_of(min(self._members, key=_long_calls))(*args, **kwargs)

        def long(*args: Any, **kwargs: Any) -> Any:
            member = self._take()
            try:
                call = method_of(member)(*args, **kwargs)
            except BaseException:
                self._release(member)
                raise
            if hasattr(call, "add_done_callback"):
                call.add_done_callback(lambda _: self._release(member))
            else:  # the response of a synchronous call, which has ended
                self._release(member)
            return call

        is_short = kind == "unary_unary" and path.rpartition("/")[2] not in WAITING
        return short if is_short else long

    def unary_unary(self, *args: Any, **kwargs: Any) -> Any:
        """Return a method with one request and one response."""
        return self._spread("unary_unary", *args, **kwargs)

    def unary_stream(self, *args: Any, **kwargs: Any) -> Any:
        """Return a method with one request and many responses."""
        return self._spread("unary_stream", *args, **kwargs)

    def stream_unary(self, *args: Any, **kwargs: Any) -> Any:
        """Return a method with many requests and one response."""
        return self._spread("stream_unary", *args, **kwargs)

    def stream_stream(self, *args: Any, **kwargs: Any) -> Any:
        """Return a method with many requests and many responses."""
        return self._spread("stream_stream", *args, **kwargs)


def _long_calls(member: _Member) -> int:
    return member.long_calls


async def _all_of(closings: list[Any]) -> None:
    for closing in closings:
        await closing
