"""A push without its transport: batches, the window, acknowledgements, retries.

Both clients use the same two classes: :class:`Batcher` makes the messages, :class:`PushState` tracks their
acknowledgement. A batch keeps its id when it is sent again, so a broken connection causes no duplicates.
"""

from __future__ import annotations

import itertools
import math
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from quercus.client.resources import model_resource
from quercus.client.retrying import OUTAGE_S, Outage
from quercus.client.rows import Chunk, RowEncoder, pick_rows, table_of
from quercus.client.specifications import Specification
from quercus.client.transport import MAX_SEND_BYTES
from quercus.client.unseen import PushedNames, PushReport
from quercus.client.values import Floats, Value
from quercus.specification.attributes import Nominal, other_names
from quercus.specification.display import DisplayItem
from quercus.specification.names import check_id
from quercus.specification.server import MAX_BATCH_ROWS
from quercus.specification.values import Spellings, canonical_cell
from quercus.specification.written_labels import Label
from quercus.v1 import instance_pb2, values_pb2

if TYPE_CHECKING:
    import narwhals as nw

WINDOW_BATCHES = 8
"""Maximum number of unacknowledged batches."""
CLOSE_S = 1.0
"""Seconds that a push waits for the server to end the stream after all rows are acknowledged."""


Progress = Callable[[PushReport], None]
OnRejected = Callable[[RejectedRows], None]
Labels = Iterable[LabelLike] | Floats | None
Displays = Iterable[Sequence[DisplayItem] | None] | None
_ROW_FIELDS = ("rows[", "labels[", "ids[", "displays[")
DISPLAY_ROWS = 32
"""Maximum number of rows in a message if they have displays, of at most 64 KiB each."""


@dataclass(frozen=True)
class Batch:
    """A message, and the number of its rows."""

    request: instance_pb2.PushInstancesRequest
    rows: int
    is_all: bool = False
    """True if it is the only batch of a push, which needs no stream."""
    positions: Sequence[int] | None = None
    """Positions of its rows, counted from 0 in the given order; ``None`` if no longer known."""
    rejected: tuple[RejectedRow, ...] = ()
    """Rows that cannot be sent and are not in the message."""

    @cached_property
    def size_bytes(self) -> int:
        """Size of the message, without the bytes that a stream adds."""
        return self.request.ByteSize()


class Batcher:
    """Makes the batches of one push.

    Parameters
    ----------
    model
        Name of the model.
    specification
        Specification of the model; :meth:`use_specification` replaces it when rows have new nominal values.
    labels, ids
        See :meth:`Client.push`: one per row, consumed together with the rows.
    batch_rows
        Number of rows in each batch except the last.
    uid
        Uid of the model of the specification.
    former
        See `RowEncoder`.
    row_by_row
        Whether a row that cannot be sent is left out of its batch and listed in its `rejected`. Otherwise it is an
        error.
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
        former: Sequence[int] = (),
    ) -> None:
        self._model = model
        self._former = former
        self._row_by_row = row_by_row
        self._uid = uid
        self.batch_rows = batch_size(batch_rows, specification)
        if displays is not None:
            self.batch_rows = min(self.batch_rows, DISPLAY_ROWS)
        self._push = uuid.uuid4().hex
        self._number = itertools.count()
        self._labels = LabelEncoder(specification.classes)
        frame = None if labels is None else table_of(labels, "labels")
        if frame is not None:
            labels = _labels_of_frame(frame, specification.classes)
        given = {"labels": labels, "ids": ids, "displays": displays}
        self._columns = {name: _PerRow(each, name) for name, each in given.items() if each is not None}
        self.use_specification(specification)

    def use_specification(self, specification: Specification) -> None:
        """Use a newer specification, which lists more nominal values."""
        self.specification = specification
        self._rows = RowEncoder(specification, former=self._former)
        self._stale = False

    def wants_renewal(self, chunk: Chunk) -> bool:
        """Return whether the chunk has unlisted values that earlier batches may have added."""
        return self._stale and self._rows.encode(chunk)[1]

    def encode_chunk(self, chunk: Chunk) -> Batch:
        """Return the message of a chunk.

        Raises
        ------
        InvalidArgument
            Naming the row; rows before this chunk are not affected.
        """
        given = _Given(chunk, {name: each.take(chunk) for name, each in self._columns.items()})
        is_all = chunk.start == 0 and chunk.size < self.batch_rows
        positions = range(chunk.start, chunk.start + chunk.size)
        try:
            return Batch(self._encode(given), chunk.size, is_all, positions)
        except InvalidArgument as error:
            if not (error.violations and error.violations[0].field.startswith(_ROW_FIELDS)):
                raise
        faults = self._find_faults(given, chunk.size if self._row_by_row else 1)
        for position, fault in faults.items():
            fault.row = position
            if not self._row_by_row:
                raise fault
        kept = [row for row, position in enumerate(positions) if position not in faults]
        request = instance_pb2.PushInstancesRequest()
        if kept:
            self._rows.check_keys(chunk)
            request = self._encode(given.pick(kept))
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
            model=model_resource(self._model),
            rows=rows,
            batch_id=f"{self._push}-{next(self._number)}",
            model_uid=self._uid,
        )
        columns = given.columns
        if "labels" in columns:
            request.labels.CopyFrom(self._labels.encode_labels(columns["labels"], start))
        if "ids" in columns:
            request.ids.extend(
                _id_text(each, f"ids[{row}]") for row, each in enumerate(columns["ids"], start)
            )
        if "displays" in columns:
            displays = enumerate(columns["displays"], start)
            request.displays.extend(message_of_display(items, row) for row, items in displays)
        return request

    def check_leftovers(self, rows: int) -> None:
        """After the last chunk, check that no labels, ids or displays are left over."""
        for each in self._columns.values():
            each.check_end(rows)


class _PerRow:
    """Labels, ids or displays, one for each row, taken in pieces: an iterable, or an array (n, l)."""

    def __init__(self, given: Any, name: str) -> None:
        if isinstance(given, str | bytes | Mapping):
            raise invalid(name, f"expected one per row, got one {type(given).__name__}; put it into a list")
        self._name = name
        self._matrix = given if isinstance(given, np.ndarray) and given.ndim == 2 else None
        # Arrow arrays yield Arrow scalars.
        self._source = iter(given.to_pylist() if hasattr(given, "to_pylist") else given)

    def take(self, chunk: Chunk) -> Any:
        """Return the elements for the rows of the next chunk."""
        if self._matrix is None:
            taken: Any = list(itertools.islice(self._source, chunk.size))
        else:
            taken = self._matrix[chunk.start : chunk.start + chunk.size]
        if len(taken) < chunk.size:
            row = chunk.start + len(taken)
            raise invalid(self._name, f"there are fewer {self._name} than rows: none for row {row:,}")
        return taken

    def check_end(self, rows: int) -> None:
        """Refuse more of them than there are rows."""
        matrix = self._matrix
        if next(self._source, self) is not self if matrix is None else len(matrix) > rows:
            raise invalid(self._name, f"there are more {self._name} than the {rows:,} rows")


@dataclass(frozen=True)
class _Given:
    """Rows as given, with their labels, ids and displays."""

    chunk: Chunk
    columns: Mapping[str, Any]
    """Labels, ids and displays, if there are any."""

    def part(self, start: int, stop: int) -> _Given:
        """Return the rows from ``start`` on, before ``stop``."""
        chunk = Chunk(self.chunk.start + start, stop - start, self.chunk.rows[start:stop], is_part=True)
        return _Given(chunk, {name: each[start:stop] for name, each in self.columns.items()})

    def pick(self, kept: list[int]) -> _Given:
        """Return some of the rows."""
        chunk = Chunk(self.chunk.start, len(kept), pick_rows(self.chunk.rows, kept), is_part=True)
        return _Given(chunk, {name: pick_rows(each, kept) for name, each in self.columns.items()})

    def id_text(self, row: int) -> str:
        """Return the id of a row; empty if it has none."""
        given = self.columns["ids"][row] if "ids" in self.columns else None
        return "" if is_missing(given) else str(given)


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


def _id_text(given: Any, field: str) -> str:
    if is_missing(given):
        raise invalid(field, f"{shown(given)} is not an id")
    try:
        return check_id(str(given), field)
    except InvalidInput as error:
        raise invalid(error.field, error.reason) from None


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
        """The newest specification that batches were made for, with the names of values in refused rows."""
        self.has_taught = False
        """True if the model has learned names from the rows."""
        self._names = PushedNames(specification) if names is None else names
        self._on_progress, self._on_rejected = on_progress, on_rejected
        self._trial = Outage(outage_s).start_attempts()
        self._trial.note_success()  # the model was fetched before the first batch
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
        """True if the valid rows of a message are stored, and a callback receives the others."""
        return self._on_rejected is not None

    def record_sent(self, batch: Batch) -> None:
        """Note that a batch is on its way, and that rows are not in it."""
        self._reject_rows(batch.rejected)
        if batch.rows:
            self._pending[batch.request.batch_id] = batch

    def record_response(
        self, ack: instance_pb2.PushInstancesResponse | instance_pb2.PushBatchResponse
    ) -> None:
        """Process the response to a batch: it is committed, or some of its rows are refused."""
        batch = self._pending.get(ack.batch_id)
        if batch is None:  # acknowledged both before and after the stream broke
            return
        self._trial.note_success()
        if isinstance(ack, instance_pb2.PushInstancesResponse) and ack.HasField("error"):
            self._reject_batch(batch, from_code(ack.error.code, ack.error.message, ack.error.field))
            return
        self._reject_rows(
            [self._rejected_row(batch, each.row, _refusal(batch, each)) for each in ack.refused]
        )
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
        self._report_progress()

    def _reject_rows(self, rows: Sequence[RejectedRow]) -> None:
        """Report rows that are not stored, and only then forget them, so that a failing callback gets them again."""
        if rows and self._on_rejected is not None:
            self._on_rejected(RejectedRows(tuple(rows)))
            self._report = replace(
                self._report,
                rejected=self._report.rejected + len(rows),
                seconds=time.monotonic() - self._started,
            )

    def _reject_batch(self, batch: Batch, error: QuercusError) -> None:
        """Report the rows of a batch that is invalid as a whole."""
        self._reject_rows([self._rejected_row(batch, row, error) for row in range(batch.rows)])
        del self._pending[batch.request.batch_id]
        self._report_progress()

    def _rejected_row(self, batch: Batch, row: int, error: QuercusError) -> RejectedRow:
        position = None if batch.positions is None else batch.positions[row]
        name = batch.request.ids[row] if batch.request.ids else ""
        if self.specification is None:
            return RejectedRow(position, name, error)
        values = sent_values(batch.request.rows, row, self.specification)
        label = sent_label(batch.request.labels, row, self.specification.classes)
        return RejectedRow(position, name, error, values, label)

    def _report_progress(self) -> None:
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
            The error, with the report of acknowledged rows and the row's position in the given order, if another
            attempt would not help.
        """
        pause_s = self._trial.pause_s(error)
        if pause_s is not None:
            return pause_s
        # A message refused as a whole is the first unacknowledged one: the server stores none after it.
        batch = next(iter(self._pending.values()), None)
        if error.row is not None and batch is not None and batch.positions is not None:
            field, reason = f"ids[{error.row}]", error.message
            if error.violations:
                field, reason = error.violations[0].field, error.violations[0].reason
            error = refused_row(type(error), field, reason, error.row, batch.positions[error.row])
        raise self.with_report(error)

    def with_report(self, error: Exception) -> Exception:
        """Return the error with the report of acknowledged rows: in ``report`` of a QuercusError, else as a note."""
        if isinstance(error, QuercusError):
            error.report = self._report
        else:
            error.add_note(self._report.acknowledged_text)
        return error


def _refusal(batch: Batch, refused: instance_pb2.RefusedRow) -> QuercusError:
    position = None if batch.positions is None else batch.positions[refused.row]
    return refused_row(kind_of_code(refused.code), refused.field, refused.message, refused.row, position)


def sent_values(rows: values_pb2.Rows, row: int, specification: Specification) -> dict[str, Value]:
    """Return the values of one row of a message by attribute; missing ones are None."""
    attributes = specification.attributes
    values: dict[str, Value] = {each.name: None for each in attributes}
    if rows.HasField("named"):
        return values | row_values(rows.named.rows[row])
    start = row * len(attributes)
    for each, value in zip(attributes, rows.packed.values[start : start + len(attributes)], strict=True):
        if math.isnan(value):
            continue
        if not isinstance(each, Nominal) or value < 0:
            values[each.name] = value
        elif value < len(each.values):
            values[each.name] = each.values[int(value)]
        else:
            values[each.name] = other_names(each.values)
    return values


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


def batch_size(batch_rows: int, specification: Specification) -> int:
    """Return the number of rows in a batch: the requested one, but at most what fills half of the largest message."""
    row_bytes = 8 * (len(specification.attributes) + len(specification.classes))
    return min(batch_rows, max(1, MAX_SEND_BYTES // 2 // row_bytes))


def check_sizes(batch_rows: int, window: int) -> None:
    """Refuse invalid sizes before reading any row."""
    if not MAX_BATCH_ROWS.lowest <= batch_rows <= MAX_BATCH_ROWS.highest:
        raise invalid("batch_rows", f"{batch_rows} is not in 1..{MAX_BATCH_ROWS.highest:,}")
    if window < 1:
        raise invalid("window", f"{window} is not at least 1")
