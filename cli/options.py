"""Options of the command line, made from the parameters they set."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import typer

from quercus.cli.completion import complete_from
from quercus.specification.parameter import Parameter


def option(parameter: Parameter, *names: str, default: object = None, by: str = "server", **more: Any) -> Any:
    """Return an option that takes the values of a parameter.

    Parameters
    ----------
    parameter
        Its sentence is the help, its bounds are checked.
    names
        Names of the option, such as ``--alpha``; default: from the parameter.
    default
        The value that is used if the option is not given. If it is None, the option itself has a default.
    by
        Named in the help as the source of `default`.
    more
        Further arguments of `typer.Option`.
    """
    choices = f": {', '.join(parameter.choices)}" if parameter.choices else ""
    end = choices + ("." if default is None else f" ({by}: {default}).")
    if parameter.kind is not str and not parameter.excludes_bounds:
        for key, bound in (("min", parameter.lowest), ("max", parameter.highest)):
            if math.isfinite(bound):
                more.setdefault(key, bound)
    if parameter.choices:
        more.setdefault("autocompletion", complete_from(parameter.choices))
    flags = names or (f"--{parameter.name.replace('_', '-')}",)
    return typer.Option(*flags, **({"help": f"{parameter.description}{end}"} | more))


def server_option(parameter: Parameter, by: str = "server", **more: Any) -> Any:
    """Return an option for a parameter whose default the server knows, or whatever `by` names."""
    default = parameter.meaning_of_none if parameter.default is None else parameter.default
    return option(parameter, default=default, by=by, **more)


def secret_of(file: Path | None, variable: str) -> str:
    """Return the secret in the file of ``--secret-file``, else in an environment variable; empty: none.

    An empty file is refused: who names a file wants a secret.
    """
    if file is None:
        return os.environ.get(variable, "").strip()
    try:
        secret = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"--secret-file: cannot read {file}: {error}") from None
    if not secret:
        raise typer.BadParameter(f"--secret-file: {file} is empty")
    return secret
