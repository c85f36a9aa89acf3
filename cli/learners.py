"""``quercus learners``: the learners and strategies of a server, with their parameters."""

from __future__ import annotations

from rich.padding import Padding
from rich.text import Text

from quercus.cli.common import DEFAULT_SERVER, JsonOption, ServerOption, out, print_json
from quercus.client.client import Client
from quercus.client.results import Learner, Strategy


def learners(server: ServerOption = DEFAULT_SERVER, as_json: JsonOption = False) -> None:
    """List the learners that a model can have, and query strategies, with their parameters.

    models create and induce set parameters of the learner with --parameter, and of the strategy with
    --strategy-parameter. Each is shown with its default.

    Try:

        quercus learners
        quercus learners --json
    """
    with Client(server) as client:
        found = client.learners()
    if as_json:
        shown = []
        for each in found:
            strategies = [_declared_json(strategy) for strategy in each.strategies]
            shown.append(_declared_json(each) | {"bases": list(each.bases), "strategies": strategies})
        print_json(shown)
        return
    for each in found:
        more = {}
        if each.bases:
            more["base"] = f"Learner of each tree; must be one of {', '.join(each.bases)}."
        names = ", ".join(strategy.name for strategy in each.strategies)
        _print_declared(each, more | {"--strategy": f"The first is the default: {names}."})
    out.print("Query strategies\n")
    for strategy in {each.name: each for learner in found for each in learner.strategies}.values():
        _print_declared(strategy, {})


def _print_declared(declared: Learner | Strategy, more: dict[str, str]) -> None:
    out.print(Text(declared.name, style="bold"), Text(declared.summary), sep="  ")
    settings = {}
    for each in declared.parameters:
        default = "none" if each.default is None else each.default
        shown = str(default).lower() if isinstance(default, bool) else default
        none = f" none: {each.meaning_of_none}." if each.meaning_of_none else ""
        settings[f"{each.name}={shown}"] = f"{each.description}; {each.bound_text}.{none}"
    settings |= more
    if declared.package:
        settings["package"] = f"{declared.package}."
    for setting, line in settings.items():
        out.print(Padding(Text(setting), (0, 0, 0, 2)))
        out.print(Padding(Text(line, style="dim"), (0, 0, 0, 6)))
    out.print()


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
