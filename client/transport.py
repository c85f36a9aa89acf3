"""The transport of both clients: addresses, channel options, limits and deadlines."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from quercus.client import retrying
from quercus.client.errors import FailedPrecondition, QuercusError, invalid
from quercus.specification.hosts import is_loopback

MAX_RECEIVE_BYTES = 256 * 1024 * 1024
"""A whole tree in one message may be large; the server's limit applies only to received messages."""
MAX_SEND_BYTES = 16 * 1024 * 1024
MAX_CLASSIFY_ROWS = 10_000
CLASSIFY_BYTES = 8 * 1024 * 1024
"""Aim for one Classify request or response, half of the limit of a message."""

DEFAULT_TIMEOUT_S = 30.0
DEFAULT_ADDRESS = "127.0.0.1:50051"
TLS_SCHEME = "tls://"
GIVE_BACK_S = 3.0
"""Seconds that a client which leaves a loop of queries waits for the server to take the current one back."""
PING_EVERY_MS = 30_000
PING_TIMEOUT_MS = 10_000
"""A connection with waiting calls counts as dead if a ping gets no answer within this time."""

_GRPC_SCHEMES = ("unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:")
_HOST_PORT = re.compile(r"([^\s:/\[\]]+|\[[0-9A-Fa-f:.%]+\]):(?P<port>[0-9]{1,5})")


def server_address(given: str | None) -> str:
    """Return the address, ``HOST:PORT`` or ``tls://HOST:PORT``: the given one, ``QUERCUS_SERVER``, or the default.

    Raises
    ------
    InvalidArgument
        When it is not an address; gRPC itself checks its own names (``unix:``, ``dns:``, ...).

    Examples
    --------
    >>> server_address("[::1]:6000"), server_address("unix:quercus.sock")
    ('[::1]:6000', 'unix:quercus.sock')
    """
    address = given or os.environ.get("QUERCUS_SERVER") or DEFAULT_ADDRESS
    target = address.removeprefix(TLS_SCHEME)
    if target.startswith(_GRPC_SCHEMES):
        return address
    match = _HOST_PORT.fullmatch(target)
    if match is None or not 1 <= int(match["port"]) <= 65535:
        raise invalid(
            "server", f"{address!r} is not HOST:PORT, as in {DEFAULT_ADDRESS}, nor {TLS_SCHEME}HOST:PORT"
        )
    return address


def reaches_loopback(address: str) -> bool:
    """Return whether an address of gRPC is one of this machine.

    Examples
    --------
    >>> [reaches_loopback(a) for a in ("127.0.0.1:50051", "ipv4:127.0.0.1:1", "[::1]:1", "unix:q", "127.example.org:1")]
    [True, True, True, True, False]
    """
    if address.startswith(("unix:", "unix-abstract:")):
        return True
    host = address.rpartition(":")[0].removeprefix("ipv4:").removeprefix("ipv6:")
    return is_loopback(host.strip("[]"))


CONNECT_MS = 5_000
"""Longest attempt to connect: a TLS handshake over a slow line, or with a busy machine."""


def channel_options(address: str) -> list[tuple[str, Any]]:
    """Return the options of a channel: message sizes, and retries of idempotent calls on UNAVAILABLE only.

    Each channel has a connection of its own: otherwise, all of a process would share the calls that one may have.

    Addresses of this machine bypass a proxy of the environment (``http_proxy``), which could not reach them.
    """
    return [
        ("grpc.max_receive_message_length", MAX_RECEIVE_BYTES),
        ("grpc.max_send_message_length", MAX_SEND_BYTES),
        ("grpc.service_config", json.dumps(retrying.service_config())),
        ("grpc.enable_retries", 1),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_http_proxy", 0 if reaches_loopback(address) else 1),
        # A client that starts before its server, or survives its restart, should notice soon.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", CONNECT_MS),  # gRPC gives up an attempt to connect after that
        ("grpc.max_reconnect_backoff_ms", 2000),
        ("grpc.keepalive_time_ms", PING_EVERY_MS),
        ("grpc.http2.ping_timeout_ms", PING_TIMEOUT_MS),
    ]


def classify_rows(attributes: int, classes: int) -> int:
    """Return the number of rows per Classify request that keeps request and response below the message limit."""
    widest = 8 * max(attributes, 4 * classes + 2)
    return max(1, min(MAX_CLASSIFY_ROWS, CLASSIFY_BYTES // widest))


def mass_rows(rows: int, classes: int) -> int:
    """Return the number of rows per request if every set of classes may have a mass, 16 bytes each."""
    return max(1, min(rows, CLASSIFY_BYTES // (16 << min(classes, 16))))


def is_beyond(error: QuercusError) -> bool:
    """Return whether a log ends before ``min_sequence``: the number then belongs to a deleted model."""
    return isinstance(error, FailedPrecondition) and any(v.field == "min_sequence" for v in error.violations)


class SeenSequences:
    """The newest sequence number that this client saw of each model, for "read your own writes".

    A number belongs to one uid. A new model of the same name starts at 1 again, so its uid resets the number.
    """

    def __init__(self) -> None:
        self._newest: dict[str, tuple[str, int]] = {}

    def record_sequence(self, model: str, uid: str, sequence: int) -> None:
        """Remember ``sequence`` if it is newer; a lost race costs one older bound, never a wrong answer."""
        known, newest = self._newest.get(model, (uid, 0))
        if known != uid or sequence > newest:
            self._newest[model] = (uid, sequence)

    def record_uid(self, model: str, uid: str) -> None:
        """Note the uid of the model of this name; forget the numbers of another model."""
        self.record_sequence(model, uid, 0)

    def forget_model(self, model: str) -> None:
        """Forget the number of a deleted model, or of one whose log ends before it."""
        self._newest.pop(model, None)

    def model_uid(self, model: str) -> str:
        """Return the identity of the model that last had this name; empty if none is known."""
        return self._newest.get(model, ("", 0))[0]

    def newest_sequence(self, model: str) -> int:
        """Return the newest number seen; 0 if there was none."""
        return self._newest.get(model, ("", 0))[1]
