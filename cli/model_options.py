"""The options of ``quercus models`` that describe a model, and their conversion."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from quercus.cli.completion import complete_from
from quercus.cli.options import option, server_option
from quercus.specification import parameters
from quercus.specification.algorithms import ALGORITHMS, DEFAULT, Forest, Pruning


class PruningChoice(StrEnum):
    """The choices of --pruning."""

    chi_square = "chi-square"
    likelihood = "likelihood"
    none = "none"


AlphaOption = Annotated[float | None, server_option(parameters.ALPHA)]
PredictionLevelOption = Annotated[float | None, server_option(parameters.MODEL_LEVEL)]
AskOption = Annotated[str | None, server_option(parameters.ASK)]
SplitSignificanceOption = Annotated[float | None, server_option(parameters.MODEL_SIGNIFICANCE)]
BudgetOption = Annotated[int | None, server_option(parameters.BUDGET)]
MinInstancesOption = Annotated[int | None, server_option(parameters.MODEL_INSTANCES)]
MaxDepthOption = Annotated[int | None, server_option(parameters.MAX_DEPTH)]
StrategyOption = Annotated[str | None, server_option(parameters.MODEL_STRATEGY)]
LevelOption = Annotated[
    float | None, option(parameters.LEVEL, "--pruning-level", default=parameters.LEVEL.default)
]
AlgorithmOption = Annotated[
    str | None,
    typer.Option(
        "--algorithm",
        help=f"The learner: {', '.join(ALGORITHMS)} (server: {DEFAULT.name}).",
        autocompletion=complete_from(ALGORITHMS),
    ),
]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter",
        "-p",
        metavar="KEY=VALUE",
        help="Parameter of the learner, such as max_cuts=8; of a forest's trees: base=c45, base.max_cuts=8.",
    ),
]

PruningOption = Annotated[
    PruningChoice | None,
    typer.Option("--pruning", help="Collapse subtrees that a test does not justify (default: none)."),
]


def algorithm_of(name: str | None, parameters: list[str]) -> dict[str, Any] | None:
    """Return the learner of --algorithm with its parameters; None for the server's default."""
    if name is None:
        if parameters:
            raise typer.BadParameter("--parameter needs a learner: --algorithm NAME")
        return None
    algorithm: dict[str, Any] = {"name": name}
    for given in sorted(parameters, key=lambda each: each.partition("=")[0].count(".")):
        path, equals, value = given.partition("=")
        *above, key = path.split(".")
        if not equals or not key or above not in ([], ["base"]):
            raise typer.BadParameter(f"--parameter takes KEY=VALUE or base.KEY=VALUE, not {given!r}")
        if above:
            base = algorithm.get("base", {"name": Forest().base.name})
            algorithm["base"] = {
                **({"name": base} if isinstance(base, str) else base),
                key: _parse_value(value),
            }
        else:
            algorithm[key] = _parse_value(value)
    return algorithm


def _parse_value(text: str) -> bool | int | float | str:
    if text in ("true", "false"):
        return text == "true"
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
    return Pruning(kind.value, level)  # type: ignore[arg-type]  # the other members are kinds
