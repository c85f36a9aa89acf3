"""The configuration of a console: the addresses at which it listens, its host names, and the server that it uses."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from quercus.belief.errors import InvalidInput
from quercus.client.transport import server_address
from quercus.console.sign_on import HEADER, RESERVED, BadUserFile, SignOn, plain_address, read_users
from quercus.specification import console
from quercus.specification.hosts import is_loopback

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\]")
_ORIGIN = re.compile(r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?")


@dataclass(frozen=True)
class ConsoleConfig:
    """The configuration of a console.

    Attributes
    ----------
    server
        Address of the Quercus server; empty: the default of the client.
    names
        Host names that browsers may use for the console, without port.
    media
        Origins from which pages may show pictures and sounds, as in ``https://cam.example``.
    trusted_proxies
        Addresses or networks of reverse proxies, whose header X-Forwarded-For has the browser's address.
    sign_on_proxies
        Addresses from which the sign-on proxy connects.
    host, port, tls_cert, tls_key, plaintext, access, send_delay_s, lease_s, sign_on_header, sign_on_users
        Parameters declared in `quercus.specification.console`.

    Raises
    ------
    InvalidInput
        If a value is invalid, or if other machines could reach the console without encryption or host name.
    """

    server: str = ""
    host: str = console.HOST.default
    port: int = console.PORT.default
    names: tuple[str, ...] = ()
    media: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    sign_on_proxies: tuple[str, ...] = ()
    tls_cert: str = ""
    tls_key: str = ""
    plaintext: bool = False
    access: str = console.ACCESS.default
    send_delay_s: float = console.SEND_DELAY_S.default
    lease_s: float = console.LEASE_S.default
    sign_on_header: str = console.SIGN_ON_HEADER.default
    sign_on_users: str = console.SIGN_ON_USERS.default

    def __post_init__(self) -> None:
        for name, parameter in console.PARAMETERS.items():
            parameter.check(getattr(self, name))
        object.__setattr__(self, "server", server_address(self.server or None))
        for name in self.names:
            if _NAME.fullmatch(name) is None:
                raise InvalidInput("name", f"is {name!r}, must be a host name without port")
        for origin in self.media:
            _check_origin(origin)
        for proxy in self.trusted_proxies:
            _check_network(proxy)
        self._check_sign_on()
        self._check_encryption()

    def _check_sign_on(self) -> None:
        given = (self.sign_on_header, self.sign_on_users, self.sign_on_proxies)
        if any(given) and not all(given):
            raise InvalidInput(
                "sign_on", "needs all three: --sign-on-header, --sign-on-users and --sign-on-proxy"
            )
        if not all(given):
            return
        header = self.sign_on_header.lower()
        if HEADER.fullmatch(header) is None or header in RESERVED or header.startswith(("sec-", "proxy-")):
            raise InvalidInput(
                "sign_on_header",
                f"is {self.sign_on_header[:80]!r}, must be letters, digits and hyphens, and not a standard header",
            )
        for proxy in self.sign_on_proxies:
            try:
                plain_address(proxy)
            except ValueError:
                raise InvalidInput(
                    "sign_on_proxy",
                    f"is {proxy!r}, must be an address, as in 10.0.0.7; a network is not an address",
                ) from None
        try:
            read_users(Path(self.sign_on_users))
        except BadUserFile as error:
            raise InvalidInput("sign_on_users", str(error)) from None

    def _check_encryption(self) -> None:
        if bool(self.tls_cert) != bool(self.tls_key):
            raise InvalidInput(
                "tls", "a certificate and its private key go together: --tls-cert and --tls-key"
            )
        for name in ("tls_cert", "tls_key"):
            if (path := getattr(self, name)) and not Path(path).is_file():
                raise InvalidInput(name, f"{path} is not a file")
        if self.on_loopback:
            return
        if not (self.tls_cert or self.plaintext):
            reason = (
                f"other machines can reach {self.host}, and would send their tokens unencrypted; give --tls-cert and "
                "--tls-key, or --plaintext if a proxy in front of the console encrypts"
            )
            raise InvalidInput("host", reason)
        if not self.names:
            reason = f"name the hosts that browsers may use for {self.host}, as in --name console.example"
            raise InvalidInput("host", reason)

    @property
    def sign_on(self) -> SignOn | None:
        """Sign-on by a proxy, if it is switched on."""
        if not self.sign_on_header:
            return None
        return SignOn(self.sign_on_header, self.sign_on_proxies, Path(self.sign_on_users))

    @property
    def on_loopback(self) -> bool:
        """True if only programs on this machine can reach the console."""
        return is_loopback(self.host)

    @property
    def is_encrypted(self) -> bool:
        """True if browsers use TLS, to the console or to a proxy in front of it."""
        return bool(self.tls_cert) or self.plaintext

    @property
    def allowed_names(self) -> frozenset[str]:
        """Names that are allowed in the header Host."""
        return frozenset(
            each.lower() for each in (*self.names, *(LOOPBACK_NAMES if self.on_loopback else ()))
        )


def _check_network(text: str) -> None:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        raise InvalidInput(
            "trusted_proxy", f"is {text!r}, must be an address or a network, as in 10.0.0.7 or 10.0.0.0/24"
        ) from None


def _check_origin(origin: str) -> None:
    if _ORIGIN.fullmatch(origin) is None:
        raise InvalidInput("media", f"is {origin!r}, must be an origin as in https://cam.example")
    parts = urlsplit(origin)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise InvalidInput("media", f"is {origin!r}, must be https unless it is of this machine")
