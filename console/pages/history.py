"""A labeller's own answers: filtered, with the values of their rows; one or many can be corrected or taken back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from quercus.belief.errors import InvalidInput
from quercus.client.answers import AnswerFilter
from quercus.client.errors import NotFound
from quercus.client.results import Answer, AnswerState
from quercus.console.bulk import MAX_BULK, undo_key
from quercus.console.pages.items import first_pictures
from quercus.console.web import address_of, render_page, session_of
from quercus.view.answers import answer_text, remarks_on
from quercus.view.rows import values_line

PAGE_ANSWERS: Final = 50
SHOWN_VALUES: Final = 8
"""Number of the row's values shown with an answer."""
STATES: Final[Mapping[str, tuple[str, tuple[AnswerState, ...]]]] = {
    "": ("all", ()),
    "now": ("in force", ("counts", "pending")),
    "past": ("corrected or taken back", ("replaced", "undone")),
}
"""The choices by state: each with its label and the states of its answers."""


class AnswerChoice:
    """The filter of a page, from the parameters of its URL."""

    def __init__(self, given: Mapping[str, str]) -> None:
        fields = ("row", "class", "state")
        self.given = {name: text for name in fields if (text := given.get(name, "").strip())}
        if (state := self.given.get("state", "")) not in STATES:
            raise InvalidInput(
                "state", f"is {state[:40]!r}, must be one of {', '.join(filter(None, STATES))}"
            )

    def wanted(self, labeller: str) -> AnswerFilter:
        """Return the filter of a labeller's answers."""
        return AnswerFilter(
            labellers=[labeller],
            classes=[self.given["class"]] if "class" in self.given else (),
            states=STATES[self.given.get("state", "")][1],
            instances=[self.given["row"]] if "row" in self.given else (),
        )

    def address(self, path: str, **more: str) -> str:
        """Return the address of a page with this choice."""
        return address_of(path, self.given | more)


async def history(request: Request) -> Response:
    """List the answers of the caller, newest first, a page at a time."""
    session = session_of(request)
    name = request.path_params["model"]
    model = await session.client.get_model(name)
    choice, after = AnswerChoice(request.query_params), _number(request.query_params.get("after", ""))
    found = session.client.answers(
        name,
        choice.wanted(session.labeller),
        limit=PAGE_ANSWERS + 1,
        newest_first=True,
        after=after,
        with_values=True,
    )
    try:
        entries = [each async for each in found]
    except NotFound:
        if "row" not in choice.given:
            raise
        entries = []  # no such row
    shown = entries[:PAGE_ANSWERS]
    more = {"after": str(shown[-1].number)} if len(entries) > PAGE_ANSWERS else {}
    path = f"/m/{name}/label/history"
    return render_page(
        request,
        "history.html",
        model=name,
        tab="label",
        answers=shown,
        given=choice.given,
        states={key: words for key, (words, _) in STATES.items()},
        values={each.number: values_line(each.values, model, SHOWN_VALUES) for each in shown},
        pictures=await first_pictures(
            request, session, model, {each.instance: each.values for each in shown}
        ),
        classes=tuple(model.specification.classes),
        can_change=can_change,
        is_chosen=is_chosen,
        said=answer_text,
        remarks_on=remarks_on,
        next_page=choice.address(path, **more) if more else "",
        first_page=choice.address(path) if after else "",
        here=choice.address(path, **({"after": str(after)} if after else {})),
        may_bulk=session.may_call("InstanceService/StateEvidence"),
        most=MAX_BULK,
        flash=session.take_flash(),
        undo=undo_key(session.bulk_done, name),
    )


def _number(text: str) -> int:
    """Return the number of the answer after which the page begins; 0: the first page."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InvalidInput("after", f"is {text[:40]!r}, must be the number of an answer")
    return int(text)


def can_change(answer: Answer) -> bool:
    """Return whether an answer is valid, so that it may be corrected."""
    stands = answer.state in ("counts", "pending") or (answer.kind == "refused" and answer.later is None)
    return answer.query is not None and stands


def is_chosen(answer: Answer, name: str) -> bool:
    """Return whether a class is among the most plausible classes of an answer."""
    if isinstance(answer.label, str):
        return answer.label == name
    if isinstance(answer.label, dict):
        return dict[Any, float](answer.label).get(name, 0) == max(answer.label.values(), default=1)
    return answer.label is not None and name in answer.label
