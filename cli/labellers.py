"""``quercus labellers``, ``policy`` and ``history``: labellers, their policy, and the history of queries."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

import typer
import typer.core

from quercus.cli.common import (
    DEFAULT_SERVER,
    JsonOption,
    ModelArgument,
    ServerOption,
    out,
    print_json_line,
    report,
)
from quercus.cli.completion import complete_labeller, complete_model
from quercus.client.client import Client
from quercus.client.errors import FailedPrecondition
from quercus.specification.bounds import MAX_ANSWERS_PER_QUERY
from quercus.view.models import policy_rows
from quercus.view.terminal.models import labellers_table, pairs_table
from quercus.view.words import counted


class _DefaultToShow(typer.core.TyperGroup):
    """Runs ``show`` by default; ``labellers show MODEL`` is for a model with the name of a subcommand."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        helps = {"--help", "-h"}
        if args and args[0] not in self.commands and args[0] not in helps:
            args = ["show", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_DefaultToShow, no_args_is_help=True, help="Show statistics of labellers, or end the leases of one."
)


@app.command("evict")
def evict(
    name: Annotated[
        str,
        typer.Argument(
            metavar="LABELLER",
            help="Labeller whose leases end.",
            show_default=False,
            autocompletion=complete_labeller,
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="End only leases of this model (default: of all models).",
            autocompletion=complete_model,
        ),
    ] = None,
    comment: Annotated[str, typer.Option("--comment", help="Reason, which is stored in the history.")] = "",
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """End all leases of a labeller: its queries are open again, and its answers to them are refused.

    It may lease again. To prevent this, use quercus tokens revoke, which also gives back the token's queries.

    Try:

        quercus labellers evict ann
        quercus labellers evict ann --model wine --comment "on holiday"
    """
    ended = 0
    with Client(server) as client:
        for each in [model] if model is not None else [known.name for known in client.models()]:
            for query in client.list_queries(each, ["leased"]):
                if query.labeller == name:
                    with suppress(FailedPrecondition):  # it was answered or given back meanwhile
                        client.end_lease(query.name, name, comment=comment)
                        ended += 1
    text = f"ended {counted(ended, 'lease')} of {name}"
    report(as_json, {"labeller": name, "ended": ended}, text)


@app.command("show")
def labellers(
    model: ModelArgument, server: ServerOption = DEFAULT_SERVER, as_json: JsonOption = False
) -> None:
    """Show statistics of the labellers of a model.

    Agreement: how often this labeller and another gave a row the same class (quercus disputes --agreement).
    Reliability: estimated from the agreement (Dawid and Skene 1979). Both need rows that several labellers answered:
    quercus policy. Gold: number of gold questions answered correctly, and in all: quercus gold.

    Try:

        quercus labellers wine
        quercus labellers wine --json
    """
    with Client(server) as client:
        statistics = client.labellers(model)
    none = f"nobody has labelled {model} yet; begin with: quercus label {model}"
    shown = labellers_table(statistics) if statistics else none
    report(as_json, [asdict(each) for each in statistics], shown)


def policy(
    *,
    model: ModelArgument,
    answers: Annotated[
        int | None,
        typer.Option(
            "--answers", min=1, max=MAX_ANSWERS_PER_QUERY, help="Number of labellers that answer each query."
        ),
    ] = None,
    max_conflict: Annotated[
        float | None,
        typer.Option(
            "--max-conflict",
            min=0,
            max=1,
            help="Conflict of the answers above which one more labeller gets the query.",
        ),
    ] = None,
    reliability: Annotated[
        Literal["declared", "estimated"] | None,
        typer.Option(
            "--reliability",
            help="Reliability of answers that give none: declared (1), or estimated from agreement.",
        ),
    ] = None,
    per_labeller: Annotated[
        int | None,
        typer.Option("--per-labeller", min=0, help="Maximum number of answers of one labeller; 0: no bound."),
    ] = None,
    per_hour: Annotated[
        int | None,
        typer.Option("--per-hour", min=0, help="Maximum number of answers within an hour; 0: no bound."),
    ] = None,
    max_held: Annotated[
        int | None,
        typer.Option(
            "--max-held", min=1, max=100, help="Maximum number of queries that one labeller holds at once."
        ),
    ] = None,
    corrections: Annotated[
        Literal["own", "anyone", "nobody"] | None,
        typer.Option("--corrections", help="Labellers who may correct an answer."),
    ] = None,
    combination: Annotated[
        Literal["dempster", "cautious"] | None,
        typer.Option(
            "--combination",
            help="How answers are combined: dempster, or cautious where labellers may have conferred.",
        ),
    ] = None,
    tags: Annotated[
        str | None,
        typer.Option(
            "--tags", metavar="A,B", help="Tags of the model, for quercus label - --tag A; '' removes all."
        ),
    ] = None,
    labellers: Annotated[
        str | None,
        typer.Option(
            "--labellers", metavar="A,B", help="Labellers who may label the model; '' lets everybody."
        ),
    ] = None,
    gold_share: Annotated[
        float | None,
        typer.Option(
            "--gold-share", min=0, max=1, help="Share of the queries that are gold questions (quercus gold)."
        ),
    ] = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Show or change the labelling policy of a model.

    Dempster's rule combines the answers of several labellers about a row, each discounted by its reliability. The
    cautious rule counts evidence that several answers share only once, as if the labellers had conferred. Answers and
    held queries together never exceed a bound.

    Try:

        quercus policy wine
        quercus policy wine --answers 3 --reliability estimated
        quercus policy wine --per-hour 200 --tags urgent
        quercus policy wine --labellers ann,bob
    """
    given: dict[str, Any] = {
        "answers_per_query": answers,
        "max_conflict": max_conflict,
        "reliability": reliability,
        "per_labeller": per_labeller,
        "per_hour": per_hour,
        "max_held": max_held,
        "corrections": corrections,
        "combination": combination,
        "tags": None if tags is None else tuple(name.strip() for name in tags.split(",") if name.strip()),
        "labellers": None
        if labellers is None
        else tuple(name.strip() for name in labellers.split(",") if name.strip()),
        "gold_share": gold_share,
    }
    changes = {key: value for key, value in given.items() if value is not None}
    for key in {"per_labeller", "per_hour"} & changes.keys():
        changes[key] = changes[key] or None  # 0: no bound
    with Client(server) as client:
        now = client.labelling_policy(model)
        if changes:
            now = client.set_labelling_policy(model, replace(now, **changes), changes)
    report(as_json, asdict(now), pairs_table(policy_rows(now)))


def history(
    model: ModelArgument,
    query: Annotated[int | None, typer.Argument(help="Number of a query (default: all).", min=1)] = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Show the history of a model's queries: their leases and how they ended.

    The history is never changed. --json prints one line per step.

    Try:

        quercus history wine
        quercus history wine 7
        quercus history wine --json | jq .labeller
    """
    with Client(server) as client:
        for step in client.query_history(model, query):
            if as_json:
                print_json_line(asdict(step) | {"at": step.at.isoformat()})
                continue
            who = f" by {step.labeller}" if step.labeller else ""
            why = f": {' '.join(step.why.split())}" if step.why else ""
            state = f" ({step.state})" if step.state != step.kind else ""
            when = f"{step.at:%Y-%m-%d %H:%M:%S} UTC"
            out.print(f"{when}  query {step.query}  {step.kind}{state}{who}{why}", soft_wrap=True)
