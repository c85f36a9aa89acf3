"""The computation of an agenda by the strategy of a name."""

from itertools import islice
from typing import cast

from quercus.specification.strategies import PUBLISHED, Asks, strategy_class
from quercus.trees.ask.query import Query, QueryContext, QueryPosition
from quercus.trees.ask.strategies.strategy import Strategy


def strategy_named(name: str, asks: Asks) -> Strategy:
    """Return the strategy of a name, for models whose tree or forest asks.

    Raises
    ------
    InvalidInput
        When there is none.
    """
    return cast("type[Strategy]", strategy_class(name, asks))()


def agenda_of(
    context: QueryContext, last: QueryPosition | None, limit: int, name: str = PUBLISHED
) -> tuple[Query, ...]:
    """Return up to `limit` queries of a strategy, in order; see `Strategy.queries`.

    Raises
    ------
    InvalidInput
        When there is no strategy of that name.
    """
    strategy = strategy_named(name, "tree" if context.forest is None else "forest")
    return tuple(islice(strategy.queries(context, last, limit), limit))
