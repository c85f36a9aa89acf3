"""A model's instances as a table for programs that analyse: values, label as it came, and what is believed now."""

from __future__ import annotations

import csv
import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from quercus.belief.codec import decode
from quercus.belief.frame import Frame
from quercus.belief.label import ClassSet, Label, Masses, Plausibilities
from quercus.server.convert_instances import known_contour, stored_values
from quercus.server.errors import BadStart
from quercus.server.schema import Schema
from quercus.storage.records import Event, EventKind
from quercus.storage.store import Store

PAGE: Final = 1_000
FORMULA_STARTS: Final = frozenset("=+-@\N{MINUS SIGN}")
"""Of cells that a spreadsheet takes for a formula; also in their full-width and other compatible forms."""
Row = list[Any]


@dataclass(frozen=True)
class Table:
    """Rows under names.

    Attributes
    ----------
    header : names of the columns.
    kinds : of the cells of each: str, float or int.
    rows : each as long as the header; None where nothing is known.
    """

    header: list[str]
    kinds: Sequence[type]
    rows: Iterator[Row]


def table(store: Store, model: str) -> Table:
    """Return the instances of a model as a table, read page by page.

    Columns: ``id``; the attributes; ``label`` as it was pushed (``a``, ``a|b``, plausibilities ``a:1 b:0.4``, masses
    ``{a|b}:0.7 {a}:0.3``, empty for a vacuous one); ``pl(class)`` of each class, what is believed after all that was
    said; ``answers``, how many oracles answered or refused; ``conflict``, 1 where an answer contradicted the label.
    """
    schema = Schema.of(store.get_model(model), store.vocabulary(model))
    size = schema.frame.size
    header = ["id", *(column.name for column in schema.columns), "label"]
    header += [*(f"pl({name})" for name in schema.frame.classes), "answers", "conflict"]
    kinds: list[type] = [str, *(float if column.values is None else str for column in schema.columns), str]
    kinds += [*([float] * size), int, int]
    return Table(header, kinds, _rows(store, schema))


def _rows(store: Store, schema: Schema) -> Iterator[Row]:
    after = 0
    while True:
        page = store.list_instances(schema.model, after, PAGE)
        said = store.history(schema.model, [event.sequence for event in page])
        for event in page:
            yield _row(said[event.sequence], schema)
        if len(page) < PAGE:
            return
        after = page[-1].sequence


def _row(history: Sequence[Event], schema: Schema) -> Row:
    first, size = history[0], schema.frame.size
    values = stored_values(first).tolist()
    cells = [
        None if math.isnan(value) else (value if column.values is None else column.values[int(value)])
        for column, value in zip(schema.columns, values, strict=True)
    ]
    label = label_text(decode(first.label or b"", size), schema.frame)
    answers = sum(event.kind is not EventKind.INSTANCE for event in history)
    conflict = int(any(event.conflict for event in history))
    return [first.id, *cells, label, *known_contour(history, size).tolist(), answers, conflict]


def label_text(label: Label, frame: Frame) -> str:
    """Return a label in a line, as `table` describes."""
    match label:
        case ClassSet():
            return "" if label.mask == frame.full else "|".join(frame.names(label.mask))
        case Plausibilities():
            pairs = zip(frame.classes, label.values, strict=True)
            return " ".join(f"{name}:{value!r}" for name, value in pairs)
        case Masses():
            parts = (f"{{{'|'.join(frame.names(mask))}}}:{mass!r}" for mask, mass in label.mass.focal)
            return " ".join(parts)


def write_csv(found: Table, stream: IO[str], *, for_spreadsheets: bool = False) -> int:
    """Write a table as CSV, numbers in full precision and unknown cells empty; return how many rows.

    Parameters
    ----------
    found : what is written.
    stream : where to.
    for_spreadsheets : put an apostrophe before text that a spreadsheet would take for a formula, and run.
    """
    shield = _shielded if for_spreadsheets else _as_it_is
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(map(shield, found.header))
    count = 0
    for row in found.rows:
        writer.writerow(["" if cell is None else shield(cell) for cell in row])
        count += 1
    return count


def _as_it_is(cell: Any) -> Any:
    return cell


def _shielded(cell: Any) -> Any:
    """Return a cell that is no formula.

    Examples
    --------
    >>> _shielded("=HYPERLINK(1)"), _shielded(" \uff1d1"), _shielded("a=b"), _shielded(-1.5)
    ("'=HYPERLINK(1)", "' ＝1", 'a=b', -1.5)
    """
    return f"'{cell}" if isinstance(cell, str) and _may_run(cell) else cell


def _may_run(text: str) -> bool:
    """Whether a text begins like a formula, or with a tab or a line end; what cannot be seen is passed over."""
    if text.startswith(("\t", "\r", "\n")):
        return True
    seen = (each for each in text if not (each.isspace() or unicodedata.category(each) in ("Cc", "Cf")))
    first = unicodedata.normalize("NFKC", next(seen, " "))
    return first[0] in FORMULA_STARTS


def write_parquet(found: Table, path: Path) -> int:
    """Write a table as Parquet; return how many rows.

    Raises
    ------
    BadStart
        When pyarrow is not installed.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - not everybody's
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        raise BadStart("Parquet needs pyarrow: pip install pyarrow; or name the file .csv") from None
    types = {str: pa.string(), float: pa.float64(), int: pa.int64()}
    schema = pa.schema([(name, types[kind]) for name, kind in zip(found.header, found.kinds, strict=True)])
    count = 0
    with parquet.ParquetWriter(path, schema) as writer:
        for rows in _chunks(found.rows):
            columns = [list(column) for column in zip(*rows, strict=True)]
            writer.write_table(pa.table(columns, schema=schema))
            count += len(rows)
    return count


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    chunk: list[Row] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == 10 * PAGE:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
