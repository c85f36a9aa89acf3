"""The times during which labellers believed to hold a query, and those that contradict each other."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise


@dataclass(frozen=True)
class Holding:
    """The time during which a labeller believed to hold a query, by the clock that all labellers share.

    The lease was given at some moment between `asked` and `since`: a labeller takes up several queries one after the
    other.
    """

    query: str
    labeller: str
    token_id: str
    asked: float
    since: float
    until: float


@dataclass(frozen=True)
class Cut:
    """A lease, or all of a labeller or of an access token, was ended by another than its holder at some moment."""

    since: float
    until: float
    query: str = ""
    labeller: str = ""
    token_id: str = ""

    def strikes(self, held: Holding) -> bool:
        """Return whether this may have ended the lease, perhaps before its holder began with the query."""
        return held.asked <= self.until and self.is_of(held)

    def is_of(self, held: Holding) -> bool:
        """Return whether the query, the labeller or the token is the same."""
        theirs = (self.query, self.labeller, self.token_id)
        mine = (held.query, held.labeller, held.token_id)
        return any(a == b for a, b in zip(theirs, mine, strict=True) if a)


def doubles(holdings: Iterable[Holding], cuts: Iterable[Cut]) -> Iterator[tuple[Holding, Holding]]:
    """Yield pairs of overlapping holdings of a query, where the earlier one was not ended."""
    cuts = list(cuts)
    sure: dict[str, list[Holding]] = {}
    for held in sorted(holdings, key=lambda held: held.since):
        until = min([held.until, *(cut.since for cut in cuts if cut.strikes(held))])
        if until > held.since:  # else it had ended when it was taken up
            sure.setdefault(held.query, []).append(replace(held, until=until))
    for of_query in sure.values():
        yield from ((earlier, later) for earlier, later in pairwise(of_query) if earlier.until > later.since)
