"""Runs a console until it is told to stop."""

from __future__ import annotations

import os
import signal
import socket
import ssl

import uvicorn

from quercus.belief.errors import InvalidInput
from quercus.console.app import application
from quercus.console.config import ConsoleConfig

TOKENS = ("QUERCUS_TOKEN", "QUERCUS_TOKEN_FILE")
GRACE_S = 3
MAX_CONNECTIONS = 2_000
MAX_HEADER_BYTES = 16 * 1024


def refuse_own_token() -> None:
    """Raise when the environment has a token: whoever opened a page would have its rights.

    Raises
    ------
    InvalidInput
        Naming the variable.
    """
    for name in TOKENS:
        if os.environ.get(name):
            reason = (
                "is set, but the console has no rights of its own: whoever signs in shows a token of theirs. Start it "
                f"without --token-file and without {name}"
            )
            raise InvalidInput(name, reason)


def listen(config: ConsoleConfig) -> socket.socket:
    """Return a socket that listens.

    Raises
    ------
    InvalidInput
        When the address cannot be listened on.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen()  # what comes before the first page waits
    except OSError as error:
        raise InvalidInput(
            "port", f"cannot listen on {config.host}:{config.port}: {error.strerror or error}"
        ) from None
    return made


def serve(config: ConsoleConfig, listening: socket.socket) -> None:
    """Answer browsers until SIGINT or SIGTERM."""
    try:
        settings = uvicorn.Config(
            application(config),
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="on",
            ws="none",
            timeout_graceful_shutdown=GRACE_S,
            limit_concurrency=MAX_CONNECTIONS,
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            http="h11",
            ssl_certfile=config.tls_cert or None,
            ssl_keyfile=config.tls_key or None,
        )
        settings.load()
    except (ssl.SSLError, OSError) as error:
        reason = f"{config.tls_cert} and {config.tls_key} are not a certificate and its private key in PEM ({error})"
        raise InvalidInput("tls", reason) from None
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(
            number, lambda *_: None
        )  # uvicorn ends by them, and raises them again when it has ended
    uvicorn.Server(settings).run(sockets=[listening])


def url(config: ConsoleConfig, listening: socket.socket) -> str:
    """Return the address to open in a browser."""
    port = listening.getsockname()[1]
    name = config.names[0] if config.names else f"[{config.host}]" if ":" in config.host else config.host
    return f"{'https' if config.tls_cert else 'http'}://{name}:{port}/"
