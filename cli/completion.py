"""Tab completion: models and labellers from the server, learners and strategies from their declarations.

Calls to the server have a short deadline. If no server answers, nothing is offered and no error is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.console import Console

if TYPE_CHECKING:
    from quercus.specification.learners import Declaration

TIMEOUT_S: Final = 1.0
"""Longest time, in seconds, that a key press waits for a server."""
MAX_COMPLETIONS: Final = 200
"""Maximum number of names that are offered at once."""
ROOM: Final = 10
"""Columns left free beside a description, since the shell's quoting adds characters."""


def complete_from(choices: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a completion that offers fixed words."""
    known = tuple(choices)

    def complete(incomplete: str) -> list[str]:
        return [word for word in known if word.startswith(incomplete)]

    return complete


def complete_learner(incomplete: str) -> list[tuple[str, str]]:
    """Offer the learners that are installed here, each with its summary."""
    return _offer(incomplete, ((each.name, each.summary) for each in _declared()))


def complete_strategy(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Offer the strategies of the command's --learner, or of all learners if it names none."""
    known = _declared()
    chosen = [each for each in known if each.name == ctx.params.get("learner")]
    offered = {each.name: each.summary for learner in chosen or known for each in learner.strategies}
    return _offer(incomplete, sorted(offered.items()))


def complete_strategy_parameter(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Offer the parameters of the command's --strategy, such as ``cover=``; after the sign, words that it takes."""
    known = {each.name: each for learner in _declared() for each in learner.strategies}
    strategy = known.get(ctx.params.get("strategy") or "")
    return [] if strategy is None else _offer_settings(incomplete, _settings("", strategy))


def complete_parameter(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Offer the parameters of the command's --learner, such as ``trees=``; after the sign, words that it takes."""
    known = {each.name: each for each in _declared()}
    learner = known.get(ctx.params.get("learner") or "")
    if learner is None:
        return []
    offered = list(_settings("", learner))
    if learner.bases:
        offered.append(("base=", "Learner of each tree"))
        offered += [(f"base={name}", known[name].summary) for name in learner.bases if name in known]
        given: list[Any] = ctx.params.get("parameter") or []
        named = [str(each).removeprefix("base=") for each in given if str(each).startswith("base=")]
        if named and named[-1] in known:
            offered += _settings("base.", known[named[-1]])
    return _offer_settings(incomplete, offered)


def _offer_settings(incomplete: str, offered: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    is_value = "=" in incomplete
    return _offer(incomplete, (each for each in offered if each[0].endswith("=") != is_value))


def _settings(prefix: str, declared: Declaration) -> Iterator[tuple[str, str]]:
    for each in declared.parameters:
        yield f"{prefix}{each.name}=", f"{each.description}; {each.bound_text}"
        for word in ("true", "false") if each.kind is bool else each.choices:
            yield f"{prefix}{each.name}={word}", each.description
        if each.meaning_of_none:
            yield f"{prefix}{each.name}=none", each.meaning_of_none


def _offer(incomplete: str, known: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the words that begin like the typed text, each with a description that fits on one line.

    Typer wraps longer ones at the width of the terminal, and shells take the second line for another word.
    """
    width = Console().width - ROOM
    return [
        (word, shorten(says, width, placeholder=" …")) for word, says in known if word.startswith(incomplete)
    ]


def _declared() -> tuple[Declaration, ...]:
    from quercus.specification.learners import declarations  # noqa: PLC0415  (it imports every learner)

    return declarations()


def complete_model(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the models of the server that the command names."""
    return _fetch_names(ctx, incomplete, None)


def complete_labeller(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the labellers of the command's model, or of all models if it names none."""
    return _fetch_names(ctx, incomplete, str(ctx.params.get("model") or ctx.params.get("name") or ""))


def _fetch_names(ctx: typer.Context, incomplete: str, model: str | None) -> list[str]:
    """Return names that begin like the typed text: of models, or of the labellers of a model (empty: of all)."""
    from quercus.client.client import Client  # noqa: PLC0415  (gRPC takes long, and help needs none)
    from quercus.client.errors import QuercusError  # noqa: PLC0415

    names_found: set[str] = set()
    try:
        with Client(ctx.params.get("server"), timeout_s=TIMEOUT_S, outage_s=0) as client:
            models = [model] if model else (each.name for each in client.models())
            for name in models:
                names = [name] if model is None else [each.name for each in client.labellers(name)]
                names_found.update(each for each in names if each.startswith(incomplete))
                if len(names_found) >= MAX_COMPLETIONS:
                    break
    except (QuercusError, OSError, ValueError):
        return []
    return sorted(names_found)[:MAX_COMPLETIONS]
