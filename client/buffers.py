"""Where rows wait for a server that is away: in memory, or in a file that outlives the process."""

from __future__ import annotations

import os
import shutil
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from google.protobuf.message import DecodeError, Message

from quercus.client.errors import BufferFull, invalid
from quercus.client.pushing import Batch
from quercus.proto.v1 import instance_pb2, model_pb2

HEAD = struct.Struct("<II")  # length and CRC-32 of the message that follows
MAGIC = b"quercus-outbox-2\n"


class Memory:
    """Batches that wait, in order."""

    specification: model_pb2.Specification | None = None
    """Of the model, as far as the buffer knows it."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.size = 0

    def begin(self, specification: model_pb2.Specification) -> None:
        """Rows of a model with this specification come."""
        self.specification = specification

    def add(self, batches: list[Batch]) -> None:
        """Put batches behind the others."""
        self.batches += batches
        self.size += sum(batch.request.ByteSize() + HEAD.size for batch in batches)

    def drop(self, count: int) -> None:
        """Forget the first `count`: they are acknowledged."""
        self.size -= sum(batch.request.ByteSize() + HEAD.size for batch in self.batches[:count])
        del self.batches[:count]

    def close(self) -> None:
        """Nothing to do."""


class File(Memory):
    """The same in a file: messages one after another, each with its length and a checksum.

    Before the batches stands a message with the model's name and specification, so that a process that starts while
    the server is away can go on. Acknowledged batches stay in the file until all are acknowledged, and then it has
    none: they are known to the server by their ids, so an earlier end costs only sending them again. A message that a
    crash cut off is left out: whoever put it was not told that it is in. Where whole messages follow one that is not,
    the file was damaged: they stay in it, the file as it was is kept beside it, and both are said once.

    Parameters
    ----------
    path
        Made, for this user alone, when it is not there.
    model
        Whose rows.

    Raises
    ------
    InvalidArgument
        The file cannot be opened, or is something else, and is left as it is; or it was damaged.
    """

    def __init__(self, path: Path, model: str) -> None:
        super().__init__()
        self._path, self._name = path, f"models/{model}"
        self._start = (
            0  # of the batches; 0: nothing is written yet, or the file is of a version before the magic
        )
        try:
            self._file: IO[bytes] = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        except OSError as error:
            raise invalid("path", f"cannot open {path}: {error.strerror}") from None
        try:
            self._lock()
            found = list(self._read())
            if rest := self._after_damage():
                self._mend([*found, *rest])
        except BaseException:
            self._file.close()
            raise
        super().add(found)

    def _lock(self) -> None:
        try:
            import fcntl  # noqa: PLC0415 - not on every system
        except ImportError:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise invalid("path", f"{self._path} is the buffer of another process") from None

    def _read(self) -> Iterator[Batch]:
        begin = self._file.read(len(MAGIC))
        is_whole = begin == MAGIC
        model = model_pb2.Model()
        if is_whole and self._next(model):
            self._check_model(model.name)
            self.specification = model.specification if model.HasField("specification") else None
            self._start = self._file.tell()
        self._file.seek(self._start)
        end = self._start
        request = instance_pb2.PushInstancesRequest()
        while (self._start or not is_whole) and self._next(request):
            self._check_model(request.model)
            end = self._file.tell()
            yield Batch(request, rows=_rows(request))
            request = instance_pb2.PushInstancesRequest()
        if not end and not MAGIC.startswith(begin):  # neither ours nor the beginning of it that a crash left
            raise invalid(
                "path", f"{self._path} is no buffer of quercus, and is left as it is: name another file"
            )
        self._file.seek(end)

    def _after_damage(self) -> list[Batch]:
        """Whole messages behind one that is not, from where the file stands; where there are none it is cut off here.

        Every message begins with the name of the model, so they are found whatever the lengths before them have become.
        """
        end = self._file.tell()
        rest = self._file.read()
        mark = instance_pb2.PushInstancesRequest(model=self._name).SerializeToString()
        found: list[Batch] = []
        at = rest.find(mark)
        while at >= 0:
            self._file.seek(end + max(at - HEAD.size, 0))
            request = instance_pb2.PushInstancesRequest()
            is_whole = at >= HEAD.size and self._next(request) and request.model == self._name
            if is_whole:
                found.append(Batch(request, rows=_rows(request)))
            at = rest.find(mark, self._file.tell() - end if is_whole else at + 1)
        self._file.seek(end)
        if not found:
            self._file.truncate()
        return found

    def _mend(self, whole: list[Batch]) -> None:
        """Keep the damaged file under another name, leave what is whole in this one, and say so."""
        kept = self._path.with_name(f"{self._path.name}.damaged-{time.time_ns()}")
        self._file.seek(0)
        with os.fdopen(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copy:
            shutil.copyfileobj(self._file, copy)
            copy.flush()
            os.fsync(copy.fileno())
        self._file.seek(0)
        self._file.truncate()
        self.add(whole)
        raise invalid(
            "path",
            f"{self._path} was damaged: {len(whole)} batches with {sum(batch.rows for batch in whole)} rows are whole "
            f"and stay in it; the file as it was, with what is not, is kept as {kept}. Open it again to go on",
        )

    def _next(self, message: Message) -> bool:
        """Read a message; False when there is none, or none that is whole."""
        head = self._file.read(HEAD.size)
        if len(head) < HEAD.size:
            return False
        length, checksum = HEAD.unpack(head)
        if not length or length > os.fstat(self._file.fileno()).st_size - self._file.tell():
            return False
        data = self._file.read(length)
        if zlib.crc32(data) != checksum:
            return False
        try:
            message.ParseFromString(data)
        except DecodeError:
            return False
        return True

    def _check_model(self, name: str) -> None:
        if name != self._name:
            raise invalid("path", f"{self._path} is the buffer of {name or 'something else'}")

    def begin(self, specification: model_pb2.Specification) -> None:
        """Write down what rows are of, unless batches stand there that were."""
        if not self.batches and specification != self.specification:
            self._start = 0
            self._file.seek(0)
            self._file.truncate()
        super().begin(specification)

    def add(self, batches: list[Batch]) -> None:
        """Write batches to the disk, then put them behind the others."""
        before = self._file.tell()
        try:
            if not before:
                self._file.write(
                    MAGIC + _framed(model_pb2.Model(name=self._name, specification=self.specification))
                )
                self._start = self._file.tell()
            for batch in batches:
                self._file.write(_framed(batch.request))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            self._start = self._start if before else 0
            self._file.seek(before)
            self._file.truncate()
            raise BufferFull(f"path: cannot write to {self._path}: {error.strerror}") from None
        super().add(batches)

    def drop(self, count: int) -> None:
        """Forget the first `count`; with the last one the file has none."""
        super().drop(count)
        if not self.batches:
            self._file.seek(self._start)
            self._file.truncate()

    def close(self) -> None:
        """Close the file, and remove it when nothing waits."""
        self._file.close()
        if not self.batches:
            self._path.unlink(missing_ok=True)


def _framed(message: Message) -> bytes:
    data = message.SerializeToString()
    return HEAD.pack(len(data), zlib.crc32(data)) + data


def _rows(request: instance_pb2.PushInstancesRequest) -> int:
    """How many rows a message has: what it has ids or labels for, or rows by name; 0 where only the server can tell."""
    if request.rows.HasField("named"):
        return len(request.rows.named.rows)
    return len(request.ids) or len(request.labels.sets.masks) or len(request.labels.list.labels)
