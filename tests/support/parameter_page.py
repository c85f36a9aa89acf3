"""The page of all parameters, docs/parameters.md, made from their declarations."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any

from quercus.specification import console, learners, server
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.learners import Pruning, learner_classes
from quercus.specification.model import Specification
from quercus.specification.parameter import Parameter, parameters_of
from quercus.specification.parameters import STRATEGY
from quercus.specification.plugins import plugin_classes
from quercus.specification.strategies import QueryStrategy

PAGE = Path(__file__).resolve().parents[2] / "docs" / "parameters.md"
HEAD = """# Parameters

Each parameter with its default and its bounds, as declared in `specification/`. Checks, errors and the help of the command
line are made from the same declarations, and so is this page: `python tests/support/parameter_page.py` writes it.
"""  # noqa: E501
MODELS = """
## Models

They stand in the specification of a model. Most are options of `quercus models create`. A model without a learner is
grown by `{learner}`.
"""
LEARNER = """
## Learners

`alpha`, `min_instances`, `max_depth`, `prediction_level` and `split_significance` of a served model are fields of its
specification, all others of its `learner` ([learners of a model](serving.md)). `max_cuts` of `abc45` and `e2m` is in neither:
the attributes of the model say how many cuts they have. Estimators have the same parameters ([estimators](estimators.md)).
"""  # noqa: E501
STRATEGIES = """
## Query strategies

They stand under `strategy` in the specification of a model, and are set by `--strategy-parameter`. Strategies that are
not listed have none ([query strategies](strategies.md)).
"""
SERVERS = """
## Servers

`flag`: an option of `quercus serve`. `limit`: `--limit KEY=VALUE`. Each is a variable of the environment as well
(`QUERCUS_PORT`), and a key in the table `[server]` of the file that `--config` names.
"""


CONSOLES = """
## Console

Options of `quercus console`, and variables of the environment (`QUERCUS_CONSOLE_PORT`). See also
[the console](console.md).
"""


def page() -> str:
    """Return the whole page."""
    models = {"nominal": Nominal, "numeric": Numeric, "pruning": Pruning}
    return (
        "\n".join(
            [
                HEAD.rstrip("\n"),
                MODELS.format(learner=learners.DEFAULT),
                table("of", of_each({"model": [*parameters_of(Specification), STRATEGY]} | of_kinds(models))),
                LEARNER,
                table("of", of_each(of_kinds(learner_classes()))),
                STRATEGIES,
                table("of", of_each(of_kinds(plugin_classes(QueryStrategy)))),
                SERVERS,
                table("set by", [(each, _set_by(each)) for each in server.PARAMETERS.values()]),
                CONSOLES,
                table("set by", [(each, "flag, environment") for each in console.PARAMETERS.values()]),
            ]
        )
        + "\n"
    )


def of_kinds(kinds: Mapping[str, Any]) -> dict[str, Iterable[Parameter]]:
    """Return the parameters of some classes."""
    return {name: parameters_of(kind) for name, kind in kinds.items()}


def of_each(kinds: Mapping[str, Iterable[Parameter]]) -> list[tuple[Parameter, str]]:
    """Return every parameter once, with the names of all that have it."""
    found: dict[Parameter, list[str]] = {}
    for name, parameters in kinds.items():
        for each in parameters:
            found.setdefault(each, []).append(name)
    return [(each, ", ".join(names)) for each, names in found.items()]


def table(second: str, rows: Iterable[tuple[Parameter, str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| parameter | {second} | default | bounds | meaning |", "|---|---|---|---|---|"]
    lines += [
        f"| `{each.name}` | {of} | {_default(each)} | {_bounds(each)} | {each.description} |"
        for each, of in rows
    ]
    return "\n".join(lines)


def _default(parameter: Parameter) -> str:
    if parameter.default is MISSING:
        return "must be given"
    if parameter.default is None:
        return parameter.meaning_of_none
    if isinstance(parameter.default, int) and parameter.default >= 10_000:
        return f"{parameter.default:,}"
    return f"`{parameter.default}`" if parameter.default != "" else "none"


def _bounds(parameter: Parameter) -> str:
    bound = re.sub(r"\d{5,}", lambda found: f"{int(found[0]):,}", parameter.bound_text)
    bound = bound.removeprefix("must lie in ").removeprefix("must be ")
    named = bool(parameter.meaning_of_none) and parameter.default is not None
    return bound + (f"; None: {parameter.meaning_of_none}" if named else "")


def _set_by(parameter: Parameter) -> str:
    if parameter in server.LIMITS:
        return "limit"
    return "file, environment" if parameter in server.NO_FLAG else "flag"


if __name__ == "__main__":
    PAGE.write_text(page())
