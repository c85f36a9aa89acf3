"""Completion with the tab key: models and labellers as the server names them, strategies and learners as declared.

Calls to the server have a short deadline. If no server answers, nothing is offered: completion prints no errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import typer

TIMEOUT_S: Final = 1.0
"""Longest time, in seconds, that a key press waits for a server."""
MAX_COMPLETIONS: Final = 200
"""Most names that are offered at once."""


def complete_from(choices: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a completion that offers fixed words."""
    known = tuple(choices)

    def complete(incomplete: str) -> list[str]:
        return [word for word in known if word.startswith(incomplete)]

    return complete


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
