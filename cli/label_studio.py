"""``quercus bridge label-studio``: a machine-learning backend for Label Studio."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quercus.cli.certificates import warn_of_certificate
from quercus.cli.common import DEFAULT_SERVER, ServerOption, connect, err, needs_extra, out
from quercus.cli.options import secret_of
from quercus.specification.hosts import is_loopback

MAX_CONNECTIONS = 64


def label_studio(
    *,
    model: Annotated[
        str,
        typer.Option(
            "--model", "-m", help="Model that predicts, and learns from the annotations.", show_default=False
        ),
    ],
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0: any free one.")] = 9090,
    item: Annotated[
        str, typer.Option("--item", metavar="FIELD", help="Field of a task's data with the id of the row.")
    ] = "id",
    question: Annotated[
        str,
        typer.Option(
            "--question", metavar="NAME", help="Name of the Choices element, if several offer the classes."
        ),
    ] = "",
    labeller: Annotated[
        str,
        typer.Option(
            "--labeller", metavar="NAME", help="Labeller of all answers (default: the annotator of each)."
        ),
    ] = "",
    secret_file: Annotated[
        Path | None,
        typer.Option(
            "--secret-file",
            metavar="FILE",
            help="File that contains the secret part of the URL (default: QUERCUS_LABEL_STUDIO_SECRET).",
        ),
    ] = None,
    tls_cert: Annotated[
        str, typer.Option("--tls-cert", metavar="FILE", help="Certificate (PEM), which enables TLS.")
    ] = "",
    tls_key: Annotated[
        str, typer.Option("--tls-key", metavar="FILE", help="Private key of the certificate (PEM).")
    ] = "",
    plaintext: Annotated[
        bool,
        typer.Option(
            "--plaintext", help="Serve other machines without TLS because a reverse proxy terminates it."
        ),
    ] = False,
    server: ServerOption = DEFAULT_SERVER,
) -> None:
    """Run a machine-learning backend of Label Studio, until Ctrl-C or SIGTERM.

    Label Studio gets the classes that a row may have, and a score that sorts the rows to label first to the top. The
    choices of people there become statements about the row, whose id is in a field of the task. The command prints
    "backend at URL": enter this URL in Label Studio under Settings, Model. With a secret, enter URL/SECRET; then nobody
    else may state labels.

    Try:

        quercus bridge label-studio --model wine --item row
        quercus bridge label-studio -m wine --secret-file studio.secret
    """
    with needs_extra("bridge label-studio", "console"):
        from quercus.client.bridges.label_studio import (  # noqa: PLC0415  (the console extra)
            BackendConfig,
            application,
        )
        from quercus.client.http_serving import listen, serve  # noqa: PLC0415
    if bool(tls_cert) != bool(tls_key):
        raise typer.BadParameter("a certificate and its private key go together: --tls-cert and --tls-key")
    secret = secret_of(secret_file, "QUERCUS_LABEL_STUDIO_SECRET")
    if not is_loopback(host):
        _check_open(host, secret, encrypted=bool(tls_cert) or plaintext)
    config = BackendConfig(server, model, item, question, labeller, secret)
    with connect(server) as client:
        client.get_model(model)  # report errors of server, token or name now
    warn_of_certificate(tls_cert, tls_key)
    listening = listen(host, port)
    where = f"[{host}]" if ":" in host else host
    url = f"{'https' if tls_cert else 'http'}://{where}:{listening.getsockname()[1]}"
    if secret:
        err.print(f"Label Studio wants {url}/SECRET, with the secret of this backend", soft_wrap=True)
    out.print(f"backend at {url}", soft_wrap=True)
    app = application(config, lambda text: err.print(text, style="dim", soft_wrap=True))
    serve(app, listening, tls_cert, tls_key, max_connections=MAX_CONNECTIONS)


def _check_open(host: str, secret: str, *, encrypted: bool) -> None:
    """Refuse a backend that others reach without secret or unencrypted."""
    if not secret:
        raise typer.BadParameter(
            f"others reach {host}, and could state labels: give --secret-file, as openssl rand -hex 16 writes it"
        )
    if not encrypted:
        raise typer.BadParameter(
            f"others reach {host}: give --tls-cert and --tls-key, or --plaintext if a reverse proxy terminates TLS"
        )
