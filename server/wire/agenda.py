"""Conversion of the grower's queries to their stored form, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from quercus.specification.conditions import condition_of
from quercus.specification.reasons import Fact, Shares
from quercus.trees import CHILD, Query, QueryPosition, SplitName
from quercus.v1 import query_pb2

MAX_RIVALS = 100  # most rivals that a reason names, since every cut of every number may be one


def encode_asked(asked: QueryPosition) -> bytes:
    """Convert the position of a query in its round to its stored form."""
    fields = [asked.path, asked.attribute, asked.code, asked.rivals]
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_asked(data: bytes) -> QueryPosition:
    """Convert the result of `encode_asked` back."""
    path, attribute, code, rivals = json.loads(data)
    return QueryPosition(tuple((a, c) for a, c in path), attribute, code, tuple(rivals))


def encode_reasons(queries: Iterable[Query], splits: Sequence[SplitName], strategy: str) -> list[bytes]:
    """Convert the reasons of queries to serialised ``quercus.v1.Reason``.

    Parameters
    ----------
    queries : queries of the agenda, which refer to splits by number.
    splits : names of the splits. If there are more rivals than `MAX_RIVALS`, those with the largest possible gain
        ratios are named.
    strategy : strategy that chose the queries.
    """
    nodes: dict[tuple[Any, Any], bytes] = {}  # many queries are about the same few nodes
    reasons = []
    for query in queries:
        node = query.path, query.rivals
        if node not in nodes:
            nodes[node] = _encode_node(query, splits)
        # concatenated parts are the bytes of one message
        reasons.append(nodes[node] + _encode_rest(query, splits, strategy))
    return reasons


def _encode_node(query: Query, splits: Sequence[SplitName]) -> bytes:
    """Return the path and the rivals of a reason, serialised."""
    reason = query_pb2.Reason()
    for number, code in query.path:
        reason.path.add(attribute=splits[number].attribute, value=splits[number].branches[code])
    rivals = query.rivals
    if len(rivals) > MAX_RIVALS:
        best = sorted(range(len(rivals)), key=lambda at: -rivals[at][2])[:MAX_RIVALS]
        rivals = tuple(rivals[at] for at in sorted(best))
    for number, lower, upper in rivals:
        name = splits[number]
        reason.rivals.add(attribute=name.attribute, lower=lower, upper=upper, threshold=name.threshold)
    return reason.SerializeToString(deterministic=True)


def _encode_rest(query: Query, splits: Sequence[SplitName], strategy: str) -> bytes:
    """Return the other fields of a reason, serialised."""
    found = query.reason
    reason = query_pb2.Reason(score=query.score, node_count=query.node_count, strategy=strategy)
    child = ""
    if query.attribute is not None and query.code is not None:
        split = splits[query.attribute]
        reason.attribute, reason.value = split.attribute, split.branches[query.code]
        child = condition_of(reason.attribute, reason.value, is_nominal=split.is_nominal).text
    reason.sentence = found.sentence.replace(CHILD, child)
    for fact in found.facts:
        _add_fact(reason, fact)
    return reason.SerializeToString(deterministic=True)


def _add_fact(reason: query_pb2.Reason, fact: Fact) -> None:
    # for some hundred facts after each answer: `match`, and a message that is copied, would take twice the time
    name, value, add = fact.name, fact.value, reason.facts.add
    if isinstance(value, float):
        add(name=name, number=value)
    elif isinstance(value, int):
        add(name=name, count=value)
    elif isinstance(value, str):
        add(name=name, text=value)
    elif isinstance(value, Shares):
        add(name=name, shares=query_pb2.Shares(theta=value.theta, who=value.who))
    else:
        lower, upper = value
        add(name=name, interval=query_pb2.Interval(lower=lower, upper=upper))
