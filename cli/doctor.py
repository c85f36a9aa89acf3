"""``quercus doctor``: check whether this machine can run a server, and show how to fix faults."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table as RichTable
from rich.text import Text

from quercus.cli.common import JsonOption, out, print_json
from quercus.cli.doctor_checks import all_findings

if TYPE_CHECKING:
    from quercus.server.config import Config

_STYLES = {"ok": "green", "warning": "yellow", "fault": "bold red"}


def doctor(
    *,
    store: Annotated[
        str | None, typer.Option("--store", metavar="URL", help="The store: a file or sqlite:///path.")
    ] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port to listen on.")] = None,
    tls_cert: Annotated[
        str | None, typer.Option("--tls-cert", metavar="FILE", help="Certificate of the server (PEM).")
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option("--tls-key", metavar="FILE", help="Private key of the certificate (PEM).")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="The server's TOML file.", envvar="QUERCUS_CONFIG"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check whether this machine can run a server, and show how to fix faults.

    Checks Python, packages, the compiled kernels, the configuration, the store and its schema, the disk, the ports, the
    number of workers, the certificate, the clock and the limit of open files. Run it as the user of the server. Nothing
    is changed.

    Exit code 1 if there is a fault. A server can run in spite of warnings.

    Try:

        quercus doctor
        quercus doctor --config /etc/quercus/quercus.toml
        quercus doctor --json
    """

    def load_config() -> Config:
        from quercus.server.config import Config  # noqa: PLC0415  (the server extra)

        flags = {"store": store, "host": host, "port": port, "tls_cert": tls_cert, "tls_key": tls_key}
        return Config.load(flags, file=config)

    findings = list(all_findings(load_config))
    well = all(each.state != "fault" for each in findings)
    if as_json:
        print_json({"well": well, "checks": [asdict(each) for each in findings]})
    else:
        table = RichTable(box=None, show_header=False, pad_edge=False)
        table.add_column()
        table.add_column()
        table.add_column(overflow="fold")
        for each in findings:
            table.add_row(Text(each.state, style=_STYLES[each.state]), each.name, each.found)
            if each.fix and each.state != "ok":
                table.add_row("", "", Text(f"→ {each.fix}", style="dim"))
        out.print(table)
    if not well:
        raise typer.Exit(1)
