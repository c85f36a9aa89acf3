"""The parts of a push, apart from its transport: batches, the window, acknowledgements, retries.

Both clients drive the same two objects: :class:`Batcher` makes the messages, :class:`PushState` knows which of
them are acknowledged. A batch keeps its id when it is sent again, so a broken connection stores nothing
twice.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from quercus.client.display_messages import display_to_proto
from quercus.client.errors import (
    AlreadyExists,
    InvalidArgument,
    QuercusError,
    RejectedRows,
    from_code,
    invalid,
)
from quercus.client.labels import LabelEncoder, LabelLike
from quercus.client.messages import filled
from quercus.client.results import Floats, PushReport, Specification
from quercus.client.retrying import OUTAGE_S, Outage
from quercus.client.rows import Chunk, RowEncoder, table_of
from quercus.client.transport import MAX_SEND_BYTES
from quercus.proto.v1 import instance_pb2
from quercus.specification.display import DisplayItem
from quercus.specification.server import MAX_BATCH_ROWS
from quercus.specification.values import Spellings, canonical_cell, is_missing

if TYPE_CHECKING:
    import narwhals as nw

WINDOW_BATCHES = 8
"""Most batches on their way at once."""
CLOSE_S = 1.0
"""Seconds that a push whose rows are all acknowledged waits for the server to end the stream."""

Progress = Callable[[PushReport], None]
OnRejected = Callable[[RejectedRows], None]
Labels = Iterable[LabelLike] | Floats | None
Displays = Iterable[Sequence[DisplayItem] | None] | None
DISPLAY_ROWS = 32
"""Rows of one message if they have displays, of at most 64 KiB each."""


@dataclass(frozen=True)
class Batch:
    """A message, and the number of its rows."""

    request: instance_pb2.PushInstancesRequest
    rows: int
    is_all: bool = False
    """True if it is the only batch of a push, which needs no stream."""
    start: int = 0
    """Position of its first row, counted from 0 in the given order."""

    @cached_property
    def size_bytes(self) -> int:
        """Size of the message, without the bytes that a stream adds."""
        return self.request.ByteSize()


class Batcher:
    """Maker of the batches of one push.

    Parameters
    ----------
    model
        Name of the model.
    specification
        Specification of the model; :meth:`use_specification` replaces it when rows bring nominal values that it
        does not list.
    labels, ids
        See :meth:`Client.push`: one per row, consumed together with the rows.
    batch_rows
        Number of rows of each batch but the last.
    uid
        Uid of the model of the specification.
    """

    def __init__(
        self,
        model: str,
        specification: Specification,
        labels: Labels,
        ids: Iterable[str] | None,
        *,
        batch_rows: int = MAX_BATCH_ROWS.default,
        uid: str = "",
        displays: Displays = None,
    ) -> None:
        self._model = model
        self._uid = uid
        self.batch_rows = batch_size(batch_rows, specification)
        if displays is not None:
            self.batch_rows = min(self.batch_rows, DISPLAY_ROWS)
        self._push = uuid.uuid4().hex
        self._number = itertools.count()
        self._labels = LabelEncoder(specification.classes)
        frame = None if labels is None else table_of(labels, "labels")
        self._given_labels = labels if frame is None else _labels_of_frame(frame, specification.classes)
        is_many = labels is None or _is_matrix(self._given_labels)
        self._label_source = None if is_many else _values_per_row(self._given_labels, "labels")
        self._id_source = None if ids is None else _values_per_row(ids, "ids")
        self._display_source = None if displays is None else _values_per_row(displays, "displays")
        self._stale = False
        self.use_specification(specification)

    def use_specification(self, specification: Specification) -> None:
        """Use a newer specification, which lists more nominal values."""
        self.specification = specification
        self._rows = RowEncoder(specification)
        self._stale = False

    def wants_renewal(self, chunk: Chunk) -> bool:
        """Return whether the chunk has values that were not listed, but that earlier batches may have added."""
        return self._stale and self._rows.encode(chunk)[1]

    def encode_chunk(self, chunk: Chunk) -> Batch:
        """Return the message of a chunk.

        Raises
        ------
        InvalidArgument
            Naming the row; the rows before this chunk are not touched by it.
        """
        rows, unknown = self._rows.encode(chunk)
        self._stale = self._stale or unknown
        request = filled(
            instance_pb2.PushInstancesRequest,
            model=f"models/{self._model}",
            rows=rows,
            batch_id=f"{self._push}-{next(self._number)}",
            model_uid=self._uid,
        )
        labels = self._take_labels(chunk)
        if labels is not None:
            request.labels.CopyFrom(self._labels.encode_labels(labels, chunk.start))
        if self._id_source is not None:
            request.ids.extend(_id_texts(_take_chunk(self._id_source, chunk, "ids"), chunk.start))
        if self._display_source is not None:
            taken = enumerate(_take_chunk(self._display_source, chunk, "displays"), chunk.start)
            request.displays.extend(display_to_proto(items, row) for row, items in taken)
        is_all = chunk.start == 0 and chunk.size < self.batch_rows
        return Batch(request, chunk.size, is_all, chunk.start)

    def check_leftovers(self, rows: int) -> None:
        """Check after the last chunk that no labels or ids are left over."""
        sources = {"labels": self._label_source, "ids": self._id_source, "displays": self._display_source}
        for name, source in sources.items():
            if source is not None and next(source, self) is not self:
                raise invalid(name, f"there are more {name} than the {rows:,} rows")
        if _is_matrix(self._given_labels) and len(self._given_labels) > rows:  # type: ignore[arg-type]
            raise invalid("labels", f"there are more labels than the {rows:,} rows")

    def _take_labels(self, chunk: Chunk) -> Sequence[LabelLike] | Floats | None:
        if self._label_source is not None:
            return _take_chunk(self._label_source, chunk, "labels")
        if self._given_labels is None:
            return None
        part: Floats = self._given_labels[chunk.start : chunk.start + chunk.size]  # type: ignore[index]
        if len(part) < chunk.size:
            raise invalid(
                "labels", f"there are fewer labels than rows: none for row {chunk.start + len(part):,}"
            )
        return part


def _is_matrix(labels: object) -> bool:
    return isinstance(labels, np.ndarray) and labels.ndim == 2


def _labels_of_frame(frame: nw.DataFrame[Any], classes: Sequence[str]) -> Floats | list[Any]:
    """Return plausibilities (n, l) from a frame with a column for each class, or the labels of its only column."""
    spellings = Spellings(classes)
    named = {spellings.of(canonical_cell(column) or ""): column for column in frame.columns}
    if set(named) != set(classes):
        if len(frame.columns) == 1:
            return frame[frame.columns[0]].to_list()
        columns, names = ", ".join(map(str, frame.columns)), ", ".join(classes)
        raise invalid("labels", f"the columns of the frame are {columns}; they must be the classes {names}")
    columns = [frame[named[name]].to_numpy() for name in classes]
    try:
        return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
    except (TypeError, ValueError) as error:
        raise invalid("labels", f"the frame must hold plausibilities: {error}") from None


def _values_per_row(given: Any, name: str) -> Iterator[Any]:
    if isinstance(given, str | bytes | Mapping):
        raise invalid(name, f"expected one per row, got one {type(given).__name__}; put it into a list")
    return iter(
        given.to_pylist() if hasattr(given, "to_pylist") else given
    )  # Arrow's arrays yield its own scalars


def _id_texts(taken: list[Any], start: int) -> Iterator[str]:
    for row, each in enumerate(taken, start):
        if is_missing(each):
            raise invalid(f"ids[{row}]", f"{each!r} is no id")
        yield str(each)


def _take_chunk(source: Any, chunk: Chunk, name: str) -> list[Any]:
    taken = list(itertools.islice(source, chunk.size))
    if len(taken) < chunk.size:
        raise invalid(name, f"there are fewer {name} than rows: none for row {chunk.start + len(taken):,}")
    return taken


class PushState:
    """The state of a push: batches under way and acknowledged, and whether to retry a broken stream."""

    def __init__(
        self,
        window: int,
        on_progress: Progress | None,
        outage_s: float = OUTAGE_S,
        on_rejected: OnRejected | None = None,
    ) -> None:
        self.window = window
        self._on_progress, self._on_rejected = on_progress, on_rejected
        self._trial = Outage(outage_s).start_attempts()
        self._trial.note_success()  # the model was read before the first batch
        self._pending: dict[str, Batch] = {}
        self._started = time.monotonic()
        self._report = PushReport(0, 0, 0, 0, 0, 0.0)

    @property
    def report(self) -> PushReport:
        """The report of the rows acknowledged so far."""
        return self._report

    @property
    def pending(self) -> list[Batch]:
        """The batches that are sent but not acknowledged, in order."""
        return list(self._pending.values())

    @property
    def is_full(self) -> bool:
        """True if no further batch may be sent before an acknowledgement."""
        return len(self._pending) >= self.window

    def record_sent(self, batch: Batch) -> None:
        """Note that a batch is on its way."""
        self._pending[batch.request.batch_id] = batch

    def record_response(
        self, ack: instance_pb2.PushInstancesResponse | instance_pb2.PushBatchResponse
    ) -> None:
        """Take the response to a batch: it is committed or refused.

        Raises
        ------
        QuercusError
            The refusal, if there is no callback for rejected rows.
        """
        if isinstance(ack, instance_pb2.PushInstancesResponse) and ack.HasField("error"):
            self._record_rejection(
                ack.batch_id, from_code(ack.error.code, ack.error.message, ack.error.field)
            )
            return
        batch = self._pending.pop(ack.batch_id, None)
        if batch is None:  # acknowledged before the stream broke, and again after
            return
        self._trial.note_success()
        last = self._report
        self._report = replace(
            last,
            rows=last.rows + batch.rows,
            stored=last.stored + ack.rows_stored,
            known=last.known + ack.rows_known,
            batches=last.batches + 1,
            committed_sequence=max(last.committed_sequence, ack.committed_sequence),
            seconds=time.monotonic() - self._started,
            model_uid=ack.model_uid,
        )
        self._tell_progress()

    def _record_rejection(self, batch_id: str, error: QuercusError) -> None:
        batch = self._pending.get(batch_id)
        if batch is None:  # told before the stream broke, and again after
            return
        self._trial.note_success()
        rows = RejectedRows(batch.start, batch.rows, tuple(batch.request.ids), error)
        if self._on_rejected is None:
            error.rejected = rows
            raise error
        self._on_rejected(rows)  # first: rows that the callback does not take are reported again
        del self._pending[batch_id]
        self._report = replace(
            self._report,
            rejected=self._report.rejected + batch.rows,
            seconds=time.monotonic() - self._started,
        )
        self._tell_progress()

    def _tell_progress(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self._report)

    def alone_failed(self, batch: Batch, error: QuercusError) -> None:
        """Note that a batch that was sent without a stream was not stored.

        Raises
        ------
        QuercusError
            The error, unless the batch itself is invalid and there is a callback for rejected rows.
        """
        if not isinstance(error, InvalidArgument | AlreadyExists):
            raise error
        self._record_rejection(batch.request.batch_id, error)

    def record_break(self, error: QuercusError) -> float:
        """Note that the stream broke; return the seconds to wait before the next attempt.

        Raises
        ------
        QuercusError
            ``error`` itself, with the report of acknowledged rows, if another attempt would not help.
        """
        pause_s = self._trial.pause_s(error)
        if pause_s is None:
            raise self.with_report(error)
        return pause_s

    def with_report(self, error: Exception) -> Exception:
        """Return the error with the report of acknowledged rows: as ``report`` of ours, as a note on any other."""
        if isinstance(error, QuercusError):
            error.report = self._report
        else:
            error.add_note(f"{self._report.rows:,} rows had been acknowledged")
        return error


def single_request(batch: Batch) -> instance_pb2.PushBatchRequest:
    """Return the request that sends a batch without a stream: its fields are those of the message on a stream."""
    request = instance_pb2.PushBatchRequest.FromString(batch.request.SerializeToString())
    request.DiscardUnknownFields()  # continue_on_error is for streams
    return request


def is_final(error: Exception) -> bool:
    """Return whether the stream itself failed, so that no acknowledgement will come."""
    return isinstance(error, QuercusError) and error.report is not None


def batch_size(batch_rows: int, specification: Specification) -> int:
    """Return the rows of a batch: as asked, but no more than fill half of the largest message."""
    row_bytes = 8 * (len(specification.attributes) + len(specification.classes))
    return min(batch_rows, max(1, MAX_SEND_BYTES // 2 // row_bytes))


def check_sizes(batch_rows: int, window: int) -> None:
    """Refuse sizes that the server would refuse, before a row is read."""
    if not MAX_BATCH_ROWS.lowest <= batch_rows <= MAX_BATCH_ROWS.highest:
        raise invalid("batch_rows", f"{batch_rows} is not in 1..{MAX_BATCH_ROWS.highest:,}")
    if window < 1:
        raise invalid("window", f"{window} is not at least 1")
