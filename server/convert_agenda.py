"""The grower's queries: to what the store keeps, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence

from quercus.proto.v1 import query_pb2
from quercus.trees.query import Asked, Query

Names = Sequence[Sequence[str]]


def encode_asked(asked: Asked) -> bytes:
    """Convert the place of a query in its round to the form in which the log keeps it."""
    fields = [asked.path, asked.attribute, asked.code, asked.rivals]
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_asked(data: bytes) -> Asked:
    """Read what `encode_asked` wrote."""
    path, attribute, code, rivals = json.loads(data)
    return Asked(tuple((a, c) for a, c in path), attribute, code, tuple(rivals))


def encode_reason(query: Query, attributes: Sequence[str], names: Names, strategy: str) -> bytes:
    """Convert the reason of a query to a serialised ``quercus.v1.Reason``.

    Parameters
    ----------
    query : as the agenda has it.
    attributes : names of the attributes.
    names : names of the branches, one sequence an attribute.
    strategy : by which it was chosen.
    """
    reason = query_pb2.Reason(score=query.score, node_count=query.node_count, strategy=strategy)
    if query.attribute is not None and query.code is not None:
        reason.attribute = attributes[query.attribute]
        reason.value = names[query.attribute][query.code]
    for attribute, code in query.path:
        reason.path.add(attribute=attributes[attribute], value=names[attribute][code])
    for attribute, lower, upper in query.rivals:
        reason.rivals.add(attribute=attributes[attribute], lower=lower, upper=upper)
    return reason.SerializeToString(deterministic=True)
