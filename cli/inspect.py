"""``quercus inspect``: show how a model would use the columns of a file, and what looks wrong in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Annotated, Any, Final

import typer
from rich.table import Table as RichTable
from rich.text import Text

from quercus.cli.common import (
    ClassColumnOption,
    ClassNamesOption,
    DelimiterOption,
    FileArgument,
    JsonOption,
    MissingOption,
    PlainConsole,
    out,
    print_json,
    progress_bar,
    words_of,
)
from quercus.cli.options import with_options
from quercus.files import FileTable, open_table
from quercus.files.inspection import Choices, InspectedColumn, Remark
from quercus.files.schema import FileSchema, class_column, names_of, survey_file
from quercus.files.table import FileRecord, listed_names
from quercus.files.words import typed_classes
from quercus.view.words import counted

ROLES: Final = {
    "class": "class",
    "number": "numbers",
    "time": "numbers: seconds since 1970 UTC",
    "names": "names",
    "left out": "left out",
}
_ORDER: Final = ("refused", "left out", "said")
_SHOWN: Final = {
    "refused": ("refused", "bold red"),
    "left out": ("left out", "yellow"),
    "said": ("note", "cyan"),
}
_TOLD_ROWS: Final = 5_000
_EXAMPLES: Final = 3
_EXAMPLE_CHARS: Final = 14


COLUMN_OPTIONS = {
    "ignore": Annotated[
        list[str] | None, typer.Option("--ignore", metavar="COLUMN", help="Ignore this column; repeatable.")
    ],
    "nominal": Annotated[
        list[str] | None,
        typer.Option(
            "--nominal",
            metavar="COLUMN",
            help="Treat this column as names, even if it looks numeric; repeatable.",
        ),
    ],
    "numeric": Annotated[
        list[str] | None,
        typer.Option(
            "--numeric",
            metavar="COLUMN",
            help="Treat this column as numbers; dates and times become seconds since 1970 UTC; repeatable.",
        ),
    ],
    "attributes": Annotated[
        list[str] | None,
        typer.Option(
            "--attribute",
            metavar="COLUMN",
            help="Treat this column as an attribute although it looks like ids or a column of classes; repeatable.",
        ),
    ],
}
"""The choices of the user about columns: keyword arguments of `Choices`, `infer_schema` and `read`."""
NO_CHOICES: Final[dict[str, list[str]]] = {name: [] for name in COLUMN_OPTIONS}


@with_options(COLUMN_OPTIONS, NO_CHOICES, into="columns")
def inspect(
    *,
    file: FileArgument,
    class_name: ClassColumnOption = None,
    classes: ClassNamesOption = None,
    columns: dict[str, Any],
    delimiter: DelimiterOption = ",",
    missing: MissingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how a model would use a file: the role of each column, and what looks wrong.

    Each remark names a column, a line with an example, and the flag that changes it. quercus models create and quercus
    induce have the same flags and use the same rules: they refuse what is refused here, and leave out the same columns.
    No server is needed. The exit code is 1 if something is refused.

    Remarks are about columns that tell rows apart (ids, row numbers, free text), dates, single cells that are not
    numbers, ambiguous cells such as sun|rain, numbers with a decimal comma or a unit, values that differ only in case,
    columns that are constant, nearly empty or duplicated, columns of classes, and a header that looks like data.

    Try:

        quercus inspect wine.csv
        quercus inspect wine.csv --class cultivar --ignore notes
        quercus inspect log.csv --numeric taken_at --json
    """
    table = open_table(file, delimiter=delimiter, missing=words_of(missing), quietly=True)
    frame, column = class_choice(table, class_name, classes)
    choices = Choices(column, **columns)
    with telling_rows(table) as told:
        schema = survey_file(told, choices, frame)
    if as_json:
        print_json(_schema_json(schema))
    else:
        out.print(_table_of_columns(schema))
        named = f"; classes: {listed_names(schema.classes)}" if schema.classes else ""
        labelled = "" if column is None else f", {schema.labelled:,} of them labelled"
        out.print(f"\n{counted(schema.rows, 'row')}{labelled}{named}", soft_wrap=True)
        if column is None and not frame:
            out.print(
                "no column is named class: name it with --class COLUMN, or the classes with --classes A,B,C"
            )
        print_remarks(schema.remarks, out)
    if any(each.outcome == "refused" for each in schema.remarks):
        raise typer.Exit(1)


def class_choice(
    table: FileTable, class_name: str | None, classes: str | None
) -> tuple[tuple[str, ...], str | None]:
    """Return the classes that --classes gives (empty if none), and the class column, if any."""
    frame = () if classes is None else typed_classes(classes)
    return frame, None if classes is not None and class_name is None else class_column(table, class_name)


@contextmanager
def telling_rows(table: FileTable) -> Iterator[FileTable]:
    """Yield a table that shows on standard error how many of its rows have been read."""
    with progress_bar(f"reading {table.path.name}") as show_progress:

        def telling() -> Iterator[FileRecord]:
            for number, record in enumerate(table.read()):
                if number % _TOLD_ROWS == 0:
                    show_progress(number, None)
                yield record

        yield replace(table, read=telling)


def _table_of_columns(schema: FileSchema) -> RichTable:
    found = RichTable("column", box=None)
    for title in ("becomes", "values", "different"):
        found.add_column(title, no_wrap=True)
    found.add_column("such as")
    for each in schema.columns:
        ignored = each.role == "left out" and not each.seen.known
        found.add_row(
            each.seen.name,
            "refused" if any(remark.outcome == "refused" for remark in each.remarks) else ROLES[each.role],
            "" if ignored else f"{each.seen.known:,}",
            "" if ignored else f"{'more than ' if each.seen.at_full else ''}{_distinct(each):,}",
            ", ".join(
                value if len(value) <= _EXAMPLE_CHARS else f"{value[:_EXAMPLE_CHARS]}..."
                for value in islice(each.seen.values, _EXAMPLES)
            ),
        )
    return found


def _distinct(column: InspectedColumn) -> int:
    """Return the number of distinct values; among names, ``True`` and ``true`` may count as one."""
    return len(column.seen.values if column.role == "number" else names_of(column.seen.values))


def _schema_json(schema: FileSchema) -> dict[str, Any]:
    return {
        "rows": schema.rows,
        "labelled": schema.labelled,
        "classes": list(schema.classes),
        "columns": [
            {
                "name": each.seen.name,
                "role": each.role,
                "known": each.seen.known,
                "different": _distinct(each),
                "different_is_least": bool(each.seen.at_full),
                "examples": list(islice(each.seen.values, _EXAMPLES)),
            }
            for each in schema.columns
        ],
        "remarks": [remark_json(each) for each in schema.remarks],
    }


def print_remarks(remarks: Iterable[Remark], console: PlainConsole) -> None:
    """Print a line for each remark: first what is refused, then what is left out."""
    for each in sorted(remarks, key=lambda each: _ORDER.index(each.outcome)):
        word, style = _SHOWN[each.outcome]
        console.print(Text.assemble((f"{word}:", style), f" {each}"), soft_wrap=True)


def remark_json(remark: Remark) -> dict[str, Any]:
    """Return a remark as JSON."""
    return {
        "kind": remark.kind,
        "column": remark.column or None,
        "line": remark.line or None,
        "outcome": remark.outcome,
        "says": remark.says,
        "advice": remark.advice,
    }
