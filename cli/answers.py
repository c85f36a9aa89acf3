"""``quercus answers``: list the answers of labellers, write them to a file, correct one or take one back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.table import Table as RichTable

from quercus.cli.common import (
    DEFAULT_SERVER,
    ByOption,
    CommentOption,
    LabellersOption,
    LikeliestOption,
    ModelArgument,
    ServerOption,
    SpreadsheetOption,
    fail,
    name_at,
    out,
    parse_time,
    report,
)
from quercus.cli.output_files import ForceOption, FormatOption, OutputOption, chosen_format, write_chosen
from quercus.client.answers import AnswerFilter
from quercus.client.client import Client
from quercus.client.results import Answer
from quercus.files.answer_table import answer_table
from quercus.files.writing import OutputTable
from quercus.specification.written_labels import read_label
from quercus.view.answers import answer_text, label_words, moment_text, remarks_on

DEFAULT_ANSWERS = 20  # rows of the table by default


def answers(
    *,
    model: ModelArgument,
    labellers: LabellersOption = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Only answers since this time: 2026-11-22, 2026-11-22T09:30, or 2h or 3d ago.",
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Only answers before this time.")
    ] = None,
    classes: LikeliestOption = None,
    instance: Annotated[
        list[str] | None,
        typer.Option("--instance", metavar="ID", help="Only answers about the row with this id; repeatable."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--newest",
            min=1,
            help="Only this many of the newest answers (default: 20 as a table, all otherwise).",
        ),
    ] = None,
    output: OutputOption = None,
    form: FormatOption = None,
    values: Annotated[bool, typer.Option("--values", help="Write the values of the rows as well.")] = False,
    for_spreadsheets: SpreadsheetOption = False,
    force: ForceOption = False,
    correct: Annotated[
        tuple[int, str] | None,
        typer.Option(
            "--correct", metavar="NUMBER LABEL", help="Replace your answer with this number by another label."
        ),
    ] = None,
    undo: Annotated[
        int | None,
        typer.Option("--undo", metavar="NUMBER", min=1, help="Retract your answer with this number."),
    ] = None,
    comment: CommentOption = "",
    name: ByOption = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON per answer, or the change as JSON.")
    ] = False,
) -> None:
    """Show the answers about a model's rows, with labeller, time and state.

    Times are UTC. A file contains all selected answers in chronological order; quercus push --labels reads it. There,
    and for --correct, a label is a class, a set A|B, plausibilities A:1 B:0.4, or masses {A|B}:0.7 {A}:0.3; ? is a
    vacuous label. The table shows labels in words.

    Try:

        quercus answers wine
        quercus answers wine --labeller ann --since 2h
        quercus answers wine --correct 214 'red|white'
        quercus answers wine -o wine-answers.csv
        quercus answers wine --json | jq -r '.item + " " + .answer'
    """
    if correct is not None and undo is not None:
        raise typer.BadParameter("--correct and --undo are mutually exclusive")
    wanted = AnswerFilter(
        labellers=labellers or (), classes=classes or (), instances=instance or (),
        since=parse_time(since, "--since"), until=parse_time(until, "--until"),
    )  # fmt: skip
    if as_json and output is None and form is None:
        form = "jsonl"
    chosen = chosen_format(output, form, {"--values": values}, for_spreadsheets=for_spreadsheets, force=force)
    with Client(server) as client:
        changed = undo if correct is None else correct[0]
        if changed is not None:
            earlier = _find_answer(client, model, changed)
            who = _changing_labeller(client, earlier, name)
            if correct is not None:
                try:
                    label = read_label(correct[1], client.get_model(model).specification.classes)
                except ValueError as error:
                    fail(str(error))
                number = client.correct_answer(model, earlier, label, labeller=who, comment=comment)
                text = f"{label_words(label, correct[1])} in place of {answer_text(earlier)}"
            else:
                number = client.undo_answer(model, earlier, labeller=who, comment=comment)
                text = f"{answer_text(earlier)} was retracted"
            key = "undone" if correct is None else "corrected"
            result = {"item": earlier.instance, key: earlier.number, "number": number}
            report(as_json, result, f"{earlier.instance}: {text} (number {number})")
        elif chosen is None:
            _show_answers(client, model, wanted, limit or DEFAULT_ANSWERS, has_limit=limit is not None)
        else:
            table = _answer_table(client, model, wanted, limit, with_values=values)
            write_chosen(table, output, chosen, "answers", for_spreadsheets=for_spreadsheets, as_json=as_json)


def _show_answers(client: Client, model: str, wanted: AnswerFilter, limit: int, *, has_limit: bool) -> None:
    answers = list(client.answers(model, wanted, limit=limit, newest_first=True))[::-1]
    if not answers:
        if wanted == AnswerFilter():
            text = f"there are no answers about {model}'s rows yet; begin with: quercus label {model}"
        else:
            text = f"no answer about {model}'s rows passes the filter; all: quercus answers {model}"
        out.print(text, soft_wrap=True)
        return
    table = RichTable(box=None, pad_edge=False)
    table.add_column("number", justify="right", no_wrap=True)
    table.add_column("when (UTC)", no_wrap=True)
    for title in ("row", "labeller", "answer"):
        table.add_column(title, overflow="fold")
    table.add_column("")
    for each in answers:
        remarks = ": ".join(filter(None, [", ".join(remarks_on(each)), each.comment]))
        when, said = moment_text(each.at), answer_text(each)
        table.add_row(str(each.number), when, each.instance, each.labeller, said, remarks)
    out.print(table)
    if not has_limit and len(answers) == limit:
        out.print(f"the newest {limit}; more with --newest, all with -o FILE", style="dim")


def _answer_table(
    client: Client, model: str, wanted: AnswerFilter, limit: int | None, *, with_values: bool
) -> OutputTable:
    """Return the answers in chronological order; with a limit, only the newest."""
    answers: Iterable[Answer] = client.answers(
        model, wanted, limit=limit, newest_first=limit is not None, with_values=with_values
    )
    if limit is not None:
        answers = list(answers)[::-1]
    attributes = client.get_model(model).specification.attributes if with_values else ()
    return answer_table(answers, attributes)


def _find_answer(client: Client, model: str, number: int) -> Answer:
    answers = client.answers(model, limit=1, after=number - 1)
    answer = next(iter(answers), None)
    if answer is None or answer.number != number:
        fail(f"{model} has no answer with number {number}; list them with: quercus answers {model}")
    return answer


def _changing_labeller(client: Client, answer: Answer, name: str | None) -> str:
    who = name_at(client, name)
    if answer.query is None and answer.labeller != who:
        fail(
            f"answer {answer.number} was stated by {answer.labeller}, and only they may change it; "
            f"you are {who} (--by NAME)"
        )
    return who
