"""Query strategies by name, as the specification of a model sees them; each is a plug-in, imported when needed."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final, Literal, cast

from quercus.belief.errors import InvalidInput, shown
from quercus.specification.parameter import summary_of
from quercus.specification.plugins import STRATEGIES, PluginError, load_plugin, missing_package, plugin_names

PUBLISHED: Final = "published"
RECOMMENDED: Final = "covering-committee"
MARGIN: Final = "margin"
MEMORY_DISAGREEMENT: Final = "memory-disagreement"

Asks = Literal["tree", "forest"]
"""The part that chooses the queries of a model: its active tree, or its forest of many memories."""

DEFAULT_STRATEGY: Final[Mapping[Asks, str]] = MappingProxyType({"tree": RECOMMENDED, "forest": MARGIN})
"""The strategy of a model that names none, by what chooses its queries."""


class QueryStrategy:
    """A query strategy as far as the specification of a model needs to know it.

    The first sentence of a subclass's docstring says which instances it selects.

    Attributes
    ----------
    name
        Name under which it is installed.
    asks
        What it can choose for.
    """

    __slots__ = ()

    name: ClassVar[str]
    asks: ClassVar[frozenset[Asks]] = frozenset({"tree"})


def strategy_class(name: str, asks: Asks | None = None, package: str = "") -> type[QueryStrategy]:
    """Return a strategy's class by its name.

    Parameters
    ----------
    name
        The name.
    asks
        What it must be able to choose for; None: anything.
    package
        The package that brought it when a model named it, with its version; empty for those of Quercus.

    Raises
    ------
    InvalidInput
        When no package brings it, two do, it cannot be imported, or it chooses for something else.
    """
    try:
        found = cast("type[QueryStrategy]", load_plugin(STRATEGIES, name, QueryStrategy))
    except PluginError as error:
        if package and name not in plugin_names(STRATEGIES):
            raise InvalidInput(
                "strategy", f"is {shown(name)}, {missing_package('strategy', package)}"
            ) from None
        if asks is not None and name not in plugin_names(STRATEGIES):
            raise InvalidInput(
                "strategy", f"is {shown(name)}, must be one of {', '.join(strategies(asks))}"
            ) from None
        raise InvalidInput("strategy", f"is {shown(name)}, {error.reason}") from None
    if asks is not None and asks not in found.asks:
        raise InvalidInput(
            "strategy",
            f"is {name!r}, must be one of {', '.join(strategies(asks))}; {name!r} is for models whose "
            f"{' or '.join(sorted(found.asks))} asks",
        )
    return found


def strategies(asks: Asks) -> Mapping[str, str]:
    """Return the strategies that choose for a tree or a forest, each with a sentence: which instances it selects.

    The default is the first. One that cannot be imported is left out.
    """
    found: dict[str, str] = {}
    default = DEFAULT_STRATEGY[asks]
    for name in sorted(plugin_names(STRATEGIES), key=lambda each: each != default):
        try:
            each = strategy_class(name)
        except InvalidInput:
            continue  # `quercus doctor` says why
        if asks in each.asks:
            found[name] = summary_of(each)
    return MappingProxyType(found)
