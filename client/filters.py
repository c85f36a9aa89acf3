"""The queries that a labeller wants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from quercus.client.messages import filled
from quercus.v1 import query_pb2

ANY: Final = "-"
"""Stands for all models that have queries, in turn."""


@dataclass(frozen=True)
class Filter:
    """A labeller's filter of queries; an empty field excludes nothing.

    Attributes
    ----------
    classes
        Classes that the labeller can identify: only queries whose plausible classes are all among these.
    values
        Values of nominal attributes that the row must have.
    tags
        Tags that the model must all have, if any model (``"-"``) is requested.
    """

    classes: Sequence[str] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    tags: Sequence[str] = ()

    def to_message(self) -> query_pb2.QueryFilter:
        """Return the message of the filter."""
        return filled(query_pb2.QueryFilter, **vars(self))
