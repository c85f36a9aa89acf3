"""The options that describe a model, made from the fields of its specification, and their conversion."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from typing import Annotated, Any, Literal

import typer

from quercus.belief.errors import InvalidInput
from quercus.cli.completion import (
    complete_learner,
    complete_parameter,
    complete_strategy,
    complete_strategy_parameter,
)
from quercus.cli.options import option, with_options
from quercus.specification import parameters
from quercus.specification.attributes import Attribute, Numeric
from quercus.specification.learners import DEFAULT, Pruning
from quercus.specification.model import CHANGEABLE, Specification
from quercus.specification.parameter import parameters_of
from quercus.specification.plugins import LEARNERS, plugin_names

NONE = "none"
"""Text that stands for no value."""

ParameterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter",
        "-p",
        metavar="KEY=VALUE",
        help="Parameter of the learner, such as max_cuts=8, or max_cuts=none for no limit; of a forest's trees: "
        "base=c45, base.max_cuts=8. `quercus learners` lists them.",
        autocompletion=complete_parameter,
    ),
]
StrategyParameterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--strategy-parameter",
        metavar="KEY=VALUE",
        help="Parameter of the query strategy, such as cover=0.1. `quercus learners` lists them.",
        autocompletion=complete_strategy_parameter,
    ),
]
STRATEGY = parameters.STRATEGY.with_changes(
    description="Query strategy, which selects the next instances; `quercus learners` lists those of each learner"
)
BinsOption = Annotated[int | None, option(parameters.BINS, default=parameters.BINS.default)]
CutsOption = Annotated[int | None, option(parameters.CUTS)]


def with_model_options(
    *, by: str = "server's default", learner: str = DEFAULT, changeable: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the options of a model's specification.

    The options take the place of the command's parameter ``options``, which receives the fields that were given, as
    `quercus.client.Specification` takes them. Every parameter of the specification has an option.

    Parameters
    ----------
    by
        Source of the defaults, named in the help.
    learner
        The default learner.
    changeable
        Whether to offer only the fields that may change after the model is created.
    """
    options: dict[str, Any] = {}
    if not changeable:
        of_the_server = "; `quercus learners` lists those of the server" if by == "server's default" else ""
        named = typer.Option(
            "--learner",
            help=f"The learner: {', '.join(plugin_names(LEARNERS))} ({by}: {learner}){of_the_server}.",
            autocompletion=complete_learner,
        )
        options |= {"learner": Annotated[str | None, named], "parameter": ParameterOption}
    for each in (*parameters_of(Specification), STRATEGY):
        if not changeable or each.name in CHANGEABLE:
            default = each.meaning_of_none if each.default is None else each.default
            default = None if changeable else default  # what is not given stays as it is
            more = {"autocompletion": complete_strategy} if each is STRATEGY else {}
            options[each.name] = Annotated[each.kind | None, option(each, default=default, by=by, **more)]
    options["strategy_parameter"] = StrategyParameterOption
    level = option(parameters.LEVEL, "--pruning-level", default=parameters.LEVEL.default, by=by)
    usual = "" if changeable else " (default: none)"
    pruning = typer.Option("--pruning", help=f"Collapse subtrees that a test does not justify{usual}.")
    options["pruning"] = Annotated[Literal["chi-square", "likelihood", "none"] | None, pruning]
    options["pruning_level"] = Annotated[float | None, level]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_fields(options: dict[str, Any], **others: Any) -> None:
            command(options=_given_fields(**options), **others)

        return with_options(options)(with_fields)

    return decorate


def _given_fields(
    *,
    pruning: Literal["chi-square", "likelihood", "none"] | None,
    pruning_level: float | None,
    strategy: str | None,
    strategy_parameter: list[str] | None,
    learner: str | None = None,
    parameter: list[str] | None = None,
    **fields: object,
) -> dict[str, Any]:
    """Return the fields of a specification that options give."""
    given = {name: value for name, value in fields.items() if value is not None}
    if pruning_level is not None:
        if pruning in (None, "none"):
            raise typer.BadParameter("--pruning-level needs a test: --pruning likelihood, or chi-square")
        try:
            parameters.LEVEL.check(pruning_level)
        except InvalidInput as error:
            raise typer.BadParameter(f"--pruning-level {error.reason}") from None
    if pruning is not None:
        level = parameters.LEVEL.default if pruning_level is None else pruning_level
        given["pruning"] = None if pruning == "none" else Pruning(pruning, level)
    learning = plugin_of("learner", learner, "parameter", parameter or [], ["base"])
    asking = plugin_of("strategy", strategy, "strategy-parameter", strategy_parameter or [])
    chosen = {"learner": learning, "strategy": asking}
    given |= {name: plugin for name, plugin in chosen.items() if plugin is not None}
    return given


def with_branches(attributes: Iterable[Attribute], bins: int | None, cuts: int | None) -> list[Attribute]:
    """Return the attributes of a file with --bins and --cuts."""
    of_equal_width = parameters.BINS.default if bins is None else bins
    return [
        replace(each, bins=of_equal_width, cuts=cuts) if isinstance(each, Numeric) else each
        for each in attributes
    ]


def plugin_of(
    flag: str, name: str | None, parameter_flag: str, parameters: list[str], parts: Iterable[str] = ()
) -> dict[str, Any] | None:
    """Return what --learner or --strategy names, with its parameters; None for the default.

    Parameters
    ----------
    flag, name
        The flag and the name that it gives.
    parameter_flag, parameters
        The flag of the parameters, and each of them as KEY=VALUE.
    parts
        Parameters that have parameters of their own, given as PART.KEY=VALUE.
    """
    if name is None:
        if parameters:
            raise typer.BadParameter(f"--{parameter_flag} also needs --{flag} NAME")
        return None
    chosen: dict[str, Any] = {"name": name}
    for given in sorted(parameters, key=lambda each: each.partition("=")[0].count(".")):
        path, equals, value = given.partition("=")
        *above, key = path.split(".")
        if not equals or not key or above not in ([], *([part] for part in parts)):
            forms = " or ".join(["KEY=VALUE", *(f"{part}.KEY=VALUE" for part in parts)])
            raise typer.BadParameter(f"--{parameter_flag} takes {forms}, not {given!r}")
        if above:
            part = chosen.get(above[0], {})
            named = {"name": part} if isinstance(part, str) else part
            chosen[above[0]] = {**named, key: _parse_value(value)}
        else:
            chosen[key] = _parse_value(value)
    return chosen


def _parse_value(text: str) -> bool | int | float | str | None:
    if text in ("true", "false"):
        return text == "true"
    if text == NONE:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
