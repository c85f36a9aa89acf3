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
        "shared": "as published within a node, but shares the queries among the undecided nodes by their rows",
        "small-regret": "as shared, weighted by regret; stops when no regret exceeds 0.1 of gain ratio",
        "leaf-width": "the leaf with the largest product of unlabelled rows and width of the entropy interval",
        "split-change": "the row whose answer is expected to separate the rivals of a node most",
        "prediction-change": "the row whose answer is expected to change the predictions of most rows",
        "committee": "the row whose class is most uncertain to a committee of trees",
        RECOMMENDED: "as committee, with a bonus for rows that are far from all known ones (recommended)",
    }
)
"""The strategies of trees by name, each with the instances that it selects."""

FOREST_STRATEGIES: Mapping[str, str] = MappingProxyType(
    {
        MARGIN: "the row with the smallest margin between its likeliest classes; a bonus if no similar row is known",
        MEMORY_DISAGREEMENT: "as margin, and prefers rows about which members with short and long memories disagree",
    }
)
"""The strategies of the active forest by name, each with the instances that it selects."""
