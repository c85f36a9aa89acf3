"""Runs a console until it is stopped."""

from __future__ import annotations

import os
import socket

from quercus.belief.errors import InvalidInput
from quercus.client import http_serving
from quercus.console.app import application
from quercus.console.config import ConsoleConfig

TOKENS = ("QUERCUS_TOKEN", "QUERCUS_TOKEN_FILE")


def refuse_own_token() -> None:
    """Raise if the environment has a token, whose rights every visitor would have.

    Raises
    ------
    InvalidInput
        Naming the variable.
    """
    for name in TOKENS:
        if os.environ.get(name):
            reason = (
                "is set, but the console has no rights of its own: users sign in with their own tokens. Start it "
                f"without --token-file and without {name}"
            )
            raise InvalidInput(name, reason)


def listen(config: ConsoleConfig) -> socket.socket:
    """Return a listening socket."""
    return http_serving.listen(config.host, config.port)


def serve(config: ConsoleConfig, listening: socket.socket) -> None:
    """Answer browsers until SIGINT or SIGTERM."""
    http_serving.serve(
        application(config),
        listening,
        config.tls_cert,
        config.tls_key,
        trusted_proxies=config.trusted_proxies,
    )


def console_url(config: ConsoleConfig, listening: socket.socket) -> str:
    """Return the address to open in a browser."""
    port = listening.getsockname()[1]
    name = config.names[0] if config.names else f"[{config.host}]" if ":" in config.host else config.host
    return f"{'https' if config.tls_cert else 'http'}://{name}:{port}/"
