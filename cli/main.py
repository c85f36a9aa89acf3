"""The command line ``quercus``."""

from __future__ import annotations

import importlib
import inspect
import io
import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any, NoReturn, TextIO

import typer
import typer.core
import typer.main

from quercus.cli.failures import (
    end_interrupted,
    error_json,
    hints_of,
    message_of,
    option_fault,
    print_error_json,
    wants_json,
)
from quercus.view.terminal import ascii_form

_FOLDER = "quercus.cli"
_USAGE_ERROR: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""Typer contains a copy of click, which it does not export."""
COMMANDS = {
    "serve": ("serve", "serve", "Run a server until Ctrl-C or SIGTERM."),
    "models": ("models", "app", "List, show, create, change and delete models."),
    "learners": (
        "learners",
        "learners",
        "List the learners that a model can have, and query strategies, with their parameters.",
    ),
    "inspect": (
        "inspect",
        "inspect",
        "Show how a model would use a file: the role of each column, and what looks wrong.",
    ),
    "push": ("push", "push", "Push the rows of a CSV, ARFF, Parquet or Arrow file, or of standard input."),
    "bridge": ("bridge", "app", "Connect a model with other systems: MQTT, Redis, webhooks, Label Studio."),
    "label": (
        "label",
        "label",
        "Answer the queries of a model: at the terminal with single keys, or from a file.",
    ),
    "console": (
        "console",
        "console",
        "Label rows, view trees and classify in a browser: run the console until Ctrl-C or SIGTERM.",
    ),
    "answers": (
        "answers",
        "answers",
        "Show the answers about a model's rows, with labeller, time and state.",
    ),
    "rows": (
        "rows",
        "rows",
        "Show the rows of a model, all or by a filter, with their class and the prediction.",
    ),
    "why": (
        "why",
        "why",
        "Compare an earlier prediction of a row with the current one, and show the answers that changed it.",
    ),
    "disputes": (
        "disputes",
        "disputes",
        "List the rows whose labellers name different classes, and decide between them.",
    ),
    "gold": (
        "gold",
        "gold",
        "Mark rows whose class you know, and show how they were answered.",
    ),
    "labellers": ("labellers", "app", "Show statistics of labellers, or end the leases of one."),
    "policy": ("labellers", "policy", "Show or change the labelling policy of a model."),
    "history": (
        "labellers",
        "history",
        "Show the history of a model's queries: their leases and how they ended.",
    ),
    "classify": (
        "classify",
        "classify",
        "Classify the rows of a CSV, ARFF, Parquet or Arrow file, or of standard input.",
    ),
    "tree": ("tree", "tree", "Print a tree, or write it as Graphviz, SVG or ONNX."),
    "watch": (
        "watch",
        "watch",
        "Watch a model's trees as they grow: version, lag behind the log, size, answers spent, recent accuracy.",
    ),
    "status": ("status", "status", "Show the state of a server: its store, its grower, and waiting work."),
    "doctor": (
        "doctor",
        "doctor",
        "Check whether this machine can run a server, and show how to fix faults.",
    ),
    "tokens": ("tokens", "app", "Create, list and revoke the tokens of a server's store; show your own."),
    "backup": ("store", "backup", "Copy a store while servers use it."),
    "restore": ("store", "restore", "Replace a store that no server uses by a backup."),
    "migrate": (
        "store",
        "migrate",
        "Move a store to another database, SQLite or PostgreSQL, while no server uses it.",
    ),
    "check": (
        "store",
        "check",
        "Check a store: file, tables and triggers, every cell as the service reads it, logs, counts, budgets, queries.",
    ),
    "export": ("store", "export", "Write a model's evidence to a file."),
    "import": (
        "store",
        "import_log",
        "Create a model from an exported log: all of it, or nothing if a line is wrong.",
    ),
    "archive": ("archive", "archive", "Add the new events of a model to an archive of Parquet files."),
    "rebuild": (
        "archive",
        "rebuild",
        "Create models from an archive: each completely, or not at all if a file is wrong.",
    ),
    "demo": (
        "demo.command",
        "demo",
        "Run a complete example: a server, a sensor, two labellers and a classifier, each a process.",
    ),
    "induce": ("induce", "induce", "Grow the trees of any learner from files, without a server."),
    "experiment": (
        "experiment",
        "app",
        "Compare learners and query strategies, as the papers do, on your data.",
    ),
}
"""The commands in order: module, name in it (a function or an app), first line of the help.

A module is imported when its command is run: gRPC and NumPy cost half a second, and help and completion need neither.
"""


class _LazyCommand(typer.core.TyperCommand):
    """A substitute for a command in help and completion; the command itself is imported when it runs."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return load_command(str(self.name)).make_context(info_name, args, parent, **extra)


class _Commands(typer.core.TyperGroup):
    """The commands, each imported when it is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        return _LazyCommand(cmd_name, callback=lambda: None, help=COMMANDS[cmd_name][2])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = option_fault(error)
            raise


def load_command(name: str) -> Any:
    """Import and return the command with a name."""
    module, attribute, _ = COMMANDS[name]
    function = getattr(importlib.import_module(f"{_FOLDER}.{module}"), attribute)
    if isinstance(function, typer.Typer):
        for each in function.registered_commands:
            each.help = unwrapped_help((each.callback and each.callback.__doc__) or "")
        return typer.main.get_group(function)
    alone = typer.Typer(add_completion=False)
    alone.command(name, help=unwrapped_help(function.__doc__ or ""))(function)
    return typer.main.get_command(alone)


app = typer.Typer(
    name="quercus",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from quercus import __version__  # noqa: PLC0415  (reads the package's metadata)

        typer.echo(f"quercus {__version__}")
        raise typer.Exit


@app.callback()
def quercus(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            envvar="QUERCUS_TOKEN_FILE",
            metavar="FILE",
            help="File that contains the access token.",
        ),
    ] = None,
    tls_ca: Annotated[
        Path | None,
        typer.Option(
            "--tls-ca",
            envvar="QUERCUS_TLS_CA",
            metavar="FILE",
            help="Certificates of the trusted authorities (PEM).",
        ),
    ] = None,
    client_cert: Annotated[
        Path | None,
        typer.Option(
            "--client-cert", envvar="QUERCUS_CLIENT_CERT", metavar="FILE", help="Client certificate (PEM)."
        ),
    ] = None,
    client_key: Annotated[
        Path | None,
        typer.Option(
            "--client-key",
            envvar="QUERCUS_CLIENT_KEY",
            metavar="FILE",
            help="Private key of the client certificate (PEM).",
        ),
    ] = None,
) -> None:
    """Streaming active learning with decision trees.

    Push rows whose class is unknown, and trees grow from them. By default a model is a forest that asks for the labels
    of those rows whose class is least certain.

    The first commands, while quercus serve runs in another terminal:

        quercus inspect wine.csv
        quercus models create wine wine.csv --class class --budget 40
        quercus push wine wine.csv
        quercus label wine

    Then quercus classify wine new.csv, and quercus tree wine.

    Every command explains itself: quercus push --help
    """
    from quercus.specification.environment import check_environment  # noqa: PLC0415

    check_environment(os.environ)
    given = {"TOKEN_FILE": token_file, "TLS_CA": tls_ca, "CLIENT_CERT": client_cert, "CLIENT_KEY": client_key}
    for name, path in given.items():  # the client library reads them there
        if path is not None:
            os.environ[f"QUERCUS_{name}"] = str(path)
    if ctx.invoked_subcommand != "serve":  # errors of the client say what gRPC logs about handshakes
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


def unwrapped_help(text: str) -> str:
    """Return a docstring for ``--help``: paragraphs without their line breaks, indented examples unchanged."""
    paragraphs = inspect.cleandoc(text.replace("``", "")).split("\n\n")
    return "\n\n".join(p if p.startswith(" ") else p.replace("\n", " ") for p in paragraphs)


if app.registered_callback is not None:
    app.registered_callback.help = unwrapped_help(quercus.__doc__ or "")


def main() -> None:
    """Run the command line.

    Exit code 0 when all went well, 1 for a failure, 2 for wrong usage, 130 for Ctrl-C: see `failures.EXIT_CODES`.
    """
    _accept_all_characters(sys.stdout)
    _accept_all_characters(sys.stderr)
    warnings.showwarning = _show_warning
    as_json = wants_json(sys.argv[1:])
    try:
        try:
            sys.exit(_run_for_programs() if as_json else app())
        finally:
            sys.stdout.flush()  # not at the interpreter's exit, where errors cannot be handled
    except KeyboardInterrupt:
        end_interrupted()
    except SystemError as error:
        if not isinstance(error.__cause__, KeyboardInterrupt):  # Ctrl-C came while compiled code ran
            raise
        end_interrupted()
    except BrokenPipeError:
        _discard_output()
        sys.exit(1)
    except UnicodeEncodeError as error:  # an argument that is not UTF-8 reaches Python with half surrogates
        _end_failed(ValueError(f"{error.object[:200]!r} is not text in UTF-8"), as_json)
    except Exception as error:
        from quercus.belief.errors import InvalidInput  # noqa: PLC0415  (imports gRPC)
        from quercus.cli.common import CommandFailure  # noqa: PLC0415
        from quercus.client.errors import QuercusError  # noqa: PLC0415
        from quercus.files.errors import FileError  # noqa: PLC0415

        if not isinstance(error, QuercusError | FileError | CommandFailure | InvalidInput | OSError):
            raise  # the program itself is at fault
        if isinstance(error, OSError):
            _discard_output()
        _end_failed(error, as_json)


def _show_warning(message: Warning | str, category: type[Warning], *place: object, **_: object) -> None:
    """Print a warning about a file as the commands print their errors; others as Python does."""
    from quercus.files.errors import FileWarning  # noqa: PLC0415  (loaded where there is such a warning)

    if issubclass(category, FileWarning):
        sys.stderr.write(f"warning: {message}\n")
    else:
        sys.stderr.write(warnings.formatwarning(message, category, str(place[0]), int(str(place[1]))))


def _end_failed(error: Exception, as_json: bool) -> NoReturn:
    from quercus.cli.common import err  # noqa: PLC0415  (imports gRPC)

    if as_json:
        print_error_json(error)
    else:
        err.print("error:", style="bold red", end=" ")
        err.print(message_of(error), soft_wrap=True)
        for hint in hints_of(error):
            err.print(f"  {hint}", soft_wrap=True)
    sys.exit(1)


def _discard_output() -> None:
    """Discard buffered output that cannot be written: the interpreter would try again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run_for_programs() -> int:
    """Run a command with ``--json``; return its exit code. Usage errors are printed as JSON, too."""
    try:
        code = app(standalone_mode=False)
    except typer.Abort:
        print(error_json("Interrupted", "the command was ended", 1), file=sys.stderr)
        return 1
    except _USAGE_ERROR as error:
        print(error_json("Usage", error.format_message(), error.exit_code), file=sys.stderr)
        return int(error.exit_code)
    if code == 130:  # Typer's code for Ctrl-C
        end_interrupted()
    return code if isinstance(code, int) else 0


def _accept_all_characters(stream: TextIO) -> None:
    """Make a stream accept every character in any encoding, such as ASCII or Latin-1.

    A terminal gets an ASCII form of characters that it cannot show. A file or a pipe gets UTF-8, unless configured
    otherwise, so that programs which read it do not depend on the locale.
    """
    if not isinstance(stream, io.TextIOWrapper):
        return
    if stream.isatty() or "PYTHONIOENCODING" in os.environ:
        ascii_form.register_handler()
        stream.reconfigure(errors=ascii_form.HANDLER)
    else:
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # names of files need not be UTF-8
