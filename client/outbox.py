"""A buffer between a sensor that cannot wait and a server that may be away.

Rows go into the buffer at once and to the server as soon as it takes them. The buffer is bounded; it is memory, or a
file that outlives the process. Every batch carries an id that the server remembers, so what is sent twice is stored
once.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from google.protobuf.message import DecodeError

from quercus.client import pushing, transport
from quercus.client.errors import BufferFull, DeadlineExceeded, QuercusError, Unavailable, invalid
from quercus.client.pushline import PushLine
from quercus.client.results import Specification
from quercus.client.rows import Row, chunks
from quercus.proto.v1 import instance_pb2

if TYPE_CHECKING:
    from quercus.client.client import Client

MAX_BUFFER_BYTES = 256 * 1024 * 1024
BATCH_ROWS = 1000
_HEAD = struct.Struct("<II")  # length and CRC-32 of the message that follows


class Outbox:
    """Takes rows at any time and pushes them in a thread of its own.

    Parameters
    ----------
    client
        Must stay open as long as the outbox.
    model
        Whose rows.
    path
        File that holds what is not acknowledged yet; what an earlier process left there is pushed first. ``None``:
        memory, which ends with the process.
    max_bytes
        Of rows that wait, as they travel.
    specification
        Of the model; ``None``: the server is asked, which must be there then.

    Examples
    --------
    >>> with client.outbox("press", "press.buffer") as outbox:                        # doctest: +SKIP
    ...     for measured in sensor:
    ...         outbox.put([measured], ids=[measured["time"]])
    """

    def __init__(
        self,
        client: Client,
        model: str,
        path: Path | str | None = None,
        *,
        max_bytes: int = MAX_BUFFER_BYTES,
        specification: Specification | None = None,
    ) -> None:
        if max_bytes < 1:
            raise invalid("max_bytes", f"is {max_bytes}, must be at least 1")
        self._client, self._model, self._max_bytes = client, model, max_bytes
        self._specification = (
            client.get_model(model).specification if specification is None else specification
        )
        self._changed = threading.Condition()
        self._store: _Memory = _Memory() if path is None else _File(Path(path), model)
        self._closing = False
        self._failure: QuercusError | None = None
        self._thread = threading.Thread(target=self._send_all, name="quercus-outbox", daemon=True)
        self._thread.start()

    @property
    def waiting_rows(self) -> int:
        """Rows that are not acknowledged yet."""
        with self._changed:
            return sum(batch.rows for batch in self._store.batches)

    @property
    def waiting_bytes(self) -> int:
        """And their size as they travel."""
        with self._changed:
            return self._store.size

    def put(
        self, rows: Iterable[Row] | Any, labels: pushing.Labels = None, ids: Iterable[str] | None = None
    ) -> None:
        """Put rows into the buffer; they are on the disk when this returns, where the buffer is a file.

        Rows, labels and ids as in :meth:`quercus.client.Client.push`.

        Raises
        ------
        BufferFull
            Nothing of what was given is in the buffer then.
        QuercusError
            The server refused what was put before, for a reason that trying again does not change.
        """
        batcher = pushing.Batcher(self._model, self._specification, labels, ids)
        size = pushing.batch_size(BATCH_ROWS, self._specification)
        batches = [batcher.batch(chunk) for chunk in chunks(rows, size)]
        batcher.finish(sum(batch.rows for batch in batches))
        with self._changed:
            if self._failure is not None:
                raise self._failure
            if self._closing:
                raise invalid("outbox", "is closed")
            wanted = sum(batch.request.ByteSize() + _HEAD.size for batch in batches)
            if self._store.size + wanted > self._max_bytes:
                raise BufferFull(
                    f"max_bytes: {self._store.size:,} bytes wait for {self._client.address} already, {wanted:,} more "
                    f"do not fit into {self._max_bytes:,}"
                )
            self._store.add(batches)
            self._changed.notify_all()

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until everything is acknowledged.

        Raises
        ------
        DeadlineExceeded
            When it is not within ``timeout_s``; it stays in the buffer.
        QuercusError
            The server refused some of it.
        """
        with self._changed:
            done = self._changed.wait_for(
                lambda: not self._store.batches or self._failure is not None, timeout_s
            )
            if self._failure is not None:
                raise self._failure
        if not done:
            raise DeadlineExceeded(f"{self.waiting_rows:,} rows still wait after {timeout_s:g} s")

    def close(self, timeout_s: float | None = 30.0) -> None:
        """Take no more rows, wait for those that are in, and end.

        Raises
        ------
        DeadlineExceeded
            When some still wait after ``timeout_s``: in a file they stay for the next process, in memory they are lost.
        """
        try:
            self.flush(timeout_s)
        finally:
            with self._changed:
                self._closing = True
                self._changed.notify_all()
            self._thread.join(timeout=5.0)
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send_all(self) -> None:
        attempt = 0
        while self._wait_for_work():
            try:
                self._send_some()
                attempt = 0
            except (Unavailable, DeadlineExceeded):
                attempt += 1
                self._pause(transport.backoff_s(attempt))
            except QuercusError as error:
                with self._changed:
                    self._failure = error
                    self._changed.notify_all()
                return

    def _wait_for_work(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._store.batches) or self._closing)
            return not self._closing

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closing, seconds)

    def _send_some(self) -> None:
        """One stream, for as long as there is something to send."""
        client = self._client
        ledger = pushing.Ledger(pushing.WINDOW_BATCHES, None, outage_s=0.0)
        sent: deque[pushing.Batch] = deque()
        with PushLine(client.push_stub, ledger, client.address, client.timeout_s) as line:
            while True:
                with self._changed:
                    rest = self._store.batches[len(sent) : pushing.WINDOW_BATCHES]
                if not rest and not sent:
                    return
                for batch in rest:
                    line.send(batch)
                    sent.append(batch)
                line.settle(until=len(ledger.pending) - 1)
                done = len(sent) - len(ledger.pending)
                with self._changed:
                    self._store.drop(done)
                    self._changed.notify_all()
                for _ in range(done):
                    sent.popleft()


class _Memory:
    """Batches that wait, in order."""

    def __init__(self) -> None:
        self.batches: list[pushing.Batch] = []
        self.size = 0

    def add(self, batches: list[pushing.Batch]) -> None:
        """Put batches behind the others."""
        self.batches += batches
        self.size += sum(batch.request.ByteSize() + _HEAD.size for batch in batches)

    def drop(self, count: int) -> None:
        """Forget the first `count`: they are acknowledged."""
        self.size -= sum(batch.request.ByteSize() + _HEAD.size for batch in self.batches[:count])
        del self.batches[:count]

    def close(self) -> None:
        """Nothing to do."""


class _File(_Memory):
    """The same in a file: messages one after another, each with its length and a checksum.

    Acknowledged batches stay in the file until all are acknowledged, and then it becomes empty: they are known to the
    server by their ids, so an earlier end costs only sending them again. A message that a crash cut off is left out:
    whoever put it was not told that it is in.
    """

    def __init__(self, path: Path, model: str) -> None:
        super().__init__()
        self._path = path
        try:
            self._file: IO[bytes] = path.open("r+b" if path.exists() else "w+b")
        except OSError as error:
            raise invalid("path", f"cannot open {path}: {error.strerror}") from None
        try:
            self._lock()
            found = list(self._read(model))
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

    def _read(self, model: str) -> Iterator[pushing.Batch]:
        end = 0
        while len(head := self._file.read(_HEAD.size)) == _HEAD.size:
            length, checksum = _HEAD.unpack(head)
            data = self._file.read(length)
            if len(data) < length or zlib.crc32(data) != checksum:
                break
            request = instance_pb2.PushInstancesRequest()
            try:
                request.ParseFromString(data)
            except DecodeError:
                break
            if request.model != f"models/{model}":
                raise invalid("path", f"{self._path} is the buffer of {request.model or 'something else'}")
            end = self._file.tell()
            yield pushing.Batch(request, rows=_rows(request))
        self._file.seek(end)
        self._file.truncate()

    def add(self, batches: list[pushing.Batch]) -> None:
        """Write batches to the disk, then put them behind the others."""
        start = self._file.tell()
        try:
            for batch in batches:
                data = batch.request.SerializeToString()
                self._file.write(_HEAD.pack(len(data), zlib.crc32(data)) + data)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.seek(start)
            self._file.truncate()
            raise BufferFull(f"path: cannot write to {self._path}: {error.strerror}") from None
        super().add(batches)

    def drop(self, count: int) -> None:
        """Forget the first `count`; with the last one the file becomes empty."""
        super().drop(count)
        if not self.batches:
            self._file.seek(0)
            self._file.truncate()

    def close(self) -> None:
        """Close the file, and remove it when nothing waits."""
        self._file.close()
        if not self.batches:
            self._path.unlink(missing_ok=True)


def _rows(request: instance_pb2.PushInstancesRequest) -> int:
    """How many rows a message has: what it has ids or labels for, or rows by name; 0 where only the server can tell."""
    if request.rows.HasField("named"):
        return len(request.rows.named.rows)
    return len(request.ids) or len(request.labels.sets.masks) or len(request.labels.list.labels)
