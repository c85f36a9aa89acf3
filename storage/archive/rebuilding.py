"""Models rebuilt from an archive: each is created completely or not at all, and compared with the archive first."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from quercus.belief.errors import InvalidInput, shown
from quercus.specification.bounds import check_model_id
from quercus.storage.admin.transfer import LogValidator, make_model
from quercus.storage.admin.transfer_lines import HeaderLine, check_head, read_cells
from quercus.storage.archive.manifest import NAME, UID, Manifest, read_manifest
from quercus.storage.archive.pieces import load_pyarrow, read_piece
from quercus.storage.archive.writing import Progress, has_events
from quercus.storage.errors import AlreadyExists, CorruptStore, StoreError
from quercus.storage.schema import model
from quercus.storage.store import Store


@dataclass(frozen=True, slots=True)
class RebuiltModel:
    """A model's name in the store, its uid in the archive, its number of events, and whether it already existed."""

    name: str
    uid: str
    events: int
    was_there: bool


@dataclass(frozen=True, slots=True)
class _ArchivedLog:
    folder: Path
    manifest: Manifest
    head: HeaderLine


def rebuild_models(
    store: Store,
    source: Path,
    make_validator: Callable[[], LogValidator],
    *,
    only: str | None = None,
    new_name: str | None = None,
    progress: Progress = lambda done, total: None,
) -> list[RebuiltModel]:
    """Create the models of an archive in a store.

    Parameters
    ----------
    store
        The store; it may have other models.
    source
        The folder of the archive.
    make_validator
        Returns a validator for the contents of one log.
    only
        Name or uid of one model; None for all.
    new_name
        Name of that model in the store; None for its name in the archive.
    progress
        Called after each batch of events.

    Raises
    ------
    InvalidInput
        If a file is invalid; the message names the file, the field and its value.
    CorruptStore
        If a file is damaged or missing, or the stored events have a different digest than those of the archive.
    AlreadyExists
        If the store has another model of this name; nothing was written.
    """
    load_pyarrow()
    logs = _choose_logs(source, only, new_name)
    known = {name: _is_there(store, name, each) for name, each in logs.items()}
    done, total = 0, sum(each.manifest.last_sequence for each in logs.values())
    for name, each in logs.items():
        if not known[name]:

            def report(read: int, before: int = done) -> None:
                progress(before + read, total)

            _rebuild_model(store, name, each, make_validator(), report)
        done += each.manifest.last_sequence
        progress(done, total)
    return [
        RebuiltModel(name, each.manifest.uid, each.manifest.last_sequence, known[name])
        for name, each in logs.items()
    ]


def _choose_logs(source: Path, only: str | None, new_name: str | None) -> dict[str, _ArchivedLog]:
    """Return the logs to rebuild, by name of the model in the store, in order."""
    logs = sorted(_read_logs(source), key=lambda each: each.head.model)
    if not logs:
        raise StoreError(f"{source} has no archived model: no folder that is named by a uid and has a {NAME}")
    names = ", ".join(each.head.model for each in logs)[:500]
    chosen: dict[str, _ArchivedLog] = {}
    for each in logs:
        if only not in (None, each.manifest.uid, each.head.model):
            continue
        name = new_name or each.head.model
        if (other := chosen.setdefault(name, each)) is not each:
            uids = f"{other.manifest.uid} and {each.manifest.uid}"
            raise InvalidInput(
                "model", f"{shown(name)} would be the name of two models, {uids}: choose one by its uid"
            )
    if not chosen:
        raise InvalidInput("model", f"is {shown(only)}, the archive has {names}")
    return chosen


def _read_logs(source: Path) -> Iterator[_ArchivedLog]:
    """Read the manifests; links are skipped, because they may lead out of the archive."""
    try:
        with os.scandir(source) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError as error:
        raise StoreError(f"{source} cannot be read: {error.strerror or error}") from error
    for name in names:
        if UID.fullmatch(name) and (manifest := read_manifest(source / name)) is not None:
            yield _ArchivedLog(source / name, manifest, check_head(manifest.head, str(source / name / NAME)))


def _is_there(store: Store, name: str, archived: _ArchivedLog) -> bool:
    """Return whether the store has the model already; raise `AlreadyExists` if another model has its name."""
    check_model_id(name, "name")
    with store._database.read(unhurried=True) as connection:
        row = connection.execute(select(model).where(model.c.name == name)).first()
        if row is None:
            return False
        last, specification = archived.manifest.last_sequence, archived.head.specification
        is_same = (row.sequence_committed, row.initial_specification) == (last, specification)
        if is_same and _first_difference(connection, int(row.id), archived) is None:
            return True
    raise AlreadyExists(
        "model", name, "with other events than the archive; give the rebuilt model another name with --as"
    )


def _first_difference(connection: Connection, key: int, archived: _ArchivedLog) -> Path | None:
    """Return the file of the first piece whose events the store does not have; None if it has them all."""
    for piece in archived.manifest.pieces:
        if not has_events(connection, key, piece):
            return archived.folder / piece.file_name
    return None


def _rebuild_model(
    store: Store, name: str, archived: _ArchivedLog, validator: LogValidator, progress: Callable[[int], None]
) -> None:
    events = _read_events(archived, progress)
    with store._database.write(unhurried=True) as connection:
        clock = store._clock_of(connection)
        key, _ = make_model(
            connection,
            archived.head,
            events,
            clock,
            name=name,
            meaning=validator,
            where_head=str(archived.folder / NAME),
        )
        if (file := _first_difference(connection, key, archived)) is not None:
            raise CorruptStore(
                f"model {name}: the store got events with another digest than the manifest has for {file}"
            )


def _read_events(
    archived: _ArchivedLog, progress: Callable[[int], None]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of all pieces, each with its location for error messages."""
    done = 0
    for piece in archived.manifest.pieces:
        file, row = str(archived.folder / piece.file_name), 0
        for events in read_piece(archived.folder, piece):
            for event in events:
                row += 1
                where = f"{file}, row {row}"
                yield where, read_cells(event, where)
            done += len(events)
            progress(done)
