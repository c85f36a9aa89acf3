"""``quercus archive`` and ``quercus rebuild``: copies of logs in Parquet files, and models created from them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from quercus.cli.common import JsonOption, err, fail, out, report
from quercus.cli.completion import complete_model
from quercus.cli.progress import progress_bar
from quercus.cli.stores import StoreOption, opened_store

if TYPE_CHECKING:
    from quercus.storage.store import Store

NAMED: Final = 5
"""Models that an error names."""
SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def archive(
    *,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL", help="Name of the model.", show_default=False, autocompletion=complete_model
        ),
    ] = None,
    all_models: Annotated[bool, typer.Option("--all", help="Archive all models of the store.")] = False,
    target: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder of the archive; created if there is none.")
    ],
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="AGE",
            help="Stop before the first event that is younger than this: 12h, 30d.",
        ),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add the new events of a model to an archive of Parquet files.

    Each file is read back before it counts. After an interruption, the next run continues. Servers may use the store
    meanwhile. Nothing is removed from the store. With --all, a model that fails does not stop the others.

    Try:

        quercus archive wine --out /archive
        quercus archive --all --out /archive --older-than 30d
    """
    if (name is None) != all_models:
        raise typer.BadParameter("give the name of one model, or --all")
    older_than_s = 0.0 if older_than is None else parse_age(older_than)
    with opened_store("archive", store) as opened:
        from quercus.belief.errors import InvalidInput  # noqa: PLC0415  (the server extra)
        from quercus.storage.archive.writing import archive_model  # noqa: PLC0415
        from quercus.storage.errors import NotFound, StorageError  # noqa: PLC0415

        archived, failed = [], {}
        for each in _all_names(opened) if name is None else [name]:
            try:
                with progress_bar(each) as progress:
                    result = archive_model(opened, each, target, older_than_s=older_than_s, progress=progress)
            except (StorageError, InvalidInput) as error:
                if name is not None:
                    raise
                if not isinstance(error, NotFound):  # deleted since the names were read
                    failed[each] = str(error)
                    _show_failure(each, str(error), as_json=as_json)
                continue
            archived.append(result)
            if not as_json:
                text = f"{each}: {result.added:,} events added, archived up to event {result.last:,}"
                out.print(text, markup=False, highlight=False)
    content = {
        "models": [asdict(each) for each in archived],
        "failed": [{"name": each, "error": error} for each, error in failed.items()],
    }
    report(as_json, content, f"archived to {target}; models: {len(archived):,}")
    if failed:
        fail(
            f"{len(failed):,} of {len(archived) + len(failed):,} models were not archived: {_first_names(failed)}"
        )


def _show_failure(name: str, error: str, *, as_json: bool) -> None:
    if not as_json:  # the results have it
        err.print(f"{name}: {error}", markup=False, highlight=False)


def _first_names(names: Collection[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - NAMED
    return ", ".join(islice(names, NAMED)) + (f" and {more:,} more" if more > 0 else "")


def _all_names(opened: Store) -> list[str]:
    """Return the names of all models, read a page at a time."""
    names: list[str] = []
    while page := opened.list_models(names[-1] if names else ""):
        names += [model.name for model in page]
    return names


def rebuild(
    *,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Folder of the archive.", exists=True, file_okay=False, show_default=False
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="NAME", help="Rebuild only the model with this name or uid."),
    ] = None,
    new_name: Annotated[
        str | None, typer.Option("--as", metavar="MODEL", help="Give the model another name.")
    ] = None,
    store: StoreOption = None,
    create: Annotated[bool, typer.Option("--create", help="Create the store if there is none.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Create models from an archive: each completely, or not at all if a file is wrong.

    The next server with a grower grows the trees from the events, and selects open queries anew. A model that the store
    already has with the same events stays unchanged.

    Try:

        quercus rebuild /archive --store new.db --create
        quercus rebuild /archive --model wine --as wine-copy
    """
    if new_name is not None and model is None:
        raise typer.BadParameter("--as is for one model: give --model")
    create_flag = "" if create else "--create"
    with opened_store("rebuild", store, create=create_flag) as opened, progress_bar("reading") as progress:
        from quercus.server.transfer.stored_contents import StoredModel  # noqa: PLC0415  (the server extra)
        from quercus.storage.archive.rebuilding import rebuild_models  # noqa: PLC0415

        made = rebuild_models(opened, source, StoredModel, only=model, new_name=new_name, progress=progress)
    if not as_json:
        for each in made:
            how = "was there already" if each.was_there else "rebuilt"
            out.print(f"{each.name}: {each.events:,} events, {how}", markup=False, highlight=False)
    text = "the next server with a grower grows the trees from these events"
    report(as_json, {"models": [asdict(each) for each in made]}, text)


def parse_age(text: str) -> float:
    """Return an age such as ``30d`` in seconds.

    Examples
    --------
    >>> parse_age("90m")
    5400.0
    """
    match = re.fullmatch(r"(\d{1,9})([smhdw])", text)
    if match is None:
        fail(f"--older-than is {text[:60]!r}, must be a whole number and s, m, h, d or w, such as 30d")
    return float(int(match[1]) * SECONDS[match[2]])
