"""``quercus label``: a person at a terminal, or a file, answers a model's queries."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from quercus.cli.common import (
    DEFAULT_SERVER,
    CommandFailure,
    DelimiterOption,
    JsonOption,
    MissingOption,
    ServerOption,
    default_labeller,
    err,
    fail,
    out,
    print_json,
    words_of,
)
from quercus.cli.completion import complete_labeller, complete_model
from quercus.cli.label_person import CannotTell, Skip, TerminalLabeller
from quercus.cli.label_queue import TerminalQueue
from quercus.cli.label_session import Answerer, LabellingSession, Tally, answer_from_file, label_by_hand
from quercus.client.client import Client
from quercus.client.errors import InvalidArgument
from quercus.client.filters import ANY, Filter
from quercus.client.labels import LabelLike
from quercus.client.results import Query
from quercus.client.sync.held_queries import HeldQueries
from quercus.files.labels import read_truth
from quercus.specification.bounds import MAX_COMMENT_CHARACTERS


def label(
    *,
    model: Annotated[
        str,
        typer.Argument(
            help="Name of the model, or - for all models in turn.",
            show_default=False,
            autocompletion=complete_model,
        ),
    ],
    labeller: Annotated[
        str | None,
        typer.Option(
            "--labeller",
            metavar="NAME",
            help="Name of the labeller. Default: the token's name, or your user name.",
            autocompletion=complete_labeller,
        ),
    ] = None,
    truth_file: Annotated[
        Path | None,
        typer.Option(
            "--truth",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Answer from this file, by instance id.",
        ),
    ] = None,
    class_name: Annotated[
        str | None,
        typer.Option("--class", metavar="COLUMN", help="Class column of --truth (default: class)."),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option("--id-column", metavar="COLUMN", help="Id column of --truth. Default: row number."),
    ] = None,
    id_prefix: Annotated[
        str,
        typer.Option("--id-prefix", metavar="TEXT", help="Prefix of each id of --truth, as given to push."),
    ] = "",
    reliability: Annotated[
        float | None,
        typer.Option(
            "--reliability",
            min=0,
            max=1,
            help="Probability that the answers are right (default: by the policy).",
        ),
    ] = None,
    comment: Annotated[
        str,
        typer.Option(
            "--comment", metavar="TEXT", help="Comment that is stored with every answer of this session."
        ),
    ] = "",
    can_tell: Annotated[
        str | None,
        typer.Option(
            "--classes-known",
            metavar="A,B",
            help="Get only rows whose plausible classes are all among these.",
        ),
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option("--where", metavar="NAME=VALUE", help="Get only rows with this value.")
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TAG", help="With model -: get only queries of models with this tag."),
    ] = None,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Skip rows that --truth does not contain.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--stop-after", min=1, help="Number of answers after which to stop.")
    ] = None,
    delay_s: Annotated[
        float, typer.Option("--delay-s", min=0, help="Seconds to wait before each answer.")
    ] = 0.0,
    idle_s: Annotated[
        float | None,
        typer.Option(
            "--idle-s",
            min=0,
            help="Seconds without a query after which to stop (default: 10 with --truth, never at a terminal).",
        ),
    ] = None,
    lease_s: Annotated[
        float, typer.Option("--lease-s", min=1, max=3600, help="Length of a lease, in seconds.")
    ] = 60.0,
    delimiter: DelimiterOption = ",",
    missing: MissingOption = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Answer the queries of a model: at the terminal with single keys, or from a file.

    Each query shows the row, the belief about its class, and the reason of the query. An answer may be a class,
    a set of classes or plausibilities. While you hold a row, no other labeller gets it. k leaves it to others, p brings
    it back later, r marks it as impossible to tell, and b goes back to your last answer.

    Try:

        quercus label wine
        quercus label - --tag urgent --classes-known red,white
        quercus label wine --truth wine.csv --class class --stop-after 20
        quercus label wine --truth bob.csv --id-column id --reliability 0.9
    """
    if len(comment) > MAX_COMMENT_CHARACTERS:
        raise typer.BadParameter(
            f"--comment has {len(comment):,} characters, at most {MAX_COMMENT_CHARACTERS:,} are kept"
        )
    only = _make_filter(can_tell, where or [], tag or [])
    console = err if as_json else out  # messages beside the JSON are for people
    with Client(server) as client:
        own = "" if client.has_token else default_labeller()  # a token has a name, which the server knows
        name = own if labeller is None else labeller
        tally = Tally(labeller=name)
        session = partial(
            LabellingSession, client, model, name, reliability, limit,
            lease_s=lease_s, console=console, only=only, comment=comment, tally=tally,
        )  # fmt: skip
        try:
            if truth_file is None:
                _need_terminal()
                queue = TerminalQueue(
                    client, HeldQueries(client, model, name, lease_s=lease_s, only=only), idle_s
                )
                label_by_hand(
                    session(idle_s=idle_s, print_note=queue.print_note),
                    queue,
                    TerminalLabeller(client, queue, out),
                )
            else:
                answers = _read_answers(
                    client, model, truth_file, class_name, id_column, delimiter, words_of(missing)
                )
                known = {id_prefix + key: value for key, value in answers.items()}
                answer_from_file(
                    session(
                        idle_s=10.0 if idle_s is None else idle_s,
                        print_note=lambda text, style: err.print(text, style=style),
                    ),
                    _from_file(truth_file, known, delay_s, skip_unknown),
                )
        except InvalidArgument as error:
            raise _by_flag(error) from None
        except KeyboardInterrupt:
            err.print("\nstopped", style="dim")
            raise typer.Exit(130) from None
        finally:  # also before an error is shown: answers must be sent
            if tally.has_any() or sys.exc_info()[0] in {None, typer.Exit}:
                _report_tally(tally, as_json)


def _need_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise typer.BadParameter("a person answers at a terminal and there is none: give --truth FILE")


def _read_answers(
    client: Client,
    model: str,
    file: Path,
    class_name: str | None,
    id_column: str | None,
    delimiter: str,
    missing: frozenset[str],
) -> dict[str, str | None]:
    """Return the classes that a file states, by instance."""
    if model == ANY:
        raise typer.BadParameter("--truth has the rows of one model: name it")
    classes = client.get_model(model).specification.classes
    return read_truth(file, class_name, classes, id_column=id_column, delimiter=delimiter, missing=missing)


def _by_flag(error: InvalidArgument) -> Exception:
    """Return the fault of a filter, by the name of its flag."""
    flags = {"filter.values": "--where", "filter.classes": "--classes-known", "filter.tags": "--tag"}
    for each in error.violations:
        if each.field in flags:
            return CommandFailure(f"{flags[each.field]}: {each.reason}")
    return error


def _report_tally(tally: Tally, as_json: bool) -> None:
    if as_json:
        print_json(asdict(tally))
    else:
        out.print(f"{tally.labeller}: {tally.text()}" if tally.labeller else tally.text())


def _make_filter(can_tell: str | None, where: list[str], tags: list[str]) -> Filter:
    values = {}
    for each in where:
        name, equals, value = each.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"--where {each!r} is not of the form NAME=VALUE")
        values[name] = value
    classes = [] if can_tell is None else [name.strip() for name in can_tell.split(",") if name.strip()]
    return Filter(classes, values, tags)


def _from_file(path: Path, answers: dict[str, str | None], delay_s: float, skip_unknown: bool) -> Answerer:
    def answer(query: Query) -> LabelLike | CannotTell | Skip:
        if query.instance not in answers:
            if skip_unknown:
                return Skip()
            fail(
                f"{path} has no answer for instance {query.instance!r} ({len(answers):,} ids, "
                f"{next(iter(answers), 'none')!r} the first); are its ids in a column (--id-column) or prefixed?"
            )
        if delay_s:
            time.sleep(delay_s)
        known = answers[query.instance]
        return CannotTell() if known is None else known

    return answer
