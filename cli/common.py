"""Parts that the commands share: consoles, options, connecting, printing."""

from __future__ import annotations

import getpass
import json
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment

from quercus.cli.completion import complete_labeller, complete_model
from quercus.client.transport import DEFAULT_ADDRESS
from quercus.client.unseen import UnseenNames
from quercus.specification.distribution import install_command

if TYPE_CHECKING:
    from quercus.client.client import Client


class PlainConsole(Console):
    """A console that prints any text safely, including control characters.

    Names, values and comments come from sensors and labellers: square brackets and colons in them are not markup, and
    terminal control characters (escape sequences, changes of the writing direction) are made visible.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a text without control characters."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control or (text.isascii() and text.isprintable()):
                yield segment
            else:
                yield Segment(harmless_text(text), segment.style)


def harmless_text(text: str) -> str:
    r"""Return a text with terminal control characters replaced.

    Examples
    --------
    >>> ascii(harmless_text("a\x1b[2Jb"))
    "'a\\ufffd[2Jb'"
    """
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text)


_STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class StandardOutput:
    """Standard output for preformatted text: without control characters at a terminal, unchanged elsewhere."""

    def write(self, text: str) -> int:
        """Write a text."""
        return sys.stdout.write(harmless_text(text) if sys.stdout.isatty() else text)


out = PlainConsole()
err = PlainConsole(stderr=True)

ServerOption = Annotated[
    str,
    typer.Option(
        "--server",
        "-S",
        envvar="QUERCUS_SERVER",
        metavar="HOST:PORT",
        help="Address of the server; tls://HOST:PORT for TLS.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
ModelArgument = Annotated[
    str, typer.Argument(help="Name of the model.", show_default=False, autocompletion=complete_model)
]
DelimiterOption = Annotated[
    str, typer.Option("--delimiter", help="Separator of the cells of a CSV file.", metavar="CHAR")
]
SpreadsheetOption = Annotated[
    bool,
    typer.Option(
        "--for-spreadsheets",
        help="In CSV, put an apostrophe before text that begins with = + - @, which a spreadsheet would run.",
    ),
]
MissingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="WORDS",
        help="Words that mean a missing value, such as NA,null, in addition to an empty cell and ?.",
    ),
]
LabellersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--labeller",
        metavar="NAME",
        help="Only answers of this labeller; repeatable.",
        autocompletion=complete_labeller,
    ),
]
LikeliestOption = Annotated[
    list[str] | None,
    typer.Option(
        "--likeliest", metavar="CLASS", help="Only labels whose most likely class is this one; repeatable."
    ),
]
CommentOption = Annotated[
    str, typer.Option("--comment", metavar="TEXT", help="Comment that is stored in the history.")
]
ByOption = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="NAME",
        help="Name under which you do this (default: that of your token, or your user name).",
    ),
]
ClassColumnOption = Annotated[
    str | None, typer.Option("--class", metavar="COLUMN", help="Column that contains the class.")
]
ClassNamesOption = Annotated[
    str | None,
    typer.Option(
        "--classes", metavar="A,B,C", help="Names of the classes, if no column contains all of them."
    ),
]
FileArgument = Annotated[
    Path,
    typer.Argument(
        help="CSV or ARFF file (may be compressed), Parquet or Arrow.",
        exists=True,
        dir_okay=False,
        readable=True,
        show_default=False,
    ),
]
LabelFileOption = Annotated[
    Path | None,
    typer.Option(
        "--label-file",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Uncertain labels, a line per row: a column per class (plausibilities), per set (masses), "
        "or one of classes.",
    ),
]
LabelColumnOption = Annotated[
    str | None,
    typer.Option(
        "--label-column", metavar="COLUMN", help="Column of classes and sets (A|B) in --label-file."
    ),
]
RejectedOption = Annotated[
    Path | None,
    typer.Option(
        "--rejected",
        metavar="FILE",
        help="Write refused rows to this CSV file, with line and reason, and continue (default: stop at the first).",
    ),
]
UNIT_S: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
SKIP_HINT = "--rejected FILE writes such rows to a file, with their reasons, and continues"
DEFAULT_SERVER = DEFAULT_ADDRESS


def words_of(given: list[str] | None) -> frozenset[str]:
    """Return the words of a repeatable option whose values may be lists with commas."""
    return frozenset(word.strip() for each in given or () for word in each.split(",") if word.strip())


class CommandFailure(Exception):  # noqa: N818  (it ends a command)
    """Ends a command with exit code 1; the message contains advice."""


def fail(message: str) -> NoReturn:
    """End the command with exit code 1."""
    raise CommandFailure(message)


def print_json(value: object) -> None:
    """Print one JSON document on standard output, unstyled."""
    StandardOutput().write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def print_json_line(value: object) -> None:
    """Print one JSON document as a line, and flush it for programs that read the lines as they come."""
    StandardOutput().write(json_line(value))
    sys.stdout.flush()


def json_line(value: object) -> str:
    """Return a JSON document as one line."""
    return json.dumps(value, ensure_ascii=False) + "\n"


def report(as_json: bool, result: object, shown: RenderableType) -> None:
    """Report the outcome of a command: as JSON for programs, as a line of text or a table for people."""
    if as_json:
        print_json(result)
    else:
        out.print(shown, soft_wrap=isinstance(shown, str))


@contextmanager
def progress_bar(what: str, total: int | None = None) -> Iterator[Callable[[int, int | None], None]]:
    """Show a bar on standard error; yield a function that takes the completed amount and the total."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, disable=not err.is_terminal, transient=True) as shown:
        task = shown.add_task(what, total=total)
        yield lambda done, of: shown.update(task, completed=done, total=of)


@contextmanager
def on_signals(handler: Callable[[int], object], *names: str) -> Iterator[None]:
    """Call a function with the number of each of these signals received during the block; Windows lacks some."""
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.signal(number, lambda got, _: handler(got)) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def duration_s(flag: str, text: str) -> float:
    """Return the seconds of a duration such as ``30d``, the value of an option.

    Examples
    --------
    >>> duration_s("--older-than", "90m")
    5400.0
    """
    match = re.fullmatch(r"(\d{1,9})([smhdw])", text)
    if match is None:
        units = "a whole number and s, m, h, d or w, as in 12h or 90d"
        raise typer.BadParameter(f"{flag} is {text[:60]!r}, must be {units}")
    return float(int(match[1]) * UNIT_S[match[2]])


def default_labeller() -> str:
    """Return the name of the user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container without a user entry
        return "labeller"


def name_at(client: Client, given: str | None) -> str:
    """Return the name under which a labeller acts: the given one, else the token's, else the user's."""
    if given:
        return given
    caller = client.caller()
    return caller.name if caller.needs_token else default_labeller()


def utc_text(at: datetime) -> str:
    """Return a time for programs, in UTC to the millisecond."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def warn_of_unseen(unseen: Iterable[UnseenNames]) -> None:
    """Print the names in the rows that the model had never seen."""
    for each in unseen:
        err.print(f"warning: {each.text}", style="yellow", soft_wrap=True)


def warn_of_certificate(cert: str, key: str) -> None:
    """Print a warning, as a server logs it, if the certificate in these files has expired or will soon."""
    from quercus.server.gate.certificate_dates import certificate_end, expiry_warning  # noqa: PLC0415

    try:
        text = expiry_warning(cert, certificate_end(cert, key)) if cert else ""
    except (OSError, ValueError):  # starting to serve reports invalid files
        return
    if text:
        err.print(
            f"warning: {text}: renew the file, then start this command again", style="yellow", soft_wrap=True
        )


@contextmanager
def needs_extra(command: str, extra: str = "server") -> Iterator[None]:
    """Wrap imports that need an extra: if packages are missing, the error says how to install them."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("quercus"):  # a part of our own: a bug, not an install
            raise
        fail(f"`quercus {command}` needs {error.name}: {install_command(extra)}")


_AGO = re.compile(r"(\d{1,6})([smhdw])")


def parse_time(text: str | None, flag: str) -> datetime | None:
    """Parse a time: a date, a date and a time (UTC unless it has a zone), or how long ago."""
    if text is None:
        return None
    if ago := _AGO.fullmatch(text):
        with suppress(OverflowError):
            return datetime.now(UTC) - timedelta(seconds=int(ago[1]) * UNIT_S[ago[2]])
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # a time zone can move the year out of range
        raise typer.BadParameter(
            f"{flag} {text!r} is not a time: give 2026-11-22, 2026-11-22T09:30 (UTC), or how long ago: 30m, 2h, 3d"
        ) from None
