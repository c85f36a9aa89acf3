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
    as_json: JsonOption = False,
) -> None:
    """Move a store to another database, SQLite or PostgreSQL, while no server uses it.

    Models are moved one by one, and each copy is compared row by row. After an interruption, run the same command
    again: models that were moved already stay. The old store is unchanged.

    Try:

        quercus migrate --from quercus.db --to postgresql://db/quercus
        quercus migrate --from postgresql://db/quercus --to quercus.db
    """
    with store_errors("migrate"):
        from quercus.storage.admin.moving import MovedModel, move_store  # noqa: PLC0415  (the server extra)

        def show_moved(moved: MovedModel) -> None:
            how = "was there already" if moved.was_there else "moved"
            if not as_json:
                out.print(f"{moved.name}: {moved.rows:,} rows, {how}", markup=False, highlight=False)

        urls = store_url(source), store_url(target, create="")
        with err.status("moving the store"):
            moved = move_store(*urls, show_moved)
    models = [{"name": each.name, "rows": each.rows, "was_there": each.was_there} for each in moved]
    report(as_json, {"models": models}, f"the new store holds together; models: {len(moved):,}")
