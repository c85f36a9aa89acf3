"""The options that describe a model, made from the fields of its specification, and their conversion."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import StrEnum
from functools import wraps
from typing import Annotated, Any

import typer

from quercus.belief.errors import InvalidInput
from quercus.cli.completion import (
    complete_learner,
    complete_parameter,
    complete_strategy,
    complete_strategy_parameter,
)
from quercus.cli.options import option, server_option
from quercus.specification import parameters
from quercus.specification.algorithms import DEFAULT, Pruning
from quercus.specification.attributes import Attribute, Numeric
from quercus.specification.model import CHANGEABLE, Specification
from quercus.specification.parameter import parameters_of
from quercus.specification.plugins import LEARNERS, plugin_names


class PruningChoice(StrEnum):
    """The choices of --pruning."""

    chi_square = "chi-square"
    likelihood = "likelihood"
    none = "none"


NONE = "none"
"""Text of a parameter that is to have no value."""

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
PruningOption = Annotated[
    PruningChoice | None,
    typer.Option("--pruning", help="Collapse subtrees that a test does not justify (default: none)."),
]
STRATEGY = parameters.STRATEGY.with_changes(
    description="Query strategy, which selects the next instances; `quercus learners` lists those of each learner"
)
BinsOption = Annotated[int | None, option(parameters.BINS, show_default=str(parameters.BINS.default))]
CutsOption = Annotated[int | None, option(parameters.CUTS)]


def with_model_options(
    *, by: str = "server", learner: str = DEFAULT, changeable: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the options of a model's specification.

    The options take the place of the command's parameter ``options``, which receives the fields that were given, as
    `quercus.client.Specification` takes them. There is an option for every parameter of the specification.

    Parameters
    ----------
    by
        Named in the help as the source of the defaults.
    learner
        The default learner.
    changeable
        Only those fields that may change once the model exists.
    """
    fields = [each for each in parameters_of(Specification) if not changeable or each.name in CHANGEABLE]
    options: dict[str, Any] = {} if changeable else _learner_options(f"{by}: {learner}")
    options |= {each.name: Annotated[each.kind | None, server_option(each, by)] for each in fields}
    strategy = server_option(STRATEGY, by, autocompletion=complete_strategy)
    options |= {"strategy": Annotated[str | None, strategy], "strategy_parameter": StrategyParameterOption}
    level = option(parameters.LEVEL, "--pruning-level", default=parameters.LEVEL.default, by=by)
    options |= {"pruning": PruningOption, "pruning_level": Annotated[float | None, level]}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_options(**given: Any) -> None:
            wanted = {name: given.pop(name) for name in options}
            command(**given, options=_given_fields(**wanted))

        signature = inspect.signature(command, eval_str=True)
        declared = [
            each
            for own in signature.parameters.values()
            for each in ([own] if own.name != "options" else _as_parameters(options))
        ]
        with_options.__signature__ = signature.replace(parameters=declared)  # type: ignore[attr-defined]
        return with_options

    return decorate


def _learner_options(default: str) -> dict[str, Any]:
    named = typer.Option(
        "--algorithm",
        help=f"The learner: {', '.join(plugin_names(LEARNERS))} ({default}).",
        autocompletion=complete_learner,
    )
    return {"algorithm": Annotated[str | None, named], "parameter": ParameterOption}


def _as_parameters(options: dict[str, Any]) -> list[inspect.Parameter]:
    kind = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(name, kind, default=None, annotation=each) for name, each in options.items()]


def _given_fields(
    *,
    pruning: PruningChoice | None,
    pruning_level: float | None,
    strategy: str | None,
    strategy_parameter: list[str] | None,
    algorithm: str | None = None,
    parameter: list[str] | None = None,
    **fields: object,
) -> dict[str, Any]:
    """Return the fields of a specification that options give."""
    given = {name: value for name, value in fields.items() if value is not None}
    collapsing = pruning_of(pruning, pruning_level)
    if pruning is not None:
        given["pruning"] = collapsing
    if (learner := plugin_of("algorithm", algorithm, "parameter", parameter or [], ["base"])) is not None:
        given["algorithm"] = learner
    if (
        asking := plugin_of("strategy", strategy, "strategy-parameter", strategy_parameter or [])
    ) is not None:
        given["strategy"] = asking
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
    """Return what --algorithm or --strategy names, with its parameters; None for the default.

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
            raise typer.BadParameter(f"--{parameter_flag} needs a name as well: --{flag} NAME")
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


def pruning_of(kind: PruningChoice | None, level: float | None) -> Pruning | None:
    """Return the pruning of --pruning and --pruning-level; None for no pruning."""
    if kind is None or kind is PruningChoice.none:
        if level is not None:
            raise typer.BadParameter("--pruning-level needs a test: --pruning likelihood, or chi-square")
        return None
    chosen = parameters.LEVEL.default if level is None else level
    try:
        parameters.LEVEL.check(chosen)
    except InvalidInput as error:
        raise typer.BadParameter(f"--pruning-level {error.reason}") from None
    return Pruning(kind.value, chosen)  # type: ignore[arg-type]  # the other members are kinds
