"""``quercus classify``: the rows of a file, by the newest tree."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from rich.table import Table as RichTable

from quercus.cli.common import (
    DEFAULT_SERVER,
    DelimiterOption,
    FileArgument,
    MissingOption,
    ModelArgument,
    ServerOption,
    SpreadsheetOption,
    StandardOutput,
    bar,
    connect,
    err,
    out,
    print_json_line,
    warn_of_unseen,
    words_of,
)
from quercus.cli.whole_files import refuse_existing, refuse_input, written_whole
from quercus.client.client import Client
from quercus.client.results import Classifications
from quercus.client.unseen import UnseenTally
from quercus.files import FileError, FileRecord, open_table
from quercus.files.schema import Binding, class_of
from quercus.files.writing import shielded_cell
from quercus.specification.shares import decimal_text
from quercus.specification.written_labels import write_label, write_name, write_set

CHUNK_ROWS = 5000
_Stream = IO[str] | StandardOutput


class OutputFormat(StrEnum):
    """The format in which predictions are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def classify(
    *,
    model: ModelArgument,
    file: FileArgument,
    form: Annotated[
        OutputFormat | None,
        typer.Option(
            "--format", help="table, csv, or json (a line per row). Default: table at a terminal, else csv."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write CSV to this file.", dir_okay=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file of --output.")] = False,
    for_spreadsheets: SpreadsheetOption = False,
    class_name: Annotated[
        str | None,
        typer.Option(
            "--class", metavar="COLUMN", help="Column of the true classes; the accuracy is printed as well."
        ),
    ] = None,
    delimiter: DelimiterOption = ",",
    missing: MissingOption = None,
    masses: Annotated[
        bool,
        typer.Option(
            "--masses", help="Print the mass function of each row as well, if the model predicts them."
        ),
    ] = False,
    server: ServerOption = DEFAULT_SERVER,
) -> None:
    """Classify the rows of a CSV, ARFF or Parquet file.

    The output has for each row the class, the classes that cannot be ruled out, and for each class its estimated
    probability with bounds (belief, plausibility). It names the version of the tree: while the tree grows, predictions
    may change.

    A cell may be uncertain: ? or empty, red|green (one of these), or 2..3 (a number from 2 to 3).

    Try:

        quercus classify wine new.csv
        quercus classify wine new.csv --output answers.csv
        quercus classify wine test.csv --class class
    """
    if output is not None and (as_json or form in {OutputFormat.TABLE, OutputFormat.JSON}):
        raise typer.BadParameter("--output writes CSV: omit --format and --json")
    _check_output(output, file, force)
    chosen = (
        OutputFormat.JSON
        if as_json
        else form or (OutputFormat.TABLE if out.is_terminal and output is None else OutputFormat.CSV)
    )
    if for_spreadsheets and chosen is not OutputFormat.CSV:
        raise typer.BadParameter(f"--for-spreadsheets is for CSV, not for {chosen}")
    table = open_table(file, delimiter=delimiter, missing=words_of(missing))
    at = None if class_name is None else table.position(class_name, "--class")
    right = known = total = 0
    unseen = UnseenTally()
    with connect(server) as client:
        specification = client.get_model(model).specification
        classes = tuple(specification.classes)
        binding = Binding(table, specification, uncertain=True)
        with _open_output(output) as stream:
            writer: _CsvWriter | _JsonWriter | _TableWriter
            if chosen is OutputFormat.CSV:
                writer = _CsvWriter(stream, classes, masses, for_spreadsheets=for_spreadsheets)
            else:
                writer = (_JsonWriter if chosen is OutputFormat.JSON else _TableWriter)(classes, masses)
            for records, answers in _classify_chunks(client, model, binding, masses):
                if at is not None:
                    truths = [class_of(table, record, at, classes) for record in records]
                    right += sum(a == b for a, b in zip(truths, answers.labels, strict=True))
                    known += sum(truth is not None for truth in truths)
                writer.write(total, answers)
                unseen.add_results(answers.unseen)
                total += len(answers)
            if not total:
                raise FileError(file, "has a header but no rows")
            writer.finish()
    warn_of_unseen(unseen.results(total))
    if at is not None:
        share = f"accuracy {right / known:.4f} ({right:,} of {known:,})" if known else "accuracy unknown"
        lost = f"; {total - known:,} rows have no true class" if known < total else ""
        err.print(share + lost, markup=False)


def _classify_chunks(
    client: Client, model: str, binding: Binding, masses: bool
) -> Iterator[tuple[list[FileRecord], Classifications]]:
    records = iter(binding.table)
    while chunk := list(itertools.islice(records, CHUNK_ROWS)):
        rows = [binding.row(record) for record in chunk]
        yield chunk, client.classify(model, rows, want_masses=masses)


def _mass_text(mass: Mapping[tuple[str, ...], float] | None) -> str:
    """Return a mass function as text, ``{red}:0.5 {red|green}:0.5``; empty if there is none."""
    return write_label({names: float(f"{value:.6g}") for names, value in (mass or {}).items()})


def _check_output(output: Path | None, file: Path, force: bool) -> None:
    if output is None:
        if force:
            raise typer.BadParameter("--force is for files: give -o FILE")
        return
    refuse_input("--output", output, file)
    refuse_existing(output, force)


@contextmanager
def _open_output(path: Path | None) -> Iterator[_Stream]:
    if path is None:
        yield StandardOutput()
        return
    with written_whole(path) as part, part.open("w", encoding="utf-8", newline="") as stream:
        yield stream


class _CsvWriter:
    def __init__(
        self, stream: _Stream, classes: tuple[str, ...], masses: bool, *, for_spreadsheets: bool
    ) -> None:
        self._writer = csv.writer(stream, lineterminator="\n")
        self._masses = masses
        self._shield = shielded_cell if for_spreadsheets else str
        bounds = [f"{kind}:{name}" for kind in ("theta", "belief", "plausibility") for name in classes]
        own = ["mass"] if masses else []
        self._writer.writerow(["row", "class", *bounds, "classes", *own, "version"])

    def write(self, start: int, answers: Classifications) -> None:
        for row, each in enumerate(answers, start):
            numbers = (f"{x:.6g}" for part in (each.theta, each.belief, each.plausibility) for x in part)
            own = [_mass_text(each.mass)] if self._masses else []
            names = [self._shield(cell) for cell in (write_name(each.label), write_set(each.label_set), *own)]
            self._writer.writerow([row, names[0], *numbers, *names[1:], each.version])

    def finish(self) -> None:
        pass


class _JsonWriter:
    def __init__(self, classes: tuple[str, ...], masses: bool) -> None:
        self._classes = classes
        self._masses = masses

    def write(self, start: int, answers: Classifications) -> None:
        for row, each in enumerate(answers, start):
            line: dict[str, Any] = {"row": row, "class": each.label, "classes": list(each.label_set)}
            for name in ("theta", "pignistic", "belief", "plausibility"):
                line[name] = dict(zip(self._classes, getattr(each, name).tolist(), strict=True))
            if self._masses:
                mass = each.mass
                line["mass"] = None if mass is None else {write_set(names): m for names, m in mass.items()}
            print_json_line(line | {"node": each.node, "version": each.version})

    def finish(self) -> None:
        pass


class _TableWriter:
    def __init__(self, classes: tuple[str, ...], masses: bool) -> None:
        own = ["mass"] if masses else []
        self._table = RichTable(
            "row", "class", "", "theta", "[belief, plausibility]", "classes left", *own, box=None
        )
        self._masses = masses
        self._versions: set[int] = set()

    def write(self, start: int, answers: Classifications) -> None:
        for row, each in enumerate(answers, start):
            k = each.classes.index(each.label)
            low, high = each.belief[k], each.plausibility[k]
            interval = f"[{decimal_text(low, 3)}, {decimal_text(high, 3)}]"
            self._table.add_row(
                str(row),
                each.label,
                bar(each.theta[k], 12),
                decimal_text(each.theta[k], 3),
                interval,
                write_set(each.label_set),
                *([_mass_text(each.mass)] if self._masses else []),
            )
        self._versions.update(answers.versions.tolist())

    def finish(self) -> None:
        out.print(self._table)
        versions = ", ".join(str(version) for version in sorted(self._versions))
        out.print(f"by tree version {versions}", style="dim")
