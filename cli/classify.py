"""``quercus classify``: the rows of a file, by the newest tree."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table as RichTable

from quercus.belief.errors import InvalidInput
from quercus.cli.common import (
    DEFAULT_SERVER,
    SKIP_HINT,
    DelimiterOption,
    MissingOption,
    ModelArgument,
    RejectedOption,
    ServerOption,
    SpreadsheetOption,
    StandardOutput,
    err,
    fail,
    json_line,
    out,
    warn_of_unseen,
    words_of,
)
from quercus.cli.output_files import (
    ForceOption,
    OutputOption,
    format_for,
    refuse_existing,
    refuse_input,
    write_rows,
    written_whole,
)
from quercus.cli.pipes import (
    AsTheyCome,
    InputArgument,
    NamedRows,
    is_standard_input,
    open_standard_input,
)
from quercus.client.classifications import Classification, PredictionSets
from quercus.client.client import Client
from quercus.client.rows import later_attributes
from quercus.client.unseen import UnseenTally
from quercus.files import FileError, FileRecord, open_table, writing
from quercus.files.faults import naming_lines
from quercus.files.pushing import RejectedFile, refused_rows
from quercus.files.schema import Binding, class_of
from quercus.files.writing import OutputTable, TextTarget
from quercus.specification.names import check_id
from quercus.specification.shares import decimal_text
from quercus.specification.written_labels import write_label, write_name, write_set
from quercus.view.bars import bar
from quercus.view.predictions import coverage_text, share_text
from quercus.view.words import counted

CHUNK_ROWS = 5000


class OutputFormat(StrEnum):
    """The format in which predictions are printed or written."""

    TABLE = "table"
    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    ARROW = "arrow"


def classify(
    *,
    model: ModelArgument,
    file: InputArgument,
    form: Annotated[
        OutputFormat | None,
        typer.Option(
            "--format",
            help="table, csv, jsonl (a line per row), parquet or arrow. "
            "Default: by the ending of FILE; else table at a terminal, or csv.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format jsonl.")] = False,
    output: OutputOption = None,
    force: ForceOption = False,
    for_spreadsheets: SpreadsheetOption = False,
    ids: Annotated[
        str | None,
        typer.Option(
            "--id-column", metavar="COLUMN", help="Column of row ids, the first column of the output."
        ),
    ] = None,
    class_name: Annotated[
        str | None,
        typer.Option(
            "--class", metavar="COLUMN", help="Column of the true classes; the accuracy is printed too."
        ),
    ] = None,
    rejected: RejectedOption = None,
    delimiter: DelimiterOption = ",",
    missing: MissingOption = None,
    masses: Annotated[
        bool,
        typer.Option(
            "--masses", help="Also print the mass function of each row, if the model predicts them."
        ),
    ] = False,
    coverage: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Also print prediction sets, which contain the true class with this frequency, such as 0.9.",
        ),
    ] = None,
    doubt: Annotated[
        bool,
        typer.Option(
            "--doubt",
            help="Also print the two kinds of doubt, in bits, if the model separates them: "
            "overlap, which further labels hardly reduce, and ignorance, which they do.",
        ),
    ] = False,
    server: ServerOption = DEFAULT_SERVER,
) -> None:
    """Classify the rows of a CSV, ARFF, Parquet or Arrow file, or of standard input.

    Each row of the output has the class, the classes that cannot be ruled out, and the estimated probability of each
    class with its bounds (belief, plausibility). It also has the version of the tree: while the tree grows, predictions
    may change. Rows are numbered from 0, as quercus push numbers them; --id-column adds the ids of a column.

    A cell may be uncertain: ? or empty, red|green (one of these), or 2..3 (a number from 2 to 3).

    A row is refused for a wrong value or id, or too few or many cells. The first one ends the command; with --rejected
    the others are classified under their own numbers, and the command fails at its end.

    Standard input (-) is CSV with a header, or one JSON object per line. Rows are classified as they arrive, within a
    quarter of a second, and printed in the same format. A refused row is reported on standard error. The id of a JSON
    object is its field id.

    Try:

        quercus classify wine new.csv
        quercus classify wine new.csv --id-column bottle --output answers.parquet
        quercus classify wine test.csv --class class
        quercus classify wine new.csv --coverage 0.9 --doubt
        quercus classify wine - < measured.jsonl
    """
    if coverage is not None and not 0.0 < coverage < 1.0:
        raise typer.BadParameter(f"--coverage is {coverage:g}, must lie between 0 and 1, such as 0.9")
    is_piped = is_standard_input(file)
    chosen = _chosen_format(form, output, as_json=as_json)
    if output is not None:
        refuse_input("--output", output, None if is_piped else file)
        refuse_existing(output, force)
    elif force:
        raise typer.BadParameter("--force is for files: give -o FILE")
    refuse_input("--rejected", rejected, None if is_piped else file)
    if rejected is not None and rejected == output:
        raise typer.BadParameter("--rejected and --output name the same file")
    if for_spreadsheets and chosen is not OutputFormat.CSV:
        raise typer.BadParameter(f"--for-spreadsheets is for CSV, not for {chosen}")
    words = words_of(missing)
    table = None if is_piped else open_table(file, delimiter=delimiter, missing=words)
    with Client(server) as client:
        current = client.get_model(model)
        specification, later = current.specification, later_attributes(current)
        if table is None:
            piped = open_standard_input(specification, delimiter=delimiter, missing=words)
            table, ids = piped.table, ids or piped.id_column
            if piped.is_json and form is None and output is None:
                chosen = OutputFormat.JSONL
            elif chosen is OutputFormat.TABLE:
                chosen = OutputFormat.CSV
        at = None if class_name is None else table.position(class_name, "--class")
        binding = Binding(table, specification, uncertain=True, later=later)
        with refused_rows(rejected, table) as written:
            refused = NamedRows() if written is None and is_piped else written
            found = _ClassifiedFile(
                client,
                model,
                binding,
                tuple(specification.classes),
                masses=masses,
                coverage=coverage,
                doubt=doubt,
                ids=ids,
                at=at,
                refused=refused,
                is_piped=is_piped,
            )
            _write(found, chosen, output, for_spreadsheets=for_spreadsheets)
    warn_of_unseen(found.unseen.results(found.rows))
    if found.sets is not None:
        err.print(coverage_text(found.sets))
    if doubt and not found.tells_doubt:
        err.print(f"{model} does not separate the two kinds of doubt: the learner active-forest does")
    if at is not None:
        err.print(found.accuracy_text)
    if refused is not None and refused.rows:
        where = "standard error" if rejected is None else rejected
        fail(f"{refused.count_text} refused: see {where} for the line and the reason of each")


def _chosen_format(form: OutputFormat | None, output: Path | None, *, as_json: bool) -> OutputFormat:
    if as_json and form not in {None, OutputFormat.JSONL}:
        raise typer.BadParameter(f"--json contradicts --format {form}: omit one of them")
    given = OutputFormat.JSONL if as_json else form
    if output is None:
        if given in {OutputFormat.PARQUET, OutputFormat.ARROW}:
            raise typer.BadParameter(f"--format {given} needs a file: -o FILE")
        return given or (OutputFormat.TABLE if out.is_terminal else OutputFormat.CSV)
    if given is OutputFormat.TABLE:
        raise typer.BadParameter("--format table is for a terminal: omit it, or --output")
    return OutputFormat(format_for(output, given))


@dataclass(frozen=True)
class _FileRow:
    """A row to classify: its number, counted from 0, its id and its true class (None if there is no such column)."""

    number: int
    id: str | None
    record: FileRecord
    values: list[Any]
    truth: str | None


class _ClassifiedFile:
    """The rows of a file with their predictions, which are made during iteration; counts the right ones.

    Parameters
    ----------
    ids : column of ids; None: there is none.
    at : position of the column of true classes; None: there is none.
    refused : takes the rows that are refused; None: the first ends the reading.
    is_piped : whether rows are classified as they come, and not in full chunks.
    """

    def __init__(
        self,
        client: Client,
        model: str,
        binding: Binding,
        classes: tuple[str, ...],
        *,
        masses: bool,
        coverage: float | None,
        doubt: bool,
        ids: str | None,
        at: int | None,
        refused: RejectedFile | NamedRows | None,
        is_piped: bool = False,
    ) -> None:
        self._refused, self._is_piped = refused, is_piped
        self._client, self._model, self._binding = client, model, binding
        self.masses, self.coverage, self.doubt, self._at = masses, coverage, doubt, at
        self.sets: PredictionSets | None = None  # those of the last chunk
        self.tells_doubt = True
        self.classes = classes
        self.rows = self._right = self._known = 0
        self.unseen = UnseenTally()
        self._id_position = None if ids is None else binding.table.position(ids, "--id-column")

    @property
    def has_ids(self) -> bool:
        """True if each row has an id of its own."""
        return self._id_position is not None

    def __iter__(self) -> Iterator[tuple[_FileRow, Classification]]:
        table = self._binding.table
        records = enumerate(table.with_faults())
        count = 0
        full = iter(lambda: list(itertools.islice(records, CHUNK_ROWS)), [])
        for chunk in AsTheyCome(records, CHUNK_ROWS) if self._is_piped else full:
            count += len(chunk)
            yield from self._classified([row for each in chunk if (row := self._read_row(*each)) is not None])
            if self._is_piped:
                sys.stdout.flush()
        if not count:
            raise FileError(table.path, "has a header but no rows")

    def _read_row(self, number: int, record: FileRecord) -> _FileRow | None:
        """Return a row to classify; None: it is refused."""
        table, k = self._binding.table, self._id_position
        try:
            if record.fault is not None:
                raise record.fault
            name = None if k is None else record.cells[k]
            if k is not None:
                if name is None:
                    raise table.error(record, k, "the id is missing")
                try:
                    check_id(name, "id")
                except InvalidInput as error:
                    raise table.error(record, k, f"the id {error.reason}") from None
            truth = None if self._at is None else class_of(table, record, self._at, self.classes)
            return _FileRow(number, name, record, self._binding.row(record), truth)
        except FileError as error:
            self._refuse(record, error)
            return None

    def _classified(self, rows: list[_FileRow]) -> Iterator[tuple[_FileRow, Classification]]:
        """Classify rows. If the server refuses some and the others are wanted, find the refused ones by bisection."""
        if not rows:
            return
        try:
            with naming_lines(self._binding.table, [row.record for row in rows]):
                answers = self._client.classify(
                    self._model,
                    [row.values for row in rows],
                    want_masses=self.masses,
                    coverage=self.coverage,
                    want_doubt=self.doubt,
                )
        except FileError as error:
            if len(rows) > 1 and self._refused is not None:
                yield from self._classified(rows[: len(rows) // 2])
                yield from self._classified(rows[len(rows) // 2 :])
            else:
                self._refuse(rows[0].record, error)
            return
        self.unseen.add_names(answers.unseen)
        self.sets = answers.prediction_sets
        self.tells_doubt = answers.overlap is not None
        self.rows += len(rows)
        self._known += sum(row.truth is not None for row in rows)
        self._right += sum(row.truth == label for row, label in zip(rows, answers.labels, strict=True))
        yield from zip(rows, answers, strict=True)

    def _refuse(self, record: FileRecord, error: FileError) -> None:
        if self._refused is None:
            error.add_note(SKIP_HINT)
            raise error
        name = "" if self._id_position is None else record.cells[self._id_position] or ""
        self._refused.write(record, name, error.reason_in_column)

    @property
    def accuracy_text(self) -> str:
        """The share of right predictions among the rows with a true class, in words."""
        right, known, lost = self._right, self._known, self.rows - self._known
        share = f"accuracy {right / known:.4f} ({right:,} of {known:,})" if known else "accuracy unknown"
        return share + (f"; {counted(lost, 'row')} without a true class" if lost else "")


def _write(rows: _ClassifiedFile, form: OutputFormat, output: Path | None, *, for_spreadsheets: bool) -> None:
    if form is OutputFormat.TABLE:
        _print_table(rows)
    elif form is OutputFormat.JSONL and output is None:
        _write_lines(rows, StandardOutput())
    elif form is OutputFormat.JSONL and output is not None:
        packed = writing.is_packed(output)
        with written_whole(output) as part, writing.open_text(part, packed=packed) as stream:
            _write_lines(rows, stream)
    else:
        table = _as_table(rows, rounded=form is OutputFormat.CSV)
        if output is None:
            writing.write_csv(table, StandardOutput(), for_spreadsheets=for_spreadsheets)
        else:
            write_rows(table, output, format_for(output, form), for_spreadsheets=for_spreadsheets)


def _mass_text(mass: Mapping[tuple[str, ...], float] | None) -> str:
    """Return a mass function as text, ``{red}:0.5 {red|green}:0.5``; empty if there is none."""
    return write_label({names: float(f"{value:.6g}") for names, value in (mass or {}).items()})


def _kinds(found: Classification) -> tuple[float | None, float | None]:
    """Return the two kinds of doubt about a row in bits; None if the model does not separate them."""
    return found.overlap, found.ignorance


def _as_table(rows: _ClassifiedFile, *, rounded: bool) -> OutputTable:
    """Return the predictions as a table; ``rounded``: numbers as texts of six digits."""
    bounds = [f"{kind}:{name}" for kind in ("theta", "belief", "plausibility") for name in rows.classes]
    columns: dict[str, type] = {"id": str} if rows.has_ids else {}
    columns |= {"row": int, "class": str, **dict.fromkeys(bounds, float), "classes": str}
    columns |= {"mass": str} if rows.masses else {}
    columns |= {} if rows.coverage is None else {"set": str}
    columns |= {"overlap": float, "ignorance": float} if rows.doubt else {}
    columns |= {"version": int}
    number: Any = "{:.6g}".format if rounded else float
    cells = (
        [
            *([row.id] if rows.has_ids else []),
            row.number,
            write_name(found.label),
            *(number(x) for part in (found.theta, found.belief, found.plausibility) for x in part),
            write_set(found.label_set),
            *([_mass_text(found.mass)] if rows.masses else []),
            *([] if found.prediction_set is None else [write_set(found.prediction_set)]),
            *([None if bits is None else number(bits) for bits in _kinds(found)] if rows.doubt else []),
            found.version,
        ]
        for row, found in rows
    )
    return OutputTable(list(columns), list(columns.values()), cells)


def _write_lines(rows: _ClassifiedFile, stream: TextTarget) -> None:
    for row, found in rows:
        line: dict[str, Any] = {} if row.id is None else {"id": row.id}
        line |= {"row": row.number, "class": found.label, "classes": list(found.label_set)}
        for name in ("theta", "pignistic", "belief", "plausibility"):
            line[name] = dict(zip(rows.classes, getattr(found, name).tolist(), strict=True))
        if rows.masses:
            mass = found.mass
            line["mass"] = None if mass is None else {write_set(names): m for names, m in mass.items()}
        if found.prediction_set is not None:
            line["set"] = list(found.prediction_set)
        if rows.doubt:
            line["overlap"], line["ignorance"] = _kinds(found)
        stream.write(json_line(line | {"node": found.node, "version": found.version}))


def _print_table(rows: _ClassifiedFile) -> None:
    ids, own = ["id"] if rows.has_ids else [], ["mass"] if rows.masses else []
    if rows.coverage is not None:
        own.append(f"set of {share_text(rows.coverage)}")
    if rows.doubt:
        own += ["overlap", "ignorance"]
    table = RichTable(
        *ids, "row", "class", "", "theta", "[belief, plausibility]", "classes left", *own, box=None
    )
    versions: set[int] = set()
    for row, each in rows:
        k = each.classes.index(each.label)
        low, high = each.belief[k], each.plausibility[k]
        table.add_row(
            *([row.id] if rows.has_ids else []),
            str(row.number),
            each.label,
            bar(each.theta[k], 12),
            decimal_text(each.theta[k], 3),
            f"[{decimal_text(low, 3)}, {decimal_text(high, 3)}]",
            write_set(each.label_set),
            *([_mass_text(each.mass)] if rows.masses else []),
            *([] if each.prediction_set is None else [write_set(each.prediction_set)]),
            *(["" if bits is None else f"{bits:.2f}" for bits in _kinds(each)] if rows.doubt else []),
        )
        versions.add(each.version)
    out.print(table)
    out.print(f"by tree version {', '.join(map(str, sorted(versions)))}", style="dim")
