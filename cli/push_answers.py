"""``quercus push --labels`` of a file of answers: labellers' labels of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from quercus.belief.errors import InvalidInput
from quercus.cli.common import err, fail, out, print_json
from quercus.client.answers import Statement, merge_reports
from quercus.client.client import Client
from quercus.client.errors import InvalidArgument, NotFound
from quercus.client.places import faults_of, place_of, plain_text
from quercus.client.results import StatementReport
from quercus.client.specifications import Specification
from quercus.files import FileError, FileTable
from quercus.files.answers import AnswerColumns, AnswerFile, FileAnswer
from quercus.specification.bounds import MAX_STATEMENTS
from quercus.view.words import counted


@dataclass(frozen=True)
class AnswerFileOptions:
    """The options for a file of answers: its columns, and the labeller where it names none."""

    columns: AnswerColumns
    labeller: str


def is_answer_file(table: FileTable, specification: Specification, given: AnswerColumns) -> bool:
    """Return whether a file contains answers: an option names such a column, or no column is an attribute."""
    return given.is_given or not {each.name for each in specification.attributes} & set(table.names)


def push_answers(
    client: Client, model: str, table: FileTable, given: AnswerFileOptions, *, as_json: bool
) -> None:
    """State the answers of a file, item by item; nothing is sent before the whole file is read."""
    classes = client.get_model(model).specification.classes
    file = AnswerFile(table, classes, given.columns)
    answers = list(file)
    if not answers:
        raise FileError(table.path, "has a header but no answers")
    state_answers(client, model, table.path, answers, given.labeller, as_json=as_json)
    if file.unused and not as_json:
        out.print(f"columns not sent: {', '.join(file.unused)}", style="dim", markup=False)


def state_answers(
    client: Client, model: str, path: Path, answers: Sequence[FileAnswer], labeller: str, *, as_json: bool
) -> None:
    """State the answers of a file, and report their number; ``labeller`` is the labeller of answers that name none."""
    reports: list[StatementReport] = []
    with _progress_bar(path.name, len(answers)) as advance:
        for batch in _answer_batches(answers):
            reports.append(_send_batch(client, model, batch, labeller, path))
            advance(len(batch))
    report = merge_reports(reports)
    items, who = {each.item for each in answers}, {each.labeller or labeller for each in answers}
    if as_json:
        print_json(asdict(report) | {"items": len(items), "labellers": len(who)})
        return
    known = f" ({report.known:,} were there already)" if report.known else ""
    out.print(
        f"stated {len(answers):,} answers of {counted(len(who), 'labeller')} on {len(items):,} rows{known}"
    )


def _answer_batches(answers: Sequence[FileAnswer]) -> Iterator[list[FileAnswer]]:
    """Yield batches with all answers of an item together, as many items as one request may hold."""
    by_item: dict[str, list[FileAnswer]] = {}
    for each in answers:
        by_item.setdefault(each.item, []).append(each)
    batch: list[FileAnswer] = []
    for of_item in by_item.values():
        if batch and len(batch) + len(of_item) > MAX_STATEMENTS:
            yield batch
            batch = []
        batch += of_item
    yield batch


def _send_batch(
    client: Client, model: str, batch: Sequence[FileAnswer], labeller: str, path: Path
) -> StatementReport:
    try:
        statements = [_as_statement(each, labeller, path) for each in batch]
        return client.state(model, statements, request_id=_name_of(batch, labeller))
    except InvalidArgument as error:
        for field, reason in faults_of(error):
            place = place_of(field)
            if place.row is not None:
                raise FileError(path, f"{place.parameter} {reason}", batch[place.row].line) from error
        raise
    except NotFound as error:
        if error.message.startswith("model "):
            raise
        line = next((each.line for each in batch if repr(each.item) in error.message), 0)
        where = f"{path}: line {line}: " if line else f"{path}: "
        fail(
            f"{where}{error.message}\n  the rows must be there first: quercus push {model} FILE --id-column COLUMN"
        )


def _as_statement(given: FileAnswer, labeller: str, path: Path) -> Statement:
    try:
        return Statement(
            given.item, given.label, given.labeller or labeller, given.reliability, given.comment
        )
    except (InvalidArgument, InvalidInput) as error:
        raise FileError(path, plain_text(error), given.line) from error


def _name_of(batch: Sequence[FileAnswer], labeller: str) -> str:
    """Return a request id made from the content: the same file again is the same request."""
    content = [
        (each.item, each.labeller or labeller, each.text, each.reliability, each.comment) for each in batch
    ]
    return "file-" + hashlib.sha256(repr(content).encode()).hexdigest()[:40]


@contextmanager
def _progress_bar(name: str, total: int) -> Iterator[Callable[[int], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, disable=not err.is_terminal, transient=True) as progress:
        task = progress.add_task(name, total=total)
        yield lambda count: progress.advance(task, count)
