"""Hosts of this machine."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Return whether only programs of this machine can reach a host, given by name or IP address without port.

    Examples
    --------
    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "LocalHost", "127.example.org", "10.0.0.1", "")]
    [True, True, True, False, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name: 127.example.org is another machine
        return host.lower() == "localhost"
