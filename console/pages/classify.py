"""The page that classifies a typed row; values may be uncertain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from quercus.belief.errors import InvalidInput
from quercus.client.classifications import Classification
from quercus.client.errors import InvalidArgument
from quercus.client.places import plain_text
from quercus.client.plugins import asks_with_forest, has_one_tree
from quercus.client.unseen import UnseenNames
from quercus.client.values import Between
from quercus.console.web import check_may, read_posted, render_page, session_of
from quercus.specification.attributes import OTHER_NAMES, Attribute, Nominal
from quercus.specification.conditions import merge_conditions
from quercus.specification.presentation import AttributeView, Presentation
from quercus.specification.values import Spellings, number_of
from quercus.view.models import nominal_names
from quercus.view.predictions import coverage_text, doubt_text, share_text
from quercus.view.svg.intervals import share_bars

MAX_ATTRIBUTES = 300
COVERAGES = ("0.8", "0.9", "0.95", "0.99")
"""The coverages that the form offers."""
DEFAULT_COVERAGE = "0.9"
MAX_BOXES = 12
"""A nominal attribute with more values gets a text field."""


async def classify(request: Request) -> Response:
    """Show the form, with the class of the typed values."""
    session = session_of(request)
    check_may(session, "ClassifyService/Classify")
    name = request.path_params["model"]
    model = await session.client.get_model(name)
    attributes = tuple(model.specification.attributes)
    presentation = model.specification.presentation or Presentation()
    if len(attributes) > MAX_ATTRIBUTES:
        reason = (
            f"are {len(attributes):,}, a form has at most {MAX_ATTRIBUTES}; use quercus classify {name} FILE"
        )
        raise InvalidInput("attributes", reason)
    given: dict[str, Any] = {}
    answer, fault, unseen = None, "", list[str]()
    if request.method == "POST":
        given = await read_posted(request, session)
        try:
            row = {each.name: value_of(each, k, given) for k, each in enumerate(attributes)}
            coverage = number_of(str(given.get("coverage", [DEFAULT_COVERAGE])[0]))
            found = await session.client.classify(
                name,
                [row],
                want_paths=has_one_tree(model.specification.learner),
                coverage=coverage or float(DEFAULT_COVERAGE),
                want_doubt=True,
            )
            answer = _shown_prediction(found[0], nominal_names(model))
            sets = found.prediction_sets
            answer["promise"] = coverage_text(sets) if sets else ""
            answer["promised"] = share_text(sets.coverage) if sets else ""
            unseen = [_unseen_text(each, presentation) for each in found.unseen]
        except (InvalidArgument, InvalidInput, ValueError) as error:
            fault = plain_text(error)
    return render_page(
        request,
        "classify.html",
        400 if fault else 200,
        model=name,
        tab="classify",
        has_tree=bool(model.tree_version),
        fields=[
            _form_field(each, presentation.view_of(each.name), k, given) for k, each in enumerate(attributes)
        ],
        coverages=[(each, share_text(float(each))) for each in COVERAGES],
        coverage=str(given.get("coverage", [DEFAULT_COVERAGE])[0]),
        answer=answer,
        unseen=unseen,
        beside=asks_with_forest(model.specification.learner),
        fault=fault,
    )


def _unseen_text(unseen: UnseenNames, presentation: Presentation) -> str:
    """Return a sentence about the names of one attribute of the row that the model has never seen."""
    title = presentation.view_of(unseen.attribute).title or unseen.attribute
    names = ", ".join(unseen.examples)
    if unseen.rows_beyond:
        return f"{title}: the model does not keep the name {names}; it counts as {OTHER_NAMES}."
    return f"{title}: the model has never seen the name {names}."


def value_of(attribute: Attribute, position: int, given: Mapping[str, Any]) -> Any:
    """Return the value of an attribute in a form; None if unknown.

    Examples
    --------
    >>> from quercus.specification.attributes import Numeric
    >>> value_of(Numeric("ash"), 0, {"low-0": ["2"], "high-0": ["3"]})
    Between(low=2.0, high=3.0)
    >>> value_of(Nominal("wind", ["weak", "strong"]), 1, {"value-1": ["weak"]})
    'weak'
    >>> value_of(Numeric("at"), 0, {"low-0": ["1970-01-02 00:00"], "high-0": [""]})
    86400.0
    """
    if isinstance(attribute, Nominal):
        known = Spellings(attribute.values)
        typed = map(str, given.get(f"value-{position}", []))
        parts = (
            text for each in typed for text in ([each] if known.of(each) is not None else each.split("|"))
        )
        names = [name for text in parts if (name := text.strip())]
        return None if not names else names[0] if len(names) == 1 else frozenset(names)
    low, high = (
        _parse_number(attribute.name, given.get(f"{end}-{position}", [""])) for end in ("low", "high")
    )
    if low is None or high is None:
        return low if high is None else high
    if low > high:
        raise InvalidInput(attribute.name, f"is from {low:g} to {high:g}, must be in rising order")
    return low if low == high else Between(low, high)


def _parse_number(name: str, texts: Any) -> float | None:
    text = str(texts[0]) if texts else ""
    try:
        return number_of(text)
    except ValueError:
        reason = f"is {text.strip()[:40]!r}, must be a number or a moment, or empty if it is unknown"
        raise InvalidInput(name, reason) from None


def _form_field(
    attribute: Attribute, view: AttributeView, position: int, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the form field of an attribute."""
    named = {"title": view.title or attribute.name, "unit": view.unit, "k": position}
    if isinstance(attribute, Nominal):
        chosen = [str(each) for each in given.get(f"value-{position}", [])]
        kind = "boxes" if len(attribute.values) <= MAX_BOXES else "text"
        return named | {"kind": kind, "options": attribute.values[:MAX_BOXES], "chosen": chosen}
    limits = {end: str(given.get(f"{end}-{position}", [""])[0]) for end in ("low", "high")}
    return named | {"kind": "number"} | limits


def _shown_prediction(prediction: Classification, nominal: frozenset[str]) -> dict[str, Any]:
    """Return the prediction for a row as the page's context."""
    return {
        "label": prediction.label,
        "classes": prediction.classes,
        "set": prediction.label_set,
        "covering": prediction.prediction_set or (),
        "doubt": ""
        if prediction.overlap is None or prediction.ignorance is None
        else doubt_text(prediction.overlap, prediction.ignorance),
        "bars": share_bars(prediction.classes, prediction.theta, prediction.belief, prediction.plausibility),
        "path": [each.text for each in merge_conditions(prediction.path or (), nominal)],
        "version": prediction.version,
        "node": prediction.node,
    }
