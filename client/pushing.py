"""The parts of a push, apart from its transport: batches, the window, acknowledgements, retries.

Both clients drive the same two objects: :class:`Batcher` makes the messages, :class:`PushState` knows which of
them are acknowledged. A batch keeps its id when it is sent again, so a broken connection stores nothing
twice.
"""

from __future__ import annotations

import itertools
import math
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from quercus.belief.errors import InvalidInput, shown
from quercus.belief.missing import is_missing
from quercus.client.display_messages import message_of_display
from quercus.client.errors import (
    AlreadyExists,
    InvalidArgument,
    QuercusError,
    RejectedRow,
    RejectedRows,
    from_code,
    invalid,
    kind_of_code,
    refused_row,
)
from quercus.client.labels import LabelEncoder, LabelLike
from quercus.client.messages import filled
from quercus.client.reading import label_of, row_values
from quercus.client.retrying import OUTAGE_S, Outage
from quercus.client.rows import Chunk, RowEncoder, pick_rows, table_of
from quercus.client.specifications import Specification
from quercus.client.transport import MAX_SEND_BYTES
from quercus.client.unseen import PushedNames, UnseenNames
from quercus.client.values import Floats, Value
from quercus.specification.attributes import Attribute, Nominal, other_names
from quercus.specification.display import DisplayItem
from quercus.specification.names import check_id
from quercus.specification.server import MAX_BATCH_ROWS
from quercus.specification.values import Spellings, canonical_cell
from quercus.specification.written_labels import Label
from quercus.v1 import instance_pb2, values_pb2

if TYPE_CHECKING:
    import narwhals as nw

WINDOW_BATCHES = 8
"""Most batches on their way at once."""
CLOSE_S = 1.0
"""Seconds that a push whose rows are all acknowledged waits for the server to end the stream."""


@dataclass(frozen=True)
class PushReport:
    """The progress of a push: ``rows`` acknowledged = ``stored`` now + ``known`` before; and rows ``rejected``.

    ``unseen``: names that the model had never seen before the push, of attributes that had names, and names beyond the
    bound of an attribute.
    """

    rows: int
    stored: int
    known: int
    batches: int
    committed_sequence: int
    seconds: float
    model_uid: str = ""
    rejected: int = 0
    unseen: tuple[UnseenNames, ...] = ()


Progress = Callable[[PushReport], None]
OnRejected = Callable[[RejectedRows], None]
Labels = Iterable[LabelLike] | Floats | None
Displays = Iterable[Sequence[DisplayItem] | None] | None
_ROW_FIELDS = ("rows[", "labels[", "ids[", "displays[")
DISPLAY_ROWS = 32
"""Rows of one message if they have displays, of at most 64 KiB each."""


@dataclass(frozen=True)
class Batch:
    """A message, and the number of its rows."""

    request: instance_pb2.PushInstancesRequest
    rows: int
    is_all: bool = False
    """True if it is the only batch of a push, which needs no stream."""
    positions: Sequence[int] | None = None
    """Positions of its rows, counted from 0 in the given order; ``None``: not known any more."""
    rejected: tuple[RejectedRow, ...] = ()
    """Rows that cannot be sent, and are not in the message."""

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
    row_by_row
        Whether a row that cannot be sent is left out of its batch, and told of there. Otherwise it is an error.
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
        row_by_row: bool = False,
    ) -> None:
        self._model = model
        self._row_by_row = row_by_row
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
        given = _Given(
            chunk,
            self._take_labels(chunk),
            None if self._id_source is None else _take_chunk(self._id_source, chunk, "ids"),
            None if self._display_source is None else _take_chunk(self._display_source, chunk, "displays"),
        )
        is_all = chunk.start == 0 and chunk.size < self.batch_rows
        positions: Sequence[int] = range(chunk.start, chunk.start + chunk.size)
        try:
            return Batch(self._encode(given), chunk.size, is_all, positions)
        except InvalidArgument as error:
            if not _is_of_row(error):
                raise
            faults = self._find_faults(given, chunk.size if self._row_by_row else 1)
        for position, fault in faults.items():
            fault.row = position
            if not self._row_by_row:
                raise fault
        kept = [row for row in range(chunk.size) if positions[row] not in faults]
        request = self._encode(given.pick(kept)) if kept else instance_pb2.PushInstancesRequest()
        rejected = tuple(
            RejectedRow(position, given.id_text(position - chunk.start), fault)
            for position, fault in faults.items()
        )
        return Batch(request, len(kept), is_all, [positions[row] for row in kept], rejected)

    def _find_faults(self, given: _Given, most: int) -> dict[int, InvalidArgument]:
        """Return the errors of rows that cannot be sent, at most the first ``most``, by position."""
        size = given.chunk.size
        try:
            self._encode(given)
        except InvalidArgument as error:
            if size == 1:
                return {given.chunk.start: error}
        else:
            return {}
        found = self._find_faults(given.part(0, size // 2), most)
        if len(found) < most:
            found |= self._find_faults(given.part(size // 2, size), most - len(found))
        return found

    def _encode(self, given: _Given) -> instance_pb2.PushInstancesRequest:
        start = given.chunk.start
        rows, unknown = self._rows.encode(given.chunk)
        self._stale = self._stale or unknown
        request = filled(
            instance_pb2.PushInstancesRequest,
            model=f"models/{self._model}",
            rows=rows,
            batch_id=f"{self._push}-{next(self._number)}",
            model_uid=self._uid,
        )
        if given.labels is not None:
            request.labels.CopyFrom(self._labels.encode_labels(given.labels, start))
        if given.ids is not None:
            request.ids.extend(_id_texts(given.ids, start))
        if given.displays is not None:
            request.displays.extend(
                message_of_display(items, row) for row, items in enumerate(given.displays, start)
            )
        return request

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
        part: Floats = self._given_labels[chunk.start : chunk.start + chunk.size]  # type: ignore[index,assignment]
        if len(part) < chunk.size:
            raise invalid(
                "labels", f"there are fewer labels than rows: none for row {chunk.start + len(part):,}"
            )
        return part


@dataclass(frozen=True)
class _Given:
    """Rows as they were given, with what belongs to them."""

    chunk: Chunk
    labels: Sequence[LabelLike] | Floats | None
    ids: list[Any] | None
    displays: list[Any] | None

    def part(self, start: int, stop: int) -> _Given:
        """Return the rows from ``start`` on, before ``stop``."""
        chunk = Chunk(self.chunk.start + start, stop - start, self.chunk.rows[start:stop])
        return self._map(chunk, lambda each: each[start:stop])

    def pick(self, kept: list[int]) -> _Given:
        """Return some of the rows."""
        chunk = Chunk(self.chunk.start, len(kept), pick_rows(self.chunk.rows, kept))
        return self._map(chunk, lambda each: pick_rows(each, kept))

    def _map(self, chunk: Chunk, take: Callable[[Any], Any]) -> _Given:
        labels, ids, displays = (
            None if each is None else take(each) for each in (self.labels, self.ids, self.displays)
        )
        return _Given(chunk, labels, ids, displays)

    def id_text(self, row: int) -> str:
        """Return the id of a row; empty if it has none."""
        given = None if self.ids is None else self.ids[row]
        return "" if is_missing(given) else str(given)


def _is_of_row(error: InvalidArgument) -> bool:
    """Return whether an error is that of a row, and not of all."""
    return bool(error.violations) and error.violations[0].field.startswith(_ROW_FIELDS)


def _is_matrix(labels: object) -> bool:
    return isinstance(labels, np.ndarray) and labels.ndim == 2


def _labels_of_frame(frame: nw.DataFrame[Any], classes: Sequence[str]) -> Floats | list[Any]:
    """Return plausibilities (n, l) from a frame with a column for each class, or the labels of its only column."""
    spellings = Spellings(classes)
    named = {spellings.of(canonical_cell(column) or ""): column for column in frame.columns}
    if set(named) != set(classes):
        if len(frame.columns) == 1:
            return frame[frame.columns[0]].to_list()
        there, names = ", ".join(map(str, frame.columns)), ", ".join(classes)
        raise invalid("labels", f"the columns of the frame are {there}; they must be the classes {names}")
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
            raise invalid(f"ids[{row}]", f"{shown(each)} is no id")
        text = str(each)
        try:
            yield check_id(text, f"ids[{row}]")
        except InvalidInput as error:
            raise invalid(error.field, error.reason) from None


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
        specification: Specification | None = None,
        *,
        names: PushedNames | None = None,
    ) -> None:
        self.window = window
        self.specification = specification
        """The newest that batches were made for: it names the values of rows that the server refuses."""
        self.has_taught = False
        """True if the model has learned names from the rows."""
        self._names = PushedNames(specification) if names is None else names
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

    @property
    def takes_rejected(self) -> bool:
        """True if the valid rows of a message are stored, and somebody is told of the others."""
        return self._on_rejected is not None

    def record_sent(self, batch: Batch) -> None:
        """Note that a batch is on its way, and that rows are not in it."""
        self._reject_rows(batch.rejected)
        if batch.rows:
            self._pending[batch.request.batch_id] = batch

    def record_response(
        self, ack: instance_pb2.PushInstancesResponse | instance_pb2.PushBatchResponse
    ) -> None:
        """Take the response to a batch: it is committed, or rows of it are refused."""
        batch = self._pending.get(ack.batch_id)
        if batch is None:  # acknowledged before the stream broke, and again after
            return
        self._trial.note_success()
        if isinstance(ack, instance_pb2.PushInstancesResponse) and ack.HasField("error"):
            self._reject_batch(batch, from_code(ack.error.code, ack.error.message, ack.error.field))
            return
        self._reject_rows([self._refused_row(batch, each) for each in ack.refused])
        del self._pending[ack.batch_id]
        last = self._report
        self._report = replace(
            last,
            rows=last.rows + batch.rows - len(ack.refused),
            stored=last.stored + ack.rows_stored,
            known=last.known + ack.rows_known,
            batches=last.batches + 1,
            committed_sequence=max(last.committed_sequence, ack.committed_sequence),
            seconds=time.monotonic() - self._started,
            model_uid=ack.model_uid,
        )
        self._names.count_batch(batch.request.rows, batch.rows, self.specification, ack)
        self.has_taught = self.has_taught or any(each.rows > each.rows_beyond for each in ack.unseen)
        self._report = replace(self._report, unseen=self._names.results())
        self._tell_progress()

    def _reject_rows(self, rows: Sequence[RejectedRow]) -> None:
        """Tell of rows that are not stored, before they are forgotten: what the callback does not take comes again."""
        if rows and self._on_rejected is not None:
            self._on_rejected(RejectedRows(tuple(rows)))
            self._report = replace(
                self._report,
                rejected=self._report.rejected + len(rows),
                seconds=time.monotonic() - self._started,
            )

    def _reject_batch(self, batch: Batch, error: QuercusError) -> None:
        """Tell of the rows of a batch that is invalid as a whole."""
        self._reject_rows([self._rejected_row(batch, row, error) for row in range(batch.rows)])
        del self._pending[batch.request.batch_id]
        self._tell_progress()

    def _refused_row(self, batch: Batch, refused: instance_pb2.RefusedRow) -> RejectedRow:
        position = None if batch.positions is None else batch.positions[refused.row]
        error = refused_row(kind_of_code(refused.code), refused.field, refused.message, refused.row, position)
        return self._rejected_row(batch, refused.row, error)

    def _rejected_row(self, batch: Batch, row: int, error: QuercusError) -> RejectedRow:
        position = None if batch.positions is None else batch.positions[row]
        name = batch.request.ids[row] if batch.request.ids else ""
        if self.specification is None:
            return RejectedRow(position, name, error)
        values = sent_values(batch.request.rows, row, self.specification)
        label = sent_label(batch.request.labels, row, self.specification.classes)
        return RejectedRow(position, name, error, values, label)

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
        if self._on_rejected is None or not isinstance(error, InvalidArgument | AlreadyExists):
            raise error
        self._trial.note_success()
        self._reject_batch(batch, error)

    def record_break(self, error: QuercusError) -> float:
        """Note that the stream broke; return the seconds to wait before the next attempt.

        Raises
        ------
        QuercusError
            ``error`` itself, with the report of acknowledged rows, if another attempt would not help.
        """
        pause_s = self._trial.pause_s(error)
        if pause_s is None:
            raise self.with_report(self._placed(error))
        return pause_s

    def _placed(self, error: QuercusError) -> QuercusError:
        """Return the error for which a message was refused whole, with the row's position in the given order.

        The message is the first that is not acknowledged: the server stores none behind it.
        """
        batch = next(iter(self._pending.values()), None)
        if error.row is None or batch is None or batch.positions is None:
            return error
        field, reason = f"ids[{error.row}]", error.message
        if error.violations:
            field, reason = error.violations[0].field, error.violations[0].reason
        return refused_row(type(error), field, reason, error.row, batch.positions[error.row])

    def with_report(self, error: Exception) -> Exception:
        """Return the error with the report of acknowledged rows: as ``report`` of ours, as a note on any other."""
        if isinstance(error, QuercusError):
            error.report = self._report
        else:
            error.add_note(f"{self._report.rows:,} rows had been acknowledged")
        return error


def sent_values(rows: values_pb2.Rows, row: int, specification: Specification) -> dict[str, Value]:
    """Return the values of one row of a message by attribute; those that are missing are None."""
    attributes = specification.attributes
    if rows.HasField("named"):
        return {each.name: None for each in attributes} | row_values(rows.named.rows[row])
    start = row * len(attributes)
    values = zip(attributes, rows.packed.values[start : start + len(attributes)], strict=True)
    return {each.name: _sent_value(each, value) for each, value in values}


def _sent_value(attribute: Attribute, value: float) -> Value:
    if math.isnan(value):
        return None
    if not isinstance(attribute, Nominal) or value < 0:
        return value
    return attribute.values[int(value)] if value < len(attribute.values) else other_names(attribute.values)


def sent_label(labels: values_pb2.Labels, row: int, classes: Sequence[str]) -> Label:
    """Return the label of one row of a message."""
    kind, size = labels.WhichOneof("kind"), len(classes)
    if kind == "list":
        return label_of(labels.list.labels[row], classes)
    if kind == "sets":
        mask = labels.sets.masks[row]
        return frozenset(name for k, name in enumerate(classes) if mask >> k & 1)
    if kind == "contours":
        plausible = labels.contours.plausibilities[row * size : (row + 1) * size]
        return dict(zip(classes, plausible, strict=True))
    return None


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
