"""All rows of a model: searched, filtered, opened, labelled one by one or many at once, exported."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from quercus.belief.errors import InvalidInput
from quercus.client.answers import AnswerFilter, Statement
from quercus.client.errors import QuercusError
from quercus.client.places import plain_text
from quercus.client.plugins import asks_with_forest, has_one_tree
from quercus.client.results import Answer, Instance, Model, Reason
from quercus.client.row_filter import RowFilter
from quercus.console.bulk import MAX_BULK, undo_key
from quercus.console.pages.label import grid_of_classes
from quercus.console.row_parts import RowParts, is_picture, items_of, media_response
from quercus.console.sessions import Session
from quercus.console.web import (
    address_of,
    check_may,
    console_of,
    own_path,
    read_posted,
    render_page,
    session_of,
    text_field,
)
from quercus.files.row_table import row_table
from quercus.files.writing import OutputTable, write_csv, write_jsonl
from quercus.specification.conditions import merge_conditions
from quercus.specification.display import Display
from quercus.specification.values import finite_number
from quercus.view.answers import answer_text, remarks_on
from quercus.view.models import nominal_names
from quercus.view.queries import question_text
from quercus.view.rows import (
    ShownItem,
    likeliest_classes,
    shown_values,
    values_line,
)
from quercus.view.svg.intervals import share_bars
from quercus.view.words import known_text

PAGE_ROWS: Final = 50
SHOWN_VALUES: Final = 5
"""Number of values of a row in the list."""
MAX_EXPORTED: Final = 200_000
"""Maximum number of rows in an export; `quercus rows` has no bound."""
EXPORT_PAGE: Final = 1_000
MAX_ANSWERS: Final = 200
KNOWN: Final = {"": "labelled or not", "no": "not labelled", "yes": "labelled"}
ONLY: Final = {"": "all", "disputed": "disputed", "unexpected": "not as the model guesses"}
ORDER_WORDS: Final = {
    "pushed": "the oldest first",
    "pushed desc": "the newest first",
    "said desc": "last labelled first",
    "doubt desc": "most doubtful first",
    "doubt": "surest first",
    "said": "longest not labelled first",
}
EXPORTS: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}
"""File formats that are sent piece by piece, and their media types."""


class Choice:
    """The filter and order of a page, from the parameters of its URL.

    Attributes
    ----------
    given
        The non-empty parameters.
    wanted, order
        Filter and order of the rows.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        fields = ("text", "class", "labeller", "guess", "doubt", "known", "only", "order")
        self.given = {name: text for name in fields if (text := given.get(name, "").strip())}
        self.order = self.given.get("order", "pushed")
        for name, known in (("known", KNOWN), ("only", ONLY), ("order", ORDER_WORDS)):
            if (text := self.given.get(name, "")) and text not in known:
                raise InvalidInput(name, f"is {text[:40]!r}, must be one of {', '.join(filter(None, known))}")
        self.wanted = RowFilter(
            text=self.given.get("text", ""),
            class_name=self.given.get("class", ""),
            labeller=self.given.get("labeller", ""),
            guess=self.given.get("guess", ""),
            least_doubt=_share(self.given.get("doubt", "")),
            labelled={"yes": True, "no": False}.get(self.given.get("known", "")),
            disputed=self.given.get("only") == "disputed",
            unexpected=self.given.get("only") == "unexpected",
        )

    def address(self, path: str, **more: str) -> str:
        """Return the address of a page with this choice."""
        return address_of(path, self.given | more)


def _share(text: str) -> float | None:
    """Return a typed share, from 0 to 1 or as a percentage; None if there is none."""
    if not text:
        return None
    number = finite_number(text.removesuffix("%").strip().replace(",", "."))
    share = number / 100 if number is not None and text.endswith("%") else number
    if share is None or not 0.0 <= share <= 1.0:
        raise InvalidInput("doubt", f"is {text[:40]!r}, must be a number from 0 to 1, or a percentage")
    return share


async def items(request: Request) -> Response:
    """List the rows that pass the filter, a page at a time."""
    session = session_of(request)
    check_may(session, "InstanceService/ListInstances")
    name = request.path_params["model"]
    model = await session.client.get_model(name)
    page, fault, status = None, "", 200
    try:
        choice = Choice(request.query_params)
        page = await session.client.row_page(
            name, choice.wanted, choice.order, page=request.query_params.get("page", ""), size=PAGE_ROWS
        )
    except (InvalidInput, QuercusError) as error:
        if not isinstance(error, InvalidInput) and not getattr(error, "violations", ()):
            raise
        fault, status, choice = plain_text(error), 400, Choice({})
    rows = () if page is None else page.rows
    pictures = await first_pictures(request, session, model, {row.id: row.values for row in rows})
    here = choice.address(f"/m/{name}/items", page=request.query_params.get("page", ""))
    return render_page(
        request,
        "items.html",
        status,
        model=name,
        tab="items",
        classes=tuple(model.specification.classes),
        given=dict(request.query_params) if fault else choice.given,
        choice=choice,
        fault=fault,
        rows=[
            (
                row,
                likeliest_classes(row, model.specification.classes),
                values_line(row.values, model, SHOWN_VALUES),
                pictures.get(row.id),
                f"/m/{name}/items/row?{urlencode({'id': row.id, 'back': here})}",
            )
            for row in rows
        ],
        total=0 if page is None else page.total,
        next_page="" if page is None else page.next_page,
        is_first=not request.query_params.get("page"),
        may_label=session.may_call("InstanceService/StateEvidence"),
        most=MAX_BULK,
        here=here,
        known=KNOWN,
        only=ONLY,
        orders=ORDER_WORDS,
        flash=session.take_flash(),
        undo=undo_key(session.bulk_done, name),
    )


async def first_pictures(
    request: Request, session: Session, model: Model, values: Mapping[str, Mapping[str, Any]]
) -> dict[str, tuple[ShownItem, str]]:
    """Return the first picture of each row that has one, by id.

    Pushed pictures are fetched if the first row has one, and the caller may see rows.
    """
    displays: dict[str, Display] = dict.fromkeys(values, ())
    first = next(iter(values), None)
    may_see = session.may_call("InstanceService/GetInstance")
    if first is not None and may_see and (await session.client.get_instance(model.name, first)).display:
        whole = await asyncio.gather(*(session.client.get_instance(model.name, each) for each in values))
        displays |= {row.id: row.display for row in whole}
    found: dict[str, tuple[ShownItem, str]] = {}
    for identifier, of in values.items():
        for shown in row_items(request, model, identifier, of, displays[identifier]):
            if is_picture(*shown):
                found.setdefault(identifier, shown)
    return found


def row_items(
    request: Request, model: Model, identifier: str, values: Mapping[str, Any], display: Display
) -> list[tuple[ShownItem, str]]:
    """Return the items shown beside the values of a row, each with its URL."""
    data_url = f"/m/{model.name}/items/beside?{urlencode({'id': identifier})}&item="
    return items_of(identifier, values, display, model, console_of(request).config.media, data_url)


async def row(request: Request) -> Response:
    """Show a row: its values, the evidence about its class, the prediction and its reason, and the answers about it."""
    session = session_of(request)
    check_may(session, "InstanceService/GetInstance")
    name, identifier = request.path_params["model"], request.query_params.get("id", "")
    model = await session.client.get_model(name)
    shown = await session.client.get_instance(name, identifier)
    answers: list[Answer] = []
    if session.may_call("QueryService/StreamAnswers"):
        wanted = AnswerFilter(instances=[identifier])
        found = session.client.answers(name, wanted, limit=MAX_ANSWERS, newest_first=True)
        answers = [each async for each in found]
    guess = await _guess(session, model, shown)
    classes = tuple(model.specification.classes)
    own = [
        each for each in answers if each.labeller == session.labeller and each.state in {"counts", "pending"}
    ]
    return render_page(
        request,
        "item.html",
        model=name,
        tab="items",
        row=shown,
        classes=classes,
        class_grid=grid_of_classes(classes),
        parts=RowParts.of(
            row_items(request, model, identifier, shown.values, shown.display),
            *shown_values(shown.values, model),
            Reason(guess["tests"] if guess else ()),
        ),
        question=question_text(classes),
        known=known_text(classes, shown.contour) if any(share < 1 for share in shown.contour) else "",
        top=likeliest_classes(shown, classes),
        guess=guess,
        answers=answers,
        own=own,
        said=answer_text,
        remarks_on=remarks_on,
        may_label=session.may_call("InstanceService/StateEvidence"),
        back=own_path(request.query_params.get("back") or f"/m/{name}/items"),
        flash=session.take_flash(),
    )


async def _guess(session: Session, model: Model, shown: Instance) -> dict[str, Any] | None:
    """Return the newest tree's prediction for a row, and its reason; None if there is no tree, or it is withheld."""
    if not (model.tree_version and session.may_call("ClassifyService/Classify")):
        return None
    learner = model.specification.learner
    (found,) = await session.client.classify(
        model.name, [dict(shown.values)], want_paths=has_one_tree(learner)
    )
    return {
        "label": found.label,
        "set": found.label_set,
        "share": max(found.theta),
        "bars": share_bars(found.classes, found.theta, found.belief, found.plausibility),
        "tests": tuple(found.path or ()),
        "path": [each.text for each in merge_conditions(found.path or (), nominal_names(model))],
        "of_forest": asks_with_forest(learner),
        "version": found.version,
        "node": found.node,
    }


async def say(request: Request) -> Response:
    """Label a row, or withdraw one's label of it."""
    session = session_of(request)
    check_may(session, "InstanceService/StateEvidence")
    given = await read_posted(request, session)
    name, identifier = request.path_params["model"], text_field(given, "id")
    back = own_path(text_field(given, "back", ""))
    classes = (await session.client.get_model(name)).specification.classes
    try:
        if text_field(given, "act") == "take-back":
            wanted = AnswerFilter(
                labellers=[session.labeller], states=["counts", "pending"], instances=[identifier]
            )
            mine = [each async for each in session.client.answers(name, wanted)]
            for each in mine:
                await session.client.undo_answer(name, each, labeller=session.labeller)
            session.flash = (
                f"{identifier}: your label is taken back; the row may be asked again."
                if mine
                else f"{identifier}: you have no label of it."
            )
        else:
            chosen = [str(each) for each in given.get("class", [])]
            if not chosen or any(each not in classes for each in chosen):
                raise InvalidInput(
                    "class", f"is {', '.join(chosen)[:60] or 'missing'}, must be among {', '.join(classes)}"
                )
            label = chosen[0] if len(chosen) == 1 else chosen
            await session.client.state(name, [Statement(identifier, label)], labeller=session.labeller)
            session.flash = f"{identifier}: {' or '.join(chosen)}."
    except (InvalidInput, QuercusError) as error:
        session.flash = f"Not taken: {plain_text(error)}"
    return RedirectResponse(f"/m/{name}/items/row?{urlencode({'id': identifier, 'back': back})}", 303)


async def beside(request: Request) -> Response:
    """Return a picture or a sound that was pushed beside a row."""
    session = session_of(request)
    shown = await session.client.get_instance(
        request.path_params["model"], request.query_params.get("id", "")
    )
    return media_response(shown.display, request.query_params.get("item", ""))


async def export(request: Request) -> Response:
    """Send the listed rows as a file."""
    session = session_of(request)
    check_may(session, "InstanceService/ListInstances")
    name, form = request.path_params["model"], request.path_params["form"]
    if form not in EXPORTS:
        raise HTTPException(404)
    choice = Choice(request.query_params)
    model = await session.client.get_model(name)
    first = await session.client.row_page(name, choice.wanted, choice.order, size=EXPORT_PAGE)
    if first.total > MAX_EXPORTED:
        raise InvalidInput(
            "rows",
            f"are {first.total:,}, an export has at most {MAX_EXPORTED:,}: narrow the filter, or use quercus rows",
        )

    async def pieces() -> AsyncIterator[str]:
        page = first
        while True:
            table = row_table(page.rows, model.specification.attributes, model.specification.classes)
            yield await asyncio.to_thread(written, table, form, is_first=page is first)
            if not page.next_page:
                return
            page = await session.client.row_page(
                name, choice.wanted, choice.order, page=page.next_page, size=EXPORT_PAGE
            )

    headers = {"Content-Disposition": f'attachment; filename="{name}-items.{form}"'}
    return StreamingResponse(pieces(), media_type=EXPORTS[form], headers=headers)


def written(table: OutputTable, form: str, *, is_first: bool) -> str:
    """Return a table as text; the first piece of a file has the names of the columns."""
    stream = io.StringIO()
    if form == "jsonl":
        write_jsonl(table, stream)
        return stream.getvalue()
    write_csv(table, stream, for_spreadsheets=True, with_header=is_first)
    return stream.getvalue()
