"""``quercus learners``: the learners of a server, with their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from quercus.cli.common import DEFAULT_SERVER, JsonOption, ServerOption, out, print_json
from quercus.client.client import Client
from quercus.specification.parameter import Parameter

if TYPE_CHECKING:
    from quercus.client.results import Learner


def learners(server: ServerOption = DEFAULT_SERVER, as_json: JsonOption = False) -> None:
    """List the learners that a model can have, with their parameters.

    --parameter of models create and induce sets them; each is shown with its default.

    Try:

        quercus learners
        quercus learners --json
    """
    with Client(server) as client:
        found = client.learners()
    if as_json:
        print_json([_as_dict(each) for each in found])
        return
    for number, each in enumerate(found):
        out.print(Text(each.name, style="bold"), Text(each.summary), sep="  ")
        settings = [(f"{one.name}={_default_text(one)}", _line_of(one)) for one in each.parameters]
        if each.bases:
            settings.append(("base", f"Learner of each tree; must be one of {', '.join(each.bases)}."))
        strategies = ", ".join(each.strategies)
        settings.append(("--strategy", f"The first is the default: {strategies}."))
        if each.package:
            settings.append(("package", f"{each.package}."))
        for setting, line in settings:
            out.print(Padding(Text(setting), (0, 0, 0, 2)))
            out.print(Padding(Text(line, style="dim"), (0, 0, 0, 6)))
        if number < len(found) - 1:
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


def _as_dict(learner: Learner) -> dict[str, object]:
    return {
        "name": learner.name,
        "summary": learner.summary,
        "parameters": [
            {
                "name": each.name,
                "default": each.default,
                "description": each.description,
                "allowed": each.bound_text,
                "meaning_of_none": each.meaning_of_none or None,
            }
            for each in learner.parameters
        ],
        "bases": list(learner.bases),
        "strategies": dict(learner.strategies),
        "package": learner.package or None,
    }
