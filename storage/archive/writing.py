"""Archiving the events that were added to the log of a model since the last run."""

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, select

from quercus.belief.errors import InvalidInput, shown
from quercus.labelling.event import EventKind
from quercus.storage.admin.durable import new_file
from quercus.storage.admin.transfer import CHUNK, events_of, head_of
from quercus.storage.admin.transfer_lines import DISPLAY, NAMES, line_of
from quercus.storage.archive.manifest import (
    MAX_PIECE_EVENTS,
    UID,
    Manifest,
    Piece,
    piece_file,
    read_manifest,
    write_manifest,
)
from quercus.storage.archive.pieces import (
    Event,
    EventDigest,
    file_sha256,
    load_pyarrow,
    read_events,
    read_last_events,
    write_events,
)
from quercus.storage.errors import CorruptStore, FailedPrecondition, NotFound, StoreBusy, StoreError
from quercus.storage.rows import find_model
from quercus.storage.schema import LIVE, AnyRow, log, model
from quercus.storage.store import Store

PIECE_EVENTS: Final = 500_000
PIECE_BYTES: Final = 2**27
"""A piece also ends when the cells of its large columns reach this size."""
LARGE: Final = ("values", DISPLAY, "specification")
MAX_AGE_S: Final = 1e10
ALONE: Final = frozenset({EventKind.INSTANCE, EventKind.SPECIFICATION})
"""Kinds of events that make sense without the other events of the same call."""

Progress = Callable[[int, int], None]
"""Called with the number of events done, and the number of all events."""


@dataclass(frozen=True, slots=True)
class ArchivedModel:
    """The numbers of events and pieces that a run added to the archive of a model, and the last archived event."""

    name: str
    uid: str
    added: int
    pieces: int
    last: int


def archive_model(
    store: Store,
    name: str,
    target: Path,
    *,
    older_than_s: float = 0.0,
    progress: Progress = lambda done, total: None,
    piece_events: int = PIECE_EVENTS,
) -> ArchivedModel:
    """Add the new events of a model to an archive; servers may use the store meanwhile.

    Parameters
    ----------
    store
        The store with the model.
    name
        The model's name.
    target
        The folder of the archive; created if it does not exist.
    older_than_s
        Only events that are at least this many seconds old are archived.
    progress
        Called after each batch of events.
    piece_events
        The number of events after which a piece ends.

    Raises
    ------
    FailedPrecondition
        If the store has other events than the archive.
    StoreBusy
        If another process writes to the archive of this model.
    CorruptStore
        If the manifest is damaged, or a piece that was read back differs from what was written.
    StoreError
        If a file cannot be read or written, for example because the disk is full.
    """
    load_pyarrow()
    if not 0 <= older_than_s <= MAX_AGE_S:
        raise InvalidInput("older-than", f"is {older_than_s:g} s, must lie in [0, {MAX_AGE_S:g}]")
    if not 1 <= piece_events <= MAX_PIECE_EVENTS:
        raise InvalidInput("piece_events", f"is {piece_events}, must lie in [1, {MAX_PIECE_EVENTS}]")
    with store._database.read() as connection:
        row = find_model(connection, name)
    if not UID.fullmatch(row.uid):
        raise InvalidInput(f"model {name}", f"has uid {shown(row.uid)}, which is not a UUID")
    with _locked_folder(target, row.uid) as folder:
        before = manifest = read_manifest(folder) or Manifest(row.uid, {}, ())
        with store._database.read(unhurried=True) as connection:
            _check_same_history(connection, row, manifest, folder)
            latest = store._clocks.now(connection).wall - older_than_s if older_than_s else None
            end = _last_event(connection, row, manifest.last_sequence, latest)
            head = _manifest_head(connection, row, manifest.last_sequence)
        while manifest.last_sequence < end:
            manifest = _add_piece(
                store, row, folder, manifest, end=end, piece_events=piece_events, progress=progress
            )
        if manifest is before and head != manifest.head:  # budget, policy or learned values changed
            write_manifest(folder, replace(manifest, head=head))
    added = manifest.last_sequence - before.last_sequence
    return ArchivedModel(
        name, row.uid, added, len(manifest.pieces) - len(before.pieces), manifest.last_sequence
    )


@contextmanager
def _locked_folder(target: Path, uid: str) -> Iterator[Path]:
    """Create the folder of a model if necessary, and lock it against other processes."""
    folder = target / uid
    try:
        target.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise StoreError(f"{folder} cannot be opened as a folder: {error.strerror or error}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreBusy(f"another process archives to {folder}: wait until it ends") from None
        except OSError as error:
            raise StoreError(f"{folder} cannot be locked: {error.strerror or error}") from error
        yield folder
    finally:
        os.close(descriptor)


def _check_same_history(connection: Connection, row: AnyRow, manifest: Manifest, folder: Path) -> None:
    """Raise if the store does not have the last events of the archive.

    A log only grows at its end, so if the last events are equal, with their times, all earlier ones are too.
    """
    if not manifest.pieces:
        return
    piece = manifest.pieces[-1]
    archived = read_last_events(folder, piece)
    first = archived[0]["sequence"]
    if _digest_events(archived) != _digest_events(_stored_events(connection, row.id, first, piece.last)):
        raise FailedPrecondition(
            f"the store has other events {first} to {piece.last} of model {row.name} than {folder / piece.file_name}: "
            "a backup was restored, or somebody changed the store by hand; archive to a new folder"
        )


def has_events(connection: Connection, key: int, piece: Piece) -> bool:
    """Return whether the store has the events of a piece."""
    return _digest_events(_stored_events(connection, key, piece.first, piece.last)) == (
        piece.events,
        piece.digest,
    )


def _digest_events(events: Iterable[Event]) -> tuple[int, str]:
    digest = EventDigest()
    digest.add_events(events)
    return digest.count_and_digest()


def _stored_events(connection: Connection, key: int, first: int, last: int) -> Iterator[Event]:
    selected = events_of(key).where(log.c.sequence.between(first, last)).execution_options(yield_per=CHUNK)
    with connection.execute(selected) as rows:
        for row in rows:
            yield dict(zip(NAMES, row, strict=True))


def _last_event(connection: Connection, row: AnyRow, after: int, latest: float | None) -> int:
    """Return the number of the last event before the first one that is later than `latest`.

    All events of a call have the same time, so a call is never split.
    """
    if latest is not None:
        later = (log.c.model_id == row.id, log.c.sequence > after, log.c.created_at > latest)
        first = connection.execute(
            select(log.c.sequence).where(*later).order_by(log.c.sequence).limit(1)
        ).scalar()
        if first is not None:
            return int(first) - 1
    return int(_live_row(connection, row).sequence_committed)


def _live_row(connection: Connection, row: AnyRow) -> AnyRow:
    """Return the present row of a model; `NotFound` if the model was deleted."""
    found: AnyRow | None = connection.execute(select(model).where(model.c.id == row.id, LIVE)).first()
    if found is None:
        raise NotFound("model", row.name, "any more")
    return found


def _manifest_head(connection: Connection, row: AnyRow, last: int) -> dict[str, Any]:
    """Return the head of a manifest in the form in which JSON restores it."""
    head: dict[str, Any] = json.loads(line_of(head_of(connection, _live_row(connection, row), last)))
    return head


def _add_piece(
    store: Store,
    row: AnyRow,
    folder: Path,
    manifest: Manifest,
    *,
    end: int,
    piece_events: int,
    progress: Progress,
) -> Manifest:
    """Write the next piece and read it back; write the manifest that lists it, and return that."""
    before = manifest.last_sequence
    path = folder / piece_file(before + 1)
    with store._database.read(unhurried=True) as connection, new_file(path) as stream:
        _live_row(connection, row)
        events = _first_piece(_stored_events(connection, row.id, before + 1, end), piece_events)
        written = write_events(stream, events, lambda count: progress(before + count, end))
        _check_written(stream, path, written)
        size, sha256 = stream.tell(), file_sha256(stream)
        count, digest = written
        head = _manifest_head(connection, row, before + count)
    piece = Piece(before + 1, before + count, size, sha256, digest)
    added = Manifest(row.uid, head, (*manifest.pieces, piece))
    write_manifest(folder, added)
    return added


def _first_piece(events: Iterable[Event], piece_events: int) -> Iterator[Event]:
    """Yield events until a piece is full and a call is complete, so that no archive ends within a call."""
    before: Event | None = None
    size = 0
    for count, event in enumerate(events):
        is_full = count >= piece_events or size >= PIECE_BYTES
        if before is not None and (
            count >= MAX_PIECE_EVENTS or (is_full and not _is_same_call(before, event))
        ):
            return
        yield event
        size += sum(len(event[name] or b"") for name in LARGE)
        before = event


def _is_same_call(one: Event, other: Event) -> bool:
    """Return whether two successive events may come from one call, such as a statement and its combined label."""
    return not ALONE & {one["kind"], other["kind"]} and one["created_at"] == other["created_at"]


def _check_written(stream: BufferedIOBase, path: Path, written: tuple[int, str]) -> None:
    """Read a new piece back, compare it with what was written, and move the stream to its end."""
    if _digest_events(chain.from_iterable(read_events(stream, path))) != written:
        raise CorruptStore(f"{path}: {written[0]:,} events were written, but others were read back")
    stream.seek(0, os.SEEK_END)
