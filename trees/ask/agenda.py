"""The computation of an agenda."""

from itertools import islice
from typing import cast

from quercus.specification.strategies import PUBLISHED, QueryStrategy, chosen_strategy
from quercus.trees.ask.query import Query, QueryContext, QueryPosition
from quercus.trees.ask.strategies.strategy import Strategy


def agenda_of(
    context: QueryContext, last: QueryPosition | None, limit: int, strategy: str | QueryStrategy = PUBLISHED
) -> tuple[Query, ...]:
    """Return up to `limit` queries of a strategy, in order; see `Strategy.queries`.

    Raises
    ------
    InvalidInput
        If there is no strategy of that name, or it does not choose for the tree or forest of this context.
    """
    chosen = cast(Strategy, chosen_strategy(strategy, "tree" if context.forest is None else "forest"))
    return tuple(islice(chosen.queries(context, last, limit), limit))
