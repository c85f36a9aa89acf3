"""``quercus push --labels FILE``: labellers' answers about existing rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from quercus.belief.errors import InvalidInput
from quercus.cli.common import fail, out, print_json, progress_bar
from quercus.client.answers import Statement, merge_reports
from quercus.client.client import Client
from quercus.client.errors import InvalidArgument, NotFound
from quercus.client.places import faults_of, place_of, plain_text
from quercus.client.results import StatementReport
from quercus.files import FileError
from quercus.files.answers import FileAnswer
from quercus.specification.bounds import MAX_STATEMENTS
from quercus.view.words import counted


def state_answers(
    client: Client, model: str, path: Path, answers: Sequence[FileAnswer], labeller: str, *, as_json: bool
) -> None:
    """State the answers of a file and report their number; ``labeller`` is for answers that name none."""
    reports: list[StatementReport] = []
    with progress_bar(path.name, len(answers)) as show_progress:
        sent = 0
        for batch in _answer_batches(answers):
            reports.append(_send_batch(client, model, batch, labeller, path))
            sent += len(batch)
            show_progress(sent, len(answers))
    report = merge_reports(reports)
    items, who = {each.item for each in answers}, {each.labeller or labeller for each in answers}
    if as_json:
        print_json(asdict(report) | {"items": len(items), "labellers": len(who)})
        return
    known = f" ({report.known:,} already there)" if report.known else ""
    of, on = counted(len(who), "labeller"), counted(len(items), "row")
    out.print(f"stated {counted(len(answers), 'answer')} of {of} on {on}{known}")


def _answer_batches(answers: Sequence[FileAnswer]) -> Iterator[list[FileAnswer]]:
    """Yield batches of as many items as a request may hold, with all answers of an item in the same batch."""
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
    statements = []
    for each in batch:
        try:
            who = each.labeller or labeller
            statements.append(Statement(each.item, each.label, who, each.reliability, each.comment))
        except (InvalidArgument, InvalidInput) as error:
            raise FileError(path, plain_text(error), each.line) from error
    # the same file again is the same request
    content = [
        (each.item, each.labeller or labeller, each.text, each.reliability, each.comment) for each in batch
    ]
    digest = hashlib.sha256(repr(content).encode()).hexdigest()
    try:
        return client.state(model, statements, request_id=f"file-{digest[:40]}")
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
        fail(f"{where}{error.message}\n  push the rows first: quercus push {model} FILE --id-column COLUMN")
