"""``quercus gold``: rows of known class, mixed with the queries to check the labellers."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from quercus.cli.common import (
    DEFAULT_SERVER,
    ByOption,
    CommentOption,
    ModelArgument,
    ServerOption,
    fail,
    name_at,
    out,
    print_json_line,
    report,
    utc_text,
)
from quercus.client.client import Client
from quercus.client.labels import LabelLike
from quercus.client.results import GoldReport
from quercus.files import open_table
from quercus.files.answers import AnswerColumns, gold_marks
from quercus.specification.written_labels import read_label
from quercus.view.terminal.models import gold_table
from quercus.view.words import counted


def gold(
    *,
    model: ModelArgument,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="CSV, ARFF, Parquet or Arrow file of rows and their classes, which become gold questions.",
            show_default=False,
        ),
    ] = None,
    item: Annotated[
        str | None,
        typer.Option("--item", metavar="COLUMN", help="Column of the ids of rows (default: guessed)."),
    ] = None,
    answer_column: Annotated[
        str | None,
        typer.Option(
            "--answer-column", metavar="COLUMN", help="Column of the right answers (default: guessed)."
        ),
    ] = None,
    mark: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--mark", metavar="ROW LABEL", help="Make a row a gold question; for several, give FILE."
        ),
    ] = None,
    unmark: Annotated[
        list[str] | None,
        typer.Option("--unmark", metavar="ROW", help="Make a row an ordinary one again; repeatable."),
    ] = None,
    comment: CommentOption = "",
    name: ByOption = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON per gold question, or the result as JSON.")
    ] = False,
) -> None:
    """Mark rows whose class you know, and show how they were answered.

    A gold question looks like any other query. Each labeller gets it at most once; quercus policy --gold-share sets the
    share of gold questions (default: none). Your label is the row's label. The answers show how reliable the labellers
    are; no tree learns from them. quercus labellers shows how often each was right.

    Try:

        quercus gold wine --mark bottle-7 red
        quercus gold wine gold.csv --item bottle --answer-column colour
        quercus policy wine --gold-share 0.1
        quercus gold wine
        quercus gold wine --unmark bottle-7
    """
    if sum(bool(each) for each in (file, mark, unmark)) > 1:
        raise typer.BadParameter("FILE, --mark and --unmark are mutually exclusive")
    if (item or answer_column) and file is None:
        raise typer.BadParameter("--item and --answer-column name columns of FILE: give FILE as well")
    with Client(server) as client:
        if not (file or mark or unmark):
            _show(client, model, as_json=as_json)
            return
        who = name_at(client, name)
        if unmark:
            done = client.unmark_gold(model, unmark, labeller=who, comment=comment)
            _report(done, "taken back", as_json=as_json)
            return
        classes = client.get_model(model).specification.classes
        if mark:
            labels = _mark_of(*mark, classes)
        else:
            labels = gold_marks(open_table(file or Path()), classes, AnswerColumns(item, None, answer_column))
        done = client.mark_gold(model, labels, labeller=who, comment=comment)
        _report(done, "marked", as_json=as_json)
        if not as_json and not client.labelling_policy(model).gold_share:
            out.print(
                f"none is asked yet: quercus policy {model} --gold-share 0.1", style="dim", soft_wrap=True
            )


def _show(client: Client, model: str, *, as_json: bool) -> None:
    found = client.gold_questions(model)
    if as_json:
        for each in found:
            print_json_line(asdict(each) | {"at": utc_text(each.at)})
        return
    if not found:
        out.print(f"{model} has no gold questions; to mark one: quercus gold {model} --mark ROW LABEL")
        return
    out.print(gold_table(found))
    share = client.labelling_policy(model).gold_share
    out.print(f"share of the queries: {share:g}; by labeller: quercus labellers {model}", style="dim")


def _mark_of(row: str, text: str, classes: Any) -> dict[str, LabelLike]:
    try:
        return {row: read_label(text, classes)}
    except ValueError as error:
        fail(str(error))


def _report(done: GoldReport, how: str, *, as_json: bool) -> None:
    known = f" ({done.known:,} were marked already)" if done.known else ""
    report(as_json, asdict(done), f"{how}: {counted(done.stored, 'gold question')}{known}")
