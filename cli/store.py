"""``quercus backup``, ``restore``, ``check``, ``export``, ``import``: on the machine of a store, beside its server."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer

from quercus.cli.common import JsonOption, SpreadsheetOption, err, fail, out, print_json, report
from quercus.cli.completion import complete_model
from quercus.cli.output_files import format_for, write_rows
from quercus.cli.progress import progress_bar
from quercus.cli.stores import StoreOption, is_named, opened_store, store_errors, store_url
from quercus.cli.whole_files import refuse_existing, written_whole
from quercus.files import writing

if TYPE_CHECKING:
    from quercus.storage.store import Store

ForceOption = Annotated[bool, typer.Option("--force", help="Replace an existing store or file.")]


def backup(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.", show_default=False)],
    store: StoreOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Copy a store while servers use it.

    The copy shows the store at one moment, and appears when it is complete; it can be checked, served and restored.

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
            help="Restore although quercus check has remarks on the backup, but finds no damage.",
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

    It reads everything and writes nothing; a server may use the store meanwhile. Exit code 1 if there is damage, which
    requires a backup, or remarks on the history of the queries or on tables of others, which do not affect evidence
    or trees.

    Try:

        quercus check
        quercus check --store quercus-monday.db
    """
    with store_errors("check"):
        from quercus.server.transfer.stored_contents import StoredModel  # noqa: PLC0415  (the server extra)
        from quercus.storage.admin.verify import verify_store  # noqa: PLC0415

        url = store_url(store)
        with err.status("reading the store"):
            faults = verify_store(url, StoredModel)
    damage = sum(fault.is_damage for fault in faults)
    if as_json:
        shown = [{"damage": fault.is_damage, "text": str(fault)} for fault in faults]
        print_json({"well": not faults, "damage": damage, "faults": shown})
        raise typer.Exit(1 if faults else 0)
    for fault in faults:
        kind, style = ("damage", "red") if fault.is_damage else ("remark", "yellow")
        err.print(f"{kind}: {fault}", style=style, markup=False, soft_wrap=True)
    if damage:
        fail(f"the store is damaged ({damage} found); restore a backup with: quercus restore FILE")
    if faults:
        fail(
            f"nothing is damaged; remarks: {len(faults)}; "
            "a copy is restored with: quercus restore FILE --despite-remarks"
        )
    out.print("the store holds together")


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
            help="File to write. .jsonl (also .gz): the complete log; .csv, .parquet: a table.",
            show_default=False,
        ),
    ],
    store: StoreOption = None,
    force: ForceOption = False,
    for_spreadsheets: SpreadsheetOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a model's evidence to a file.

    .jsonl contains every event of the log, with author, time and reason; quercus import reads it back. .csv and
    .parquet have one row per instance: values, pushed label, belief in each class after all answers, and the number
    of answers.

    Try:

        quercus export wine wine.jsonl.gz
        quercus export wine wine.csv
    """
    kind = format_for(file, otherwise="")
    if for_spreadsheets and kind != "csv":
        raise typer.BadParameter(f"--for-spreadsheets is for .csv files, {file.name} is none")
    refuse_existing(file, force)
    with opened_store("export", store) as opened:
        if kind == "jsonl":
            with written_whole(file) as part:
                rows = _write_log(opened, name, part, file)
        else:
            rows = _write_table(opened, name, file, kind, for_spreadsheets=for_spreadsheets)
    unit = "events" if kind == "jsonl" else "rows"
    report(as_json, {"file": str(file), unit: rows}, f"wrote {file}, {rows:,} {unit}")


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
    name: Annotated[
        str | None, typer.Option("--as", metavar="MODEL", help="Give the model another name.")
    ] = None,
    store: StoreOption = None,
    create: Annotated[bool, typer.Option("--create", help="Create the store if there is none.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Create a model from an exported log: all of it, or nothing if a line is wrong.

    A running server notices the model, and its tree grows from the log.

    Try:

        quercus import wine.jsonl.gz
        quercus import wine.jsonl.gz --as wine-copy
        quercus import wine.jsonl.gz --store copy.db --create
    """
    create_flag = "" if create else "--create"
    with (
        opened_store("import", store, create=create_flag) as opened,
        _open_text(file, file.name, "rt") as lines,
    ):
        from quercus.server.transfer.stored_contents import StoredModel  # noqa: PLC0415  (the server extra)
        from quercus.storage.admin.transfer_lines import lines_of  # noqa: PLC0415

        try:
            count = opened.load(lines_of(lines), name, StoredModel())
        except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, zlib.error) as error:
            fail(f"{file} cannot be read: {error}")
    report(as_json, {"events": count}, f"read {count:,} events")


def _write_log(opened: Store, name: str, part: Path, file: Path) -> int:
    events = -1  # the first line is no event
    with writing.open_text(part, packed=writing.is_packed(file)) as stream:
        for line in opened.dump(name):
            stream.write(line + "\n")
            events += 1
    return events


def _write_table(
    opened: Store, name: str, file: Path, form: writing.Format, *, for_spreadsheets: bool
) -> int:
    from quercus.server.transfer.exporting import export_table  # noqa: PLC0415  (the server extra)

    table = export_table(opened, name)
    output = writing.OutputTable(table.header, table.kinds, table.rows)
    return write_rows(output, file, form, for_spreadsheets=for_spreadsheets)


def _open_text(path: Path, name: str, mode: str) -> IO[Any]:
    if name.lower().endswith(".gz"):
        return cast(IO[Any], gzip.open(path, mode, encoding="utf-8", newline=""))
    return path.open(mode, encoding="utf-8", newline="")
