"""``quercus push``: the rows of a file into a model."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from quercus.cli.common import (
    DEFAULT_SERVER,
    SKIP_HINT,
    DelimiterOption,
    JsonOption,
    LabelColumnOption,
    LabelFileOption,
    MissingOption,
    ModelArgument,
    RejectedOption,
    ServerOption,
    err,
    fail,
    name_at,
    out,
    print_json,
    progress_bar,
    warn_of_unseen,
    words_of,
)
from quercus.cli.output_files import refuse_input
from quercus.cli.pipes import (
    InputArgument,
    NamedRows,
    PipedPush,
    is_standard_input,
    open_standard_input,
)
from quercus.cli.push_answers import state_answers
from quercus.client.client import Client
from quercus.client.errors import AlreadyExists
from quercus.client.rows import later_attributes
from quercus.client.unseen import PushReport
from quercus.files import FileError, FileRecord, FileTable, open_labels, open_table
from quercus.files.annotations import FORMS, read_annotations
from quercus.files.answers import AnswerColumns, AnswerFile
from quercus.files.displays import display_columns
from quercus.files.labels import column_cells, label_of
from quercus.files.leaks import refuse_second
from quercus.files.packing import is_packed
from quercus.files.pushing import FilePush, FileRows, RejectedFile, refused_rows
from quercus.files.schema import Binding, class_column, which_class
from quercus.specification.server import MAX_BATCH_ROWS
from quercus.specification.written_labels import UnknownClassError
from quercus.view.words import counted

_REPEATABLE = "the same command continues: no row is stored twice"


def push(
    *,
    model: ModelArgument,
    file: InputArgument,
    labels: Annotated[
        bool,
        typer.Option(
            "--labels",
            help="Send the class column as labels, or FILE as answers to existing rows (default: send no labels).",
        ),
    ] = False,
    class_name: Annotated[
        str | None, typer.Option("--class", metavar="COLUMN", help="Class column for --labels.")
    ] = None,
    label_file: LabelFileOption = None,
    label_column: LabelColumnOption = None,
    ids: Annotated[
        str | None,
        typer.Option("--id-column", metavar="COLUMN", help="Column of instance ids. Default: row numbers."),
    ] = None,
    id_prefix: Annotated[
        str,
        typer.Option(
            "--id-prefix",
            metavar="TEXT",
            help="Prefix of row numbers used as ids, for a second file of the same model.",
        ),
    ] = "",
    item: Annotated[
        str | None, typer.Option("--item", metavar="COLUMN", help="Column of row ids in a file of answers.")
    ] = None,
    labeller_column: Annotated[
        str | None,
        typer.Option("--labeller-column", metavar="COLUMN", help="Column of labellers in a file of answers."),
    ] = None,
    answer_column: Annotated[
        str | None,
        typer.Option("--answer-column", metavar="COLUMN", help="Column of answers in a file of answers."),
    ] = None,
    labeller: Annotated[
        str | None,
        typer.Option("--labeller", metavar="NAME", help="Labeller, if no column names one (default: you)."),
    ] = None,
    tool: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TOOL",
            help="FILE is an export of argilla, doccano, label-studio or prodigy with answers to existing rows.",
        ),
    ] = None,
    question: Annotated[
        str,
        typer.Option(
            "--question", metavar="NAME", help="With --from: name of the question, if there are several."
        ),
    ] = "",
    beside: Annotated[
        list[str] | None,
        typer.Option(
            "--beside",
            metavar="KIND:COLUMN",
            help="Show a column beside the row: text, link, series, image or audio; repeatable.",
        ),
    ] = None,
    rejected: RejectedOption = None,
    batch_rows: Annotated[
        int,
        typer.Option(
            "--batch-rows",
            min=1,
            max=MAX_BATCH_ROWS.highest,
            help="Maximum number of rows that are sent, and committed, together.",
        ),
    ] = 1000,
    delimiter: DelimiterOption = ",",
    missing: MissingOption = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Push the rows of a CSV, ARFF, Parquet or Arrow file, or of standard input.

    Columns are matched to the model's attributes by name; other columns are ignored. The class column is sent only with
    --labels, since queries are for rows without labels. By default, instance ids are row numbers from 0, so an
    interrupted push can be repeated: no row is stored twice.

    A label file has one line per row, with a column per class (plausibilities), or a column per set of classes, the set
    of all classes among them (masses; headers such as cat|dog), or a single column of classes and sets.

    With --labels, a file without the model's attributes contains answers to existing rows: one line per answer, with
    columns for item, labeller and answer, or one line per item and a column per labeller. Several answers about a row
    are combined (quercus policy). Pushing the same file again changes nothing.

    A row is refused for a wrong value, label or id, or too few or many cells. The first one ends the push; with
    --rejected the others are pushed, and the command fails at its end.

    Standard input (-) is CSV with a header, or one JSON object per line. Rows are pushed as they arrive, within a
    quarter of a second. A refused row is reported on standard error, the others are pushed, and the command fails at
    its end. The id of a JSON object is its field id. Without ids, rows are numbered from 0 in every run.

    --beside shows labellers things that no tree learns from. A series is a list of numbers separated by spaces; a
    picture or a sound is a URL, a file below the folder of the table, or data:...;base64,...

    Try:

        quercus push wine wine.csv
        quercus push wine known.csv --labels --class cultivar --id-prefix known-
        quercus push dogs dogs.arff --label-file opinions.csv
        quercus push birds crowd.csv --labels --item picture
        quercus push birds project-7.json --from label-studio --item picture
        quercus push wine wine.parquet --beside text:notes --beside image:photo
        quercus push wine - < bottles.jsonl
    """
    if rejected is not None and (tool is not None or question):
        raise typer.BadParameter(
            "--rejected is for rows, not for answers: a file of answers is stored completely or not at all"
        )
    if tool is not None and is_standard_input(file):
        raise typer.BadParameter("--from is for files: write standard input to one first")
    if tool is not None:
        if tool not in FORMS:
            raise typer.BadParameter(f"--from is {tool!r}, must be one of {', '.join(FORMS)}")
        with Client(server) as client:
            classes = client.get_model(model).specification.classes
            stated = read_annotations(file, tool, classes, id_field=item or "id", question=question)
            if not stated:
                raise FileError(file, f"has no answers of {tool}")
            who = name_at(client, labeller)
            state_answers(client, model, file, stated, who, as_json=as_json)
        return
    if question:
        raise typer.BadParameter("--question needs --from")
    columns = AnswerColumns(item, labeller_column, answer_column)
    if (columns.is_given or labeller is not None) and not labels:
        raise typer.BadParameter("--item, --labeller-column, --answer-column and --labeller are for --labels")
    if class_name is not None and not labels:
        raise typer.BadParameter("--class names a column whose labels are sent only with --labels: give both")
    if labels and label_file is not None:
        raise typer.BadParameter("--labels and --label-file are two ways to give labels: choose one")
    if label_column is not None and label_file is None:
        raise typer.BadParameter("--label-column names a column of --label-file: give both")
    words = words_of(missing)
    if is_standard_input(file):
        if label_file is not None or columns.is_given or labeller is not None:
            raise typer.BadParameter(
                "--label-file, --item, --labeller-column, --answer-column and --labeller are for files: "
                "write standard input to one first"
            )
        with Client(server) as client, _explained_new_class(model):
            current = client.get_model(model)
            specification, later = current.specification, later_attributes(current)
            piped = open_standard_input(specification, delimiter=delimiter, missing=words)
            table, id_column = piped.table, ids or piped.id_column
            label_of_record = None
            if labels:
                k = table.position("class" if class_name is None else class_name, "--class")
                label_of_record = partial(label_of, table, k=k, classes=list(specification.classes))
            rows = FileRows(
                Binding(table, specification, later=later),
                label_of_record,
                None,
                None if id_column is None else table.position(id_column, "--id-column"),
                id_prefix,
                display_columns(table, beside or (), "--beside"),
            )
            _push_piped(client, model, rows, rejected, batch_rows, as_json=as_json)
        return
    refuse_input("--rejected", rejected, file, label_file)
    table = open_table(file, delimiter=delimiter, missing=words)
    with Client(server) as client, _explained_new_class(model):
        current = client.get_model(model)
        specification, later = current.specification, later_attributes(current)
        attributes = {each.name for each in specification.attributes}
        if labels and (columns.is_given or not attributes & set(table.names)):
            answers = AnswerFile(table, specification.classes, columns)
            read = list(answers)
            if not read:
                raise FileError(file, "has a header but no answers")
            who = name_at(client, labeller)
            state_answers(client, model, file, read, who, as_json=as_json)
            if answers.unused and not as_json:
                out.print(f"columns not sent: {', '.join(answers.unused)}", style="dim")
            return
        binding = Binding(table, specification, later=later)
        classes = list(specification.classes)
        label: Callable[[FileRecord], Any] | None = None
        if labels:
            k = _class_position(table, class_name, binding.unused, classes)
            label = partial(label_of, table, k=k, classes=classes)
        given = None if label_file is None else open_table(label_file, delimiter=delimiter, missing=words)
        given_labels = None if given is None else open_labels(given, classes, column=label_column)
        shown = display_columns(table, beside or (), "--beside")
        id_position = None if ids is None else table.position(ids, "--id-column")
        rows = FileRows(binding, label, given_labels, id_position, id_prefix, shown)
        with refused_rows(rejected, table) as refused:
            report = _push_rows(client, model, rows, refused, batch_rows)
    unused = [name for name in binding.unused if name not in {column.title for column in shown}]
    _print_report(report, [] if labels or label_file is not None else unused, as_json)
    if refused is not None and refused.rows:
        again = " --labels" if labels else ""
        again += f" --class {shlex.quote(class_name)}" if labels and class_name is not None else ""
        again += "".join(f" --beside {shlex.quote(each)}" for each in beside or ())
        fail(
            f"{refused.count_text} refused: see {rejected} for the line and the reason of each\n  "
            f"correct them there and push them with: quercus push {model} {rejected} --id-column rejected_id{again}"
        )


def _push_rows(
    client: Client, model: str, rows: FileRows, refused: RejectedFile | None, batch_rows: int
) -> PushReport:
    """Push the rows of a file, and write refused rows to another file."""
    path, total = rows.table.path, None
    if err.is_terminal and not is_packed(path):  # an estimate, for the bar only
        with path.open("rb") as stream:
            blocks = iter(lambda: stream.read(1 << 20), b"")
            total = max(1, sum(block.count(b"\n") for block in blocks) - 1)
    pushed = FilePush(rows, None if refused is None else refused.write, batch_rows=batch_rows)
    try:
        with progress_bar(path.name, total) as show_progress, pushed.errors_by_line():
            report = client.push(
                model, **pushed.arguments(), on_progress=lambda now: show_progress(now.rows, total)
            )
    except KeyboardInterrupt:
        err.print(f"stopped; {_REPEATABLE}")
        raise
    except FileError as error:
        if isinstance(error.__cause__, AlreadyExists):
            hint = f"was another file pushed to {model!r} before? Tell their rows apart: --id-prefix TEXT"
            if "with another label" in str(error):
                hint += (
                    ". Existing rows keep their labels; to add labels, push them as answers: "
                    f"quercus push {model} FILE --labels --item COLUMN --answer-column COLUMN"
                )
            fail(f"{error}\n  {hint}")
        if refused is None and error.line:
            error.add_note(SKIP_HINT)
        raise
    count = 0 if refused is None else refused.rows
    if not report.rows and not count:
        raise FileError(path, "has a header but no rows")
    return replace(report, rejected=count)


def _push_piped(
    client: Client, model: str, rows: FileRows, rejected: Path | None, batch_rows: int, *, as_json: bool
) -> None:
    """Push the rows of standard input, and report refused rows on standard error or write them to a file."""
    with refused_rows(rejected, rows.table) as written:
        refused = NamedRows() if written is None else written
        pushed = PipedPush(client, model, rows, refused.write, batch_rows)
        try:
            pushed.run()
        except KeyboardInterrupt:
            err.print(f"stopped; {counted(pushed.report.rows, 'row')} stored; {_REPEATABLE}")
            raise
    report = replace(pushed.report, rejected=refused.rows)
    if not report.rows and not refused.rows:
        raise FileError(rows.table.path, "has a header but no rows")
    _print_report(report, [], as_json)
    if refused.rows:
        where = "standard error" if rejected is None else rejected
        fail(f"{refused.count_text} refused: see {where} for the line and the reason of each")


@contextmanager
def _explained_new_class(model: str) -> Iterator[None]:
    """Extend the error about an unknown class with the command that adds a class."""
    try:
        yield
    except FileError as error:
        if not isinstance(error.__cause__, UnknownClassError):
            raise
        fail(
            f"{error}\n  to add a new class: quercus models update {model} --add-class NAME. Labels that the "
            "model already has then exclude it, unless they are vacuous"
        )


def _print_report(report: PushReport, unused: list[str], as_json: bool) -> None:
    warn_of_unseen(report.unseen)
    if as_json:
        print_json(asdict(report))
        return
    rate = report.rows / report.seconds if report.seconds else 0.0
    known = f" ({report.known:,} already there)" if report.known else ""
    out.print(f"pushed {counted(report.rows, 'row')} in {report.seconds:.1f} s, {rate:,.0f} rows/s{known}")
    if unused:
        out.print(f"columns not sent: {', '.join(unused)}", style="dim")


def _class_position(table: FileTable, given: str | None, unused: tuple[str, ...], classes: list[str]) -> int:
    """Return the position of the class column; without --class, refuse a second column that may contain labels."""
    column = class_column(table, given)
    if column is None:
        raise FileError(table.path, which_class(table))
    if given is None:
        others = [table.names.index(name) for name in unused if name != column]
        refuse_second(table.path, column_cells(table, others), classes, column)
    return table.names.index(column)
