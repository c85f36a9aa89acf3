"""Export of a model's instances as a table for analysis programs: values, label, and present evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from quercus.belief.label import contour
from quercus.labelling.history import known_contour, label_events, stored_cells, stored_label
from quercus.labelling.row_values import Range
from quercus.server.wire.labels import label_text
from quercus.server.wire.schema import AttributeColumn, ModelSchema
from quercus.specification.attributes import column_names
from quercus.specification.values import NOTHING
from quercus.specification.written_cells import name_cell, range_cell, set_cell
from quercus.storage import Event, EventKind, FailedPrecondition, Store

PAGE: Final = 1_000
Row = list[Any]


@dataclass(frozen=True)
class ExportedTable:
    """A table.

    Attributes
    ----------
    header : names of the columns.
    kinds : types of the columns: str, float or int.
    rows : rows, each as long as the header; None for a missing value.
    """

    header: list[str]
    kinds: Sequence[type]
    rows: Iterator[Row]


def export_table(store: Store, model: str) -> ExportedTable:
    """Return the instances of a model as a table, read page by page; a server may store rows meanwhile.

    Columns: ``id``; the attributes; ``label``, the labellers' combined label, or else the pushed one (``a``, ``a|b``,
    plausibilities ``a:1 b:0.4``, masses ``{a|b}:0.7 {a}:0.3``, empty if nothing is known); ``pl(class)``, the
    plausibility of each class after all answers; ``answers``, the number of labels; ``conflict``, 1 if an answer
    contradicted the label. An attribute with one of these names is called ``value:NAME``.
    """
    schema = ModelSchema.read(store, model)
    size = schema.frame.size
    behind = ["label", *(f"pl({name})" for name in schema.frame.classes), "answers", "conflict"]
    names = column_names([column.name for column in schema.columns], own=["id", *behind])
    header = ["id", *names, *behind]
    kinds: list[type] = [str, *(float if column.values is None else str for column in schema.columns), str]
    kinds += [*([float] * size), int, int]
    return ExportedTable(header, kinds, _export_rows(store, schema))


def _export_rows(store: Store, schema: ModelSchema) -> Iterator[Row]:
    after = 0
    while True:
        page = store.page_details(schema.model, after, PAGE)
        if not schema.fits(page.model):
            raise FailedPrecondition(
                f"model {schema.model} was extended, or deleted and another has its name: start again"
            )
        schema = ModelSchema.of(page.model, page.vocabulary)  # names all values of these rows
        for history in page.histories.values():
            yield _export_row(history, schema)
        if len(page.histories) < PAGE:
            return
        after = max(page.histories)


def _export_row(history: Sequence[Event], schema: ModelSchema) -> Row:
    first, size = history[0], schema.frame.size
    values, parts = stored_cells(first)
    cells = [
        _uncertain_cell(parts[k], column)
        if k in parts
        else None
        if math.isnan(value)
        else value
        if column.values is None
        else name_cell(column.name_of(int(value)))
        for k, (column, value) in enumerate(zip(schema.columns, values.tolist(), strict=True))
    ]
    said = first.label  # the labellers' present label, or the pushed one if there is none or it is vacuous
    for event in history:
        if event.gold:  # an answer to a gold question, or a mark, which the combined label after it includes
            continue
        if event.kind is EventKind.CORRECTION or (event.kind is EventKind.ANSWER and event.label is not None):
            said = first.label if event.label is None else event.label
    label = stored_label(said or b"", size)
    if contour(label, size).min() == 1.0:
        label = stored_label(first.label or b"", size)
    text = label_text(label, schema.frame)
    answers = len(label_events(history))
    conflict = int(any(event.conflict for event in history))
    shown = "" if text == NOTHING else text
    return [first.id, *cells, shown, *known_contour(history, size).tolist(), answers, conflict]


def _uncertain_cell(ranges: Sequence[Range], column: AttributeColumn) -> Any:
    """Return an uncertain value as a cell of a file, see `quercus.files.cells`."""
    if column.values is None:
        return range_cell(ranges[0][0], ranges[-1][1])
    return set_cell(column.name_of(int(low)) for low, _ in ranges)
