"""``quercus label``: a person at a terminal, or a file, answers a model's queries."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console

from quercus.cli.common import (
    DEFAULT_SERVER,
    CommandFailure,
    DelimiterOption,
    JsonOption,
    MissingOption,
    ServerOption,
    connect,
    default_labeller,
    err,
    fail,
    out,
    print_json,
    words_of,
)
from quercus.cli.label_person import Answer, CannotTell, EditEarlier, Postpone, Quit, Skip, TerminalLabeller
from quercus.client.client import Client
from quercus.client.errors import FailedPrecondition, InvalidArgument, Unavailable
from quercus.client.labelling_results import ANY, Filter
from quercus.client.labels import LabelLike
from quercus.client.results import AnswerReport, Query
from quercus.files.labels import truth

Answerer = Callable[[Query], "Answer | Quit"]
T = TypeVar("T")

TELL_AFTER_S = 1.0
"""A wait that is longer is explained."""


@dataclass
class _Tally:
    answered: int = 0
    refused: int = 0
    skipped: int = 0
    postponed: int = 0
    corrected: int = 0
    undone: int = 0
    late: int = 0
    conflicts: int = 0
    labeller: str = ""

    def text(self) -> str:
        parts = [f"{self.answered} answered"]
        parts += [
            f"{count} {name}"
            for name, count in asdict(self).items()
            if count and name not in ("answered", "labeller")
        ]
        return ", ".join(parts)


def label(
    *,
    model: Annotated[
        str, typer.Argument(help="Name of the model, or - for any, in turn.", show_default=False)
    ],
    labeller: Annotated[
        str | None,
        typer.Option(
            "--labeller", metavar="NAME", help="Who answers. Default: the token's name, or your user name."
        ),
    ] = None,
    truth_file: Annotated[
        Path | None,
        typer.Option(
            "--truth", metavar="FILE", exists=True, dir_okay=False, help="Answer from a file, by instance id."
        ),
    ] = None,
    class_name: Annotated[
        str | None, typer.Option("--class", metavar="COLUMN", help="Class column of --truth (class).")
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option("--id-column", metavar="COLUMN", help="Id column of --truth. Default: row number."),
    ] = None,
    id_prefix: Annotated[
        str, typer.Option("--id-prefix", metavar="TEXT", help="As given to push: before each id of --truth.")
    ] = "",
    reliability: Annotated[
        float | None,
        typer.Option(
            "--reliability", min=0, max=1, help="Chance that the answers are right (as the policy says)."
        ),
    ] = None,
    comment: Annotated[
        str, typer.Option("--comment", metavar="TEXT", help="Kept with every answer of this session.")
    ] = "",
    can_tell: Annotated[
        str | None,
        typer.Option(
            "--can-tell", metavar="A,B", help="Only rows whose class, as far as known, is one of these."
        ),
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option("--where", metavar="NAME=VALUE", help="Only rows with this value.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", metavar="TAG", help="Only models with this tag; for model -.")
    ] = None,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Leave rows that --truth does not have to others.")
    ] = False,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Stop after so many answers.")] = None,
    delay_s: Annotated[
        float, typer.Option("--delay-s", min=0, help="Think so long before each answer.")
    ] = 0.0,
    idle_s: Annotated[
        float | None,
        typer.Option("--idle-s", min=0, help="Stop after so long without a query (10; a person: never)."),
    ] = None,
    lease_s: Annotated[float, typer.Option("--lease-s", min=1, max=3600, help="Length of a lease.")] = 60.0,
    delimiter: DelimiterOption = ",",
    missing: MissingOption = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Answer the queries of a model: at the terminal with single keys, or from a file.

    Each query shows the row, what is believed of its class, and why it is asked. An answer may be a class,
    a set of classes or plausibilities. While you think, nobody else gets the row. Not for you: k leaves it to
    others; not now: p brings it back later; nobody can tell: r. A wrong key: b goes back to your last answer.

    Try:

        quercus label wine
        quercus label - --tag urgent --can-tell red,white
        quercus label wine --truth wine.csv --class class --limit 20
        quercus label wine --truth bob.csv --id-column id --reliability 0.9
    """
    with connect(server) as client, ExitStack() as stack:
        own = "" if client.has_token else default_labeller()  # a token has a name, which the server knows
        name = own if labeller is None else labeller
        tally = _Tally(labeller=name)
        if truth_file is None:
            if not (sys.stdin.isatty() and sys.stdout.isatty()):
                raise typer.BadParameter(
                    "a person answers at a terminal and there is none: give --truth FILE"
                )
            person = stack.enter_context(TerminalLabeller(client, out))
            answerer: Answerer = person.ask
        else:
            if model == ANY:
                raise typer.BadParameter("--truth has the rows of one model: name it")
            classes = client.get_model(model).specification.classes
            person = None
            answers = truth(
                truth_file,
                class_name,
                classes,
                id_column=id_column,
                delimiter=delimiter,
                missing=words_of(missing),
            )
            answerer = _from_file(
                truth_file,
                {id_prefix + key: value for key, value in answers.items()},
                delay_s,
                skip_unknown,
            )
            idle_s = 10.0 if idle_s is None else idle_s
        console = err if as_json else out  # what is said beside the JSON is for people
        session = _Session(
            client,
            model,
            name,
            reliability,
            limit,
            idle_s,
            lease_s,
            person,
            console,
            _filter(can_tell, where or [], tag or []),
            comment,
        )
        if session.is_person:
            client.on_outage(session.tell_outage)
        try:
            _run(session, answerer, tally)
        except InvalidArgument as error:
            raise _by_flag(error) from None
        except KeyboardInterrupt:
            err.print("\nstopped", style="dim")
        finally:  # also before an error is told: what was answered is answered
            _report(tally, as_json)


def _by_flag(error: InvalidArgument) -> Exception:
    """Return the fault of a filter, by the name of its flag."""
    flags = {"filter.values": "--where", "filter.classes": "--can-tell", "filter.tags": "--tag"}
    for each in error.violations:
        if each.field in flags:
            return CommandFailure(f"{flags[each.field]}: {each.reason}")
    return error


def _report(tally: _Tally, as_json: bool) -> None:
    if as_json:
        print_json(asdict(tally))
    else:
        out.print(f"{tally.labeller}: {tally.text()}" if tally.labeller else tally.text())


@dataclass(frozen=True)
class _Session:
    client: Client
    model: str
    labeller: str
    reliability: float | None
    limit: int | None
    idle_s: float | None
    lease_s: float
    person: TerminalLabeller | None
    console: Console
    only: Filter
    comment: str

    @property
    def is_person(self) -> bool:
        """Somebody sits at a terminal."""
        return self.person is not None

    def words(self) -> str:
        """The comment of the next answer."""
        return (self.person.comment() if self.person is not None else "") or self.comment

    def tell_outage(self, left_s: float) -> None:
        """Tell a person why nothing happens, and that nothing is lost."""
        self.say(
            f"the server at {self.client.address} does not answer; your answer is kept and sent when it does. "
            f"Waiting for {left_s:.0f} s, then asking again (Ctrl-C stops)",
            "yellow",
        )

    def say(self, text: str, style: str = "dim") -> None:
        """Tell the labeller something."""
        self.console.print(text, style=style, markup=False, soft_wrap=True)


def _patiently(session: _Session, call: Callable[[], T]) -> T:
    """Make a call; when no server answers, a person's answer waits for one rather than being lost."""
    while True:
        try:
            return call()
        except Unavailable as error:
            _await_server(session, error)


def _await_server(session: _Session, error: Unavailable) -> None:
    """Wait for a server on behalf of a person; for a file, ``error`` stands."""
    if not session.is_person:
        raise error
    session.say(f"{error}; waiting until one does (Ctrl-C stops)", "yellow")
    while True:
        with contextlib.suppress(Unavailable):
            session.client.wait_ready()
            return


@contextmanager
def _telling_if_long(session: _Session) -> Iterator[None]:
    """A person who waits is told for what."""
    text = f"waiting for a query of {session.model} ... (Ctrl-C stops)"
    timer = threading.Timer(TELL_AFTER_S, session.say, [text])
    timer.daemon = True
    if session.is_person:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _queries(session: _Session) -> Generator[Query, None, None]:
    """Queries one after another, also over the restart of a server."""

    def once() -> Generator[Query, None, None]:
        return session.client.queries(
            session.model, session.labeller, lease_s=session.lease_s, idle_s=session.idle_s, only=session.only
        )

    queries = once()
    try:
        while True:
            try:
                with _telling_if_long(session):
                    query = next(queries, None)
            except Unavailable as error:
                _await_server(session, error)
                queries = once()
                continue
            if query is None:
                return
            yield query
    finally:
        queries.close()  # gives the query in hand back, however this ends


def _run(session: _Session, answerer: Answerer, tally: _Tally) -> None:
    with closing(_queries(session)) as queries:
        for query in queries:
            tally.labeller = query.labeller
            answer = _patiently(session, partial(answerer, query))
            while isinstance(answer, EditEarlier):
                _take(session, partial(_amend, session, answer, tally), tally)
                answer = _patiently(session, partial(answerer, query))
            if isinstance(answer, Quit):
                return
            _take(session, partial(_send, session, query, answer, tally), tally)
            if session.limit is not None and tally.answered >= session.limit:
                return
    if session.model == ANY:
        session.console.print("nothing more to ask")
        return
    model = _patiently(session, partial(session.client.get_model, session.model))
    if model.queries_answered >= model.budget:
        hint = f"more: quercus models update {model.name} --budget {model.budget + 20}"
        session.console.print(f"the budget of {model.budget:,} answers is spent; {hint}", soft_wrap=True)
    else:
        session.console.print("nothing more to ask")


def _take(session: _Session, call: Callable[[], None], tally: _Tally) -> None:
    """Make a call; what the server does not take is told, and the session goes on."""
    try:
        _patiently(session, call)
    except FailedPrecondition as error:
        tally.late += 1
        err.print(f"not taken: {error}", style="yellow", markup=False)


def _send(
    session: _Session, query: Query, answer: LabelLike | CannotTell | Skip | Postpone, tally: _Tally
) -> None:
    client, words = session.client, session.words()
    if isinstance(answer, Skip):
        client.skip(query, comment=words)
        tally.skipped += 1
    elif isinstance(answer, Postpone):
        client.postpone(query, comment=words)
        tally.postponed += 1
    elif isinstance(answer, CannotTell):
        client.refuse(query, comment=words)
        tally.refused += 1
    else:
        report = client.answer(query, answer, session.reliability, comment=words)
        tally.answered += 1
        _tell(session, query, report, tally)


def _amend(session: _Session, back: EditEarlier, tally: _Tally) -> None:
    client, words = session.client, session.words()
    if isinstance(back.answer, CannotTell):
        client.undo(back.query, comment=words)
        tally.undone += 1
        session.say("taken back; it may be asked again")
    else:
        client.correct(back.query, back.answer, session.reliability, comment=words)
        tally.corrected += 1
        session.say("corrected")


def _tell(session: _Session, query: Query, report: AnswerReport, tally: _Tally) -> None:
    """Say what a person would not expect of an answer."""
    if report.conflict:
        tally.conflicts += 1
        err.print(
            f"instance {query.instance}: this contradicted what was known; your answer stands", style="yellow"
        )
    if report.wants_more and session.is_person:
        session.say("others are asked about this row too; what you all say is combined")


def _filter(can_tell: str | None, where: list[str], tags: list[str]) -> Filter:
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
