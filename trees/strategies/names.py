"""The query strategies by name. Nothing is imported here, so a process that only checks names stays small."""

from collections.abc import Mapping
from types import MappingProxyType

PUBLISHED = "published"
RECOMMENDED = "covering-committee"

STRATEGIES: Mapping[str, str] = MappingProxyType(
    {
        PUBLISHED: "ABC4.5 as published: round by round at the first undecided node",
        "committee": "where the trees of a committee disagree most",
        RECOMMENDED: "where a committee disagrees, and where nothing near is known yet (recommended)",
    }
)
"""What each strategy asks about, in a line, by name."""
