"""The names under which the HTTP port answers: no page of another site reads it in somebody's browser."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Sequence
from typing import Final

_PORT: Final = re.compile(r":[0-9]{1,5}$")


class HostCheck:
    """The host names under which requests are answered: addresses, names of this machine, and those that are given.

    A browser that a foreign page sends here, after its name was made to lead here (DNS rebinding), sends that name in
    the header Host. No address and no name of this machine can be such a name.

    Parameters
    ----------
    names : further names, without port.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        own = ("localhost", socket.gethostname())
        self._names = frozenset(each.strip().lower() for each in (*own, *names) if each.strip())

    def is_allowed(self, hosts: Sequence[str]) -> bool:
        """Return whether a request with these headers Host, which must be one, is answered.

        Examples
        --------
        >>> check = HostCheck(["quercus.example"])
        >>> [check.is_allowed([host]) for host in ("127.0.0.1:9464", "[::1]:9464", "LOCALHOST", "quercus.example:80")]
        [True, True, True, True]
        >>> [check.is_allowed([host]) for host in ("evil.example:9464", "127.0.0.1.evil.example", "")]
        [False, False, False]
        >>> check.is_allowed([]), check.is_allowed(["localhost", "localhost"])
        (False, False)
        """
        if len(hosts) != 1:
            return False
        name = _PORT.sub("", hosts[0]).lower()
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        return True
