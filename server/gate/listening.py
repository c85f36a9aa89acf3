"""Check of the address to listen on. It precedes gRPC, which would log its own lines about a refusal."""

from __future__ import annotations

import contextlib
import errno
import socket
from typing import Final

from quercus.server.wire.errors import BadStart

_REASONS: Final = {
    errno.EADDRINUSE: "the port is in use by another program; choose another with --{0}port",
    errno.EADDRNOTAVAIL: "the address is not one of this machine; choose another with --{0}host",
    errno.EACCES: "this user may not use the port; choose one from 1024 on with --{0}port",
}
HTTP: Final = "http-"
"""The beginning of the flags that choose the address of HTTP."""


def join_address(host: str, port: int) -> str:
    """Return ``host:port``, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def check_address(host: str, port: int, flags: str = "") -> None:
    """Bind every address of the host for a moment, as gRPC will.

    Parameters
    ----------
    host, port : address to listen on.
    flags : the beginning of the flags that choose it.

    Raises
    ------
    BadStart
        When the host is unknown, when some address of it has the port in use, or when none can be bound.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise BadStart(
            f"cannot listen on {join_address(host, port)}: the host is not known; choose another with --{flags}host"
        ) from error
    failures = [_bind_failure(family, address) for family, _, _, _, address in found]
    refused = [number for number in failures if number is not None]
    if errno.EADDRINUSE in refused:
        raise BadStart(_address_text(host, port, errno.EADDRINUSE, flags))
    if len(refused) == len(failures):
        raise BadStart(_address_text(host, port, refused[0], flags))


def _bind_failure(family: int, address: object) -> int | None:
    """Return why an address cannot be bound, None when it can."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # as gRPC does: connections of a former server that are still ending are no hindrance
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(address)  # type: ignore[arg-type]  # as getaddrinfo gave it
            probe.listen(1)
    except OSError as error:
        return error.errno or errno.EADDRNOTAVAIL
    return None


def _address_text(host: str, port: int, number: int, flags: str) -> str:
    unknown = f"{errno.errorcode.get(number, number)}; choose another --{{0}}host or --{{0}}port"
    reason = _REASONS.get(number, unknown).format(flags)
    return f"cannot listen on {join_address(host, port)}: {reason}"


def hold_port(
    host: str, port: int, flags: str = "", *, shared: bool = True
) -> tuple[list[socket.socket], int]:
    """Bind every address of a host to a port; return what holds it, and its number.

    Parameters
    ----------
    host, port : address to listen on; port 0: any free one.
    flags : the beginning of the flags that choose it.
    shared : whether other processes bind it too, as the workers of a server do.

    Raises
    ------
    BadStart
        When it has been taken since it was checked.
    """
    held: list[socket.socket] = []
    option = socket.SO_REUSEPORT if shared else socket.SO_REUSEADDR
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, _, _, _, address in found:
        with contextlib.suppress(OSError):  # of an address that cannot be bound, as gRPC passes over it too
            each = socket.socket(family, socket.SOCK_STREAM)
            each.setsockopt(socket.SOL_SOCKET, option, 1)
            if family == socket.AF_INET6:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            each.bind((address[0], port, *address[2:]))
            port = each.getsockname()[1]
            held.append(each)
    if not held:
        raise BadStart(_address_text(host, port, errno.EADDRINUSE, flags))
    return held, port
