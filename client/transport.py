"""The transport of both clients: channel options, retry policy, limits and deadlines."""

from __future__ import annotations

import ipaddress
import json
import os
import random
import re
import time
from collections.abc import Callable
from typing import Any

from quercus.client.errors import FailedPrecondition, QuercusError, invalid

MAX_RECEIVE_BYTES = 256 * 1024 * 1024
"""A whole tree in one message may be large; the server's own limit is for what it receives."""
MAX_SEND_BYTES = 16 * 1024 * 1024
MAX_CLASSIFY_ROWS = 10_000
CLASSIFY_BYTES = 8 * 1024 * 1024
"""Aim for one Classify request or response, half of what a message may be."""

DEFAULT_TIMEOUT_S = 30.0
DEFAULT_ADDRESS = "127.0.0.1:50051"
TLS_SCHEME = "tls://"
MAX_ATTEMPTS = 4
OUTAGE_S = 60.0
"""Default time for which a client that has reached its server retries while the server is away."""
GIVE_BACK_S = 3.0
"""Seconds that a client which leaves a loop of queries waits for the server to take the current one back."""
PING_EVERY_MS = 30_000
PING_TIMEOUT_MS = 10_000
"""A connection with waiting calls counts as dead if a ping gets no answer within this time."""
FIRST_BACKOFF_S = 0.1
MAX_BACKOFF_S = 2.0

_GRPC_SCHEMES = ("unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:")
_HOST_PORT = re.compile(r"([^\s:/\[\]]+|\[[0-9A-Fa-f:.%]+\]):(?P<port>[0-9]{1,5})")

_IDEMPOTENT = {
    "ModelService": ["GetModel", "ListModels", "UpdateModel"],
    "InstanceService": ["PushBatch", "GetInstance", "ListInstances"],
    "QueryService": ["AnswerQuery", "RefuseQuery", "ExtendLease", "ListQueries", "ListNeighbours"],
    "ClassifyService": ["Classify"],
    "TreeService": ["GetTree", "RenderTree"],
    "AdminService": ["GetStatus", "GetCaller", "SetLogLevel"],
}
"""Calls that may be made twice.

Reads, and writes that the server knows again by their lease token or content.
"""


def server_address(given: str | None) -> str:
    """``HOST:PORT``, or with TLS ``tls://HOST:PORT``: as given, else of ``QUERCUS_SERVER``, else the default.

    Raises
    ------
    InvalidArgument
        When it is none; names of gRPC's own (``unix:``, ``dns:``, ...) are left to gRPC.

    Examples
    --------
    >>> server_address("[::1]:6000"), server_address("unix:quercus.sock")
    ('[::1]:6000', 'unix:quercus.sock')
    """
    address = given or os.environ.get("QUERCUS_SERVER") or DEFAULT_ADDRESS
    target = address.removeprefix(TLS_SCHEME)
    if target.startswith(_GRPC_SCHEMES):
        return address
    found = _HOST_PORT.fullmatch(target)
    if found is None or not 1 <= int(found["port"]) <= 65535:
        raise invalid(
            "server", f"{address!r} is not HOST:PORT, as in {DEFAULT_ADDRESS}, nor {TLS_SCHEME}HOST:PORT"
        )
    return address


def is_loopback(address: str) -> bool:
    """True for an address of this machine.

    Examples
    --------
    >>> [is_loopback(a) for a in ("127.0.0.1:50051", "localhost:1", "[::1]:1", "127.example.org:1")]
    [True, True, True, False]
    """
    host = address.rpartition(":")[0].strip("[]")
    if address.startswith(("unix:", "unix-abstract:")) or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.removeprefix("ipv4:").removeprefix("ipv6:").strip("[]")).is_loopback
    except ValueError:  # a name: 127.example.org is another machine
        return False


CONNECT_MS = 5_000
"""Longest attempt to connect: a TLS handshake over a slow line, or with a busy machine."""


def channel_options(address: str) -> list[tuple[str, Any]]:
    """Options of a channel: message sizes, and retries of idempotent calls on UNAVAILABLE only.

    A proxy of the environment (``http_proxy``) is not asked for addresses of this machine: it could not reach them.
    """
    names = [
        {"service": f"quercus.v1.{service}", "method": method}
        for service, methods in _IDEMPOTENT.items()
        for method in methods
    ]
    policy = {
        "maxAttempts": MAX_ATTEMPTS,
        "initialBackoff": f"{FIRST_BACKOFF_S}s",
        "maxBackoff": f"{MAX_BACKOFF_S}s",
        "backoffMultiplier": 3,
        "retryableStatusCodes": ["UNAVAILABLE"],
    }
    config = {"methodConfig": [{"name": names, "retryPolicy": policy}]}
    return [
        ("grpc.max_receive_message_length", MAX_RECEIVE_BYTES),
        ("grpc.max_send_message_length", MAX_SEND_BYTES),
        ("grpc.service_config", json.dumps(config)),
        ("grpc.enable_retries", 1),
        ("grpc.enable_http_proxy", 0 if is_loopback(address) else 1),
        # A client that starts before its server, or survives its restart, should notice soon.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", CONNECT_MS),  # gRPC gives up an attempt to connect after that
        ("grpc.max_reconnect_backoff_ms", 2000),
        ("grpc.keepalive_time_ms", PING_EVERY_MS),
        ("grpc.http2.ping_timeout_ms", PING_TIMEOUT_MS),
    ]


def backoff_s(attempt: int) -> float:
    """Seconds to wait before attempt 1, 2, ...

    Doubling, bounded, with jitter so that clients do not march in step.
    """
    bound = min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** (attempt - 1))
    return bound * random.uniform(0.5, 1.0)  # noqa: S311  (no secret)


def classify_rows(attributes: int, classes: int) -> int:
    """Rows in one Classify request, so that neither it nor its answer comes near the message limit."""
    widest = 8 * max(attributes, 4 * classes + 2)
    return max(1, min(MAX_CLASSIFY_ROWS, CLASSIFY_BYTES // widest))


class Outage:
    """Whether a call that found no server is worth another try.

    A server that never answered is not waited for: the address may be wrong. One that has answered before is tried
    again for ``outage_s`` seconds.

    Parameters
    ----------
    outage_s
        0: never again.
    """

    def __init__(self, outage_s: float) -> None:
        if not outage_s >= 0:
            raise invalid("outage_s", f"is {outage_s}, must be at least 0")
        self.outage_s = outage_s
        self.reached = False
        self.tell: Callable[[float], None] | None = None
        self._is_told = False

    def begin(self, left_s: float) -> None:
        """The server is away: tell it, once an outage."""
        if self.tell is not None and not self._is_told:
            self._is_told = True
            self.tell(left_s)

    def end(self) -> None:
        """The server answered."""
        self.reached, self._is_told = True, False

    def trial(self) -> CallAttempts:
        """The attempts of one call."""
        return CallAttempts(self)


class CallAttempts:
    """The attempts of one call."""

    def __init__(self, outage: Outage) -> None:
        self._outage = outage
        self._since: float | None = None
        self._attempts = 0

    def succeeded(self) -> None:
        """The server answered; the next outage is another one."""
        self._outage.end()
        self._since, self._attempts = None, 0

    def pause_s(self, retry_s: float | None = None) -> float | None:
        """Seconds to wait before another attempt, ``None`` when there is to be none.

        Parameters
        ----------
        retry_s
            What the server asked for, when it was too busy.
        """
        now = time.monotonic()
        self._outage.reached = self._outage.reached or retry_s is not None
        self._since = now if self._since is None else self._since
        self._attempts += 1
        left = self._outage.outage_s - (now - self._since)
        if not self._outage.reached or left <= 0:
            return None
        if retry_s is None:
            self._outage.begin(left)
        return min(max(backoff_s(self._attempts), retry_s or 0.0), left)


def mass_rows(rows: int, classes: int) -> int:
    """Rows in one Classify request whose answer may give a mass to every set of classes, 16 bytes each."""
    return max(1, min(rows, CLASSIFY_BYTES // (16 << min(classes, 16))))


def is_beyond(error: QuercusError) -> bool:
    """Whether the server says that a log ends before ``min_sequence``: the number is of a model that is gone."""
    return isinstance(error, FailedPrecondition) and any(v.field == "min_sequence" for v in error.violations)


class SeenSequences:
    """The newest sequence number this client saw of each model: what "read your own writes" stands on.

    A number is of the model with a uid. Another model of the same name starts at 1 again, so its uid takes the number's
    place with it.
    """

    def __init__(self) -> None:
        self._newest: dict[str, tuple[str, int]] = {}

    def saw(self, model: str, uid: str, sequence: int) -> None:
        """Remember ``sequence`` if it is newer; a lost race costs one older bound, never a wrong answer."""
        known, newest = self._newest.get(model, (uid, 0))
        if known != uid or sequence > newest:
            self._newest[model] = (uid, sequence)

    def met(self, model: str, uid: str) -> None:
        """The name stands for the model with this uid: forget what was of another."""
        self.saw(model, uid, 0)

    def forget(self, model: str) -> None:
        """The model was deleted, or the server says that its log does not reach so far."""
        self._newest.pop(model, None)

    def uid(self, model: str) -> str:
        """Return the identity of the model that last had this name; empty if none is known."""
        return self._newest.get(model, ("", 0))[0]

    def newest(self, model: str) -> int:
        """Return the newest number seen; 0 if there was none."""
        return self._newest.get(model, ("", 0))[1]
