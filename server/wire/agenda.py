"""Conversion of the grower's queries to their stored form, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence

from quercus.trees import Query, QueryPosition, SplitName
from quercus.v1 import query_pb2

MAX_RIVALS = 100  # that a reason names: every cut of every number may be one

Interval = tuple[int, float, float]  # split, and the ends of its gain ratio


def encode_asked(asked: QueryPosition) -> bytes:
    """Convert the place of a query in its round to the form in which the log keeps it."""
    fields = [asked.path, asked.attribute, asked.code, asked.rivals]
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_asked(data: bytes) -> QueryPosition:
    """Read what `encode_asked` wrote."""
    path, attribute, code, rivals = json.loads(data)
    return QueryPosition(tuple((a, c) for a, c in path), attribute, code, tuple(rivals))


def encode_reason(query: Query, splits: Sequence[SplitName], strategy: str) -> bytes:
    """Convert the reason of a query to a serialised ``quercus.v1.Reason``.

    Parameters
    ----------
    query : query of the agenda, which names splits by their numbers.
    splits : what these are called. Of more rivals than `MAX_RIVALS`, those are named whose gain ratio may be largest.
    strategy : strategy that selected it.
    """
    reason = query_pb2.Reason(score=query.score, node_count=query.node_count, strategy=strategy)
    if query.attribute is not None and query.code is not None:
        reason.attribute = splits[query.attribute].attribute
        reason.value = splits[query.attribute].branches[query.code]
    for split, code in query.path:
        reason.path.add(attribute=splits[split].attribute, value=splits[split].branches[code])
    for split, lower, upper in _foremost_rivals(query.rivals):
        name = splits[split]
        reason.rivals.add(attribute=name.attribute, lower=lower, upper=upper, threshold=name.threshold)
    if query.forest is not None:
        lower, upper = query.forest.entropy or (0.0, 0.0)
        reason.forest.theta.extend(query.forest.theta)
        reason.forest.disagreement = query.forest.disagreement
        reason.forest.stands_for = query.forest.stands_for
        reason.forest.entropy_lower, reason.forest.entropy_upper = lower, upper
    if query.committee is not None:
        found = query.committee
        reason.committee.theta.extend(found.theta)
        reason.committee.doubt, reason.committee.stands_for = found.doubt, found.stands_for
        reason.committee.by_cover = found.by_cover
    return reason.SerializeToString(deterministic=True)


def _foremost_rivals(rivals: Sequence[Interval]) -> Sequence[Interval]:
    if len(rivals) <= MAX_RIVALS:
        return rivals
    best = sorted(range(len(rivals)), key=lambda at: -rivals[at][2])[:MAX_RIVALS]
    return [rivals[at] for at in sorted(best)]
