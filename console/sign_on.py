"""Sign-on by a proxy: a header of the proxy names the user, and a file gives the token of each user.

Anybody who can send this header to the console can sign in as any user. It therefore counts only on connections whose
peer has an address that the operator has named; headers about the peer are not trusted. On all other connections the
header is removed before anything reads it.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import stat
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

from starlette.types import Scope

from quercus.client.http_serving import PEER

_log = logging.getLogger("quercus.console")

USER: Final = "quercus.user"
"""Key of the user's name in the scope of a request from the proxy."""

HEADER: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,62}")
RESERVED: Final = frozenset(
    {
        "accept", "authorization", "connection", "content-length", "content-type", "cookie", "expect", "forwarded",
        "host", "origin", "referer", "transfer-encoding", "upgrade", "x-form-token", "x-forwarded-for",
        "x-forwarded-host", "x-forwarded-proto",
    }
)  # fmt: skip
"""Headers with other meanings, in addition to those that begin with Sec- and Proxy-."""
MAX_USER_CHARACTERS: Final = 200
MAX_FILE_BYTES: Final = 1024 * 1024
WARN_EVERY_S: Final = 60.0
"""Minimum seconds between log lines about ignored headers, so that they cannot fill the disk."""
_TOKEN: Final = re.compile(r"quercus_[0-9a-f]{12}_[A-Za-z0-9_-]{43}")
_GRANTED: Final = 0o077
"""Permissions of group and others."""


class BadUserFile(Exception):  # noqa: N818
    """The file of users cannot be used; the message has the reason, but no tokens."""


def plain_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address in canonical form: an IPv4-mapped IPv6 address becomes IPv4, and a zone is removed.

    Raises
    ------
    ValueError
        When it is not an address.

    Examples
    --------
    >>> plain_address("::ffff:10.0.0.7"), plain_address("FE80::1%eth0")
    (IPv4Address('10.0.0.7'), IPv6Address('fe80::1'))
    """
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped if mapped is not None else address


def read_users(path: Path) -> dict[str, str]:
    """Return the token of each user from a file with lines of a user, blanks and a token; lines with # are comments.

    Raises
    ------
    BadUserFile
        If the file does not have mode 600, belongs to neither the console's user nor root, or has an invalid line.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise BadUserFile(f"{path} cannot be read: {error.strerror}") from None
    try:
        _check_private(
            path, os.fstat(descriptor)
        )  # of the opened file, even if its name now belongs to another
        with open(descriptor, "rb", closefd=False) as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > MAX_FILE_BYTES:
        raise BadUserFile(f"{path} has more than {MAX_FILE_BYTES:,} bytes")
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError:
        raise BadUserFile(f"{path} is not UTF-8") from None
    users: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or _TOKEN.fullmatch(words[1]) is None:
            raise BadUserFile(f"{path}:{number}: must be a user, a blank and the token, as in: ann quercus_…")
        if not is_user(words[0]):
            raise BadUserFile(f"{path}:{number}: no proxy can send this user's name")
        if words[0] in users:
            raise BadUserFile(f"{path}:{number}: the user has a line already")
        users[words[0]] = words[1]
    return users


def _check_private(path: Path, state: os.stat_result) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise BadUserFile(f"{path} is not a file")
    if state.st_mode & _GRANTED:
        mode = stat.S_IMODE(state.st_mode)
        raise BadUserFile(f"{path} has mode {mode:o}, so others can read or change it: chmod 600 {path}")
    if state.st_uid not in (os.geteuid(), 0):
        raise BadUserFile(f"{path} belongs to another user (uid {state.st_uid}), who can change it")


def is_user(name: str) -> bool:
    """Return whether a text can be the name of a user: no blanks, commas or invisible characters.

    Examples
    --------
    >>> is_user("ann@example.org"), is_user("ann,bob"), is_user("ann smith"), is_user("")
    (True, False, False, False)
    """
    return (
        0 < len(name) <= MAX_USER_CHARACTERS
        and name.isprintable()
        and not any(each.isspace() or each == "," for each in name)
    )


class SignOn:
    """Reads the user that the proxy names.

    Parameters
    ----------
    header
        Name of the header.
    proxies
        Addresses of proxies whose header counts.
    users
        The file that maps users to tokens.
    """

    def __init__(self, header: str, proxies: Collection[str], users: Path) -> None:
        self._header = header.lower().encode("ascii")
        self._proxies = frozenset(map(plain_address, proxies))
        self._users = users
        self._warned_at = float("-inf")

    def token_of(self, user: str) -> str | None:
        """Return the token of a user; None if the file has none. The file is read on every call."""
        return read_users(self._users).get(user)

    def claim_user(self, scope: Scope) -> str | None:
        """Remove the header from a request, and store the user that it names under `USER`.

        Returns
        -------
        str or None
            The reason why the request is refused; None if it is allowed.
        """
        given = [value for name, value in scope["headers"] if name == self._header]
        if not given:
            return None
        scope["headers"] = [each for each in scope["headers"] if each[0] != self._header]
        if not self._is_proxy(scope):
            self._warn(scope)
            return None
        user = given[0].decode(errors="surrogateescape")
        if len(given) > 1 or "," in user:
            return (
                "the sign-on proxy names the user more than once: it must replace the header of the browser"
            )
        if not user:
            return None  # nobody has signed on
        if not is_user(user):
            return "the sign-on proxy names a user by a text that is not a name"
        scope[USER] = user
        return None

    def _is_proxy(self, scope: Scope) -> bool:
        peer = scope.get(PEER)
        try:
            return peer is not None and plain_address(peer[0]) in self._proxies
        except ValueError:
            return False

    def _warn(self, scope: Scope) -> None:
        now = time.monotonic()
        if now - self._warned_at >= WARN_EVERY_S:
            self._warned_at = now
            peer = scope.get(PEER)
            _log.warning(
                "a request from %s has the header %s and was read without it: that address is no --sign-on-proxy",
                "an unknown address" if peer is None else peer[0],
                self._header.decode(),
            )
