"""Pushes of the rows of a file into a model; invalid rows are refused separately, with their line in the file."""

from __future__ import annotations

import csv
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from quercus.client.errors import AlreadyExists, InvalidArgument, QuercusError, RejectedRows
from quercus.client.pushing import WINDOW_BATCHES
from quercus.files.displays import DisplayColumn, display_of
from quercus.files.errors import NO_ROOM, FileError
from quercus.files.labels import LabelFile
from quercus.files.schema import Binding
from quercus.files.table import FileRecord, FileTable
from quercus.specification.server import MAX_BATCH_ROWS

TakeRejected = Callable[[FileRecord, str, str], None]

REJECTED_COLUMNS: Final = ("rejected_line", "rejected_id", "rejected_reason")
"""Columns after those of the file. A push leaves them out, so that corrected rows can be pushed from there."""


@dataclass(frozen=True)
class FileRow:
    """A row of a file, as it is pushed."""

    record: FileRecord
    values: list[Any]
    label: Any
    id: str
    display: Any


@dataclass(frozen=True)
class FileRows:
    """The rows of a file.

    Parameters
    ----------
    binding
        The columns that are attributes.
    label
        Function that returns the label of a record; None if no labels are sent.
    labels
        A label file with a label for each row; None if there is none.
    id_column
        Index of the column of ids; None if row numbers are the ids.
    id_prefix
        Prefix of each id.
    shown
        Columns that labellers see beside the row.
    first
        Number of the first row.
    """

    binding: Binding
    label: Callable[[FileRecord], Any] | None
    labels: LabelFile | None
    id_column: int | None
    id_prefix: str
    shown: Sequence[DisplayColumn]
    first: int = 0

    @property
    def table(self) -> FileTable:
        """The file."""
        return self.binding.table

    def read(self, refuse: Callable[[FileRecord, str, FileError], None]) -> Iterator[FileRow]:
        """Yield the rows; those with a fault are passed to ``refuse`` with their ids, which may raise the fault."""
        label_records = iter(()) if self.labels is None else self.labels.table.with_faults()
        for number, record in enumerate(self.table.with_faults(), self.first):
            label_record = next(label_records, None)
            if self.labels is not None and label_record is None:
                raise FileError(
                    self.labels.table.path,
                    f"has fewer labels than {self.table.path} has rows: none for line {record.line}",
                )
            try:
                for each in (record, label_record):
                    if each is not None and each.fault is not None:
                        raise each.fault
                values = self.binding.row(record)
                if self.labels is not None and label_record is not None:
                    label = self.labels.label(label_record)
                else:
                    label = None if self.label is None else self.label(record)
                if self.id_column is not None and record.cells[self.id_column] is None:
                    raise self.table.error(record, self.id_column, "the id is missing")
                display = display_of(self.table, record, self.shown) if self.shown else None
                yield FileRow(record, values, label, self._id_of(record, number), display)
            except FileError as error:
                refuse(record, self._id_of(record, number), error)
        if self.labels is not None and next(label_records, None) is not None:
            raise FileError(self.labels.table.path, f"has more labels than {self.table.path} has rows")

    def _id_of(self, record: FileRecord, number: int) -> str:
        given = number if self.id_column is None else record.cells[self.id_column]
        return "" if given is None else f"{self.id_prefix}{given}"


class RejectedFile:
    """A writer of refused rows, with their line, id and reason."""

    def __init__(self, stream: IO[str], table: FileTable) -> None:
        self._writer = csv.writer(stream, lineterminator="\n")
        self._stream = stream
        self._writer.writerow([*table.names, *REJECTED_COLUMNS])
        self.rows = 0

    def write(self, record: FileRecord, name: str, reason: str) -> None:
        """Write a row with its id and the reason."""
        cells = ("" if cell is None else cell for cell in record.cells)
        self._writer.writerow([*cells, record.line, name, reason])
        self._stream.flush()
        self.rows += 1

    @property
    def count_text(self) -> str:
        """The number of refused rows as the subject of a sentence: ``2 rows were``."""
        return "1 row was" if self.rows == 1 else f"{self.rows:,} rows were"


class FilePush:
    """A push of the rows of a file.

    Parameters
    ----------
    rows
        The rows.
    batch_rows
        Rows of a message.
    rejected
        Called with the record, the id and the reason of each refused row. If None, the first refusal ends the push.
    """

    def __init__(
        self,
        rows: FileRows,
        rejected: TakeRejected | None = None,
        *,
        batch_rows: int = MAX_BATCH_ROWS.default,
    ) -> None:
        self._rows, self._rejected, self._batch_rows = rows, rejected, batch_rows
        self._under_way: deque[FileRecord] = deque(maxlen=(WINDOW_BATCHES + 2) * batch_rows)
        self._count = 0

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `quercus.client.Client.push` after the model."""

        def noted_rows() -> Iterator[FileRow]:
            for row in self._rows.read(self._refuse):
                self._under_way.append(row.record)
                self._count += 1
                yield row

        def take_rejected(rejected: RejectedRows) -> None:
            for each in rejected:
                if each.position is not None:
                    error = self._error_of_row(each.position, each.error)
                    self._refuse(self._record(each.position), each.id, error)

        # They are read in step, never more than a batch apart.
        rows, labels, ids, shown = itertools.tee(noted_rows(), 4)
        has_labels = self._rows.label is not None or self._rows.labels is not None
        return {
            "rows": (row.values for row in rows),
            "labels": (row.label for row in labels) if has_labels else None,
            "ids": (row.id for row in ids),
            "displays": (row.display for row in shown) if self._rows.shown else None,
            "batch_rows": self._batch_rows,
            "on_rejected": None if self._rejected is None else take_rejected,
        }

    @contextmanager
    def errors_by_line(self) -> Iterator[None]:
        """Add the line of the row to an error that ends the push.

        Raises
        ------
        FileError
            Instead of the push's own error, which is its ``__cause__``.
        """
        try:
            yield
        except (AlreadyExists, InvalidArgument) as error:
            if error.row is None:
                raise
            raise self._error_of_row(error.row, error) from error

    def _refuse(self, record: FileRecord, name: str, error: FileError) -> None:
        if self._rejected is None:
            raise error
        is_here = error.path == self._rows.table.path  # and not in the file of labels
        self._rejected(record, name, error.reason_in_column if is_here else str(error))

    def _record(self, position: int) -> FileRecord:
        """Return the record of a row that was not acknowledged yet."""
        return self._under_way[position - self._count]

    def _error_of_row(self, position: int, error: QuercusError) -> FileError:
        """Return the error of a row that the client or the server refused, with its place in the file."""
        record, table = self._record(position), self._rows.table
        field, reason = (
            (error.violations[0].field, error.violations[0].reason) if error.violations else ("", "")
        )
        reason = reason or error.message
        if error.report is not None:
            reason += f"; {error.report.acknowledged_text}"
        name = field.partition("].")[2]
        if name in table.names:
            return table.error(record, table.names.index(name), reason)
        if field.startswith("ids[") and self._rows.id_column is not None:
            return table.error(record, self._rows.id_column, reason)
        if field.startswith("labels["):
            reason = f"label: {reason}"
        return FileError(table.path, reason, record.line)


@contextmanager
def refused_rows(path: Path | None, table: FileTable) -> Iterator[RejectedFile | None]:
    """Yield the writer of a new file of refused rows, which is removed at the end if it has none.

    Parameters
    ----------
    path
        The file. If None, nothing is written, and None is yielded.
    table
        The file of the rows.

    Raises
    ------
    FileError
        If the file cannot be opened, or its disk is full. The command ends, since later refusals would be lost.
    """
    if path is None:
        yield None
        return
    try:
        with path.open("w", encoding="utf-8", newline="") as stream:
            taker = RejectedFile(stream, table)
            yield taker
        if not taker.rows:
            path.unlink()
    except OSError as error:
        if error.errno not in NO_ROOM and error.filename != str(path):  # of something else
            raise
        raise FileError(path, f"cannot be written: {error.strerror}") from None
