"""``quercus archive`` and ``quercus rebuild``: copies of logs in Parquet files, and models created from them."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Final

import typer

from quercus.belief.errors import InvalidInput
from quercus.cli.common import JsonOption, duration_s, err, fail, out, progress_bar, report
from quercus.cli.completion import complete_model
from quercus.cli.stores import CreateOption, NewNameOption, StoreOption, opened_store, say_retired
from quercus.view.words import counted

NAMED: Final = 5
"""Maximum number of models that an error names."""


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
        Path,
        typer.Option("--out", metavar="DIR", help="Folder of the archive; created if it does not exist."),
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

    Each file is verified by reading it back. After an interruption, the next run continues. Servers may use the store
    meanwhile. Nothing is removed from the store. With --all, a model that fails does not stop the others.

    Try:

        quercus archive wine --out /archive
        quercus archive --all --out /archive --older-than 30d
    """
    if (name is None) != all_models:
        raise typer.BadParameter("give the name of one model, or --all")
    older_than_s = 0.0 if older_than is None else duration_s("--older-than", older_than)
    with opened_store("archive", store) as opened:
        from quercus.storage.archive.writing import archive_model  # noqa: PLC0415  (the server extra)
        from quercus.storage.errors import NotFound, StorageError  # noqa: PLC0415

        names = [] if name is None else [name]
        while name is None and (page := opened.list_models(names[-1] if names else "")):
            names += [model.name for model in page]
        archived, failed = [], {}
        for each in names:
            try:
                with progress_bar(each) as progress:
                    result = archive_model(opened, each, target, older_than_s=older_than_s, progress=progress)
            except (StorageError, InvalidInput) as error:
                if name is not None:
                    raise
                if not isinstance(error, NotFound):  # it was deleted after the names were read
                    failed[each] = str(error)
                    if not as_json:  # JSON lists it among the results
                        err.print(f"{each}: {error}")
                continue
            archived.append(result)
            if not as_json:
                out.print(
                    f"{each}: {counted(result.added, 'event')} added, archived up to event {result.last:,}"
                )
    content = {
        "models": [asdict(each) for each in archived],
        "failed": [{"name": each, "error": error} for each, error in failed.items()],
    }
    report(as_json, content, f"archived to {target}; models: {len(archived):,}")
    if failed:
        more = f" and {len(failed) - NAMED:,} more" if len(failed) > NAMED else ""
        first = ", ".join(islice(failed, NAMED))
        fail(
            f"{len(failed):,} of {counted(len(archived) + len(failed), 'model')} not archived: {first}{more}"
        )


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
    new_name: NewNameOption = None,
    store: StoreOption = None,
    create: CreateOption = False,
    as_json: JsonOption = False,
) -> None:
    """Create models from an archive: each completely, or not at all if a file is wrong.

    The next server with a grower grows the trees from the events and selects new queries. A model that is already in
    the store with the same events is left unchanged.

    Try:

        quercus rebuild /archive --store new.db --create
        quercus rebuild /archive --model wine --as wine-copy
    """
    if new_name is not None and model is None:
        raise typer.BadParameter("--as is for a single model: give --model")
    with (
        opened_store("rebuild", store, create="" if create else "--create") as opened,
        progress_bar("reading") as progress,
    ):
        from quercus.server.transfer.stored_contents import StoredModel  # noqa: PLC0415  (the server extra)
        from quercus.storage.archive.rebuilding import rebuild_models  # noqa: PLC0415

        made = rebuild_models(opened, source, StoredModel, only=model, new_name=new_name, progress=progress)
        say_retired(opened, (each.name for each in made))
    if not as_json:
        for each in made:
            how = "already there" if each.was_there else "rebuilt"
            out.print(f"{each.name}: {counted(each.events, 'event')}, {how}")
    text = "the next server with a grower grows the trees from these events"
    report(as_json, {"models": [asdict(each) for each in made]}, text)
