"""Network namespaces of a test's own, with links to this machine that can be cut: they take root."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import suppress
from itertools import count
from typing import Final

NETWORK: Final = "10.213.0.0/16"
"""The addresses of all links."""

CONNECT_S: Final = 1.0
_LINKS: Final = 16_384  # networks of four addresses
_numbers = count(8 * os.getpid())
_CONNECT: Final = (
    f"import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), {CONNECT_S})"
)


class NoNamespaceError(Exception):
    """A namespace cannot be created here; the text names the command that failed."""


def _ip(command: str) -> None:
    ran = subprocess.run(["ip", *command.split()], check=False, capture_output=True, text=True)
    if ran.returncode:
        raise NoNamespaceError(f"`ip {command}` failed: {ran.stderr.strip()}")


class Link:
    """A link between a namespace and this machine.

    Parameters
    ----------
    namespace : its name.

    Attributes
    ----------
    here, there : the addresses of this machine and of the namespace.
    """

    def __init__(self, namespace: str) -> None:
        number = next(_numbers) % _LINKS
        self._name, inside = f"qv{number}", f"qw{number}"
        self.here, self.there = (f"10.213.{number // 64}.{number % 64 * 4 + end}" for end in (1, 2))
        for command in (
            f"link add {self._name} type veth peer name {inside} netns {namespace}",
            f"addr add {self.here}/30 dev {self._name}",
            f"link set {self._name} up",
            f"-n {namespace} addr add {self.there}/30 dev {inside}",
            f"-n {namespace} link set {inside} up",
        ):
            _ip(command)

    def cut(self) -> None:
        """Lose all that is sent from now on, in both directions."""
        _ip(f"link set {self._name} down")

    def heal(self) -> None:
        """Reconnect the link."""
        _ip(f"link set {self._name} up")

    def remove(self) -> None:
        """Remove it, and its other end with it."""
        _ip(f"link del {self._name}")


class Namespace:
    """A network namespace with links to this machine.

    Parameters
    ----------
    links : how many.
    """

    def __init__(self, links: int = 1) -> None:
        self.name = f"quercus{next(_numbers) % _LINKS}"
        self.links: list[Link] = []
        try:
            _ip(f"netns add {self.name}")
        except FileNotFoundError as error:
            raise NoNamespaceError("the command ip is not installed: apt-get install iproute2") from error
        try:
            _ip(f"-n {self.name} link set lo up")
            self.links += [Link(self.name) for _ in range(links)]
        except NoNamespaceError:
            self.remove()
            raise

    @property
    def before(self) -> tuple[str, ...]:
        """Words before a command that runs it within."""
        return ("ip", "netns", "exec", self.name)

    def reaches(self, host: str, port: int) -> bool:
        """Return whether a connection can be made from within."""
        command = [*self.before, sys.executable, "-I", "-S", "-c", _CONNECT, host, str(port)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def remove(self) -> None:
        """Remove it and its links."""
        for link in self.links:
            with suppress(NoNamespaceError):
                link.remove()
        _ip(f"netns del {self.name}")


def reaches(address: str) -> bool:
    """Return whether a connection to ``host:port`` can be made from this machine."""
    host, _, port = address.rpartition(":")
    with suppress(OSError), socket.create_connection((host, int(port)), CONNECT_S):
        return True
    return False
