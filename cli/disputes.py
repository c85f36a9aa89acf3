"""``quercus disputes``: list rows in dispute, decide one, and show how far labellers agree."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from typing import Annotated, Any

import typer

from quercus.cli.common import (
    DEFAULT_SERVER,
    ByOption,
    CommentOption,
    LabellersOption,
    LikeliestOption,
    ModelArgument,
    ServerOption,
    fail,
    name_at,
    out,
    print_json,
    print_json_line,
    report,
    utc_text,
)
from quercus.client.client import Client
from quercus.client.results import Dispute
from quercus.specification.written_labels import read_label
from quercus.view.disputes import dispute_text, may_decide, who_decides
from quercus.view.terminal.disputes import agreement_page, disputes_table

DEFAULT_DISPUTES = 20  # rows on a screen


def disputes(
    *,
    model: ModelArgument,
    classes: LikeliestOption = None,
    labellers: LabellersOption = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--first", min=1, help="At most this number of rows (default: 20 as a table, all as JSON)."
        ),
    ] = None,
    agreement: Annotated[
        bool,
        typer.Option(
            "--agreement",
            help="Show how far the labellers agree: by pair, beyond chance, and each against the accepted label.",
        ),
    ] = False,
    settle: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--settle", metavar="ROW LABEL", help="Decide: this label of the row overrules the others."
        ),
    ] = None,
    undo: Annotated[
        str | None,
        typer.Option(
            "--undo", metavar="ROW", help="Take back the decision about a row: the labels count again."
        ),
    ] = None,
    comment: CommentOption = "",
    name: ByOption = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON per row, or the result as JSON.")
    ] = False,
) -> None:
    """List the rows whose labellers name different classes, and decide between them.

    A decision is stored in your name; the labels of the others stay in the history. Times are UTC.

    Try:

        quercus disputes wine
        quercus disputes wine --labeller ann --likeliest red
        quercus disputes wine --settle bottle-7 red --comment "by the label"
        quercus disputes wine --undo bottle-7
        quercus disputes wine --agreement
    """
    if sum(bool(each) for each in (agreement, settle, undo)) > 1:
        raise typer.BadParameter("--agreement, --settle and --undo are mutually exclusive")
    with Client(server) as client:
        if settle is not None or undo is not None:
            _decide(client, model, settle, undo, name, comment, as_json=as_json)
        elif agreement:
            found = client.agreement(model)
            of = client.get_model(model).specification.classes
            report(as_json, _agreement_json(asdict(found), of), agreement_page(found, of))
        elif as_json:
            for dispute in islice(client.disputes(model, classes or (), labellers or ()), limit):
                print_json_line(_dispute_json(dispute))
        else:
            _show(client, model, classes or [], labellers or [], limit)


def _show(client: Client, model: str, classes: list[str], labellers: list[str], limit: int | None) -> None:
    shown = list(islice(client.disputes(model, classes, labellers), limit or DEFAULT_DISPUTES))
    caller = client.caller()
    if shown:
        out.print(disputes_table(shown))
    elif classes or labellers:
        out.print(f"no dispute passes the filter; all: quercus disputes {model}", soft_wrap=True)
    if caller.may_call("QueryService/GetAgreement"):
        out.print(
            f"{dispute_text(client.agreement(model))}; more: quercus disputes {model} --agreement",
            style="dim",
        )
    elif not shown:
        out.print("no row is in dispute", style="dim")
    policy = client.labelling_policy(model)
    if shown and not may_decide(caller, policy):
        out.print(who_decides(policy), style="dim", soft_wrap=True)


def _decide(
    client: Client,
    model: str,
    settle: tuple[str, str] | None,
    undo: str | None,
    name: str | None,
    comment: str,
    *,
    as_json: bool,
) -> None:
    who = name_at(client, name)
    if settle is None:
        row = undo or ""
        done = client.undo_adjudication(model, row, labeller=who, comment=comment)
        text, key = f"{row}: taken back; its labels count again", "undone"
    else:
        row = settle[0]
        try:
            label = read_label(settle[1], client.get_model(model).specification.classes)
        except ValueError as error:
            fail(str(error))
        done = client.adjudicate(model, row, label, labeller=who, comment=comment)
        text, key = f"{row}: {settle[1]}, by {who}", "settled"
    if as_json:
        print_json({"item": row, key: True, "by": who, "number": done.committed_sequence})
    else:
        out.print(f"{text} (number {done.committed_sequence})", soft_wrap=True)


def _dispute_json(dispute: Dispute) -> dict[str, Any]:
    return {
        "item": dispute.instance,
        "labels": [
            {
                "labeller": each.labeller,
                "answer": each.text,
                "kind": each.kind,
                "state": each.state,
                "time": utc_text(each.at),
                "reliability": each.reliability,
                "comment": each.comment or None,
                "took_s": each.took_s,
                "number": each.number,
            }
            for each in dispute.labels
        ],
    }


def _agreement_json(found: dict[str, Any], classes: Any) -> dict[str, Any]:
    """Return the agreement with the names of classes in place of their positions."""
    for each in found["confusions"]:
        for cell in each["cells"]:
            cell |= {"said": classes[cell["said"]], "holds": classes[cell["holds"]]}
    return found
