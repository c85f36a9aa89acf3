"""``quercus status``: show the state of a running server, or change its log level."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table as RichTable
from rich.text import Text

from quercus.cli.common import DEFAULT_SERVER, JsonOption, ServerOption, connect, err, out, print_json
from quercus.cli.completion import complete_from
from quercus.client.results import Status
from quercus.specification.server import LOG_LEVELS


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

    Exit code 1 when the store cannot be used or the grower is not healthy.

    Try:

        quercus status
        quercus status --log-level debug
    """
    with connect(server) as client:
        if log_level is not None:
            previous = client.set_log_level(log_level)
            err.print(f"log level {log_level}, was {previous}", style="dim")
        found = client.status()
        address = client.address
    if as_json:
        print_json(asdict(found) | {"well": found.is_healthy})
    else:
        _print(address, found)
    if not found.is_healthy:
        raise typer.Exit(1)


def _print(address: str, found: Status) -> None:
    grid = RichTable(box=None, show_header=False, pad_edge=False)
    grower = found.grower
    if found.grower_at:
        grower += f" at model {found.grower_at}"
    if found.kernels:
        grower += _compiling(found)
    if found.grower_restarts:
        grower += f", started again {found.grower_restarts} time{'' if found.grower_restarts == 1 else 's'}"
    if found.lag_s:
        grower += f", {found.lag_s:.1f} s behind"
    access = "TLS, " if found.tls else "no TLS, "
    access += "tokens asked for" if found.tokens else "no tokens asked for"
    rows = [
        ("server", f"{address}, quercus {found.version}, up {_length(found.uptime_s)}"),
        ("access", access),
        ("store", found.store_trouble or f"{_size(found.store_bytes)}, schema {found.store_revision}"),
        ("grower", grower),
        *([("growers", _growers(found))] if found.growers else []),
        *([("learning", _learning(found))] if found.learning or found.waiting_count else []),
        ("models", f"{found.models:,}"),
        ("calls", f"{found.calls:,} under way, {found.writes_waiting:,} writes waiting"),
        ("memory", _size(found.memory_bytes)),
        ("log level", found.log_level),
    ]
    for key, value in rows:
        bad = (key == "store" and found.store_trouble) or (key == "grower" and not found.is_grower_healthy)
        grid.add_row(key, Text(value, style="bold red" if bad else ""))
    out.print(grid)


def _growers(found: Status) -> str:
    """Return a line about the growers that share the store."""
    return "; ".join(
        f"{each.place}: {each.models:,} model{'' if each.models == 1 else 's'}{' (this server)' if each.own else ''}"
        for each in found.growers
    )


def _learning(found: Status) -> str:
    """Return a line about the models that learn from all evidence, and those that wait."""
    learning = ", ".join(found.learning)
    if not found.waiting_count:
        return learning
    more = found.waiting_count - len(found.waiting)
    names = ", ".join([*found.waiting, *([f"{more:,} more"] if more else [])])
    return f"{learning}; waiting for their turn: {names}"


def _compiling(found: Status) -> str:
    """Return the progress of compiling, and which models wait for it."""
    waiting = "trees wait" if found.grower == "compiling" else "trees of imprecise labels wait"
    verb = "" if found.grower == "compiling" else ", compiling"
    return (
        f"{verb} the numerical kernels, {found.kernels_ready} of {found.kernels} steps done; {waiting} for it"
    )


def _length(seconds: float) -> str:
    """A length of time in its two largest units.

    Examples
    --------
    >>> [_length(s) for s in (4.2, 75, 3700, 200_000)]
    ['4 s', '1 min 15 s', '1 h 1 min', '2 d 7 h']
    """
    whole = int(seconds)
    parts = [(whole // 86_400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    first = next((i for i, (value, _) in enumerate(parts) if value), 3)
    shown = [f"{value} {unit}" for value, unit in parts[first : first + 2] if value]
    return " ".join(shown) or "0 s"


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count < 1e9 else f"{count / 1e9:,.2f} GB"
