"""``quercus status``: show the state of a running server, or change its log level."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table as RichTable
from rich.text import Text

from quercus.cli.common import DEFAULT_SERVER, JsonOption, ServerOption, err, report
from quercus.cli.completion import complete_from
from quercus.client.client import Client
from quercus.client.results import Status
from quercus.specification.server import LOG_LEVELS
from quercus.view.words import counted


def status(
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
    log_level: Annotated[
        str | None,
        typer.Option(
            "--log-level",
            help="Lowest level that the server logs from now on, until it restarts: debug, info, warning or error.",
            autocompletion=complete_from(LOG_LEVELS),
        ),
    ] = None,
) -> None:
    """Show the state of a server: its store, its grower, and waiting work.

    The exit code is 1 if the store cannot be used, a model in it is damaged or no longer grown, or the grower is not
    healthy.

    Try:

        quercus status
        quercus status --log-level debug
    """
    with Client(server) as client:
        if log_level is not None:
            previous = client.set_log_level(log_level)
            err.print(f"log level {log_level}, was {previous}", style="dim")
        state = client.status()
        address = client.address
    report(as_json, asdict(state) | {"well": state.is_healthy}, _status_table(address, state))
    if not state.is_healthy:
        raise typer.Exit(1)


def _status_table(address: str, state: Status) -> RichTable:
    grid = RichTable(box=None, show_header=False, pad_edge=False)
    access = "TLS, " if state.tls else "no TLS, "
    access += "tokens required" if state.tokens else "no tokens required"
    size = "" if state.restricted else f"{_size_text(state.store_bytes)}, "
    growers = "; ".join(
        f"{each.place}: {counted(each.models, 'model')}{' (this server)' if each.own else ''}"
        for each in state.growers
    )
    learning = ", ".join(state.learning)
    if state.waiting_count:
        more = state.waiting_count - len(state.waiting)
        learning += (
            f"; waiting for their turn: {', '.join([*state.waiting, *([f'{more:,} more'] if more else [])])}"
        )
    rows = [
        ("server", f"{address}, quercus {state.version}, up {_duration_text(state.uptime_s)}"),
        ("access", access),
        ("store", state.store_trouble or f"{size}schema {state.store_revision}"),
        ("grower", state.grower_text),
        *([("growers", growers)] if growers else []),
        *([("learning", learning)] if learning else []),
        ("models", f"{state.models:,}" + (", those of your token" if state.restricted else "")),
        *(("damaged", f"{name}: {reason}") for name, reason in state.damaged.items()),
        *(("stopped", f"{name}: {reason}") for name, reason in state.stopped.items()),
        ("calls", f"{state.calls:,} under way, {state.writes_waiting:,} writes waiting"),
        ("memory", _size_text(state.memory_bytes)),
        ("log level", state.log_level),
    ]
    for key, value in rows:
        if state.restricted and key in {"calls", "memory"}:
            continue
        is_fault = (
            key in {"damaged", "stopped"}
            or (key == "store" and state.store_trouble)
            or (key == "grower" and not state.is_grower_healthy)
        )
        grid.add_row(key, Text(value, style="bold red" if is_fault else ""))
    return grid


def _duration_text(seconds: float) -> str:
    """Return a duration in its two largest units.

    Examples
    --------
    >>> [_duration_text(s) for s in (4.2, 75, 3700, 200_000)]
    ['4 s', '1 min 15 s', '1 h 1 min', '2 d 7 h']
    """
    total = int(seconds)
    parts = [(total // 86_400, "d"), (total // 3600 % 24, "h"), (total // 60 % 60, "min"), (total % 60, "s")]
    first = next((i for i, (value, _) in enumerate(parts) if value), 3)
    shown = [f"{value} {unit}" for value, unit in parts[first : first + 2] if value]
    return " ".join(shown) or "0 s"


def _size_text(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count < 1e9 else f"{count / 1e9:,.2f} GB"
