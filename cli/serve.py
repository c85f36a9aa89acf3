"""``quercus serve``: run a server in this process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from quercus.cli.common import err, fail, needs_extra
from quercus.cli.options import option, with_options
from quercus.specification import server
from quercus.specification.parameter import Parameter


def configured_option(parameter: Parameter, **more: Any) -> Any:
    """Return the annotation of a flag that sets a key of the server's configuration; the help shows its default."""
    default = None if parameter.default == "" or parameter.kind is bool else parameter.default
    kind: Any = str if parameter.choices else parameter.kind
    return Annotated[kind | None, option(parameter, default=default, **more)]


FLAGS = {
    "store": configured_option(server.STORE, metavar="URL"),
    "host": configured_option(server.HOST),
    "port": configured_option(server.PORT),
    "workers": configured_option(server.WORKERS, metavar="N|auto"),
    "access": configured_option(server.ACCESS),
    "tls_cert": configured_option(server.TLS_CERT, metavar="FILE"),
    "tls_key": configured_option(server.TLS_KEY, metavar="FILE"),
    "tls_client_ca": configured_option(server.TLS_CLIENT_CA, metavar="FILE"),
    "plaintext": configured_option(server.PLAINTEXT),
    "log_level": configured_option(server.LOG_LEVEL),
    "log_format": configured_option(server.LOG_FORMAT),
    "http_host": configured_option(server.HTTP_HOST),
    "http_port": configured_option(server.HTTP_PORT),
    "grace_s": configured_option(server.GRACE_S),
    "snapshot_interval_s": configured_option(server.SNAPSHOT_INTERVAL_S),
}
"""The flags of the server, by the key of its configuration that each sets."""


@with_options(FLAGS)
def serve(
    *,
    options: dict[str, Any],
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="TOML file with a table \\[server].", envvar="QUERCUS_CONFIG"
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="KEY=VALUE",
            help=f"Set a bound; repeatable. Keys: {', '.join(each.name for each in server.LIMITS)}.",
        ),
    ] = None,
) -> None:
    """Run a server until Ctrl-C or SIGTERM.

    Flags override the environment (QUERCUS_STORE, QUERCUS_PORT, ...), which overrides --config, which overrides the
    defaults. The server prints "listening on HOST:PORT" once it accepts calls.

    Try:

        quercus serve
        quercus serve --store /var/lib/quercus/quercus.db --port 6000
        quercus serve --http-port 8080
        quercus serve --workers auto
        quercus serve --limit max_models=50
        quercus serve --host 0.0.0.0 --tls-cert server.pem --tls-key server.key
    """
    if sys.platform == "win32":  # the server needs POSIX signals, forks and file locks
        fail(
            "a server runs on Linux and macOS, not on Windows: run it there or in WSL 2, and give its address to"
            " --server; the client, files and estimators work here"
        )
    with needs_extra("serve"):
        from quercus.server.config import Config, read_limits  # noqa: PLC0415  (the server extra)
        from quercus.server.wire.errors import BadStart  # noqa: PLC0415
        from quercus.storage import shown_url  # noqa: PLC0415
    try:
        settings = Config.load(options | read_limits(limit or []), file=config)
        if settings.workers > 1:
            from quercus.server.workers.parent import serve_with_workers as run  # noqa: PLC0415
        else:
            from quercus.server.app import serve as run  # noqa: PLC0415  (not needed by the parent of workers)

        def announce(address: str) -> None:
            store = shown_url(settings.store)
            err.print(f"store {store}; stop with Ctrl-C or SIGTERM", style="dim", soft_wrap=True)
            print(f"listening on {address}", flush=True)

        run(settings, announce)
    except BadStart as error:
        fail(str(error))
    err.print("stopped", style="dim")
