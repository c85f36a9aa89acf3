"""Rows from standard input, as they arrive: CSV with a header, or one JSON object per line."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, Generic, TypeVar

import typer

from quercus.belief.errors import shown
from quercus.cli.common import err
from quercus.client.client import Client
from quercus.client.specifications import Specification
from quercus.client.unseen import PushReport, UnseenTally
from quercus.client.values import cell_of, uncertain_of_json
from quercus.files import FileError, FileRecord, FileTable
from quercus.files.csv_format import MISSING, csv_of_lines
from quercus.files.pushing import FilePush, FileRow, FileRows, TakeRejected
from quercus.files.table import MAX_LINE_BYTES, FileColumn, decoded_line, listed_names
from quercus.specification.written_labels import write_label

T = TypeVar("T")

SOURCE: Final = Path("standard input")
"""The name of the source in errors, in place of a file."""
PATIENCE_S: Final = 0.25
"""Maximum time that rows wait for further rows, so that those of a slow producer are not held up."""
ID_FIELD: Final = "id"
"""Field of JSON objects that contains their ids, unless it is an attribute."""

_PACKED: Final = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"PK\x03\x04", b"\x28\xb5\x2f\xfd")
_ARROW: Final = (b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")


def is_standard_input(file: Path) -> bool:
    """Return whether an argument stands for standard input."""
    return str(file) == "-"


def _present(file: Path) -> Path:
    if not is_standard_input(file) and not file.exists():
        raise typer.BadParameter(f"file {str(file)!r} does not exist.")
    return file


InputArgument = Annotated[
    Path,
    typer.Argument(
        help="CSV or ARFF file (may be compressed), Parquet or Arrow; - for CSV or lines of JSON from standard input.",
        dir_okay=False,
        readable=True,
        callback=_present,
        show_default=False,
    ),
]


@dataclass(frozen=True)
class PipedTable:
    """Rows from standard input: the columns are known, and the records come once.

    Attributes
    ----------
    table
        Columns and records.
    is_json
        Whether each row is a JSON object.
    id_column
        The column of ids, unless an option names another; None if there is none.
    """

    table: FileTable
    is_json: bool
    id_column: str | None


def open_standard_input(
    specification: Specification, *, delimiter: str = ",", missing: frozenset[str] = frozenset()
) -> PipedTable:
    """Wait for the first line of standard input, and return the table that it begins.

    If the line begins with ``{``, every line is a JSON object. Otherwise it is the header of CSV.

    Raises
    ------
    FileError
        If there is no line, or it is not a valid header.
    """
    stream = open(0, "rb", closefd=False)  # noqa: SIM115 - Python's own could be locked at exit
    lines = enumerate(iter(partial(stream.readline, MAX_LINE_BYTES + 1), b""), 1)
    head = next(((number, raw) for number, raw in lines if raw.strip()), None)
    if head is None:
        raise FileError(SOURCE, "is empty: expected a header line of CSV, or one JSON object per line")
    if head[1].startswith(_PACKED):
        raise FileError(SOURCE, "is compressed: uncompress it first, as with gunzip -c")
    if head[1].startswith(_ARROW):
        raise FileError(SOURCE, "is Parquet or Arrow: write it to a file, and name the file")
    lines = chain([head], lines)  # type: ignore[assignment]
    attributes = tuple(each.name for each in specification.attributes)
    if head[1].removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        table = _json_table(lines, head[1], attributes)
        is_id = ID_FIELD in table.names and ID_FIELD not in attributes
        piped = PipedTable(table, True, ID_FIELD if is_id else None)
    else:
        texts = ((number, decoded_line(SOURCE, number, raw)) for number, raw in lines)
        piped = PipedTable(csv_of_lines(SOURCE, texts, delimiter), False, None)
    return replace(piped, table=replace(piped.table, missing=missing))


def _json_table(lines: Iterator[tuple[int, bytes]], first: bytes, attributes: Sequence[str]) -> FileTable:
    """Return a table of JSON objects; its columns are the attributes and the other fields of the first object."""
    try:
        fields = list(_object_in(first))
    except ValueError:  # reported when its record is read
        fields = []
    names = tuple(dict.fromkeys([*attributes, *fields]))
    records = (
        _json_record(number, raw, names, frozenset(attributes)) for number, raw in lines if raw.strip()
    )
    return FileTable(SOURCE, tuple(map(FileColumn, names)), lambda: records, missing_mark="null")


def _object_in(raw: bytes) -> Mapping[str, Any]:
    """Return the JSON object in a line.

    Raises
    ------
    ValueError
        If there is none; the message says why.
    """
    if len(raw) > MAX_LINE_BYTES:
        raise ValueError(f"is longer than {MAX_LINE_BYTES:,} bytes")
    try:
        content = json.loads(raw.decode("utf-8-sig"), parse_constant=_refuse_constant)
        if b"\\u" in raw:
            json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("has half of a surrogate pair, which is not a character") from None
    except (ValueError, RecursionError) as error:  # ValueError also for an integer of thousands of digits
        raise ValueError(f"is not JSON in UTF-8: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"is {type(content).__name__}, must be an object of attributes")
    return content


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number; a missing value is null")


def _json_record(number: int, raw: bytes, names: Sequence[str], attributes: frozenset[str]) -> FileRecord:
    """Return an object as a record with a cell for each column, as in a CSV file."""
    cells: list[str | None] = [None] * len(names)
    try:
        content = _object_in(raw)
        if not attributes & content.keys():
            raise ValueError(f"has no attribute of the model; its fields are {listed_names(tuple(content))}")
        for k, name in enumerate(names):
            cells[k] = _cell_of(name, content.get(name), is_attribute=name in attributes)
    except ValueError as error:
        return FileRecord(number, cells, fault=FileError(SOURCE, str(error), number))
    return FileRecord(number, cells)


def _cell_of(name: str, value: Any, *, is_attribute: bool) -> str | None:
    """Return the text of a cell for a JSON value.

    Outside the attributes, a list of names is a set of classes, and an object gives plausibilities by class.
    """
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            text = value.strip()
            return None if text in MISSING else text
        case list() | dict() if is_attribute:
            return _uncertain_cell(name, value)
    try:
        return write_label(value)
    except (AttributeError, TypeError, ValueError):
        return json.dumps(value, ensure_ascii=False)


def _uncertain_cell(name: str, value: Any) -> str:
    """Return the text of a set (a list of names) or of a range (an object of ``low`` and ``high``)."""
    if (found := uncertain_of_json(value)) is not None:
        return str(cell_of(found))
    what = f"is {json.dumps(value, ensure_ascii=False)[:60]}, must be a number, text, null, a list of several names"
    raise ValueError(f'{shown(name)} {what}, or a range as {{"low": 2, "high": 9}}')


class AsTheyCome(Generic[T]):
    """Iterator of lists of items, each full or at most `PATIENCE_S` after the arrival of its first item.

    A thread reads the items, so that the consumer can wait with a time limit and be interrupted. An error of the items
    is raised after the items before it.

    Parameters
    ----------
    items
        The items.
    most
        Number of items in a full list.
    """

    def __init__(self, items: Iterator[T], most: int) -> None:
        self._items, self._most = items, most
        self._gathered: list[T] = []
        self._changed = threading.Condition()
        self._error: BaseException | None = None
        self._is_ended = False
        threading.Thread(target=self._gather, name="standard input", daemon=True).start()

    def _gather(self) -> None:
        error: BaseException | None = None
        try:
            for each in self._items:
                with self._changed:
                    self._changed.wait_for(lambda: len(self._gathered) < 2 * self._most)
                    self._gathered.append(each)
                    if len(self._gathered) in {1, self._most}:
                        self._changed.notify()
        except BaseException as raised:
            error = raised
        with self._changed:
            self._error, self._is_ended = error, True
            self._changed.notify()

    def __iter__(self) -> Iterator[list[T]]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._gathered or self._is_ended)
                self._changed.wait_for(self._is_full, PATIENCE_S)
                taken, self._gathered = self._gathered[: self._most], self._gathered[self._most :]
                self._changed.notify()
            if taken:
                yield taken
            elif self._error is not None:
                raise self._error
            else:
                return

    def _is_full(self) -> bool:
        return len(self._gathered) >= self._most or self._is_ended


class NamedRows:
    """Reports each refused row of standard input on standard error."""

    def __init__(self) -> None:
        self.rows = 0

    @property
    def count_text(self) -> str:
        """The number of refused rows as the subject of a sentence: ``2 rows were``."""
        return "1 row was" if self.rows == 1 else f"{self.rows:,} rows were"

    def write(self, record: FileRecord, name: str, reason: str) -> None:
        """Report a row with its line, its id if it has one, and the reason."""
        self.rows += 1
        which = f" (id {shown(name)})" if name else ""
        err.print(f"{SOURCE}: line {record.line}{which}: refused: {reason}", soft_wrap=True)


@dataclass(frozen=True)
class _Chunk(FileRows):
    """Rows of standard input that arrived together, for one push."""

    given: Sequence[FileRow] = ()

    def read(self, refuse: Callable[[FileRecord, str, FileError], None]) -> Iterator[FileRow]:
        return iter(self.given)


class PipedPush:
    """A push of rows as they arrive; each message is committed before the next one is sent.

    Parameters
    ----------
    client, model
        The client and the model to push to.
    rows
        The rows.
    refuse
        Takes the record, the id and the reason of each refused row.
    batch_rows
        Maximum number of rows in a message.

    Attributes
    ----------
    report
        Report on the rows committed so far.
    """

    def __init__(
        self, client: Client, model: str, rows: FileRows, refuse: TakeRejected, batch_rows: int
    ) -> None:
        self._client, self._model, self._rows, self._refuse = client, model, rows, refuse
        self._batch_rows = batch_rows
        self._taking = threading.Lock()
        self._unseen = UnseenTally()
        self.report = PushReport(0, 0, 0, 0, 0, 0.0)

    def run(self) -> None:
        """Push until the rows end."""
        fields = {each.name: getattr(self._rows, each.name) for each in dataclasses.fields(FileRows)}
        rows = self._rows.read(lambda record, name, error: self._take(record, name, error.reason_in_column))
        for given in AsTheyCome(rows, self._batch_rows):
            pushed = FilePush(_Chunk(**fields, given=given), self._take, batch_rows=self._batch_rows)
            with pushed.errors_by_line():
                self._add_report(self._client.push(self._model, **pushed.arguments()))

    def _take(self, record: FileRecord, name: str, reason: str) -> None:
        """Pass on a refused row; some are found by the reading thread, others by the server."""
        with self._taking:
            self._refuse(record, name, reason)

    def _add_report(self, latest: PushReport) -> None:
        past = self.report
        self._unseen.add_names(latest.unseen)
        rows = past.rows + latest.rows
        self.report = PushReport(
            rows,
            past.stored + latest.stored,
            past.known + latest.known,
            past.batches + latest.batches,
            max(past.committed_sequence, latest.committed_sequence),
            past.seconds + latest.seconds,
            latest.model_uid or past.model_uid,
            past.rejected + latest.rejected,
            self._unseen.results(rows),
        )
