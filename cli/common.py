"""Parts that the commands share: consoles, options, connecting, printing."""

from __future__ import annotations

import getpass
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from quercus.cli.completion import complete_model
from quercus.client.client import Client
from quercus.client.results import Model, RecentAccuracy
from quercus.client.transport import DEFAULT_ADDRESS
from quercus.client.unseen import UnseenNames
from quercus.client.words import bound_text
from quercus.specification.attributes import Attribute, Nominal, plain_number
from quercus.specification.shares import percent_text

SPARKS = "▁▂▃▄▅▆▇█"


class PlainConsole(Console):
    """A console that prints any text safely, including control characters.

    Names, values and comments come from sensors and labellers: square brackets and colons in them are no markup,
    and characters that steer a terminal (escape sequences, or a change of the direction of writing) are made visible.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a text, made harmless."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control or (text.isascii() and text.isprintable()):
                yield segment
            else:
                yield Segment(harmless_text(text), segment.style)


def harmless_text(text: str) -> str:
    r"""A text without characters that steer a terminal.

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
ClassColumnOption = Annotated[
    str | None, typer.Option("--class", metavar="COLUMN", help="Column that contains the class.")
]
ClassNamesOption = Annotated[
    str | None,
    typer.Option(
        "--classes", metavar="A,B,C", help="Names of the classes, if no column contains all of them."
    ),
]
IgnoreOption = Annotated[
    list[str] | None, typer.Option("--ignore", metavar="COLUMN", help="Ignore this column; repeatable.")
]
NominalOption = Annotated[
    list[str] | None,
    typer.Option(
        "--nominal", metavar="COLUMN", help="Treat this column as names, whatever it looks like; repeatable."
    ),
]
NumericOption = Annotated[
    list[str] | None,
    typer.Option(
        "--numeric",
        metavar="COLUMN",
        help="Treat this column as numbers; dates and times become seconds since 1970 UTC; repeatable.",
    ),
]
AttributeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--attribute",
        metavar="COLUMN",
        help="Treat this column as an attribute although it looks like ids or a column of classes; repeatable.",
    ),
]
FileArgument = Annotated[
    Path,
    typer.Argument(
        help="CSV or ARFF file (also packed), or Parquet.",
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
        help="Write refused rows to this CSV file, with line and reason, and go on (default: stop at the first).",
    ),
]
SKIP_HINT = "--rejected FILE writes such rows to a file, with their reasons, and goes on"
DEFAULT_SERVER = DEFAULT_ADDRESS


def words_of(given: list[str] | None) -> frozenset[str]:
    """Return the words of a repeatable option whose values may be lists with commas."""
    return frozenset(word.strip() for each in given or () for word in each.split(",") if word.strip())


class CommandFailure(Exception):  # noqa: N818  (how a command ends)
    """Ends a command with exit code 1; the message contains advice."""


def fail(message: str) -> NoReturn:
    """End the command with exit code 1."""
    raise CommandFailure(message)


def connect(server: str) -> Client:
    """Return a client; nothing is sent yet."""
    return Client(server)


def print_json(value: object) -> None:
    """Print one JSON document on standard output, unstyled."""
    StandardOutput().write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def print_json_line(value: object) -> None:
    """Print one JSON document as a line, and flush it for programs that read the lines as they come."""
    StandardOutput().write(json_line(value))
    sys.stdout.flush()


def json_line(value: object) -> str:
    """Return a JSON document as a line."""
    return json.dumps(value, ensure_ascii=False) + "\n"


def report(as_json: bool, result: dict[str, Any], text: str) -> None:
    """Report the outcome of a command: as JSON for programs, in a line of text for people."""
    if as_json:
        print_json(result)
    else:
        out.print(text, markup=False, soft_wrap=True)


def default_labeller() -> str:
    """Return the name of the user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container without a user entry
        return "labeller"


def bar(value: float, width: int = 20) -> str:
    """Return a bar for a number in [0, 1], in eighths of a character."""
    eighths = round(max(0.0, min(1.0, value)) * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")


def warn_of_unseen(unseen: Iterable[UnseenNames]) -> None:
    """Print which names of the rows the model had never seen."""
    for each in unseen:
        err.print(f"warning: {each.text}", style="yellow", soft_wrap=True)


def attribute_text(attribute: Attribute, others: int = 0) -> str:
    """Return the description of an attribute in one line; `others`: rows with a name beyond its bound."""
    if isinstance(attribute, Nominal):
        shown = ", ".join(attribute.values[:8]) + (", ..." if len(attribute.values) > 8 else "")
        text = f"nominal: {shown}" if shown else "nominal"
        bound = bound_text(attribute, others)
        text += f" ({bound})" if bound else ""
    elif attribute.cuts is not None and not attribute.edges:
        text = f"numeric, thresholds among {attribute.cuts} cuts"
    elif attribute.edges:
        text = f"numeric, edges {', '.join(map(plain_number, attribute.edges))}"
        text += " as thresholds" if attribute.cuts is not None else ""
    else:
        text = f"numeric, {attribute.bins} bins"
    return text + (" (never missing)" if attribute.missing == "reject" else "")


def model_json(model: Model) -> dict[str, Any]:
    """Return a model as JSON; its specification has the form that ``models create`` reads."""
    from quercus.cli.specfile import to_dict  # noqa: PLC0415  (only commands that print JSON need it)

    return {
        "name": model.name,
        "specification": to_dict(model.specification),
        "created_at": model.created_at.isoformat(),
        "sequence_committed": model.sequence_committed,
        "sequence_grown": model.sequence_grown,
        "tree_version": model.tree_version,
        "instance_count": model.instance_count,
        "queries_answered": model.queries_answered,
        "queries_leased": model.queries_leased,
        "queries_refused": model.queries_refused,
        "queries_open": model.queries_open,
        "conflicts": model.conflicts,
        "lag": model.lag,
        "lag_s": model.lag_s,
        "accuracy": accuracy_json(model.accuracy),
        "average_confidence": model.average_confidence and asdict(model.average_confidence),
        "other_names": dict(model.other_names),
        "growth_stopped": model.growth_stopped,
    }


def accuracy_json(recent: RecentAccuracy | None) -> dict[str, Any] | None:
    """Return the accuracy of recent predictions as JSON; None if it is not known."""
    if recent is None:
        return None
    return {
        "rows": recent.rows,
        "precise_rows": recent.precise_rows,
        "accuracy": recent.accuracy,
        "expected": recent.expected,
        "blocks": [asdict(block) for block in recent.blocks],
    }


def accuracy_text(recent: RecentAccuracy | None) -> str:
    """Return the accuracy of recent predictions in one line, with a sparkline of one character per 50 rows."""
    if recent is None:
        return "not known yet"
    line = sparkline([block.expected / block.rows for block in recent.blocks])
    rows = f"of the last {recent.rows:,} labels that came after a prediction"
    if recent.accuracy is None or recent.precise_rows < recent.rows:
        return f"{percent_text(recent.expected, 1)} expected right {rows}  {line}"
    return f"{percent_text(recent.accuracy, 1)} right {rows}  {line}"


def sparkline(values: Sequence[float]) -> str:
    """Draw values in [0, 1] as a line of blocks, the newest last."""
    return "".join(SPARKS[min(int(value * len(SPARKS)), len(SPARKS) - 1)] for value in values)


def lag_text(model: Model) -> str:
    """Return the lag of a model's tree behind its log in words: events and seconds, or "up to date"."""
    if not model.lag:
        return "up to date"
    return f"{model.lag:,} event{'' if model.lag == 1 else 's'} and {model.lag_s:.1f} s behind"


@contextmanager
def needs_extra(command: str, extra: str) -> Iterator[None]:
    """Wrap imports of an extra's parts: if they are missing, the error says how to install them."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("quercus"):  # a part of our own: a bug, not an install
            raise
        fail(f"`quercus {command}` needs {error.name}: pip install 'quercus[{extra}]'")


def needs_server_extra(command: str) -> AbstractContextManager[None]:
    """Around imports of the server's parts."""
    return needs_extra(command, "server")
