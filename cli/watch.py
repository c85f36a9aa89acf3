"""``quercus watch``: show a model's progress live."""

from __future__ import annotations

import time
from collections import deque
from contextlib import nullcontext
from typing import Annotated

import typer
from rich.live import Live

from quercus.cli.common import (
    DEFAULT_SERVER,
    JsonOption,
    ModelArgument,
    ServerOption,
    err,
    out,
    print_json_line,
)
from quercus.client.client import Client
from quercus.client.errors import DeadlineExceeded
from quercus.client.results import Model, TreeUpdate
from quercus.view.terminal.watch import MAX_MOMENTS, WatchedMoment, watch_picture


def watch(
    model: ModelArgument,
    limit: Annotated[
        int | None, typer.Option("--stop-after", min=1, help="Number of trees after which to stop.")
    ] = None,
    timeout_s: Annotated[
        float | None, typer.Option("--timeout-s", min=0.1, help="Seconds after which to stop.")
    ] = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Watch a model's trees as they grow: version, lag behind the log, size, answers spent, recent accuracy.

    A terminal shows the numbers as they change and the top of the newest tree; other output has one line per tree.
    Ctrl-C stops.

    Fields of a line, and of --json (- and null: there is none, or it is not known yet):

        version                  number of the tree
        as_of                    newest event of the log that it has learned
        lag, lag_s               later events; seconds since the oldest of them
        rows, answers, budget    rows of the model; answers given, and allowed
        open, leased             queries nobody holds; queries of labellers
        nodes, leaves, depth     size of the tree
        undecided                nodes whose split, or end, more labels decide
        root                     attribute of the first split
        accuracy                 share of right predictions made before their
                                 label, over the last 1,000 (docs/serving.md)

    Try:

        quercus watch wine
        quercus watch wine --json | jq .undecided
    """
    started, moments = time.monotonic(), deque[WatchedMoment](maxlen=MAX_MOMENTS)
    is_live = out.is_terminal and not as_json
    try:
        with (
            Client(server) as client,
            Live(console=out, auto_refresh=False) if is_live else nullcontext() as live,
        ):
            for count, update in enumerate(client.watch(model, timeout_s=timeout_s), 1):
                now = client.get_model(model)
                moments.append(WatchedMoment(time.monotonic() - started, update, now))
                numbers = _update_numbers(update, now)
                if as_json:
                    print_json_line(numbers)
                elif live is None:
                    said = (
                        f"{key} {'-' if value is None else value}"
                        for key, value in numbers.items()
                        if key != "model"
                    )
                    out.print("  ".join(said), soft_wrap=True)
                else:
                    live.update(watch_picture(moments), refresh=True)
                if count == limit:
                    break
    except KeyboardInterrupt:
        err.print("stopped", style="dim")
        raise typer.Exit(130) from None
    except DeadlineExceeded:
        if timeout_s is None:
            raise


def _update_numbers(update: TreeUpdate, model: Model) -> dict[str, object]:
    tree = update.tree
    return {
        "model": model.name,
        "version": tree.version,
        "as_of": tree.as_of,
        "lag": update.lag,
        "lag_s": round(model.lag_s, 3),
        "rows": model.instance_count,
        "answers": model.queries_answered,
        "budget": model.budget,
        "open": model.queries_open,
        "leased": model.queries_leased,
        "nodes": len(tree.nodes),
        "leaves": len(tree.leaves),
        "depth": tree.depth,
        "undecided": len(tree.undecided),
        "root": tree.root.attribute,
        "accuracy": None if model.accuracy is None else round(model.accuracy.expected, 4),
    }
