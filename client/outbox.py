"""A buffer between a sensor that cannot wait and a server that may be unreachable.

Rows go into the buffer at once, and to the server as soon as it accepts them. The buffer is bounded; it is in memory,
or in a file that outlives the process. The server recognises rows by their ids: those given, or those that it makes
from the batch's id, which the buffer keeps, and the row's position. So a batch that is sent twice is stored once.

The answers of labellers wait in a browser instead: ``console/static/outbox.js``.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from quercus.client import buffers, pushing
from quercus.client.errors import BufferFull, DeadlineExceeded, QuercusError, RejectedRows, invalid
from quercus.client.retrying import backoff_s, is_transient
from quercus.client.rows import Row, row_chunks
from quercus.client.specification_messages import message_of_specification, specification_of
from quercus.client.specifications import Specification
from quercus.client.sync.client import Client
from quercus.client.sync.push_line import PushLine
from quercus.client.unseen import PushedNames, UnseenNames, first_reports

_log = logging.getLogger(__name__)
MAX_BUFFER_BYTES = 256 * 1024 * 1024
BATCH_ROWS = 1000


class Outbox:
    """Accepts rows at any time and pushes them in a background thread.

    Parameters
    ----------
    client
        The client, which must stay open as long as the outbox.
    model
        Name of the model.
    path
        File for rows that are not acknowledged yet; those of an earlier process are pushed first. ``None``: keep them
        in memory, where they are lost when the process ends.
    max_bytes
        Maximum size of waiting rows in bytes, as encoded for sending.
    specification
        Specification of the model. If omitted, it comes from the server, or, while that is unreachable, from the file
        of an earlier process. Before the first row is sent, it is compared with the server's.
    on_rejected
        Called with rows that are refused because of a wrong value, label, display or id: by `put`, and, for faults that
        only the server can detect, by the outbox's thread. After a crash it may be called again for the same rows. If
        omitted, `put` raises; rows that the server refuses later are moved from the buffer to the file
        ``PATH.rejected``, as lines of JSON, and the next `flush` raises. In either case the outbox continues with the
        other rows.

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
        on_rejected: pushing.OnRejected | None = None,
    ) -> None:
        if max_bytes < 1:
            raise invalid("max_bytes", f"is {max_bytes}, must be at least 1")
        self._client, self._model, self._max_bytes = client, model, max_bytes
        self._on_rejected = on_rejected
        self._changed = threading.Condition()
        self._store = buffers.Memory() if path is None else buffers.File(Path(path), model)
        try:
            self._specification, uid = self._known_model() if specification is None else (specification, "")
            self._store.set_specification(message_of_specification(self._specification), uid)
        except BaseException:
            self._store.close()
            raise
        self._names: PushedNames | None = None
        self._unseen: tuple[UnseenNames, ...] = ()
        self._reported: set[tuple[str, bool]] = set()
        self._closing = False
        self._refused = 0
        self._first_refusal: QuercusError | None = None
        self._failure: QuercusError | None = None
        self._waiting_for = ""
        self._thread = threading.Thread(target=self._send_all, name="quercus-outbox", daemon=True)
        self._thread.start()

    def _known_model(self) -> tuple[Specification, str]:
        """Return the specification and the uid of the model: the server's, or those in the file."""
        try:
            model = self._client.get_model(self._model)
        except QuercusError as error:
            if not is_transient(error):
                raise
            if self._store.specification is None:
                raise type(error)(f"{error}; to begin without one, give the outbox a specification") from None
            return specification_of(self._store.specification), self._store.uid
        return model.specification, model.uid

    @property
    def waiting_rows(self) -> int:
        """Number of rows that are not acknowledged yet."""
        with self._changed:
            return sum(batch.rows for batch in self._store.batches)

    @property
    def waiting_for(self) -> str:
        """The reason why the server accepts no rows: its last error, or that it is unreachable; empty if it does."""
        with self._changed:
            return self._waiting_for

    @property
    def unseen(self) -> tuple[UnseenNames, ...]:
        """Names in the acknowledged rows that the model had never seen before, as in the report of a push.

        The first time for each attribute, the logger ``quercus.client.outbox`` warns of them.
        """
        with self._changed:
            return self._unseen

    def put(
        self,
        rows: Iterable[Row] | Any,
        labels: pushing.Labels = None,
        ids: Iterable[str] | None = None,
        displays: pushing.Displays = None,
    ) -> None:
        """Put rows into the buffer. If the buffer is a file, they are on the disk when this returns.

        Rows, labels, ids and displays as in :meth:`quercus.client.Client.push`.

        Raises
        ------
        BufferFull
            If the rows do not fit; then none of them is added.
        InvalidArgument
            If the server would refuse a row, and there is no `on_rejected`; then none of them is added.
        QuercusError
            If the outbox has stopped, for a reason that retrying does not change.
        """
        batcher = pushing.Batcher(
            self._model,
            self._specification,
            labels,
            ids,
            batch_rows=BATCH_ROWS,
            uid=self._store.uid,
            displays=displays,
            row_by_row=self._on_rejected is not None,
        )
        made = [batcher.encode_chunk(chunk) for chunk in row_chunks(rows, batcher.batch_rows)]
        rejected = [each for batch in made for each in batch.rejected]
        batcher.check_leftovers(sum(batch.rows for batch in made) + len(rejected))
        if rejected and self._on_rejected is not None:
            self._on_rejected(RejectedRows(tuple(rejected)))
        batches = [replace(batch, positions=None, rejected=()) for batch in made if batch.rows]
        with self._changed:
            if self._failure is not None:
                raise self._failure
            if self._closing:
                raise invalid("outbox", "is closed")
            wanted = sum(batch.request.ByteSize() for batch in batches)
            if self._store.size + wanted > self._max_bytes:
                raise BufferFull(
                    f"max_bytes: {self._store.size:,} bytes wait for {self._client.address} already, {wanted:,} more "
                    f"do not fit into {self._max_bytes:,}"
                )
            self._store.add_batches(batches)
            self._changed.notify_all()

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until everything is acknowledged.

        Raises
        ------
        DeadlineExceeded
            If that takes longer than ``timeout_s``; the rows stay in the buffer.
        QuercusError
            If the outbox has stopped; or, once, if the server refused rows and there is no `on_rejected`. Then all
            other rows are stored.
        """
        with self._changed:
            is_flushed = self._changed.wait_for(
                lambda: not self._store.batches or self._failure is not None, timeout_s
            )
            if self._failure is not None:
                raise self._failure
            refusal, count = self._first_refusal, self._refused
            if is_flushed and refusal is not None:
                self._first_refusal, self._refused = None, 0
                raise type(refusal)(
                    f"{count:,} {'row was' if count == 1 else 'rows were'} refused, {self._store.rejected_place}; "
                    f"the first: {refusal}"
                )
        if not is_flushed:
            why = f": {self.waiting_for}" if self.waiting_for else ""
            count = self.waiting_rows
            wait = "row still waits" if count == 1 else "rows still wait"
            raise DeadlineExceeded(f"{count:,} {wait} after {timeout_s:g} s{why}")

    def close(self, timeout_s: float | None = 30.0) -> None:
        """Accept no more rows, wait until the buffered ones are sent, and stop.

        Raises
        ------
        DeadlineExceeded
            If some still wait after ``timeout_s``; those in a file stay for the next process, those in memory are lost.
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send_all(self) -> None:
        attempt = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._store.batches) or self._closing)
                if self._closing:
                    return
            try:
                self._send_some()
                attempt = 0
            except QuercusError as error:
                is_retried = is_transient(error)
                attempt += 1
                with self._changed:
                    self._waiting_for = str(error)
                    self._failure = None if is_retried else error
                    self._changed.notify_all()
                    if not is_retried:
                        return
                    self._changed.wait_for(lambda: self._closing, backoff_s(attempt, error))
            except Exception as error:
                with self._changed:
                    self._failure = QuercusError(f"the outbox has stopped: {error}")
                    self._changed.notify_all()
                return

    def _meet_model(self) -> PushedNames:
        """Fetch the model's names and its uid, since a later model of the same name must not get the rows.

        Raises
        ------
        InvalidArgument
            If the model has other attributes or classes than the specification for which the rows were packed.
        """
        model = self._client.get_model(self._model)
        if not self._store.uid:
            given, now = (message_of_specification(e) for e in (self._specification, model.specification))
            if not buffers.can_read(given, now):
                raise invalid(
                    "specification",
                    f"has other attributes or classes than model {self._model!r} of the server",
                )
            with self._changed:
                self._store.set_specification(given, model.uid)
        return PushedNames(model.specification)

    def _send_some(self) -> None:
        """Send rows on one stream as long as there are any."""
        if self._names is None:
            self._names = self._meet_model()
        taker = self._on_rejected or self._keep_rejected
        ledger = pushing.PushState(
            pushing.WINDOW_BATCHES, None, 0.0, taker, self._specification, names=self._names
        )
        sent: deque[pushing.Batch] = deque()
        with PushLine(self._client, ledger) as line:
            while True:
                with self._changed:
                    rest = self._store.batches[len(sent) : pushing.WINDOW_BATCHES]
                if not rest and not sent:
                    return
                for batch in rest:
                    batch.request.model_uid = batch.request.model_uid or self._store.uid
                    line.send_batch(batch)
                    sent.append(batch)
                try:
                    line.settle_batches(until=len(ledger.pending) - 1)
                finally:  # even if the stream breaks: rows refused on it must not be reported again
                    self._drop_batches(len(sent) - len(ledger.pending))
                for _ in range(len(sent) - len(ledger.pending)):
                    sent.popleft()

    def _keep_rejected(self, rows: RejectedRows) -> None:
        """Keep rows that the server refused, before they leave the buffer, and report them."""
        with self._changed:
            self._store.keep_rejected(rows)
            self._refused += len(rows)
            self._first_refusal = self._first_refusal or rows.rows[0].error
        for each in rows:
            _log.warning("the server refused row %r of %s: %s", each.id, self._model, each.error)

    def _drop_batches(self, count: int) -> None:
        """Remove the first batches, which the server has acknowledged or refused."""
        if count:
            with self._changed:
                self._waiting_for = ""
                self._store.drop_first(count)
                self._unseen = () if self._names is None else self._names.results()
                self._changed.notify_all()
            # Report once per attribute that there are new names, and once that it keeps no more.
            for each in first_reports(self._unseen, self._reported):
                _log.warning("%s: %s; further ones of this attribute are not logged", self._model, each.text)
