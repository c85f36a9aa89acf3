"""The strategies by name, and the computation of the agenda."""

from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType

from quercus.belief.errors import InvalidInput, shown
from quercus.specification.strategies import PUBLISHED, RECOMMENDED
from quercus.trees.ask.query import Query, QueryContext, QueryPosition
from quercus.trees.ask.strategies.committee import Committee
from quercus.trees.ask.strategies.leaf_width import LeafWidth
from quercus.trees.ask.strategies.prediction_change import PredictionChange
from quercus.trees.ask.strategies.published import Published
from quercus.trees.ask.strategies.shared import SharedQueries
from quercus.trees.ask.strategies.split_change import SplitChange
from quercus.trees.ask.strategies.strategy import Strategy

_STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        PUBLISHED: Published(),
        "shared": SharedQueries(),
        "small-regret": SharedQueries(regret=0.1),
        "leaf-width": LeafWidth(),
        "split-change": SplitChange(),
        "prediction-change": PredictionChange(),
        "committee": Committee(cover=0.0),
        RECOMMENDED: Committee(cover=0.05, explore=6),
    }
)


NAMES = tuple(_STRATEGIES)


def get_strategy(name: str) -> Strategy:
    """Return the strategy of that name.

    Raises
    ------
    InvalidInput
        When there is none.
    """
    if name not in _STRATEGIES:
        raise InvalidInput("strategy", f"is {shown(name)}, must be one of {', '.join(_STRATEGIES)}")
    return _STRATEGIES[name]


def agenda_of(
    context: QueryContext, last: QueryPosition | None, limit: int, name: str = PUBLISHED
) -> tuple[Query, ...]:
    """Return up to `limit` queries of a strategy, in order; see `Strategy.queries`.

    Raises
    ------
    InvalidInput
        When there is no strategy of that name.
    """
    return tuple(islice(get_strategy(name).queries(context, last, limit), limit))
