"""``quercus serve``: run a server in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quercus.client.commands.common import err, fail, needs_server_extra


def serve(
    *,
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="URL", help="Store: a file or sqlite:///path (quercus.db)."),
    ] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on (127.0.0.1).")] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Port (50051); 0: any free one.")
    ] = None,
    access: Annotated[
        str | None,
        typer.Option(
            "--access",
            help="open, tokens (every call needs one: quercus tokens), or auto: open on loopback, else tokens (auto).",
        ),
    ] = None,
    tls_cert: Annotated[
        str | None, typer.Option("--tls-cert", metavar="FILE", help="Certificate, PEM: speak TLS.")
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option("--tls-key", metavar="FILE", help="Its private key, PEM.")
    ] = None,
    tls_client_ca: Annotated[
        str | None,
        typer.Option(
            "--tls-client-ca", metavar="FILE", help="Clients must show a certificate of these authorities."
        ),
    ] = None,
    plaintext: Annotated[
        bool | None,
        typer.Option(
            "--plaintext", help="No TLS on an address that others reach: something before it encrypts."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="TOML file with a table \\[server].", envvar="QUERCUS_CONFIG"
        ),
    ] = None,
    log_level: Annotated[
        str | None, typer.Option("--log-level", help="debug, info, warning or error (info).")
    ] = None,
    log_format: Annotated[
        str | None, typer.Option("--log-format", help="human, or json: one object a line (human).")
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port", min=0, max=65535, help="Answer Prometheus at 127.0.0.1:PORT/metrics (0: off)."
        ),
    ] = None,
    grace_s: Annotated[
        float | None,
        typer.Option("--grace-s", min=0, help="Longest wait for calls under way when stopped (10)."),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="KEY=VALUE",
            help="Set a bound; again for another. Keys: max_message_bytes, max_batch_rows, push_window, max_calls, "
            "max_streams, max_leases, calls_per_s, max_models, max_attributes, max_values, max_classes, "
            "max_name_characters, max_learning_cost, max_memory_bytes, keep_trees.",
        ),
    ] = None,
    snapshot_interval_s: Annotated[
        float | None,
        typer.Option(
            "--snapshot-interval-s",
            min=0,
            max=60,
            help="Between two trees of a model while rows arrive (0.2).",
        ),
    ] = None,
) -> None:
    """Run a server until Ctrl-C or SIGTERM.

    Flags come before the environment (QUERCUS_STORE, QUERCUS_PORT, ...), that before --config, that before
    defaults. Prints "listening on HOST:PORT" once it takes calls.

    Try:

        quercus serve
        quercus serve --store /var/lib/quercus/quercus.db --port 6000
        quercus serve --limit max_models=50
        quercus serve --host 0.0.0.0 --tls-cert server.pem --tls-key server.key
    """
    with needs_server_extra("serve"):
        from quercus.server.app import serve as run  # noqa: PLC0415  (the server extra)
        from quercus.server.config import Config, read_limits  # noqa: PLC0415
        from quercus.server.errors import BadStart  # noqa: PLC0415
    flags = {
        "store": store,
        "host": host,
        "port": port,
        "access": access,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "tls_client_ca": tls_client_ca,
        "plaintext": plaintext,
        "log_level": log_level,
        "log_format": log_format,
        "metrics_port": metrics_port,
        "grace_s": grace_s,
        "snapshot_interval_s": snapshot_interval_s,
    }
    try:
        settings = Config.load(flags | read_limits(limit or []), file=config)
        err.print(
            f"store {settings.store}; stop with Ctrl-C or SIGTERM", style="dim", markup=False, soft_wrap=True
        )
        run(settings)
    except BadStart as error:
        fail(str(error))
    err.print("stopped", style="dim")
