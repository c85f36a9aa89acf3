"""``quercus serve``: run a server in this process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from quercus.cli.common import err, fail, needs_server_extra
from quercus.cli.options import option
from quercus.specification import server
from quercus.specification.parameter import Parameter


def configured_option(parameter: Parameter, **more: Any) -> Any:
    """Return an option that sets a key of the server's configuration; the help shows its default."""
    default = "" if parameter.default == "" or parameter.kind is bool else f" ({parameter.default})"
    choices = f": {', '.join(parameter.choices)}" if parameter.choices else ""
    return option(parameter, help=f"{parameter.description}{choices}{default}.", **more)


def serve(
    *,
    store: Annotated[str | None, configured_option(server.STORE, metavar="URL")] = None,
    host: Annotated[str | None, configured_option(server.HOST)] = None,
    port: Annotated[int | None, configured_option(server.PORT)] = None,
    workers: Annotated[str | None, configured_option(server.WORKERS, metavar="N|auto")] = None,
    access: Annotated[str | None, configured_option(server.ACCESS)] = None,
    tls_cert: Annotated[str | None, configured_option(server.TLS_CERT, metavar="FILE")] = None,
    tls_key: Annotated[str | None, configured_option(server.TLS_KEY, metavar="FILE")] = None,
    tls_client_ca: Annotated[str | None, configured_option(server.TLS_CLIENT_CA, metavar="FILE")] = None,
    plaintext: Annotated[bool | None, configured_option(server.PLAINTEXT)] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="TOML file with a table \\[server].", envvar="QUERCUS_CONFIG"
        ),
    ] = None,
    log_level: Annotated[str | None, configured_option(server.LOG_LEVEL)] = None,
    log_format: Annotated[str | None, configured_option(server.LOG_FORMAT)] = None,
    http_host: Annotated[str | None, configured_option(server.HTTP_HOST)] = None,
    http_port: Annotated[int | None, configured_option(server.HTTP_PORT)] = None,
    grace_s: Annotated[float | None, configured_option(server.GRACE_S)] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="KEY=VALUE",
            help=f"Set a bound; again for another. Keys: {', '.join(each.name for each in server.LIMITS)}.",
        ),
    ] = None,
    snapshot_interval_s: Annotated[float | None, configured_option(server.SNAPSHOT_INTERVAL_S)] = None,
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
    if sys.platform == "win32":  # signals, forks and locks of files are those of POSIX
        fail(
            "a server runs on Linux and macOS, not on Windows: run it there or in WSL 2, and give its address to"
            " --server; the client, files and estimators work here"
        )
    with needs_server_extra("serve"):
        from quercus.server.config import Config, read_limits  # noqa: PLC0415  (the server extra)
        from quercus.server.wire.errors import BadStart  # noqa: PLC0415
        from quercus.storage import shown_url  # noqa: PLC0415
    flags = {
        "store": store,
        "host": host,
        "port": port,
        "workers": workers,
        "access": access,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "tls_client_ca": tls_client_ca,
        "plaintext": plaintext,
        "log_level": log_level,
        "log_format": log_format,
        "http_host": http_host,
        "http_port": http_port,
        "grace_s": grace_s,
        "snapshot_interval_s": snapshot_interval_s,
    }
    try:
        settings = Config.load(flags | read_limits(limit or []), file=config)
        err.print(
            f"store {shown_url(settings.store)}; stop with Ctrl-C or SIGTERM",
            style="dim",
            markup=False,
            soft_wrap=True,
        )
        if settings.workers > 1:
            from quercus.server.workers.parent import serve_with_workers as run  # noqa: PLC0415
        else:
            from quercus.server.app import serve as run  # noqa: PLC0415  (the parent of workers needs none of it)
        run(settings)
    except BadStart as error:
        fail(str(error))
    err.print("stopped", style="dim")
