"""``quercus migrate``: a store moves to another database."""

from __future__ import annotations

from typing import Annotated

import typer

from quercus.cli.common import JsonOption, err, out, report
from quercus.cli.stores import store_errors, store_url


def migrate(
    source: Annotated[
        str,
        typer.Option(
            "--from", metavar="URL", help="The existing store: a file or postgresql://user@host/database."
        ),
    ],
    target: Annotated[
        str,
        typer.Option("--to", metavar="URL", help="The new store: a file to create, or an empty database."),
    ],
    regrow: Annotated[
        int,
        typer.Option(
            "--regrow",
            metavar="N",
            min=0,
            help="Grow the trees of N models anew from both stores, and compare them.",
        ),
    ] = 3,
    as_json: JsonOption = False,
) -> None:
    """Move a store to another database, SQLite or PostgreSQL, while no server uses it.

    Models are moved one by one, and each copy is compared row by row. Then some models are grown anew from both
    logs, and their trees are compared. After an interruption, run the same command again: models that were moved
    already stay. The old store is unchanged.

    Try:

        quercus migrate --from quercus.db --to postgresql://db/quercus
        quercus migrate --from postgresql://db/quercus --to quercus.db
    """
    with store_errors("migrate"):
        from quercus.server.growth.regrowing import MAX_EVENTS, compare_regrown  # noqa: PLC0415  (the server extra)
        from quercus.server.transfer.stored_contents import StoredModel  # noqa: PLC0415
        from quercus.storage.admin.moving import MovedModel, move_store  # noqa: PLC0415

        def show_moved(moved: MovedModel) -> None:
            how = "was there already" if moved.was_there else "moved"
            if not as_json:
                out.print(f"{moved.name}: {moved.rows:,} rows, {how}", markup=False, highlight=False)

        urls = store_url(source), store_url(target, create="")
        with err.status("moving the store"):
            moved = move_store(*urls, show_moved, StoredModel)
        with err.status("growing trees anew") as status:
            regrown = compare_regrown(
                *urls, regrow, lambda name: status.update(f"growing the trees of {name} anew")
            )
    if not as_json and regrown.names:
        out.print(
            f"grown anew from both stores, and equal: {', '.join(regrown.names)}",
            markup=False,
            highlight=False,
        )
    if not as_json and regrow and regrown.too_long:
        out.print(
            f"not grown anew, as they have more than {MAX_EVENTS:,} events: {regrown.too_long:,}",
            markup=False,
            highlight=False,
        )
    models = [{"name": each.name, "rows": each.rows, "was_there": each.was_there} for each in moved]
    result = {"models": models, "regrown": regrown.names}
    report(as_json, result, f"the new store holds together; models: {len(moved):,}")
