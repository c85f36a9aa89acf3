"""Check of the address to listen on, made before gRPC tries, because gRPC would log lines of its own."""

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
"""Prefix of the flags for the address of HTTP."""


def join_address(host: str, port: int) -> str:
    """Return ``host:port``, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def check_address(host: str, port: int, flags: str = "") -> None:
    """Check that the addresses of a host can be bound, as gRPC will; for parameters and errors see `hold_port`."""
    for each in hold_port(host, port, flags, shared=False)[0]:
        each.close()


def hold_port(
    host: str, port: int, flags: str = "", *, shared: bool = True
) -> tuple[list[socket.socket], int]:
    """Bind every address of a host to a port; return the sockets and the port.

    Parameters
    ----------
    host, port : address to listen on; port 0 for any free one.
    flags : prefix of the flags that choose the address, for error messages.
    shared : whether other processes bind the port too, as the workers of a server do. If not, it may be bound while
        connections of an earlier server are still ending.

    Raises
    ------
    BadStart
        If the host is unknown, the port is in use at one of its addresses, or no address can be bound.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise BadStart(
            f"cannot listen on {join_address(host, port)}: the host is not known; choose another with --{flags}host"
        ) from error
    held: list[socket.socket] = []
    refused: list[int] = []
    for family, _, _, _, address in found:
        try:
            with contextlib.ExitStack() as unbound:
                each = unbound.enter_context(socket.socket(family, socket.SOCK_STREAM))
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT if shared else socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                each.bind((address[0], port, *address[2:]))
                unbound.pop_all()
        except OSError as error:
            refused.append(error.errno or errno.EADDRNOTAVAIL)
        else:
            port = each.getsockname()[1]
            held.append(each)
    if errno.EADDRINUSE in refused or not held:
        for each in held:
            each.close()
        number = errno.EADDRINUSE if errno.EADDRINUSE in refused else refused[0]
        unknown = f"{errno.errorcode.get(number, number)}; choose another --{{0}}host or --{{0}}port"
        reason = _REASONS.get(number, unknown).format(flags)
        raise BadStart(f"cannot listen on {join_address(host, port)}: {reason}")
    return held, port
