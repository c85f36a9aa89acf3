"""The labelling page: the queries of a labeller, and the labeller's actions on them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from quercus.belief.errors import InvalidInput, shown
from quercus.client.answers import AnswerFilter
from quercus.client.errors import QuercusError
from quercus.client.filters import ANY
from quercus.client.guess import guess_of, withholds_guess
from quercus.client.keys import COMMANDS, GRADES, KEY_RULE, UNSEEN_S, Grade, LabellingKeys, labelling_keys
from quercus.client.places import plain_text
from quercus.client.results import Answer, AnswerReport, Model, Query
from quercus.client.shown import shown_text
from quercus.console.labeller_queue import LABELLING_ACTIONS, LabellerAction, LabellerQueue, label_of
from quercus.console.row_parts import RowParts, item_address, media_response
from quercus.console.sessions import Session
from quercus.console.web import (
    console_of,
    read_posted,
    render_fragment,
    render_page,
    session_of,
    text_field,
    waiting,
)
from quercus.specification.attributes import is_finite_number
from quercus.specification.bounds import MAX_COMMENT_CHARACTERS
from quercus.specification.shares import percent_text
from quercus.specification.values import finite_number
from quercus.view.answers import answer_text
from quercus.view.guidance import by_class, example_values, paragraphs_of
from quercus.view.models import progress_text
from quercus.view.queries import describe_query, idle_text, question_text
from quercus.view.rows import value_text
from quercus.view.svg.intervals import interval_bars
from quercus.view.words import TERMS, is_vacuous

MAX_WAIT_S = 20.0
MAX_HAVE = 300
MAX_PAGE_NAME = 64
MOST_AHEAD = 10
"""Number of queries that a page holds in advance, with their pictures, in case the server or the network is away."""
LEFT_TO_OTHERS = 4
"""A page takes at most one in this many open queries in advance."""
MAX_MODELS = 20
LAST_ANSWERS = 10
"""Number of the labeller's answers that the page lists."""


def queue_of(request: Request, session: Session) -> LabellerQueue:
    """Return the session's queue for the model in the path."""
    model = request.path_params["model"]
    if model not in session.queues:
        if len(session.queues) >= MAX_MODELS:
            raise HTTPException(429, f"one session labels at most {MAX_MODELS} models; sign in again")
        labeller = "" if session.caller.needs_token else session.labeller
        lease_s = console_of(request).config.lease_s
        session.queues[model] = LabellerQueue(session.client, model, labeller, lease_s)
    return session.queues[model]


async def model_of(request: Request, session: Session) -> Model | None:
    """Return the model in the path; None for any model."""
    name = request.path_params["model"]
    return None if name == ANY else await session.client.get_model(name)


async def label(request: Request) -> Response:
    """Show the current query, with forms that work without scripts too."""
    session = session_of(request)
    model = await model_of(request, session)
    queue = queue_of(request, session)
    query = await queue.first_query()
    keys = labelling_keys(() if model is None else tuple(model.specification.classes))
    return render_page(
        request,
        "label.html",
        model=request.path_params["model"],
        tab="label",
        article="" if query is None else await query_article(request, session, query, model),
        idle=idle_text(queue.idle_reason, request.path_params["model"]),
        progress=progress(model),
        commands=keys.commands,
        commands_json=_commands_json(keys),
        explained=[each for each in COMMANDS if each.name != "neighbours"],  # this page may have to hide them
        key_rule=KEY_RULE,
        terms=TERMS,
        unseen_s=UNSEEN_S,
        config=console_of(request).config,
        most_ahead=MOST_AHEAD,
        strict=request.query_params.get("order") == "strict",
        said_before=await _last_answers(session, model),
        class_names=() if model is None else tuple(model.specification.classes),
        answer_text=answer_text,
        flash=session.take_flash(),
    )


async def _last_answers(session: Session, model: Model | None) -> list[Answer]:
    """Return the newest answers of the labeller, newest first."""
    if model is None:
        return []
    wanted = AnswerFilter(labellers=[session.labeller])
    newest = session.client.answers(model.name, wanted, limit=LAST_ANSWERS, newest_first=True)
    return [each async for each in newest if each.later is None and each.kind != "marked"]


async def query_article(request: Request, session: Session, query: Query, model: Model | None) -> str:
    """Return the HTML of a query."""
    of = model or await session.client.get_model(query.model)
    keys, shown = labelling_keys(query.classes), describe_query(query, of)
    data_url = f"/m/{request.path_params['model']}/label/beside/{query.model}/{query.number}/"
    media = console_of(request).config.media
    items = [item_address(item, media, data_url) for item in (*shown.curves, *shown.beside)]
    guess = guess_of(query, of)
    return render_fragment(
        "query.html",
        query=query,
        base=f"/m/{request.path_params['model']}/label",
        form_token=session.form_token,
        classes=list(zip(keys.classes, keys.names, strict=True)),
        class_grid=grid_of_classes(keys.names),
        grades=GRADES,
        question=question_text(query.classes),
        guess=None if guess is None else (query.classes[guess[0]], percent_text(guess[1])),
        may_guess=not withholds_guess(of),
        about={each.name: each for each in COMMANDS},
        commands=keys.commands,
        commands_json=_commands_json(keys),
        uid=of.uid,
        shown=shown,
        known="" if is_vacuous(query.contour) else shown.known,
        parts=RowParts.of(items, shown.groups, shown.more, query.reason),
        rivals=interval_bars(shown.rivals),
        may_compare=_may_compare(session, of),
        guided=of.specification.guidance is not None,
        screen=shown_text(query, of),
        is_any=request.path_params["model"] == ANY,
    )


def grid_of_classes(names: Sequence[str]) -> str:
    """Return the number and the width of the columns of class buttons, as CSS classes.

    Examples
    --------
    >>> grid_of_classes(["edible", "poisonous"]), grid_of_classes([chr(k) for k in range(65, 91)])
    ('one medium', 'three tiny')
    """
    longest = max(len(name) for name in names)
    columns = "one" if len(names) <= 8 else "two" if len(names) <= 16 or longest > 5 else "three"
    width = (
        "tiny"
        if longest == 1 and all(map(str.isascii, names))
        else "short"
        if longest <= 4
        else "medium"
        if longest <= 12
        else "long"
    )
    return f"{columns} {width}"


def _commands_json(keys: LabellingKeys) -> str:
    """Return the keys of the commands for scripts."""
    return json.dumps(dict(keys.commands), ensure_ascii=False)


def _may_compare(session: Session, model: Model) -> bool:
    """Return whether a labeller may see similar rows of known class."""
    presentation = model.specification.presentation
    return session.may_call("QueryService/ListNeighbours") and (
        presentation is None or "neighbours" not in presentation.withheld
    )


async def neighbours(request: Request) -> Response:
    """Show the rows of known class that are most similar to the row of a held query."""
    session = session_of(request)
    query = _held_query(request, session)
    similar = await session.client.neighbours(query)
    rows = [
        (
            each,
            [
                (name, value_text(each.values.get(name)), value_text(query.values.get(name)))
                for name in each.differing
            ],
        )
        for each in similar
    ]
    return HTMLResponse(render_fragment("neighbours.html", rows=rows, classes=query.classes))


async def guidelines(request: Request) -> Response:
    """Show the guidelines of a model, and its examples."""
    session = session_of(request)
    model = await session.client.get_model(request.path_params["of"])
    guidance = model.specification.guidance
    examples = await session.client.examples(model.name) if guidance is not None else ()
    return HTMLResponse(
        render_fragment(
            "guidelines.html",
            paragraphs=paragraphs_of("" if guidance is None else guidance.text),
            examples=by_class(examples, model.specification.classes),
            values_of=lambda each: example_values(each, model),
            classes=model.specification.classes,
        )
    )


async def media_item(request: Request) -> Response:
    """Return a picture or a sound that was pushed beside the row of a query that is held."""
    session = session_of(request)
    return media_response(_held_query(request, session).display, str(request.path_params["item"]))


def _held_query(request: Request, session: Session) -> Query:
    name = f"models/{request.path_params['of']}/queries/{request.path_params['number']}"
    query = queue_of(request, session).find_held(name)
    if query is None:
        raise HTTPException(404, "the query is not held any more")
    return query


def progress(model: Model | None) -> dict[str, int | str] | None:
    """Return the number of answers, the budget, and both in words."""
    if model is None:
        return None
    return {"answered": model.queries_answered, "budget": model.budget, "text": progress_text(model)}


async def next_query(request: Request) -> Response:
    """Wait for a query that the page does not have yet, and return it."""
    session = session_of(request)
    given = await read_posted(request, session, scripted=True)
    queue, model = queue_of(request, session), await model_of(request, session)
    have, wait_s, page = _check_names(given, "have"), _wait_s(given), _page_of(given)
    with waiting(session):
        queries = await queue.next_queries(page, have, wait_s, _count(given, model))
    return await _query_response(request, session, queue, queries)


async def newer_tree(request: Request) -> Response:
    """Report whether a newer tree may have selected another query than the unseen one."""
    session = session_of(request)
    given = await read_posted(request, session, scripted=True)
    with waiting(session):
        newer = await queue_of(request, session).has_newer_tree(_wait_s(given))
    return JSONResponse({"newer": newer})


async def exchange(request: Request) -> Response:
    """Exchange an unseen query for the first query of the newest tree, and return that."""
    session = session_of(request)
    given = await read_posted(request, session, scripted=True)
    queue = queue_of(request, session)
    queries = await queue.exchange_unseen(_page_of(given), _check_names(given, "unseen"))
    return await _query_response(request, session, queue, queries)


async def leave(request: Request) -> Response:
    """Record that a page was closed: its queries are for the next one."""
    session = session_of(request)
    given = await read_posted(request, session, scripted=True)
    queue_of(request, session).leave(_page_of(given), text_field(given, "shown"))
    return JSONResponse({})


async def _query_response(
    request: Request, session: Session, queue: LabellerQueue, queries: Sequence[Query]
) -> Response:
    model = await model_of(request, session)
    articles = [
        {"name": query.name, "html": await query_article(request, session, query, model)} for query in queries
    ]
    content: dict[str, Any] = {"progress": progress(model), "queries": articles}
    if not articles:
        content |= {
            "idle": queue.idle_reason,
            "why": idle_text(queue.idle_reason, request.path_params["model"]),
        }
    return JSONResponse(content)


async def heartbeat(request: Request) -> Response:
    """Extend the leases of a page, and return the queries that it lost, perhaps to another page of the labeller."""
    session = session_of(request)
    given = await read_posted(request, session, scripted=True)
    queue = queue_of(request, session)
    elsewhere = queue.claim(_page_of(given), _check_names(given, "have"))
    lost = [] if given.get("claim") is True else await queue.extend_leases()
    return JSONResponse({"lost": lost, "elsewhere": elsewhere})


async def labelling_action(request: Request) -> Response:
    """Answer, refuse, skip, postpone, release, correct or undo."""
    session = session_of(request)
    given = await read_posted(request, session, scripted=True)
    what = request.path_params["act"]
    if what not in LABELLING_ACTIONS:
        raise HTTPException(404)
    is_form = "form_token" in given
    name = text_field(given, "query")
    model_name = name.removeprefix("models/").partition("/")[0]
    if not name.startswith("models/") or request.path_params["model"] not in (ANY, model_name):
        raise InvalidInput(
            "query", f"is {name[:80]!r}, must be one of the model {request.path_params['model']}"
        )
    model = await session.client.get_model(model_name)
    if "model_uid" in given and text_field(given, "model_uid") != model.uid:
        raise HTTPException(409, f"{model_name} is another model now: the one of this query was deleted.")
    classes = tuple(model.specification.classes)
    action = LabellerAction(
        what,
        name,
        text_field(given, "lease_token"),
        _label_of_form(given, classes) if what in ("answer", "correct") else None,
        _comment_field(given),
        _took_s(given),
        text_field(given, "shown", ""),
    )
    queue = queue_of(request, session)
    if not is_form:
        return JSONResponse(_report_json(await queue.submit_action(action, classes)))
    if queue.is_unseen(action.lease_token):  # scripts would have prevented this
        session.flash = "Not taken: this query appeared only with your second click. Look at it, then answer."
    else:
        try:
            session.flash = _outcome_sentence(action, await queue.submit_action(action, classes))
        except QuercusError as error:
            session.flash = f"Not taken: {plain_text(error)}"
    target = "/history" if text_field(given, "back", "") == "history" else ""
    return RedirectResponse(f"/m/{request.path_params['model']}/label{target}", 303)


def _report_json(report: AnswerReport | None) -> dict[str, Any]:
    if report is None:
        return {}
    return {"conflict": report.conflict, "wants_more": report.wants_more}


def _outcome_sentence(action: LabellerAction, report: AnswerReport | None) -> str:
    number = action.query.rpartition("/")[2]
    words = {
        "answer": "Your answer is kept.",
        "refuse": "Nobody can tell: the row is not asked again.",
        "skip": "You cannot tell: others are asked.",
        "postpone": "Postponed: it comes back in ten minutes.",
        "release": "Given back.",
        "correct": "Corrected; the old answer stays in the history.",
        "undo": "Taken back; the row may be asked again.",
    }
    more = (
        " It contradicts the earlier evidence, and replaces it."
        if report is not None and report.conflict
        else ""
    )
    return f"Query {number}: {words[action.act]}{more}"


def _check_names(given: dict[str, Any], field: str) -> list[str]:
    names = given.get(field, [])
    if (
        not isinstance(names, list)
        or len(names) > MAX_HAVE
        or not all(isinstance(each, str) for each in names)
    ):
        raise InvalidInput(field, f"must be a list of at most {MAX_HAVE} names")
    return list(dict.fromkeys(names))


def _page_of(given: dict[str, Any]) -> str:
    """Return the page's id; empty if it has none."""
    page = given.get("page", "")
    if not isinstance(page, str) or len(page) > MAX_PAGE_NAME:
        raise InvalidInput("page", f"must be a text of at most {MAX_PAGE_NAME} characters")
    return page


def _count(given: dict[str, Any], model: Model | None) -> int:
    """Return the number of queries that a page may have now: not most of those that others could answer."""
    count = given.get("count", 1)
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_AHEAD:
        raise InvalidInput("count", f"must lie in [1, {MOST_AHEAD}]")
    return 1 if model is None else min(count, max(1, model.queries_open // LEFT_TO_OTHERS))


def _wait_s(given: dict[str, Any]) -> float:
    value = given.get("wait_s", 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_WAIT_S:
        raise InvalidInput("wait_s", f"must lie in [0, {MAX_WAIT_S:g}]")
    return float(value)


def _comment_field(given: dict[str, Any]) -> str:
    comment = text_field(given, "comment", "")
    if len(comment) > MAX_COMMENT_CHARACTERS:
        raise InvalidInput(
            "comment", f"has {len(comment):,} characters, at most {MAX_COMMENT_CHARACTERS:,} are kept"
        )
    return comment


def _took_s(given: dict[str, Any]) -> float | None:
    value = given.get("took_s")
    if value is None or isinstance(value, list):
        return None
    if not is_finite_number(value) or value < 0:
        raise InvalidInput("took_s", "must be a number of seconds, at least 0")
    return float(value)


def _label_of_form(given: dict[str, Any], classes: tuple[str, ...]) -> Any:
    """Return the label of a script (``label``) or of a form (``class``, ``several``, ``plausibility-N``)."""
    if "label" in given:
        return label_of(given["label"], classes)
    if "class" in given:
        name, grade = label_of(text_field(given, "class"), classes), _grade_field(given)
        return grade.label(str(name), classes)
    if "several" in given:
        return label_of(given["several"], classes)
    return label_of({name: _plausibility(given, k, name) for k, name in enumerate(classes)}, classes)


def _grade_field(given: dict[str, Any]) -> Grade:
    """Return the grade of certainty in a form; sure by default."""
    name = text_field(given, "grade", GRADES[0].name)
    for grade in GRADES:
        if grade.name == name:
            return grade
    raise InvalidInput("grade", f"is {name[:40]!r}, must be one of {', '.join(each.name for each in GRADES)}")


def _plausibility(given: dict[str, Any], k: int, name: str) -> float:
    """Return the plausibility of class ``k`` in a form; an empty field is 1, as its placeholder says."""
    text = text_field(given, f"plausibility-{k}").strip() or "1"
    value = finite_number(text.replace(",", "."))
    if value is None:
        raise InvalidInput(
            "label", f"the plausibility of {shown(name)} is {text[:40]!r}, must be a number from 0 to 1"
        )
    return value
