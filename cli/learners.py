"""``quercus learners``: the learners and strategies of a server, with their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from quercus.cli.common import DEFAULT_SERVER, JsonOption, ServerOption, connect, out, print_json
from quercus.specification.parameter import Parameter

if TYPE_CHECKING:
    from quercus.client.results import Learner, Strategy


def learners(server: ServerOption = DEFAULT_SERVER, as_json: JsonOption = False) -> None:
    """List the learners that a model can have, and query strategies, with their parameters.

    --parameter of models create and induce sets those of the learner, --strategy-parameter those of the strategy; each
    is shown with its default.

    Try:

        quercus learners
        quercus learners --json
    """
    with connect(server) as client:
        found = client.learners()
    if as_json:
        print_json([_learner_json(each) for each in found])
        return
    for each in found:
        named = (
            {"base": f"Learner of each tree; must be one of {', '.join(each.bases)}."} if each.bases else {}
        )
        strategies = ", ".join(strategy.name for strategy in each.strategies)
        _print_declared(each, named | {"--strategy": f"The first is the default: {strategies}."})
    out.print("Query strategies\n")
    for strategy in {each.name: each for learner in found for each in learner.strategies}.values():
        _print_declared(strategy, {})


def _print_declared(declared: Learner | Strategy, more: dict[str, str]) -> None:
    out.print(Text(declared.name, style="bold"), Text(declared.summary), sep="  ")
    settings = {f"{each.name}={_default_text(each)}": _line_of(each) for each in declared.parameters} | more
    if declared.package:
        settings["package"] = f"{declared.package}."
    for setting, line in settings.items():
        out.print(Padding(Text(setting), (0, 0, 0, 2)))
        out.print(Padding(Text(line, style="dim"), (0, 0, 0, 6)))
    out.print()


def _default_text(parameter: Parameter) -> str:
    if parameter.default is None:
        return "none"
    if isinstance(parameter.default, bool):
        return str(parameter.default).lower()
    return str(parameter.default)


def _line_of(parameter: Parameter) -> str:
    none = f" none: {parameter.meaning_of_none}." if parameter.meaning_of_none else ""
    return f"{parameter.description}; {parameter.bound_text}.{none}"


def _learner_json(learner: Learner) -> dict[str, object]:
    chosen = {"bases": list(learner.bases), "strategies": list(map(_declared_json, learner.strategies))}
    return _declared_json(learner) | chosen


def _declared_json(declared: Learner | Strategy) -> dict[str, object]:
    return {
        "name": declared.name,
        "summary": declared.summary,
        "parameters": [
            {
                "name": each.name,
                "default": each.default,
                "description": each.description,
                "allowed": each.bound_text,
                "meaning_of_none": each.meaning_of_none or None,
            }
            for each in declared.parameters
        ],
        "package": declared.package or None,
    }
