"""Query strategies as the specification of a model refers to them: by name, with parameters."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final, Literal

from quercus.belief.errors import InvalidInput, shown
from quercus.specification.plugins import STRATEGIES, Plugin, plugin_class, plugin_classes, plugins_called

PUBLISHED: Final = "published"
RECOMMENDED: Final = "covering-committee"
MARGIN: Final = "margin"
MEMORY_DISAGREEMENT: Final = "memory-disagreement"

Asks = Literal["tree", "forest"]
"""The part that chooses the queries of a model: its active tree, or its forest of many memories."""

DEFAULT_STRATEGY: Final[Mapping[Asks, str]] = MappingProxyType({"tree": RECOMMENDED, "forest": MARGIN})
"""The default strategy of a model, by the part that chooses its queries."""


class QueryStrategy(Plugin):
    """The part of a query strategy that the specification of a model uses.

    The first sentence of a subclass's docstring says which instances it selects.

    Attributes
    ----------
    asks
        The parts of a model for which it can choose queries.
    """

    __slots__ = ()

    group = STRATEGIES
    noun = "strategy"
    asks: ClassVar[frozenset[Asks]] = frozenset({"tree"})


def strategy_class(name: str, asks: Asks, package: str = "") -> type[QueryStrategy]:
    """Return a strategy's class by its name.

    Parameters
    ----------
    name
        The name.
    asks
        The part of a model for which it must be able to choose.
    package
        The package that provided it when the model was created, with its version; empty for Quercus.

    Raises
    ------
    InvalidInput
        If no package or two provide it, it cannot be imported, or it cannot choose for `asks`.
    """
    if not package and not plugins_called(STRATEGIES, name):
        raise InvalidInput("name", f"is {shown(name)}, must be one of {', '.join(strategies(asks))}")
    found = plugin_class(QueryStrategy, name, package)
    if asks not in found.asks:
        raise InvalidInput(
            "name",
            f"is {name!r}, must be one of {', '.join(strategies(asks))}; {name!r} is for models whose "
            f"{' or '.join(sorted(found.asks))} asks",
        )
    return found


def chosen_strategy(given: str | QueryStrategy | None, asks: Asks) -> QueryStrategy:
    """Return a strategy that is given by its name or as a value; None for the default.

    Examples
    --------
    >>> chosen_strategy("committee", "tree").cover, chosen_strategy(None, "forest").name
    (0.0, 'margin')

    Raises
    ------
    InvalidInput
        If it is not a strategy, or cannot choose for `asks`.
    """
    if given is not None and not isinstance(given, str | QueryStrategy):
        raise InvalidInput("strategy", f"is {shown(given)}, must be a strategy or its name")
    name = DEFAULT_STRATEGY[asks] if given is None else given if isinstance(given, str) else given.name
    if isinstance(given, QueryStrategy) and asks in given.asks:
        return given
    try:
        return strategy_class(name, asks)()
    except InvalidInput as error:
        raise InvalidInput("strategy", error.reason) from None


def strategies(asks: Asks) -> Mapping[str, type[QueryStrategy]]:
    """Return the strategies that choose for a tree or a forest, the default first."""
    found = {name: each for name, each in plugin_classes(QueryStrategy).items() if asks in each.asks}
    default = DEFAULT_STRATEGY[asks]
    return MappingProxyType(dict(sorted(found.items(), key=lambda each: each[0] != default)))
