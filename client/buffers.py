"""Buffers of rows while a server is unreachable: in memory, or in an SQLite file that outlives the process."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
import zlib
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from google.protobuf.message import Message

from quercus.client.durable import sync_file, sync_folder
from quercus.client.errors import BufferFull, RejectedRows, Unavailable, invalid
from quercus.client.pushing import Batch
from quercus.client.resources import model_resource
from quercus.client.values import json_of
from quercus.specification.written_labels import write_label
from quercus.v1 import instance_pb2, model_pb2

APPLICATION = 0x51425546
"""Application id that distinguishes these files from other SQLite databases."""
SCHEMA = f"""
PRAGMA auto_vacuum = INCREMENTAL;
BEGIN EXCLUSIVE;
PRAGMA application_id = {APPLICATION};
CREATE TABLE messages (number INTEGER PRIMARY KEY, message BLOB NOT NULL, checksum INTEGER NOT NULL);
COMMIT;
"""
LOG_BYTES = 1 << 20
"""Maximum size of the write-ahead log, in bytes, after its rows have been moved into the file."""
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
MODEL = 0
"""Number of the message that has the model's name and specification; batches have higher numbers."""


class Memory:
    """A buffer in memory: the waiting batches, in order."""

    specification: model_pb2.Specification | None = None
    """Specification of the model, if the buffer knows it."""
    uid = ""
    """Uid of the model, which differs from that of a later model of the same name; empty if unknown."""
    rejected_place = "and left the buffer"
    """The fate of refused rows, in words."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.size = 0

    def set_specification(self, specification: model_pb2.Specification, uid: str = "") -> None:
        """Set the model's specification and uid for the rows that follow."""
        self.specification, self.uid = specification, uid

    def add_batches(self, batches: list[Batch]) -> None:
        """Append batches."""
        self.batches += batches
        self.size += sum(batch.size_bytes for batch in batches)

    def drop_first(self, count: int) -> None:
        """Remove the first `count` batches, which are acknowledged."""
        self.size -= sum(batch.size_bytes for batch in self.batches[:count])
        del self.batches[:count]

    def keep_rejected(self, rows: RejectedRows) -> None:
        """Drop rows that the server refused, since this buffer ends with the process."""

    def close(self) -> None:
        """Do nothing: this buffer holds no resources."""


class File(Memory):
    """A buffer in an SQLite file: messages by number, each with a checksum.

    Message 0 has the model's name and specification, so that a process can start while the server is unreachable. A put
    is one transaction, which is on the disk (``synchronous = FULL``) when it returns. Acknowledged batches are removed
    without waiting for the disk (``NORMAL``): after a power failure they are sent again, and the server recognises
    their ids. If the file is damaged, it keeps its intact messages, a copy of the damaged file is made, and the error
    says so.

    Parameters
    ----------
    path
        Created if missing, readable only by this user.
    model
        Name of the model to which the rows belong.

    Raises
    ------
    InvalidArgument
        If the file cannot be opened or is not a buffer (it is left unchanged), or if it was damaged.
    """

    def __init__(self, path: Path, model: str) -> None:
        super().__init__()
        self._path, self._name = path, model_resource(model)
        self.rejected_place = f"and kept in {self.rejected_path}"
        self._base = _open_locked(path)
        try:
            messages, is_intact = self._read_messages()
            head = messages.pop(MODEL, None)
            requests = [
                instance_pb2.PushInstancesRequest.FromString(message)
                for _, message in sorted(messages.items())
            ]
            names = [request.model for request in requests]
            if head is not None:
                known = model_pb2.Model.FromString(head)
                names.append(known.name)
                self.specification, self.uid = known.specification, known.uid
            for name in names:
                if name != self._name:
                    raise invalid("path", f"{path} is the buffer of {name or 'something else'}")
            batches = [Batch(request, _row_count(request)) for request in requests]
            if not is_intact:
                self._set_damaged_aside(head, batches)
        except BaseException:
            self._base.close()
            raise
        self._is_begun, self._is_behind = head is not None, False
        self._last = max(messages, default=MODEL)
        super().add_batches(batches)

    def _read_messages(self) -> tuple[dict[int, bytes], bool]:
        """Return the intact messages by number, and whether the file is intact.

        If SQLite cannot continue after a damaged page, the file is also read from its end.
        """
        messages: dict[int, bytes] = {}
        is_intact = True
        for order in ("ASC", "DESC"):
            try:
                is_intact &= self._base.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
                select = f"SELECT number, message, checksum FROM messages ORDER BY number {order}"  # noqa: S608
                for number, message, checksum in self._base.execute(select):
                    if isinstance(message, bytes) and zlib.crc32(message) == checksum:
                        messages[number] = message
                    else:
                        is_intact = False
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode not in DAMAGED:
                    raise invalid(
                        "path", f"cannot read {self._path}, which is left unchanged: {error}"
                    ) from None
                is_intact = False
        return messages, is_intact

    def _set_damaged_aside(self, head: bytes | None, intact: list[Batch]) -> None:
        """Keep the damaged file under another name and the intact messages in this one, and raise an error."""
        kept = self._path.with_name(f"{self._path.name}.damaged-{time.time_ns()}")
        fresh = self._path.with_name(f"{self._path.name}.mending")
        log, kept_log = (path.with_name(f"{path.name}-wal") for path in (self._path, kept))
        try:
            _copy_synced(self._path, kept)
            if log.exists() and log.stat().st_size:
                _copy_synced(log, kept_log)
            fresh.unlink(missing_ok=True)
            with closing(_open_locked(fresh)) as base:
                _write_messages(base, [] if head is None else [(MODEL, head)])
                messages = (batch.request.SerializeToString() for batch in intact)
                _write_messages(base, enumerate(messages, MODEL + 1))
                base.execute(
                    "PRAGMA journal_mode = DELETE"
                ).fetchall()  # moves the write-ahead log into the file, or raises
        except (OSError, sqlite3.Error) as error:  # the disk is full, for example
            raise invalid("path", f"{self._path} is damaged, and is left unchanged: {error}") from None
        self._base.close()
        log.unlink(missing_ok=True)
        fresh.replace(self._path)
        sync_folder(self._path.parent)
        raise invalid(
            "path",
            f"{self._path} was damaged: {len(intact)} batches with {sum(batch.rows for batch in intact)} rows are "
            f"intact and stay in it; the damaged file is kept as {kept}. To continue, open it again",
        )

    def set_specification(self, specification: model_pb2.Specification, uid: str = "") -> None:
        """Set the specification for further rows; while batches wait, the file keeps the one they were made for.

        Raises
        ------
        InvalidArgument
            If waiting batches have other attributes or classes.
        """
        before = self.specification
        if self.batches and before is not None and not can_read(before, specification):
            raise invalid(
                "specification",
                f"has other attributes or classes than the {len(self.batches)} batches that wait in {self._path}: "
                "name another file, or remove this one and its rows",
            )
        if (
            before is None
            or (not self.batches and (specification, uid) != (before, self.uid))
            or not self.uid
        ):
            self._is_begun = False
        super().set_specification(specification, uid)

    def add_batches(self, batches: list[Batch]) -> None:
        """Write batches to the disk, then append them."""
        numbered: list[tuple[int, Message]] = [
            (number, batch.request) for number, batch in enumerate(batches, self._last + 1)
        ]
        if not self._is_begun:
            model = model_pb2.Model(name=self._name, specification=self.specification, uid=self.uid)
            numbered.append((MODEL, model))
        try:
            if self._is_behind:
                self._remove_acknowledged()
            messages = ((number, message.SerializeToString()) for number, message in numbered)
            _write_messages(self._base, messages)
        except sqlite3.Error as error:
            raise BufferFull(f"path: cannot write to {self._path}: {error}") from None
        self._is_begun = True
        self._last += len(batches)
        super().add_batches(batches)

    def drop_first(self, count: int) -> None:
        """Remove the first `count` batches; when none is left, the file releases its space."""
        super().drop_first(count)
        try:
            self._remove_acknowledged()
        except sqlite3.Error:
            # The disk is full: the next call removes these too; otherwise they are sent again.
            self._is_behind = True

    @property
    def rejected_path(self) -> Path:
        """The file of refused rows."""
        return self._path.with_name(f"{self._path.name}.rejected")

    def keep_rejected(self, rows: RejectedRows) -> None:
        """Append refused rows to a file, as lines of JSON; they are on the disk when this returns.

        Raises
        ------
        Unavailable
            If the file cannot be written, for example because the disk is full; the rows stay in the buffer.
        """
        lines = [
            {
                "id": each.id,
                "values": each.values and {name: json_of(value) for name, value in each.values.items()},
                "label": None if each.label is None else write_label(each.label),
                "reason": each.reason,
            }
            for each in rows
        ]
        try:
            own = os.open(self.rejected_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with open(own, "a", encoding="utf-8") as file:
                file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise Unavailable(f"cannot write to {self.rejected_path}: {error.strerror}") from None

    def _remove_acknowledged(self) -> None:
        gone = self._last - len(self.batches)
        self._base.execute("PRAGMA synchronous = NORMAL")
        if self._is_behind:  # releases the space of the log, which the removal needs
            self._base.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._base.execute("DELETE FROM messages WHERE number BETWEEN ? AND ?", (MODEL + 1, gone))
        if not self.batches:
            self._base.executescript("PRAGMA incremental_vacuum")
        self._is_behind = False

    def close(self) -> None:
        """Close the file. It is not deleted even if empty, because another process may have opened it."""
        self._base.close()


def can_read(rows: model_pb2.Specification, now: model_pb2.Specification) -> bool:
    """Return whether rows packed for one specification mean the same in another one.

    Packed rows refer to attributes, values and classes by number. The model may have got more of each since.
    """
    if rows.classes != now.classes[: len(rows.classes)] or len(rows.attributes) > len(now.attributes):
        return False
    return all(
        one.name == other.name
        and one.WhichOneof("kind") == other.WhichOneof("kind")
        and list(one.nominal.values) == list(other.nominal.values[: len(one.nominal.values)])
        for one, other in zip(rows.attributes, now.attributes, strict=False)
    )


def _copy_synced(source: Path, target: Path) -> None:
    shutil.copy(source, target)
    sync_file(target)


def _open_locked(path: Path) -> sqlite3.Connection:
    """Open the file, creating it if missing, and lock it against other processes until it is closed."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass  # and do not open it here: closing it would release locks that this process holds on it
    except OSError as error:
        raise invalid("path", f"cannot open {path}: {error.strerror}") from None
    try:
        base = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise invalid("path", f"cannot open {path}: {error}") from None
    foreign = invalid("path", f"{path} is not a buffer of quercus; it is left unchanged: name another file")
    try:
        base.execute("PRAGMA locking_mode = EXCLUSIVE")
        application = base.execute("PRAGMA application_id").fetchone()[0]
        if path.stat().st_size == 0:
            base.executescript(SCHEMA)
        elif application != APPLICATION:
            raise foreign
        base.execute("BEGIN EXCLUSIVE").execute("COMMIT")  # the lock stays until the file is closed
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA secure_delete = OFF")  # overwriting removed rows would need space on the disk
        base.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
        base.execute("PRAGMA fullfsync = ON")  # has an effect on macOS only
    except sqlite3.Error as error:
        base.close()
        match error.sqlite_errorcode:
            case sqlite3.SQLITE_BUSY:
                raise invalid("path", f"{path} is the buffer of another process") from None
            case sqlite3.SQLITE_NOTADB:
                raise foreign from None
            case sqlite3.SQLITE_CORRUPT:
                raise invalid(
                    "path",
                    f"{path} is damaged, and is left unchanged ({error}): name another file; `sqlite3 {path} .recover` "
                    "prints the intact rows",
                ) from None
        raise invalid("path", f"cannot open {path}: {error}") from None
    except BaseException:
        base.close()
        raise
    return base


def _write_messages(base: sqlite3.Connection, messages: Iterable[tuple[int, bytes]]) -> None:
    """Write messages by number, all or none; they are on the disk when this returns."""
    base.execute("PRAGMA synchronous = FULL")
    base.execute("BEGIN")
    try:
        base.executemany(
            "INSERT OR REPLACE INTO messages VALUES (?, ?, ?)",
            ((number, message, zlib.crc32(message)) for number, message in messages),
        )
        base.execute("COMMIT")
    except BaseException:
        if base.in_transaction:
            base.execute("ROLLBACK")
        raise


def _row_count(request: instance_pb2.PushInstancesRequest) -> int:
    """Return the number of rows in a message; 0 if only the server can tell, from packed rows without a width."""
    if request.rows.packed.width:
        return len(request.rows.packed.values) // request.rows.packed.width
    if request.rows.HasField("named"):
        return len(request.rows.named.rows)
    return len(request.ids) or len(request.labels.sets.masks) or len(request.labels.list.labels)
