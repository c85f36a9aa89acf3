"""Options of the command line, made from the parameters they set, and commands that take many of them as one."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import typer

from quercus.cli.completion import complete_from
from quercus.specification.parameter import Parameter


def with_options(
    options: Mapping[str, Any], defaults: Mapping[str, Any] | None = None, *, into: str = "options"
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command options in place of one of its parameters.

    Parameters
    ----------
    options
        The annotation of each option by the name of its value.
    defaults
        Default values; an option without one may have a default of its own.
    into
        Name of the parameter, which receives a dict of all values.
    """
    kind = inspect.Parameter.KEYWORD_ONLY
    known = defaults or {}
    added = [
        inspect.Parameter(name, kind, default=known.get(name), annotation=annotation)
        for name, annotation in options.items()
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_them(**given: Any) -> None:
            command(**{into: {name: given.pop(name) for name in options}}, **given)

        signature = inspect.signature(command, eval_str=True)
        declared = [
            each for own in signature.parameters.values() for each in (added if own.name == into else [own])
        ]
        with_them.__signature__ = signature.replace(parameters=declared)  # type: ignore[attr-defined]
        return with_them

    return decorate


def option(parameter: Parameter, *names: str, default: object = None, by: str = "", **more: Any) -> Any:
    """Return an option that takes the values of a parameter.

    Parameters
    ----------
    parameter
        Its description is the help; its bounds are checked.
    names
        Names of the option, such as ``--alpha``; default: from the parameter.
    default
        The value that is used if the option is not given. If it is None, the option itself has a default.
    by
        Source of `default`, named in the help; empty: "default".
    more
        Further arguments of `typer.Option`.
    """
    said = [f"one of {', '.join(parameter.choices)}"] if len(parameter.choices) > 1 else []
    said += [] if default is None else [f"{by or 'default'}: {default}"]
    end = f" ({'; '.join(said)})" if said else ""
    if parameter.kind is not str and not parameter.excludes_bounds:
        for key, bound in (("min", parameter.lowest), ("max", parameter.highest)):
            if math.isfinite(bound):
                more.setdefault(key, bound)
    if parameter.choices:
        more.setdefault("autocompletion", complete_from(parameter.choices))
    flags = names or (f"--{parameter.name.replace('_', '-')}",)
    return typer.Option(*flags, help=f"{parameter.description}{end}.", **more)


def secret_of(file: Path | None, variable: str) -> str:
    """Return the secret in the file of ``--secret-file``, else in an environment variable; empty: none.

    An empty file is refused: a user who names a file wants a secret.
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
