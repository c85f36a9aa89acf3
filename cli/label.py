"""``quercus label``: a person at a terminal, or a file, answers a model's queries."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

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
    on_signals,
    out,
    print_json,
    words_of,
)
from quercus.cli.completion import complete_labeller, complete_model
from quercus.cli.label_person import SENT_POLL_S, Answer, EditEarlier, Reply, TerminalLabeller
from quercus.cli.label_queue import TerminalQueue, UnsentAnswer
from quercus.client.client import Client
from quercus.client.errors import FailedPrecondition, InvalidArgument
from quercus.client.filters import ANY, Filter
from quercus.client.results import Query
from quercus.client.shown import shown_text
from quercus.client.sync.held_queries import HeldQueries
from quercus.files.labels import read_truth
from quercus.specification.bounds import MAX_COMMENT_CHARACTERS
from quercus.view.queries import idle_text
from quercus.view.words import counted

REASON_AFTER_S = 1.0
"""After waiting for this many seconds, the reason is shown."""
SEND_REST_S = 5.0
"""Seconds that earlier answers have to reach the server after a failure."""
_FLAGS = {"filter.values": "--where", "filter.classes": "--classes-known", "filter.tags": "--tag"}


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
    a set of classes or plausibilities. While you hold a row, no other labeller gets it. k leaves it to others, p
    postpones it, r marks it as impossible to tell, and b goes back to your last answer.

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
    values = {}
    for each in where or ():
        key, equals, value = each.partition("=")
        if not (key and equals):
            raise typer.BadParameter(f"--where {each!r} is not of the form NAME=VALUE")
        values[key] = value
    known = [] if can_tell is None else [each.strip() for each in can_tell.split(",") if each.strip()]
    only = Filter(known, values, tag or [])
    console = err if as_json else out  # messages beside the JSON are for people
    with Client(server) as client:
        own = "" if client.has_token else default_labeller()  # the server knows the name of a token
        name = own if labeller is None else labeller
        tally = Tally(labeller=name)
        session = LabellingSession(client, model, reliability, limit, comment, console, tally, err.print)
        try:
            if truth_file is None:
                if not (sys.stdin.isatty() and sys.stdout.isatty()):
                    raise typer.BadParameter(
                        "there is no terminal for a person to answer at: give --truth FILE"
                    )
                held = HeldQueries(client, model, name, lease_s=lease_s, only=only)
                session.label_by_hand(TerminalQueue(client, held, idle_s))
            else:
                if model == ANY:
                    raise typer.BadParameter("--truth has the rows of a single model: name the model")
                classes = client.get_model(model).specification.classes
                answers = read_truth(
                    truth_file, class_name, classes, id_column=id_column, delimiter=delimiter,
                    missing=words_of(missing),
                )  # fmt: skip
                answers = {id_prefix + key: value for key, value in answers.items()}
                answer = partial(_answer_of, truth_file, answers, delay_s=delay_s, skip_unknown=skip_unknown)
                queries = client.queries(
                    model, name, lease_s=lease_s, idle_s=10.0 if idle_s is None else idle_s, only=only
                )
                session.answer_from_file(queries, answer)
        except InvalidArgument as error:
            for violation in error.violations:
                if violation.field in _FLAGS:
                    raise CommandFailure(f"{_FLAGS[violation.field]}: {violation.reason}") from None
            raise
        except KeyboardInterrupt:
            err.print("\nstopped", style="dim")
            raise typer.Exit(130) from None
        finally:  # even before an error is shown, answers must be sent
            if any(tally.counts.values()) or sys.exc_info()[0] in {None, typer.Exit}:
                if as_json:
                    print_json(asdict(tally))
                else:
                    out.print(f"{tally.labeller}: {tally.text}" if tally.labeller else tally.text)


def _answer_of(
    path: Path, answers: dict[str, str | None], query: Query, *, delay_s: float, skip_unknown: bool
) -> Answer:
    """Return a file's answer to a query."""
    if query.instance not in answers:
        if skip_unknown:
            return Reply.SKIP
        fail(
            f"{path} has no answer for instance {query.instance!r} ({len(answers):,} ids, "
            f"{next(iter(answers), 'none')!r} the first); see --id-column and --id-prefix"
        )
    if delay_s:
        time.sleep(delay_s)
    known = answers[query.instance]
    return Reply.CANNOT_TELL if known is None else known


@dataclass
class Tally:
    """Numbers of queries that were answered, refused, skipped and so on."""

    answered: int = 0
    refused: int = 0
    skipped: int = 0
    postponed: int = 0
    corrected: int = 0
    undone: int = 0
    late: int = 0
    conflicts: int = 0
    labeller: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """The counts by name."""
        return {name: count for name, count in asdict(self).items() if name != "labeller"}

    @property
    def text(self) -> str:
        """The counts in words, without zeros."""
        shown = {name: count for name, count in self.counts.items() if count or name == "answered"}
        return ", ".join(f"{count} {name}" for name, count in shown.items())


@dataclass
class LabellingSession:
    """A session that sends and counts the answers of a labeller: a person at a terminal, or a file.

    Attributes
    ----------
    client, model
        The client, and the model with the queries.
    reliability, comment
        Of all answers.
    limit
        Number of answers after which the session ends; None: no limit.
    console
        Console on which the end is reported.
    tally
        Counts so far.
    print_note
        Prints a text with ``style``, a style of Rich.
    """

    client: Client
    model: str
    reliability: float | None
    limit: int | None
    comment: str
    console: Console
    tally: Tally
    print_note: Callable[..., None]

    def answer_from_file(
        self, queries: Generator[Query, None, None], answer: Callable[[Query], Answer]
    ) -> None:
        """Answer queries one after another, each after the tree has learned from the previous answer."""
        with closing(queries):
            for query in queries:
                self.tally.labeller = query.labeller
                self._send_answer(query, answer(query), self.comment)
                if self._has_reached_limit:
                    return
        self._report_end()

    def label_by_hand(self, queue: TerminalQueue) -> None:
        """Ask a person at the terminal: the next query is leased in advance, and answers are sent in the background.

        The session ends on Ctrl-C, when the terminal is closed, or on SIGTERM; answers are sent first.
        """
        self.print_note = queue.print_note
        person = TerminalLabeller(self.client, queue, out)
        with on_signals(lambda _: queue.interrupt(), "SIGINT", "SIGTERM", "SIGHUP"):
            queue.open()
            try:
                with person:
                    is_left = self._ask_person(queue, person)
                    person.send_all()
            except KeyboardInterrupt:
                self._send_rest(queue, person)
                raise
            except Exception:
                queue.is_sent(SEND_REST_S)
                self._report_unsent(queue)
                raise
            finally:
                queue.close()
        if not is_left:
            self._report_end()

    def _ask_person(self, queue: TerminalQueue, person: TerminalLabeller) -> bool:
        """Ask until there is nothing to ask; return whether the person left earlier."""
        while (query := self._next_query(queue, person)) is not None:
            self.tally.labeller = query.labeller
            answer = person.ask_query(query)
            if answer is Reply.QUIT:
                return True
            if answer is Reply.TAKEN_BACK:
                continue
            comment = person.take_comment() or self.comment
            if isinstance(answer, EditEarlier):
                amend = partial(self._amend_answer, answer, comment)
                queue.submit_answer(UnsentAnswer(person.answer_text, amend))
                continue
            shown = shown_text(query, queue.counted_model(query.model))
            send = partial(self._send_answer, query, answer, comment, took_s=person.took_s, shown=shown)
            text = f"{person.answer_text}, instance {query.instance}"
            spends = "" if isinstance(answer, Reply) else query.model
            queue.submit_answer(UnsentAnswer(text, send, query, spends, comment))
            if self.limit is not None and self.tally.answered + len(queue.unsent_answers) >= self.limit:
                person.send_all()
                if self._has_reached_limit:
                    return True
        return False

    @property
    def _has_reached_limit(self) -> bool:
        return self.limit is not None and self.tally.answered >= self.limit

    def _next_query(self, queue: TerminalQueue, person: TerminalLabeller) -> Query | None:
        """Return the next query; while waiting, show the reason. ``None``: no more will come."""
        since, is_explained = time.monotonic(), False
        while (query := person.wait_for_query(SENT_POLL_S)) is None and not queue.is_over:
            if is_explained or time.monotonic() - since <= REASON_AFTER_S:
                continue
            is_explained, why = True, ""
            if self.model != ANY:
                why = idle_text(queue.idle_reason, self.model)
            text = f"waiting for a query of {self.model} ... (Ctrl-C stops)"
            self.print_note(f"{text}\n{why}" if why else text, style="dim")
        return query

    def _send_rest(self, queue: TerminalQueue, person: TerminalLabeller) -> None:
        """Send the answers given before Ctrl-C; another Ctrl-C discards them."""
        if queue.is_sent(1.0):
            return
        count = counted(len(queue.unsent_answers), "unsent answer")
        self.console.print(f"sending {count}; Ctrl-C discards what is left", style="yellow")
        try:
            person.send_all()
        except KeyboardInterrupt:
            self._report_unsent(queue)

    def _report_unsent(self, queue: TerminalQueue) -> None:
        for answer in queue.unsent_answers:
            self.console.print(f"not sent: {answer.text}", style="yellow")

    def _report_end(self) -> None:
        if self.model == ANY:
            self.console.print("nothing more to ask")
            return
        model = self.client.get_model(self.model)
        if model.queries_answered >= model.budget:
            spent = (
                f"the budget of {counted(model.budget, 'answer')} is spent"
                if model.budget
                else "the budget is 0"
            )
            hint = f"more: quercus models update {model.name} --budget {model.budget + 20}"
            self.console.print(f"{spent}; {hint}", soft_wrap=True)
        else:
            self.console.print("nothing more to ask")

    @contextmanager
    def _noting_refusals(self) -> Iterator[None]:
        """If the server refuses an answer, show the reason and continue the session."""
        try:
            yield
        except FailedPrecondition as error:
            self.tally.late += 1
            self.print_note(f"refused: {error}", style="yellow")

    def _send_answer(
        self, query: Query, answer: Answer, comment: str, *, took_s: float | None = None, shown: str = ""
    ) -> None:
        with self._noting_refusals():
            if answer is Reply.SKIP:
                self.client.skip(query, comment=comment)
                self.tally.skipped += 1
            elif answer is Reply.POSTPONE:
                self.client.postpone(query, comment=comment)
                self.tally.postponed += 1
            elif answer is Reply.CANNOT_TELL:
                self.client.refuse(query, comment=comment, shown=shown)
                self.tally.refused += 1
            elif not isinstance(answer, Reply):
                report = self.client.answer(
                    query, answer, self.reliability, comment=comment, took_s=took_s, shown=shown
                )
                self.tally.answered += 1
                if report.conflict:
                    self.tally.conflicts += 1
                    text = "your answer contradicts the earlier evidence, and replaces it"
                    self.print_note(f"instance {query.instance}: {text}", style="yellow")
                if report.wants_more and took_s is not None:
                    self.print_note(
                        "other labellers are asked about this row too; the answers are combined", style="dim"
                    )

    def _amend_answer(self, edit: EditEarlier, comment: str) -> None:
        client, earlier = self.client, edit.earlier
        with self._noting_refusals():
            if isinstance(edit.answer, Reply):  # "impossible to tell" retracts the answer
                if isinstance(earlier, Query):
                    client.undo(earlier, comment=comment)
                else:
                    client.undo_answer(edit.model, earlier, comment=comment)
                self.tally.undone += 1
                self.print_note("taken back; it may be asked again", style="dim")
                return
            if isinstance(earlier, Query):
                client.correct(earlier, edit.answer, self.reliability, comment=comment)
            else:
                client.correct_answer(edit.model, earlier, edit.answer, self.reliability, comment=comment)
            self.tally.corrected += 1
            self.print_note("corrected", style="dim")
