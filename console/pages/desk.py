"""The page of a model's lead: labellers and their pace, guidelines, rows, export, deletion."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from quercus.belief.errors import InvalidInput
from quercus.client.answers import AnswerFilter
from quercus.client.errors import QuercusError, Unauthenticated
from quercus.client.labels import LabelLike
from quercus.client.places import plain_text
from quercus.client.results import Answer, Model
from quercus.console.pages.create import SUFFIXES, RefusedRows, in_thread, open_file, save_upload
from quercus.console.pages.items import EXPORTS, written
from quercus.console.pages.model import newest_answers
from quercus.console.sessions import Session
from quercus.console.web import (
    check_may,
    read_posted,
    render_page,
    session_of,
    status_of,
    text_field,
    whole_number_field,
)
from quercus.files.answer_table import answer_table
from quercus.files.answers import AnswerColumns, gold_marks
from quercus.files.errors import FileError
from quercus.files.labels import label_of
from quercus.files.pushing import FilePush, FileRows
from quercus.files.schema import Binding
from quercus.files.table import FileTable
from quercus.files.writing import CannotWrite, write_columns
from quercus.specification.bounds import MAX_ANSWERS_PER_QUERY, MAX_POLICY_COUNT
from quercus.specification.guidance import ClassExample, Guidance
from quercus.specification.parameters import BUDGET
from quercus.specification.shares import percent_text
from quercus.specification.values import finite_number
from quercus.specification.written_labels import read_label
from quercus.view.guidance import title_of
from quercus.view.pace import DAY, end_text, labeller_rows, labels_given, pace_of, seconds_an_answer
from quercus.view.words import counted

UPDATE: Final = "ModelService/UpdateModel"
"""The call that shows that a caller leads a model."""
MAX_PACE: Final = 20_000
"""Maximum number of answers from which the daily pace is computed."""
EMPTY_EXAMPLES: Final = 3
"""Number of empty lines for further examples."""
FORMS: Final = {**EXPORTS, "parquet": "application/vnd.apache.parquet"}
MAX_EXPORTED: Final = 200_000
"""Maximum number of answers in a Parquet file, which is written as a whole; `quercus answers` has no bound."""
PIECE: Final = 1_000
LABELS: Final = {
    "budget": "Answers in all",
    "answers_per_query": "Labellers who answer each query",
    "per_hour": "Answers within an hour, at most",
    "per_labeller": "Answers of one labeller, at most",
    "labellers": "Names of those who label",
    "gold_share": "Share of the queries, in percent",
    "title": "Title",
    "text": "Guidelines",
}
"""The label of each field on the page, by its name in a form and in errors."""


async def desk(request: Request) -> Response:
    """Show the desk."""
    session = session_of(request)
    check_may(session, UPDATE)
    return await _page(request, session)


async def desk_action(request: Request) -> Response:
    """Execute the action of one of the forms."""
    session = session_of(request)
    check_may(session, UPDATE)
    name = request.path_params["model"]
    given = await read_posted(request, session)
    action = _ACTIONS.get(request.path_params["act"])
    if action is None:
        raise HTTPException(404)
    try:
        done = await action(session, name, given)
    except Unauthenticated:
        raise
    except (FileError, InvalidInput, QuercusError, ValueError) as error:
        status = status_of(error) if isinstance(error, QuercusError) else 400
        return await _page(request, session, given, _fault_text(error), status, request.path_params["act"])
    session.flash = done
    return RedirectResponse("/" if request.path_params["act"] == "delete" else f"/m/{name}/desk", 303)


def _fault_text(error: Exception) -> str:
    """Return an error that names a field as the page does."""
    field, colon, rest = plain_text(error).partition(": ")
    return f"{LABELS.get(field.replace(' ', '_'), field)}{colon}{rest}"


async def _page(
    request: Request,
    session: Session,
    given: dict[str, Any] | None = None,
    fault: str = "",
    status: int = 200,
    act: str = "",
) -> Response:
    name = request.path_params["model"]
    model = await session.client.get_model(name)
    policy = await session.client.labelling_policy(name)
    now = datetime.now(UTC)
    wanted = AnswerFilter(since=now - DAY)
    newest = session.client.answers(name, wanted, limit=MAX_PACE, newest_first=True)
    paces = pace_of([each async for each in newest], now)
    guidance = model.specification.guidance or Guidance()
    typed = {
        key: str(values[0]) for key, values in (given or {}).items() if values and isinstance(values[0], str)
    }
    return render_page(
        request,
        "desk.html",
        status,
        model=name,
        tab="desk",
        info=model,
        title=title_of(model),
        fault=fault,
        act=act,
        typed=typed,
        flash=session.take_flash(),
        policy=policy,
        people=labeller_rows(await session.client.labellers(name), paces, policy.labellers),
        end=end_text(model, seconds_an_answer(await newest_answers(session, name))),
        guidance=guidance,
        examples=_typed_examples(given) if act == "guidance" and given else _lines_of(guidance),
        labels=LABELS,
        forms=FORMS,
        suffixes=SUFFIXES,
        labels_given=labels_given,
        questions=await session.client.gold_questions(name),
    )


def _lines_of(guidance: Guidance) -> list[tuple[str, str, str]]:
    lines = [(each.class_name, each.instance, each.remark) for each in guidance.examples]
    return [*lines, *[("", "", "")] * EMPTY_EXAMPLES]


def _typed_examples(given: dict[str, Any]) -> list[tuple[str, str, str]]:
    columns = (
        [str(each) for each in given.get(f"example-{part}", [])] for part in ("class", "row", "remark")
    )
    return list(zip(*columns, strict=False))


async def _set_budget(session: Session, name: str, given: dict[str, Any]) -> str:
    """Set the budget."""
    budget = whole_number_field(given, "budget", 0, BUDGET.highest)
    await session.client.update_model(name, budget=budget)
    return f"The budget is set: {counted(budget, 'answer')} in all."


async def _set_policy(session: Session, name: str, given: dict[str, Any]) -> str:
    """Set bounds and assignment."""
    now = await session.client.labelling_policy(name)
    labellers = dict.fromkeys(
        each.strip() for each in re.split(r"[,\n]", text_field(given, "labellers", "")) if each.strip()
    )
    policy = replace(
        now,
        answers_per_query=_number(given, "answers_per_query", 1, MAX_ANSWERS_PER_QUERY) or 1,
        per_labeller=_number(given, "per_labeller", 0, MAX_POLICY_COUNT),
        per_hour=_number(given, "per_hour", 0, MAX_POLICY_COUNT),
        labellers=tuple(labellers),
    )
    changed = [key for key in _POLICY if getattr(policy, key) != getattr(now, key)]
    if changed:
        await session.client.set_labelling_policy(name, policy, changed)
    return "Who labels is set. It applies from the next query on."


_POLICY: Final = ("answers_per_query", "per_labeller", "per_hour", "labellers")


async def _set_guidance(session: Session, name: str, given: dict[str, Any]) -> str:
    """Set title, guidelines and examples; an example without a row is removed."""
    examples = tuple(
        ClassExample(class_name, row.strip(), remark.strip())
        for class_name, row, remark in _typed_examples(given)
        if row.strip()
    )
    text = text_field(given, "text", "").replace("\r\n", "\n").strip()
    guidance = Guidance(text_field(given, "title", "").strip(), text, examples)
    await session.client.update_model(name, guidance=None if guidance == Guidance() else guidance)
    return "The guidelines are saved. Labellers see them with the next query."


async def _add_rows(session: Session, name: str, given: dict[str, Any]) -> str:
    """Push the rows of a file."""
    check_may(session, "InstanceService/PushInstances")
    file = _file_in(given)
    if file is None:
        raise InvalidInput("file", "choose one")
    model = await session.client.get_model(name)
    refused = RefusedRows()
    async with _opened(file) as (table, named):
        rows = _rows_of(
            table, model, text_field(given, "class", "").strip(), text_field(given, "id", "").strip(), named
        )
        pushed = FilePush(rows, refused.take)
        report = await session.client.push(name, **pushed.arguments())
    said = f"Added: {counted(report.stored, 'row')}."
    if report.known:
        said += f" Already there: {report.known:,}."
    if refused.count:
        line, reason = refused.first[0]
        said += f" Refused: {refused.count:,}, the first in line {line}: {reason}"
    return said


def _file_in(given: dict[str, Any]) -> UploadFile | None:
    """Return the file in a form; None if none was chosen."""
    found = next((each for each in given.get("file", []) if isinstance(each, UploadFile)), None)
    return found if found is not None and found.filename else None


@asynccontextmanager
async def _opened(file: UploadFile) -> AsyncIterator[tuple[FileTable, str]]:
    """Yield the table in an uploaded file, and the file's name; errors name the file."""
    with tempfile.TemporaryDirectory(prefix="quercus-console-") as folder:
        path, named = await save_upload(file, folder)
        try:
            yield await in_thread(open_file, path), named
        except (FileError, InvalidInput, ValueError) as error:
            raise InvalidInput("file", str(error).replace(str(path), named)) from None


def _rows_of(table: FileTable, model: Model, class_column: str, id_column: str, named: str) -> FileRows:
    label = None
    if class_column:
        k = table.position(class_column, "class")
        label = partial(label_of, table, k=k, classes=model.specification.classes)
    at = table.position(id_column, "id") if id_column else None
    prefix = f"{named.partition('.')[0]}-" if at is None else ""
    return FileRows(Binding(table, model.specification), label, None, at, prefix, (), first=1)


async def _set_gold(session: Session, name: str, given: dict[str, Any]) -> str:
    """Mark rows as gold questions."""
    check_may(session, "QueryService/MarkGold")
    classes = (await session.client.get_model(name)).specification.classes
    labels: dict[str, LabelLike] = {
        str(row): read_label(text_field(given, "label", ""), classes) for row in given.get("row", [])
    }
    for number, line in enumerate(text_field(given, "marks", "").splitlines(), 1):
        if line.strip():
            row, label = _mark_in(line, number, classes)
            labels[row] = label
    if (file := _file_in(given)) is not None:
        async with _opened(file) as (table, _):
            item, answer = (text_field(given, key, "").strip() or None for key in ("item", "answer"))
            labels |= await in_thread(gold_marks, table, classes, AnswerColumns(item, None, answer))
    if not labels:
        raise InvalidInput("rows", "name one, with its class, or choose a file of them")
    who = "" if session.caller.needs_token else session.labeller
    stored = (await session.client.mark_gold(name, labels, labeller=who)).stored
    return f"{counted(stored, 'row')} marked."


async def _unset_gold(session: Session, name: str, given: dict[str, Any]) -> str:
    """Remove the marks of gold questions."""
    check_may(session, "QueryService/MarkGold")
    removed = [str(each) for each in given.get("unmark", [])]
    if not removed:
        raise InvalidInput("rows", "check those whose marks to take back")
    who = "" if session.caller.needs_token else session.labeller
    await session.client.unmark_gold(name, removed, labeller=who)
    return f"{counted(len(removed), 'row')} unmarked."


async def _set_gold_share(session: Session, name: str, given: dict[str, Any]) -> str:
    """Set the share of gold questions among the queries."""
    share = _percentage(given, "gold_share")
    policy = await session.client.labelling_policy(name)
    await session.client.set_labelling_policy(name, replace(policy, gold_share=share), ["gold_share"])
    return f"{percent_text(share)} of the queries are gold questions from now on."


def _mark_in(line: str, number: int, classes: Sequence[str]) -> tuple[str, LabelLike]:
    """Return the row and the label in a line; the last comma separates them."""
    row, _, label = line.rpartition("\t" if "\t" in line else ",")
    if not (row.strip() and label.strip()):
        raise InvalidInput(f"line {number}", f"is {line.strip()[:60]!r}, must be a row, a comma and a class")
    try:
        return row.strip(), read_label(label.strip(), classes)
    except ValueError as error:
        raise InvalidInput(f"line {number}", str(error)) from None


async def _delete_model(session: Session, name: str, given: dict[str, Any]) -> str:
    """Delete the model, if its name was typed."""
    check_may(session, "ModelService/DeleteModel")
    if text_field(given, "typed", "") != name:
        raise InvalidInput("name", f"type {name} to delete it: the typed name is different")
    await session.client.delete_model(name)
    return f"The model {name} is deleted."


_ACTIONS: Final = {
    "budget": _set_budget,
    "policy": _set_policy,
    "guidance": _set_guidance,
    "rows": _add_rows,
    "gold": _set_gold,
    "gold-back": _unset_gold,
    "gold-share": _set_gold_share,
    "delete": _delete_model,
}


async def answers(request: Request) -> Response:
    """Send all answers as a file."""
    session = session_of(request)
    check_may(session, "QueryService/StreamAnswers")
    name, form = request.path_params["model"], request.path_params["form"]
    if form not in FORMS:
        raise HTTPException(404)
    model = await session.client.get_model(name)
    headers = {"Content-Disposition": f'attachment; filename="{model.name}-answers.{form}"'}
    if form == "parquet":
        found = [each async for each in session.client.answers(name, limit=MAX_EXPORTED + 1)]
        if len(found) > MAX_EXPORTED:
            raise InvalidInput(
                "answers", f"are more than {MAX_EXPORTED:,}: use quercus answers {name} -o FILE.parquet"
            )
        with tempfile.TemporaryDirectory(prefix="quercus-console-") as folder:
            path = Path(folder) / "answers.parquet"
            try:
                await asyncio.to_thread(write_columns, answer_table(found), path, "parquet")
            except CannotWrite as error:
                raise HTTPException(409, f"{error}") from None
            return Response(path.read_bytes(), media_type=FORMS[form], headers=headers)

    async def pieces() -> AsyncIterator[str]:
        part: list[Answer] = []
        is_first = True
        async for each in session.client.answers(name):
            part.append(each)
            if len(part) == PIECE:
                yield await asyncio.to_thread(written, answer_table(part), form, is_first=is_first)
                part, is_first = [], False
        if part or is_first:
            yield await asyncio.to_thread(written, answer_table(part), form, is_first=is_first)

    return StreamingResponse(pieces(), media_type=FORMS[form], headers=headers)


def _percentage(given: dict[str, Any], name: str) -> float:
    """Return a share given in percent in a form; an empty field is 0."""
    text = text_field(given, name, "").strip().rstrip("%").strip().replace(",", ".")
    share = finite_number(text or "0")
    if share is None or not 0.0 <= share <= 100.0:
        raise InvalidInput(
            name, f"is {text_field(given, name, '')[:40]!r}, must be a percentage from 0 to 100"
        )
    return share / 100


def _number(given: dict[str, Any], name: str, lowest: int, highest: int) -> int | None:
    """Return the whole number in a field that may be empty; None for an empty one."""
    is_given = text_field(given, name, "").strip()
    return whole_number_field(given, name, lowest, highest) if is_given else None
