"""``quercus learners``: the learners of a server, with their parameters."""

from __future__ import annotations

from rich.padding import Padding
from rich.text import Text

from quercus.cli.common import DEFAULT_SERVER, JsonOption, ServerOption, out, print_json
from quercus.client.client import Client


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
        print_json(
            [
                {
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
                for learner in found
            ]
        )
        return
    for number, learner in enumerate(found):
        if number:
            out.print()
        out.print(Text(learner.name, style="bold"), Text(learner.summary), sep="  ")
        settings = []
        for each in learner.parameters:
            default = "none" if each.default is None else each.default
            none = f" none: {each.meaning_of_none}." if each.meaning_of_none else ""
            shown = str(default).lower() if isinstance(default, bool) else default
            settings.append((f"{each.name}={shown}", f"{each.description}; {each.bound_text}.{none}"))
        if learner.bases:
            settings.append(("base", f"Learner of each tree; must be one of {', '.join(learner.bases)}."))
        settings.append(("--strategy", f"The first is the default: {', '.join(learner.strategies)}."))
        if learner.package:
            settings.append(("package", f"{learner.package}."))
        for setting, line in settings:
            out.print(Padding(Text(setting), (0, 0, 0, 2)))
            out.print(Padding(Text(line, style="dim"), (0, 0, 0, 6)))
