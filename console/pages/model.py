"""The page of a model: its numbers, labelling policy and labellers."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from quercus.client.algorithms import algorithm_text
from quercus.client.reasons import why_it_stopped
from quercus.client.results import LabellingPolicy, Model
from quercus.client.words import ASKED_ARE_HARDEST, bound_text, confidence_text
from quercus.console.draw.accuracy import accuracy_picture, accuracy_text, block_rows
from quercus.console.pages.models import growth_state
from quercus.console.web import number_text, render_page, session_of
from quercus.specification.attributes import Nominal, Numeric

MAX_ATTRIBUTES = 500
MAX_NAMED = 12
GROWTH = {
    "growing": "The tree is learning from new events.",
    "done": "The budget is spent.",
    "asking": "It has queries for labellers.",
    "quiet": "It has no queries now.",
}


async def model(request: Request) -> Response:
    """Show a model."""
    session = session_of(request)
    name = request.path_params["model"]
    shown = await session.client.get_model(name)
    may_list = session.may_call("QueryService/ListLabellers")
    return render_page(
        request,
        "model.html",
        model=name,
        tab="model",
        info=shown,
        state=why_it_stopped(shown).capitalize() or GROWTH[growth_state(shown)],
        numbers=_model_numbers(shown),
        policy=_policy_rows(await session.client.labelling_policy(name)),
        labellers=await session.client.labellers(name) if may_list else None,
        attributes=[
            _attribute_row(each, shown.other_names.get(each.name, 0))
            for each in shown.specification.attributes[:MAX_ATTRIBUTES]
        ],
        accuracy=accuracy_picture(shown.accuracy) if shown.accuracy and shown.accuracy.rows else None,
        accuracy_said=_accuracy_text(shown),
        asked_are_hardest=ASKED_ARE_HARDEST if shown.queries_answered else "",
        confidence=confidence_text(shown.average_confidence) if shown.average_confidence else "",
        accuracy_rows=block_rows(shown.accuracy) if shown.accuracy else (),
        more=max(0, len(shown.specification.attributes) - MAX_ATTRIBUTES),
    )


def _accuracy_text(model: Model) -> str:
    """Return the accuracy in words, or why there is none yet."""
    if model.accuracy and model.accuracy.rows:
        return accuracy_text(model.accuracy)
    if not model.queries_answered:
        return "Nobody answered yet. Each answer is compared with what the model predicted before it."
    return "It is not known yet: the first answers only teach. Later ones are predicted first, and then compared."


def _model_numbers(model: Model) -> list[tuple[str, str]]:
    algorithm = model.specification.algorithm
    learner = algorithm_text(algorithm)
    budget = f"{model.queries_answered:,} of {model.budget:,}" if model.budget else "never asks (budget 0)"
    return [
        ("rows", f"{model.instance_count:,}"),
        ("answers", budget),
        ("refused", f"{model.queries_refused:,}"),
        ("open queries", f"{model.queries_open:,}"),
        ("leased queries", f"{model.queries_leased:,}"),
        ("answers that contradict earlier labels", f"{model.conflicts:,}"),
        ("tree", f"version {model.tree_version:,}" if model.tree_version else "none yet"),
        ("events not in the tree yet", f"{model.lag:,}" + (f" for {model.lag_s:.1f} s" if model.lag else "")),
        *([("growth stopped", model.growth_stopped)] if model.growth_stopped else []),
        ("learner", learner),
        ("query strategy", model.specification.strategy or "the default"),
        ("created", f"{model.created_at:%Y-%m-%d %H:%M} UTC"),
    ]


def _policy_rows(policy: LabellingPolicy) -> list[tuple[str, str]]:
    corrections = {"own": "by their author", "anyone": "by anybody", "nobody": "by nobody"}
    wanted = "1" if policy.answers_per_query == 1 else f"{policy.answers_per_query}, of different labellers"
    return [
        ("answers to a query", wanted),
        ("answers of one labeller", _bound_text(policy.per_labeller)),
        ("answers within an hour", _bound_text(policy.per_hour)),
        ("queries held at once", f"{policy.max_held}"),
        ("answers are corrected", corrections[policy.corrections]),
        (
            "reliability",
            "as stated" if policy.reliability == "declared" else "estimated from agreement",
        ),
    ]


def _bound_text(value: int | None) -> str:
    return "no bound" if value is None else f"at most {value:,}"


def _attribute_row(attribute: Nominal | Numeric, others: int) -> tuple[str, str, str]:
    """Return name and kind of an attribute, and a text about its values; `others`: rows with names beyond its bound."""
    if isinstance(attribute, Nominal):
        shown = ", ".join(attribute.values[:MAX_NAMED])
        more = len(attribute.values) - MAX_NAMED
        shown += f" and {more:,} more" if more > 0 else ""
        return attribute.name, "names", "; ".join(filter(None, [shown, bound_text(attribute, others)]))
    if attribute.edges:
        edges = ", ".join(number_text(edge) for edge in attribute.edges[:MAX_NAMED])
        return (
            attribute.name,
            "number",
            f"cut at {edges}" + (" …" if len(attribute.edges) > MAX_NAMED else ""),
        )
    cuts = attribute.cuts
    return attribute.name, "number", f"split at one of {cuts} cuts" if cuts else f"in {attribute.bins} bins"
