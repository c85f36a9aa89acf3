"""Check of the address to listen on. It precedes gRPC, which would log its own lines about a refusal."""

from __future__ import annotations

import errno
import socket
from typing import Final

from quercus.server.wire.errors import BadStart

_REASONS: Final = {
    errno.EADDRINUSE: "the port is in use by another program; choose another with --port",
    errno.EADDRNOTAVAIL: "the address is not one of this machine; choose another with --host",
    errno.EACCES: "this user may not use the port; choose one from 1024 on with --port",
}


def join_address(host: str, port: int) -> str:
    """Return ``host:port``, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def check_address(host: str, port: int) -> None:
    """Bind every address of the host for a moment, as gRPC will.

    Raises
    ------
    BadStart
        When the host is unknown, when some address of it has the port in use, or when none can be bound.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise BadStart(
            f"cannot listen on {join_address(host, port)}: the host is not known; choose another with --host"
        ) from error
    failures = [_bind_failure(family, address) for family, _, _, _, address in found]
    refused = [number for number in failures if number is not None]
    if errno.EADDRINUSE in refused:
        raise BadStart(_address_text(host, port, errno.EADDRINUSE))
    if len(refused) == len(failures):
        raise BadStart(_address_text(host, port, refused[0]))


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


def _address_text(host: str, port: int, number: int) -> str:
    reason = _REASONS.get(number, f"{errno.errorcode.get(number, number)}; choose another --host or --port")
    return f"cannot listen on {join_address(host, port)}: {reason}"
