"""The command line ``quercus``."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
import typer.core
import typer.main

from quercus.client.commands import (
    ascii_form,
    classify,
    experiment,
    induce,
    label,
    labellers,
    models,
    push,
    serve,
    status,
    store,
    tokens,
    tree,
    watch,
)
from quercus.client.commands.common import Failure, err
from quercus.client.errors import NotFound, QuercusError, Unavailable
from quercus.client.files.errors import FileError

_DEMO = "quercus.client.commands.demo"
_ORDER = (
    "serve",
    "models",
    "push",
    "label",
    "labellers",
    "policy",
    "history",
    "classify",
    "tree",
    "watch",
    "status",
    "tokens",
    "backup",
    "restore",
    "check",
    "export",
    "import",
    "demo",
    "induce",
    "experiment",
)


class _Commands(typer.core.TyperGroup):
    """The commands, with ``demo`` imported only when it is asked for: it needs the server extra."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for name in _ORDER if name != "demo" or importlib.util.find_spec(_DEMO)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name != "demo" or importlib.util.find_spec(_DEMO) is None:
            return super().get_command(ctx, cmd_name)
        lazy = typer.Typer(add_completion=False)
        demo = importlib.import_module(_DEMO).demo
        lazy.command("demo", help=unwrapped(demo.__doc__ or ""))(demo)
        return typer.main.get_command(lazy)


app = typer.Typer(
    name="quercus",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.command("serve")(serve.serve)
app.add_typer(models.app, name="models")
app.command("push")(push.push)
app.command("label")(label.label)
app.command("labellers")(labellers.labellers)
app.command("policy")(labellers.policy)
app.command("history")(labellers.history)
app.command("classify")(classify.classify)
app.command("tree")(tree.tree)
app.command("watch")(watch.watch)
app.command("status")(status.status)
app.add_typer(tokens.app, name="tokens")
app.command("backup")(store.backup)
app.command("restore")(store.restore)
app.command("check")(store.check)
app.command("export")(store.export)
app.command("import")(store.import_log)
app.command("induce")(induce.induce)
app.add_typer(experiment.app, name="experiment")


def _version(wanted: bool) -> None:
    if wanted:
        from quercus import __version__  # noqa: PLC0415  (reads the package's metadata)

        typer.echo(f"quercus {__version__}")
        raise typer.Exit


@app.callback()
def quercus(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", envvar="QUERCUS_TOKEN_FILE", metavar="FILE", help="Holds the token to show."
        ),
    ] = None,
    tls_ca: Annotated[
        Path | None,
        typer.Option("--tls-ca", envvar="QUERCUS_TLS_CA", metavar="FILE", help="Authorities to trust, PEM."),
    ] = None,
    client_cert: Annotated[
        Path | None,
        typer.Option(
            "--client-cert", envvar="QUERCUS_CLIENT_CERT", metavar="FILE", help="Certificate to show, PEM."
        ),
    ] = None,
    client_key: Annotated[
        Path | None,
        typer.Option(
            "--client-key", envvar="QUERCUS_CLIENT_KEY", metavar="FILE", help="Its private key, PEM."
        ),
    ] = None,
) -> None:
    """Streaming active learning with trees that ask.

    Rows whose class is unknown go in, trees grow on them, and where the evidence does not say how to split,
    you are asked for the one label that would settle most.

    The first five minutes, in two terminals:

        quercus serve
        quercus models create wine wine.csv --class class --budget 40
        quercus push wine wine.csv
        quercus label wine
        quercus tree wine

    Every command explains itself: quercus push --help
    """
    given = {"TOKEN_FILE": token_file, "TLS_CA": tls_ca, "CLIENT_CERT": client_cert, "CLIENT_KEY": client_key}
    for name, path in given.items():  # where the client library looks
        if path is not None:
            os.environ[f"QUERCUS_{name}"] = str(path)


def unwrapped(text: str) -> str:
    """A docstring for ``--help``: paragraphs without their line breaks, indented examples as they are."""
    paragraphs = inspect.cleandoc(text.replace("``", "")).split("\n\n")
    return "\n\n".join(p if p.startswith(" ") else p.replace("\n", " ") for p in paragraphs)


for _command in (
    *app.registered_commands,
    *models.app.registered_commands,
    *tokens.app.registered_commands,
    *experiment.app.registered_commands,
):
    if _command.callback is not None:
        _command.help = unwrapped(_command.callback.__doc__ or "")
if app.registered_callback is not None:
    app.registered_callback.help = unwrapped(quercus.__doc__ or "")


def main() -> None:
    """Run the command line.

    Exit code 0 when all went well, 1 for a failure, 2 for wrong usage, 130 for Ctrl-C.
    """
    _encode(sys.stdout)
    _encode(sys.stderr)
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except SystemError as error:
        if not isinstance(error.__cause__, KeyboardInterrupt):  # it came while compiled code ran
            raise
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # else the exit flushes into the pipe again
        sys.exit(1)
    except (QuercusError, FileError, Failure) as error:
        _report(error)
        sys.exit(1)
    except OSError as error:
        _report(error)
        sys.exit(1)


def _encode(stream: TextIO) -> None:
    """Have a stream take every character, whatever the locale.

    A terminal gets an ASCII form of what it cannot show. A file or a pipe gets UTF-8, unless told otherwise: what
    programs read must not depend on the locale.
    """
    if not isinstance(stream, io.TextIOWrapper):
        return
    if stream.isatty() or "PYTHONIOENCODING" in os.environ:
        ascii_form.register()
        stream.reconfigure(errors=ascii_form.HANDLER)
    else:
        stream.reconfigure(encoding="utf-8")


def _report(error: Exception) -> None:
    err.print("error:", style="bold red", end=" ")
    err.print(str(error), markup=False, soft_wrap=True)
    for note in getattr(error, "__notes__", ()):
        err.print(f"  {note}", markup=False, soft_wrap=True)
    if isinstance(error, Unavailable) and "no server answers" in str(error):
        err.print(
            "  start one with: quercus serve; or name another with --server HOST:PORT or QUERCUS_SERVER",
            soft_wrap=True,
        )
    if isinstance(error, NotFound) and error.message.startswith("model "):
        err.print("  those there are: quercus models list", soft_wrap=True)


if __name__ == "__main__":
    main()
