"""``quercus backup``, ``restore``, ``check``, ``export``, ``import``, ``migrate``: on a store itself, not a server."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from quercus.belief.errors import InvalidInput
from quercus.cli.common import JsonOption, SpreadsheetOption, err, fail, out, print_json, progress_bar, report
from quercus.cli.completion import complete_model
from quercus.cli.output_files import ForceOption, format_for, refuse_existing, write_rows, written_whole
from quercus.cli.stores import (
    CreateOption,
    NewNameOption,
    StoreOption,
    is_named,
    opened_store,
    say_retired,
    store_errors,
    store_url,
)
from quercus.files import writing
from quercus.files.errors import FileError
from quercus.view.words import counted


def backup(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.", show_default=False)],
    store: StoreOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Copy a store while servers use it.

    The copy is a consistent snapshot, and appears only when it is complete; it can be checked, served and restored.
    This is for stores in SQLite. Back up a store in PostgreSQL with pg_dump and pg_restore.

    Try:

        quercus backup quercus-monday.db
        quercus backup /backup/q.db --store /var/lib/quercus/quercus.db --force
    """
    with store_errors("backup"):
        from quercus.storage.admin.backup import back_up  # noqa: PLC0415  (the server extra)

        url = store_url(store)
        with progress_bar("copying") as show_progress:
            size = back_up(url, target, force=force, progress=show_progress)
    text = f"wrote {target}, {size / 1e6:,.1f} MB; check it with: quercus check --store {target}"
    report(as_json, {"file": str(target), "bytes": size}, text)


def restore(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="File that quercus backup wrote.", show_default=False)
    ],
    store: StoreOption = None,
    force: ForceOption = False,
    despite_remarks: Annotated[
        bool,
        typer.Option(
            "--despite-remarks",
            help="Restore even if quercus check has remarks on the backup, provided it finds no damage.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Replace a store that no server uses by a backup.

    The backup is checked before anything is replaced; a damaged one is never restored. If there is no store yet,
    --store names the new one.

    Try:

        quercus restore quercus-monday.db --store quercus.db
    """
    with store_errors("restore"):
        from quercus.server.transfer.stored_contents import StoredModel  # noqa: PLC0415  (the server extra)
        from quercus.storage.admin.backup import restore_backup as put_back  # noqa: PLC0415

        url = store_url(store, create="" if is_named(store) else "quercus restore FILE --store NEW.db")
        with progress_bar("copying") as show_progress:
            size = put_back(
                source,
                url,
                force=force,
                despite_remarks=despite_remarks,
                contents=StoredModel,
                progress=show_progress,
            )
    report(as_json, {"store": url, "bytes": size}, f"restored {size / 1e6:,.1f} MB")


def check(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Check a store: file, tables and triggers, every cell as the service reads it, logs, counts, budgets, queries.

    It reads everything and writes nothing; a server may use the store meanwhile. The exit code is 1 if there is damage,
    which requires a backup, or if there are remarks on the history of the queries or on foreign tables, which do not
    affect evidence or trees.

    Try:

        quercus check
        quercus check --store quercus-monday.db
    """
    with store_errors("check"):
        from quercus.server.transfer.stored_contents import StoredModel  # noqa: PLC0415  (the server extra)
        from quercus.storage.admin.verify import verify_store  # noqa: PLC0415
        from quercus.storage.dialect import dialect_for  # noqa: PLC0415

        url = store_url(store)
        is_file = dialect_for(url, 5.0).folder is not None
        with err.status("reading the store"):
            faults = verify_store(url, StoredModel)
    damage = sum(fault.is_damage for fault in faults)
    if as_json:
        shown = [{"damage": fault.is_damage, "text": str(fault)} for fault in faults]
        print_json({"well": not faults, "damage": damage, "faults": shown})
        raise typer.Exit(1 if faults else 0)
    for fault in faults:
        kind, style = ("damage", "red") if fault.is_damage else ("remark", "yellow")
        err.print(f"{kind}: {fault}", style=style, soft_wrap=True)
    if damage:
        restored = "a backup with: quercus restore FILE" if is_file else "a dump with pg_restore"
        fail(f"the store is damaged ({damage} found); restore {restored}")
    if faults:
        advice = "; to restore a copy anyway: quercus restore FILE --despite-remarks" if is_file else ""
        fail(f"nothing is damaged; remarks: {len(faults)}{advice}")
    out.print("the store is consistent")


def export(
    *,
    name: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="Name of the model.", show_default=False, autocompletion=complete_model
        ),
    ],
    file: Annotated[
        Path,
        typer.Argument(
            help="File to write. .jsonl (also .gz): the complete log; .csv, .parquet, .arrow: a table.",
            show_default=False,
        ),
    ],
    store: StoreOption = None,
    force: ForceOption = False,
    for_spreadsheets: SpreadsheetOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a model's evidence to a file.

    .jsonl contains every event of the log, with author, time and reason; quercus import reads it back. .csv,
    .parquet and .arrow have one row per instance: values, the combined label of the labellers (without answers, the
    pushed one), the plausibility of each class after all answers, the number of answers, and whether an answer
    contradicted the label.

    Try:

        quercus export wine wine.jsonl.gz
        quercus export wine wine.csv
    """
    kind = format_for(file, otherwise="")
    if for_spreadsheets and kind != "csv":
        raise typer.BadParameter(f"--for-spreadsheets is for .csv files, and {file.name} is not one")
    refuse_existing(file, force)
    with opened_store("export", store) as opened:
        from quercus.server.transfer.exporting import export_table  # noqa: PLC0415  (the server extra)

        if kind == "jsonl":
            rows = -1  # the first line is not an event
            with (
                written_whole(file) as part,
                writing.open_text(part, packed=writing.is_packed(file)) as stream,
            ):
                for line in opened.dump(name):
                    stream.write(line + "\n")
                    rows += 1
        else:
            table = export_table(opened, name)
            output = writing.OutputTable(table.header, table.kinds, table.rows)
            rows = write_rows(output, file, kind, for_spreadsheets=for_spreadsheets)
    unit = "event" if kind == "jsonl" else "row"
    report(as_json, {"file": str(file), f"{unit}s": rows}, f"wrote {file}, {counted(rows, unit)}")


def import_log(
    file: Annotated[
        Path,
        typer.Argument(
            help="File that quercus export wrote: .jsonl, also .gz.",
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ],
    name: NewNameOption = None,
    store: StoreOption = None,
    create: CreateOption = False,
    as_json: JsonOption = False,
) -> None:
    """Create a model from an exported log: all of it, or nothing if a line is wrong.

    A running server notices the model, and its tree grows from the log.

    Try:

        quercus import wine.jsonl.gz
        quercus import wine.jsonl.gz --as wine-copy
        quercus import wine.jsonl.gz --store copy.db --create
    """
    opener: Any = gzip.open if file.name.lower().endswith(".gz") else open
    with (
        opened_store("import", store, create="" if create else "--create") as opened,
        opener(file, "rt", encoding="utf-8", newline="") as lines,
    ):
        from quercus.server.transfer.stored_contents import StoredModel  # noqa: PLC0415  (the server extra)
        from quercus.storage.admin.transfer_lines import lines_of  # noqa: PLC0415

        try:
            made, count = opened.load(lines_of(lines), name, StoredModel())
        except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, zlib.error) as error:
            fail(f"{file} cannot be read: {error}")
        except InvalidInput as error:
            if error.field != "file" and not error.field.startswith("line "):
                raise  # of the command line
            raise FileError(file, error.reason if error.field == "file" else str(error)) from None
        say_retired(opened, [made])
    report(as_json, {"events": count}, f"read {counted(count, 'event')}")


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

    Models are moved one by one, and each copy is compared row by row. Then some models are grown anew from both logs,
    and their trees are compared. After an interruption, run the same command again: it keeps the models that were
    already moved. The old store is unchanged.

    Try:

        quercus migrate --from quercus.db --to postgresql://db/quercus
        quercus migrate --from postgresql://db/quercus --to quercus.db
    """
    with store_errors("migrate"):
        from quercus.server.growth.regrowing import MAX_EVENTS, compare_regrown  # noqa: PLC0415  (the server extra)
        from quercus.server.transfer.stored_contents import StoredModel  # noqa: PLC0415
        from quercus.storage.admin.moving import MovedModel, move_store  # noqa: PLC0415
        from quercus.storage.store import Store  # noqa: PLC0415

        def show_moved(moved: MovedModel) -> None:
            how = "already there" if moved.was_there else "moved"
            if not as_json:
                out.print(f"{moved.name}: {counted(moved.rows, 'record')}, {how}")

        urls = store_url(source), store_url(target, create="")
        with err.status("moving the store"):
            moved = move_store(*urls, show_moved, StoredModel)
        with Store.open(urls[1]) as opened:
            say_retired(opened, (each.name for each in moved))
        with err.status("growing trees anew") as status:
            regrown = compare_regrown(
                *urls, regrow, lambda name: status.update(f"growing the trees of {name} anew")
            )
    if not as_json and regrown.names:
        out.print(f"grown anew from both stores, and equal: {', '.join(regrown.names)}")
    if not as_json and regrow and regrown.too_long:
        out.print(f"not grown anew, as they have more than {MAX_EVENTS:,} events: {regrown.too_long:,}")
    result = {"models": [asdict(each) for each in moved], "regrown": regrown.names}
    report(as_json, result, f"the new store is consistent; models: {len(moved):,}")
