"""The transport of both clients: addresses, tokens, certificates, and channels of as many connections as they need."""

from __future__ import annotations

import json
import os
import re
import ssl
import threading
from collections.abc import Callable
from functools import cache, partialmethod
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf.descriptor import Descriptor
from grpc import aio

from quercus.client import retrying
from quercus.client.errors import invalid
from quercus.client.unreachable import TLS_SCHEME
from quercus.specification.hosts import is_loopback
from quercus.v1 import (
    admin_pb2_grpc,
    classify_pb2_grpc,
    instance_pb2_grpc,
    model_pb2_grpc,
    query_pb2_grpc,
    tree_pb2_grpc,
)
from quercus.v1.calls import METHODS

MAX_RECEIVE_BYTES: Final = 256 * 1024 * 1024
"""The client's limit for received messages: a whole tree may be large. (The server limits only what it receives.)"""
MAX_SEND_BYTES: Final = 16 * 1024 * 1024
DEFAULT_TIMEOUT_S: Final = 30.0
MAX_TIMEOUT_S: Final = 1e9
"""Longest limit in seconds, 30 years: gRPC counts nanoseconds in 64 bits, and a later deadline has passed at once."""
DEFAULT_ADDRESS: Final = "127.0.0.1:50051"
CONNECT_MS: Final = 5_000
"""Maximum duration of an attempt to connect, with a TLS handshake over a slow line or to a busy machine."""
PING_EVERY_MS: Final = 30_000
PING_TIMEOUT_MS: Final = 10_000
"""A connection with waiting calls counts as dead if a ping is not answered within this time."""
LONG_CALLS_OF_CONNECTION: Final = 90
"""Maximum number of long calls on a connection. A server takes 100 calls (docs/protocol.md); the rest is for short
ones."""
MAX_CONNECTIONS: Final = 64
"""Maximum number of connections of a client; beyond it, long calls wait for others to end."""
WAITING: Final = frozenset({"LeaseQueries"})
"""Methods that take long although they are not streams."""

_GRPC_SCHEMES: Final = ("unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:")
_HOST_PORT: Final = re.compile(r"([^\s:/\[\]]+|\[[0-9A-Fa-f:.%]+\]):(?P<port>[0-9]{1,5})")


def server_address(given: str | None) -> str:
    """Return the address, ``HOST:PORT`` or ``tls://HOST:PORT``: the given one, ``QUERCUS_SERVER``, or the default.

    Raises
    ------
    InvalidArgument
        If it is not an address; gRPC checks names of its own schemes (``unix:``, ``dns:``, ...).

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
    """Return whether a gRPC address is on this machine.

    Examples
    --------
    >>> [reaches_loopback(a) for a in ("127.0.0.1:50051", "ipv4:127.0.0.1:1", "[::1]:1", "unix:q", "127.example.org:1")]
    [True, True, True, True, False]
    """
    if address.startswith(("unix:", "unix-abstract:")):
        return True
    host = address.rpartition(":")[0].removeprefix("ipv4:").removeprefix("ipv6:")
    return is_loopback(host.strip("[]"))


def load_token(given: str | None) -> str | None:
    """Return the token: the given one, ``QUERCUS_TOKEN``, or the content of the file ``QUERCUS_TOKEN_FILE``.

    Raises
    ------
    InvalidArgument
        If the file cannot be read, or the text is not a token.
    """
    token = given if given is not None else os.environ.get("QUERCUS_TOKEN") or None
    if token is None and (file := os.environ.get("QUERCUS_TOKEN_FILE")):
        token = _read_file(Path(file), "QUERCUS_TOKEN_FILE").decode(errors="replace")
    if token is None:
        return None
    token = token.strip()
    if not (token.isascii() and token.isprintable() and token):
        raise invalid("token", "is not a single line of text, as `quercus tokens create` prints it")
    return token


def _read_file(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise invalid(what, f"cannot read {path}: {error.strerror}") from None


def channel(address: str, token: str | None = None, ca: Path | str | None = None) -> grpc.Channel:
    """Return a synchronous channel to ``host:port``, or with TLS to ``tls://host:port``.

    Parameters
    ----------
    address
        Address of the server.
    token
        Token to send with every call.
    ca
        PEM file of the authorities that may have signed the server's certificate; else ``QUERCUS_TLS_CA``, else those
        of the system. The client's own certificate and private key, if the server requires them, are in the files
        ``QUERCUS_CLIENT_CERT`` and ``QUERCUS_CLIENT_KEY``.
    """
    opened: Any = _open_channel(address, token, ca, grpc)
    return opened  # type: ignore[no-any-return]


def async_channel(address: str, token: str | None = None, ca: Path | str | None = None) -> aio.Channel:
    """Return an asyncio channel; the parameters are those of `channel`."""
    opened: Any = _open_channel(address, token, ca, aio)
    return opened  # type: ignore[no-any-return]


def _open_channel(address: str, token: str | None, ca: Path | str | None, library: Any) -> SpreadChannel:
    target = address.removeprefix(TLS_SCHEME)
    options = channel_options(target)
    if target != address:
        credentials = _channel_credentials(ca)
        return SpreadChannel(lambda: library.secure_channel(target, credentials, options=options), token)
    if token is not None and not reaches_loopback(target):
        raise invalid("server", f"{address} would get the token unencrypted: write {TLS_SCHEME}{address}")
    return SpreadChannel(lambda: library.insecure_channel(target, options=options), token)


def channel_options(address: str) -> list[tuple[str, Any]]:
    """Return the options of a channel: message sizes, and retries of idempotent calls on UNAVAILABLE only.

    Each channel has a connection of its own; otherwise all channels of a process would share one and its limit of
    calls.

    Loopback addresses bypass a proxy in the environment (``http_proxy``), which could not reach them.
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
        ("grpc.min_reconnect_backoff_ms", CONNECT_MS),  # gRPC abandons an attempt to connect after this time
        ("grpc.max_reconnect_backoff_ms", 2000),
        ("grpc.keepalive_time_ms", PING_EVERY_MS),
        ("grpc.http2.ping_timeout_ms", PING_TIMEOUT_MS),
    ]


def _channel_credentials(ca: Path | str | None) -> grpc.ChannelCredentials:
    """Return the credentials for TLS. Invalid files are refused here: gRPC would only report that no server answers."""

    def path_variable(name: str) -> Path | None:
        return Path(os.environ[name]) if os.environ.get(name) else None

    authorities = Path(ca) if ca is not None else path_variable("QUERCUS_TLS_CA")
    cert, key = path_variable("QUERCUS_CLIENT_CERT"), path_variable("QUERCUS_CLIENT_KEY")
    if (cert is None) != (key is None):
        raise invalid("tls", "a client's certificate and its private key go together")
    files = {"ca": authorities, "key": key, "cert": cert}
    read = [None if path is None else _read_file(path, name) for name, path in files.items()]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    fault = f"{authorities} has no certificate in PEM"
    try:
        if authorities is not None:
            context.load_verify_locations(authorities)
        fault = f"{cert} and {key} are not a certificate and its private key, unencrypted, in PEM"
        if cert is not None:
            context.load_cert_chain(cert, key, password="")
    except (ssl.SSLError, ValueError) as error:
        raise invalid("tls", f"{fault} ({getattr(error, 'reason', None) or error})") from None
    return grpc.ssl_channel_credentials(*read)


class _Connection:
    """One connection, and the number of long calls on it."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.long_calls = 0


class SpreadChannel:
    """A channel, synchronous or asyncio, that opens another connection when none has room for a long call.

    A server takes a bounded number of concurrent calls on a connection, and gRPC silently holds back further ones until
    one ends. Streams, and calls that wait for queries, take long, and could block each other forever.

    Parameters
    ----------
    open_channel
        Opens a channel with a connection of its own.
    token
        Sent with every call.
    """

    def __init__(self, open_channel: Callable[[], Any], token: str | None = None) -> None:
        self._open = open_channel
        self._options = {} if token is None else {"metadata": (("authorization", f"Bearer {token}"),)}
        self._lock = threading.RLock()
        self._connections = [_Connection(open_channel())]
        self._is_closed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connections[0].channel, name)

    @property
    def long_calls(self) -> int:
        """Number of long calls that are open."""
        return sum(each.long_calls for each in self._connections)

    def close(self) -> Any:
        """Close all connections; an asyncio channel must be awaited."""
        with self._lock:
            self._is_closed = True
        closings = [each.channel.close() for each in self._connections]

        async def close_all() -> None:
            for closing in closings:
                await closing

        return close_all() if closings[0] is not None else None

    def _take(self) -> _Connection:
        """Return the connection for another long call, and count the call."""
        with self._lock:
            chosen = min(self._connections, key=attrgetter("long_calls"))
            is_full = chosen.long_calls >= LONG_CALLS_OF_CONNECTION
            if is_full and len(self._connections) < MAX_CONNECTIONS and not self._is_closed:
                chosen = _Connection(self._open())
                self._connections.append(chosen)
            chosen.long_calls += 1
            return chosen

    def _release(self, connection: _Connection) -> None:
        with self._lock:
            connection.long_calls -= 1

    def _spread(self, kind: str, path: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        @cache
        def made(connection: _Connection) -> Any:
            return getattr(connection.channel, kind)(path, *args, **kwargs)

        def start(connection: _Connection, *args: Any, **kwargs: Any) -> Any:
            with self._lock:  # gRPC crashes if a method is created on a closed connection
                method = made(self._connections[0] if self._is_closed else connection)
            return method(*args, **self._options, **kwargs)

        made(self._connections[0])

        def short(*args: Any, **kwargs: Any) -> Any:
            return start(min(self._connections, key=attrgetter("long_calls")), *args, **kwargs)

        def long(*args: Any, **kwargs: Any) -> Any:
            connection = self._take()
            try:
                call = start(connection, *args, **kwargs)
            except BaseException:
                self._release(connection)
                raise
            if hasattr(call, "add_done_callback"):
                call.add_done_callback(lambda _: self._release(connection))
            else:  # the response of a synchronous call, which has ended
                self._release(connection)
            return call

        is_short = kind == "unary_unary" and path.rpartition("/")[2] not in WAITING
        return short if is_short else long

    unary_unary = partialmethod(_spread, "unary_unary")
    unary_stream = partialmethod(_spread, "unary_stream")
    stream_unary = partialmethod(_spread, "stream_unary")
    stream_stream = partialmethod(_spread, "stream_stream")


_STUBS: Final = (
    admin_pb2_grpc.AdminServiceStub,
    classify_pb2_grpc.ClassifyServiceStub,
    instance_pb2_grpc.InstanceServiceStub,
    model_pb2_grpc.ModelServiceStub,
    query_pb2_grpc.QueryServiceStub,
    tree_pb2_grpc.TreeServiceStub,
)


def methods_on(channel: Any) -> dict[Descriptor, Any]:
    """Return the methods of the server by the type of their requests, on a synchronous or an asyncio channel.

    Of two methods with the same type of request, it is the non-streaming one.
    """
    stubs = {stub.__name__: stub(channel) for stub in _STUBS}
    return {
        method.input_type: getattr(stubs[f"{method.containing_service.name}Stub"], method.name)
        for method in sorted(METHODS.values(), key=lambda each: not each.client_streaming)
    }
