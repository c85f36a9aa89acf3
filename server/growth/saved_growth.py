"""The folded state of a model, saved beside the store, so that after a restart only the rest of the log is read.

The file has the evidence and the growing tree, which equals that of the whole log bit for bit. It is used only if this
version of Quercus wrote it for this model, and the log still has the same events where the file ends. A store in
PostgreSQL has no folder beside it, and so no such files.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from quercus import __version__
from quercus.server.growth.engines import TreeEngine
from quercus.server.growth.saved_columns import SavedEngine, UnreadableFileError, read_columns, write_columns
from quercus.storage import ModelRecord, Store, StoreError

_log = logging.getLogger(__name__)

FORMAT: Final = 11
SUFFIX: Final = "-growth"  # of the folder beside the store's file
ENDING: Final = ".growth"
LEAST_S: Final = 0.25
"""Seconds of folding that are worth a file, because a restart would repeat them."""

SHARE: Final = 10
"""Saving takes at most one part in `SHARE` of the time."""

LAST_EVENTS: Final = 100
"""Number of events that are compared, to check that the log is still the same."""

FREE_TIMES: Final = 4
"""A file is saved only if the disk has this many times its size free, because the store's own data come first."""


@dataclass(frozen=True, slots=True)
class FoldedPart:
    """The folded part of a log: its last sequence number, and its number of events that are not rows."""

    sequence: int = 0
    heard: int = 0


class SavedGrowth:
    """The file with the folded state of one model."""

    def __init__(self, store: Store, record: ModelRecord) -> None:
        self._store = store
        self._model, self._uid = record.name, record.uid
        self._extensions = record.shapes.extensions
        beside = store.beside(SUFFIX)
        self._path = None if beside is None or not record.uid else beside / (record.uid + ENDING)
        self._spent_s = 0.0
        self._cost_s = 0.0  # of the last file
        self._saved_at = -math.inf

    def restore_engine(self, engine: TreeEngine) -> FoldedPart:
        """Restore a new engine from the file; return the part of the log that it has folded."""
        if self._path is None:
            return FoldedPart()
        started = time.monotonic()
        try:
            head, columns = read_columns(self._path)
            part = FoldedPart(int(head["sequence"]), int(head["heard"]))
            if head["fits"] != self._matching_values(part.sequence):
                raise UnreadableFileError(
                    "it is of another version of Quercus, or the log is another one since"
                )
            engine.restore_state(SavedEngine(head["engine"], columns))
        except FileNotFoundError:
            return FoldedPart()
        except (OSError, UnreadableFileError, ValueError, LookupError, TypeError) as error:
            _log.warning(
                "model %s: its saved growth is not used, the log is read instead: %s", self._model, error
            )
            return FoldedPart()
        self._note_cost(started)  # as a first estimate of saving
        _log.info("model %s: growth goes on from event %d, as saved", self._model, part.sequence)
        return part

    def add_folding_time(self, seconds: float) -> None:
        """Add time that was spent on folding."""
        self._spent_s += seconds

    @property
    def due_at(self) -> float:
        """Monotonic time when the next file is due; infinite until enough is folded since the last one."""
        if self._path is None or self._spent_s < LEAST_S:
            return math.inf
        return self._saved_at + SHARE * self._cost_s

    def save_engine(self, engine: TreeEngine, part: FoldedPart) -> None:
        """Write the file, unless the engine must grow first. If that fails, it is logged, and growth continues."""
        started = time.monotonic()
        saved = engine.saved_state()
        if self._path is None or saved is None:
            return
        self._spent_s = 0.0
        try:
            size = sum(column.nbytes for column in saved.columns.values())
            free = self._store.free_bytes()
            if free is not None and free < FREE_TIMES * size:
                raise OSError(f"it needs {size} bytes, and only {free} are free on the disk")
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            head = {
                "fits": self._matching_values(part.sequence),
                "engine": saved.head,
                "sequence": part.sequence,
                "heard": part.heard,
            }
            write_columns(self._path, head, saved.columns, saved.growing)
        except (OSError, StoreError) as error:
            _log.warning("model %s: its growth is not saved: %s", self._model, error)
        self._note_cost(started)
        _log.debug(
            "model %s: growth saved as of %d, in %.0f ms", self._model, part.sequence, 1000 * self._cost_s
        )

    def _note_cost(self, started: float) -> None:
        self._saved_at = time.monotonic()
        self._cost_s = self._saved_at - started

    def remove_file(self) -> None:
        """Remove the file, if there is one; if that fails, it is logged."""
        if self._path is not None:
            _remove_file(self._path)

    def _matching_values(self, sequence: int) -> dict[str, Any]:
        """Return the values that a file must match to be used."""
        last = self._store.read_events(self._model, max(0, sequence - LAST_EVENTS), LAST_EVENTS)
        events = [event for event in last if event.sequence <= sequence]
        return {
            "format": FORMAT,
            "quercus": __version__,
            "model": self._uid,
            "extensions": self._extensions,
            "sequence": sequence,
            "events": len(events),
            "log": hashlib.blake2b(repr(events).encode(), digest_size=16).hexdigest(),
        }


def remove_orphaned_files(store: Store) -> None:
    """Remove the files of deleted models, and incomplete files; failures are logged."""
    beside = store.beside(SUFFIX)
    if beside is None or not beside.is_dir():
        return
    known, after = set(), ""
    while page := store.list_models(after):
        known |= {record.uid + ENDING for record in page}
        after = page[-1].name
    try:
        there = list(beside.iterdir())
    except OSError as error:
        _log.warning("%s cannot be read: %s", beside, error.strerror)
        return
    for path in there:
        if path.name not in known:
            _remove_file(path)


def _remove_file(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("%s cannot be removed: %s", path, error.strerror)
