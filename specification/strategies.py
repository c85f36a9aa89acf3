"""The query strategies by name. Nothing is imported here, so a process that only checks names stays small."""

from collections.abc import Mapping
from types import MappingProxyType

PUBLISHED = "published"
RECOMMENDED = "covering-committee"
DEFAULT = RECOMMENDED
"""The strategy of a model with a tree that asks, if it names none."""
MARGIN = "margin"
MEMORY_DISAGREEMENT = "memory-disagreement"
FOREST_DEFAULT = MARGIN
"""The strategy of a model with a forest that asks, if it names none."""

STRATEGIES: Mapping[str, str] = MappingProxyType(
    {
        PUBLISHED: "ABC4.5 as published: round by round at the first undecided node",
        "shared": "as published within a node, but shared over the undecided nodes by their rows",
        "small-regret": "shared, until no split can be regretted by more than 0.1 of gain ratio",
        "leaf-width": "where most unlabelled rows stand in the widest entropy interval",
        "split-change": "whose answer is expected to move the rivals of a node farthest from each other",
        "prediction-change": "whose answer is expected to change the predictions of most rows",
        "committee": "where the trees of a committee together know least",
        RECOMMENDED: "where a committee is in doubt, and where nothing near is known yet (recommended)",
    }
)
"""One line per strategy of trees, by name: which instances it asks about."""

FOREST_STRATEGIES: Mapping[str, str] = MappingProxyType(
    {
        MARGIN: "where the two likeliest classes of the forest are nearly equal, and where nothing near is known yet",
        MEMORY_DISAGREEMENT: "as margin, and where members with short and long memories disagree",
    }
)
"""One line per strategy of the forest that asks, by name."""
