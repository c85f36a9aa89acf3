"""Stand-in for a strategy whose package is not installed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from quercus.specification.strategies import Asks
from quercus.trees.ask.query import Query, QueryContext, QueryPosition
from quercus.trees.ask.strategies.strategy import Strategy


@dataclass(frozen=True)
class AbsentStrategy(Strategy):
    """A strategy whose package is not installed: it selects no queries, and everything else of its model is served.

    Parameters
    ----------
    name
        Name of the strategy.
    package
        The package that provides it, with its version.
    """

    name: str  # type: ignore[misc]  # a class attribute in other strategies
    package: str
    asks: ClassVar[frozenset[Asks]] = frozenset({"tree", "forest"})

    def queries(self, _context: QueryContext, _last: QueryPosition | None, _limit: int) -> Iterator[Query]:
        """See `quercus.trees.ask.strategies.strategy.Strategy`."""
        return iter(())
