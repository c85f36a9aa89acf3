"""Tokens and certificates of a client, and the authority that it trusts."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from grpc import aio

from quercus.client.channels import SpreadChannel
from quercus.client.errors import invalid
from quercus.client.transport import TLS_SCHEME, channel_options, reaches_loopback


@dataclass(frozen=True)
class Security:
    """Token and certificates of one client; omitted ones come from the environment.

    Parameters
    ----------
    token
        As ``quercus tokens create`` printed it; else ``QUERCUS_TOKEN``, else the content of the file that
        ``QUERCUS_TOKEN_FILE`` names. Never shown by ``repr``.
    ca
        PEM file of the authorities that may have signed the server's certificate; else ``QUERCUS_TLS_CA``, else
        those of the system.
    cert, key
        PEM files of the client's own certificate and private key, where the server asks for one; else
        ``QUERCUS_CLIENT_CERT`` and ``QUERCUS_CLIENT_KEY``.
    """

    token: str | None = None
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    def __repr__(self) -> str:
        token = None if self.token is None else "..."
        return f"Security(token={token!r}, ca={self.ca!r}, cert={self.cert!r}, key={self.key!r})"

    @classmethod
    def load(cls, token: str | None = None, ca: Path | str | None = None) -> Security:
        """Return the given settings, completed by the environment.

        Raises
        ------
        InvalidArgument
            When a file that the environment names cannot be read.
        """

        def path_variable(name: str) -> Path | None:
            return Path(os.environ[name]) if os.environ.get(name) else None

        if token is None:
            token = os.environ.get("QUERCUS_TOKEN") or None
        if token is None and (file := path_variable("QUERCUS_TOKEN_FILE")) is not None:
            token = _read_file(file, "QUERCUS_TOKEN_FILE").decode(errors="replace")
        if token is not None:
            token = token.strip()
            if not (token.isascii() and token.isprintable() and token):
                raise invalid("token", "is not text of one line, as `quercus tokens create` prints it")
        return cls(
            token,
            Path(ca) if ca is not None else path_variable("QUERCUS_TLS_CA"),
            path_variable("QUERCUS_CLIENT_CERT"),
            path_variable("QUERCUS_CLIENT_KEY"),
        )

    def channel(self, address: str) -> grpc.Channel:
        """Return a synchronous channel to ``host:port``, or with TLS to ``tls://host:port``."""
        channel: grpc.Channel = self._open_channel(address, grpc.insecure_channel, grpc.secure_channel)
        return channel

    def async_channel(self, address: str) -> aio.Channel:
        """Return an asyncio channel."""
        channel: aio.Channel = self._open_channel(address, aio.insecure_channel, aio.secure_channel)
        return channel

    def _open_channel(self, address: str, insecure: Callable[..., Any], secure: Callable[..., Any]) -> Any:
        target = address.removeprefix(TLS_SCHEME)
        options = channel_options(target)
        if target != address:
            credentials = self._channel_credentials()
            channel = SpreadChannel(lambda: secure(target, credentials, options=options))
        else:
            if self.token is not None and not reaches_loopback(target):
                raise invalid(
                    "server", f"{address} would get the token in the clear: write {TLS_SCHEME}{address}"
                )
            channel = SpreadChannel(lambda: insecure(target, options=options))
        return channel if self.token is None else _Authorized(channel, self.token)

    def _channel_credentials(self) -> grpc.ChannelCredentials:
        if (self.cert is None) != (self.key is None):
            raise invalid("tls", "a client's certificate and its private key go together")
        given = {"ca": self.ca, "key": self.key, "cert": self.cert}
        read = [None if path is None else _read_file(path, name) for name, path in given.items()]
        self._check_files()
        return grpc.ssl_channel_credentials(*read)

    def _check_files(self) -> None:
        """Report invalid files; gRPC would only report that no server answers."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        fault = f"{self.ca} has no certificate in PEM"
        try:
            if self.ca is not None:
                context.load_verify_locations(self.ca)
            fault = (
                f"{self.cert} and {self.key} are not a certificate and its private key, unencrypted, in PEM"
            )
            if self.cert is not None:
                context.load_cert_chain(self.cert, self.key, password="")
        except (ssl.SSLError, ValueError) as error:
            raise invalid("tls", f"{fault} ({getattr(error, 'reason', None) or error})") from None


class _Authorized:
    """A channel whose every call carries the token, synchronous or asyncio."""

    def __init__(self, channel: Any, token: str) -> None:
        self._channel = channel
        self._metadata = (("authorization", f"Bearer {token}"),)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def _authorized_method(self, kind: str, *args: Any, **kwargs: Any) -> Any:
        call = getattr(self._channel, kind)(*args, **kwargs)

        def authorized(request: Any = None, **options: Any) -> Any:
            return call(*([] if request is None else [request]), metadata=self._metadata, **options)

        return authorized

    def unary_unary(self, *args: Any, **kwargs: Any) -> Any:
        return self._authorized_method("unary_unary", *args, **kwargs)

    def unary_stream(self, *args: Any, **kwargs: Any) -> Any:
        return self._authorized_method("unary_stream", *args, **kwargs)

    def stream_unary(self, *args: Any, **kwargs: Any) -> Any:
        return self._authorized_method("stream_unary", *args, **kwargs)

    def stream_stream(self, *args: Any, **kwargs: Any) -> Any:
        return self._authorized_method("stream_stream", *args, **kwargs)


def _read_file(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise invalid(what, f"cannot read {path}: {error.strerror}") from None
