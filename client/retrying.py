"""Retries: transient failures, repeatable calls, and pauses between attempts."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, Final

from quercus.client.errors import (
    Cancelled,
    DeadlineExceeded,
    QuercusError,
    ResourceExhausted,
    ServerError,
    Unavailable,
    invalid,
)
from quercus.specification.pauses import growing_pause_s
from quercus.v1.calls import METHODS, is_repeatable

OUTAGE_S: Final = 60.0
"""Default time, in seconds, for which a client retries after its server has become unreachable."""
MAX_ATTEMPTS: Final = 4
FIRST_BACKOFF_S: Final = 0.1
MAX_BACKOFF_S: Final = 2.0

_REPEATED: Final = frozenset(method.input_type for method in METHODS.values() if is_repeatable(method))


def is_transient(error: QuercusError) -> bool:
    """Return whether the server may accept the same request later, because nothing is wrong with the request itself.

    An outbox, a bridge, a lease and a terminal with unsent answers retry after such failures. A damaged store and a
    server that does not know the call are permanent failures: the caller must learn of them.
    """
    kinds = (Unavailable, DeadlineExceeded, ResourceExhausted, Cancelled, ServerError)
    return (isinstance(error, kinds) and not error.is_permanent) or error.retry_s is not None


def is_repeated(request: Any) -> bool:
    """Return whether the call with this request may be repeated if its response is lost."""
    return request.DESCRIPTOR in _REPEATED


def backoff_s(attempt: int, failed: QuercusError | None = None) -> float:
    """Return the seconds to wait after attempt 1, 2, ...

    The pauses double up to a bound, with jitter so that clients do not call at the same moments. No pause is shorter
    than the server requests.
    """
    pause_s = growing_pause_s(attempt, FIRST_BACKOFF_S, MAX_BACKOFF_S) * random.uniform(0.5, 1.0)  # noqa: S311  (no secret)
    return max(pause_s, (failed.retry_s if failed is not None else None) or 0.0)


def service_config() -> dict[str, Any]:
    """Return gRPC's own retry policy: a few attempts after UNAVAILABLE, for calls that are not streams."""
    names = [
        {"service": method.containing_service.full_name, "method": method.name}
        for method in METHODS.values()
        if is_repeatable(method) and not (method.client_streaming or method.server_streaming)
    ]
    policy = {
        "maxAttempts": MAX_ATTEMPTS,
        "initialBackoff": f"{FIRST_BACKOFF_S}s",
        "maxBackoff": f"{MAX_BACKOFF_S}s",
        "backoffMultiplier": 3,
        "retryableStatusCodes": ["UNAVAILABLE"],
    }
    return {"methodConfig": [{"name": names, "retryPolicy": policy}]}


class Outage:
    """The state of the connection, which decides whether a call that reached no server is retried.

    There are no retries if the server has never answered, because the address may be wrong. After its first answer, the
    client retries for ``outage_s`` seconds.

    Parameters
    ----------
    outage_s
        0: no retries.

    Attributes
    ----------
    reached
        Whether the server has ever answered.
    notify
        Called once per outage with the remaining seconds of retries.
    is_notified
        Whether it was called in this outage.
    """

    def __init__(self, outage_s: float) -> None:
        if not outage_s >= 0:
            raise invalid("outage_s", f"is {outage_s}, must be at least 0")
        self.outage_s = outage_s
        self.reached = False
        self.notify: Callable[[float], None] | None = None
        self.is_notified = False

    def start_attempts(self) -> CallAttempts:
        """Return a counter for the attempts of one call."""
        return CallAttempts(self)


class CallAttempts:
    """The attempts of one call."""

    def __init__(self, outage: Outage) -> None:
        self._outage = outage
        self._since: float | None = None
        self._attempts = 0

    def note_success(self) -> None:
        """Record that the server answered, so that the next failure begins a new outage."""
        self._outage.reached, self._outage.is_notified = True, False
        self._since, self._attempts = None, 0

    def pause_s(self, failed: QuercusError, *, is_repeated: bool = True) -> float | None:
        """Return the seconds to wait before another attempt; ``None``: give up.

        Parameters
        ----------
        failed
            Error of the last attempt. There is another attempt if the server did nothing and permits a retry
            (``retry_s``), or if no server answered.
        is_repeated
            Whether the call may be repeated even if the server may have executed it.
        """
        retry_s = failed.retry_s
        if retry_s is None and not (is_repeated and isinstance(failed, Unavailable)):
            return None
        outage, now = self._outage, time.monotonic()
        outage.reached = outage.reached or retry_s is not None
        self._since = now if self._since is None else self._since
        self._attempts += 1
        left = outage.outage_s - (now - self._since)
        if not outage.reached or left <= 0:
            return None
        if retry_s is None and outage.notify is not None and not outage.is_notified:
            outage.is_notified = True
            outage.notify(left)
        return min(backoff_s(self._attempts, failed), left)
