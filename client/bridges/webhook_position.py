"""The position of the last delivered event of a model, in a small SQLite file that a single bridge locks."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final

from quercus.client.errors import QuercusError, invalid

APPLICATION: Final = 0x51574850
"""Application id that distinguishes these files from other SQLite databases."""
SCHEMA: Final = f"""
PRAGMA application_id = {APPLICATION};
CREATE TABLE position (
    one INTEGER PRIMARY KEY CHECK (one = 1), model TEXT NOT NULL, model_uid TEXT NOT NULL, sequence INTEGER NOT NULL,
    event TEXT NOT NULL
);
"""


class Position:
    """The number of the last delivered event, stored on disk.

    Parameters
    ----------
    path
        Created if missing, readable only by this user. No other process can open it until it is closed.
    model
        Name of the model whose events are sent.

    Attributes
    ----------
    model_uid
        Uid of the model; empty before the first event.
    sequence
        Number of the last event that was delivered, or skipped because of its kind.
    event
        Identifier of the event with that number; empty if unknown.

    Raises
    ------
    InvalidArgument
        If the file is something else, of another model, or in use by a running bridge.
    """

    def __init__(self, path: Path, model: str) -> None:
        self._path, self._model = path, model
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            pass
        except OSError as error:
            raise invalid("state", f"cannot open {path}: {error.strerror}") from None
        self._base = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            self._base.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._base.execute("PRAGMA synchronous = FULL")
            self._base.execute("BEGIN EXCLUSIVE")  # the lock stays until the file is closed
            application = self._base.execute("PRAGMA application_id").fetchone()[0]
            is_new = not self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            self._base.execute("COMMIT")
            if is_new and not application:
                self._base.executescript(SCHEMA)
            elif application != APPLICATION:
                raise invalid("state", f"{path} is not a file of this bridge; name another one")
            row = self._base.execute("SELECT model, model_uid, sequence, event FROM position").fetchone()
            position: tuple[str, str, int, str] = row or (model, "", 0, "")
            known, self.model_uid, self.sequence, self.event = position
            if known != model:
                raise invalid("state", f"{path} is of the model {known!r}; name another file")
        except sqlite3.Error as error:
            self._base.close()
            is_held = error.sqlite_errorcode == sqlite3.SQLITE_BUSY
            why = "is in use by a running bridge" if is_held else f"is not a file of this bridge ({error})"
            raise invalid("state", f"{path} {why}; name another file") from None
        except BaseException:
            self._base.close()
            raise

    def record_delivered(self, model_uid: str, sequence: int, event: str = "") -> None:
        """Record that all events up to this one are delivered; it is on the disk when this returns.

        Nothing changes if this position was already recorded.

        Parameters
        ----------
        model_uid : uid of the model.
        sequence : number of the event.
        event : its identifier, if known.

        Raises
        ------
        QuercusError
            If the file cannot be written, for example because the disk is full.
        """
        if not event and (model_uid, sequence) == (self.model_uid, self.sequence):
            return
        try:
            self._base.execute(
                "INSERT OR REPLACE INTO position VALUES (1, ?, ?, ?, ?)",
                (self._model, model_uid, sequence, event),
            )
        except sqlite3.Error as error:
            raise QuercusError(f"the position cannot be written to {self._path}: {error}") from None
        self.model_uid, self.sequence, self.event = model_uid, sequence, event

    def close(self) -> None:
        """Close the file."""
        self._base.close()
