"""Parameters and results of the calls about trees, for both clients."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from quercus.client.errors import FailedPrecondition
from quercus.client.messages import enum_value, filled, to_timestamp
from quercus.client.resources import instance_resource, tree_resource
from quercus.v1 import tree_pb2

RenderFormat = Literal["text", "dot", "svg"]
EXPLAIN_S: Final = 130.0
"""Time to wait for an explanation, in seconds: slightly longer than the server's maximum."""


@dataclass(frozen=True)
class TreeVersion:
    """An update from :meth:`Client.watch_versions`: the newest tree, and the end of the log at that time."""

    version: int
    as_of: int
    committed_sequence: int

    @property
    def lag(self) -> int:
        """Number of events that are committed but not in this tree."""
        return max(0, self.committed_sequence - self.as_of)


def replaced_error(model: str) -> FailedPrecondition:
    """Return the error for a caller that waits for a model whose name was taken by another."""
    return FailedPrecondition(f"model {model!r} was deleted, and another has its name: start again")


def render_request(
    model_name: str,
    version: int | None,
    form: RenderFormat,
    member: int | None = None,
    depth: int | None = None,
) -> tree_pb2.RenderTreeRequest:
    """Return the request of RenderTree."""
    return filled(
        tree_pb2.RenderTreeRequest,
        name=tree_resource(model_name, version),
        format=enum_value(tree_pb2.RenderTreeRequest.Format.DESCRIPTOR, "form", form),
        member=member,
        depth=depth,
    )


def explain_request(model: str, instance: str, at: int | datetime | None) -> tree_pb2.ExplainRowRequest:
    """Return the request of ExplainRow."""
    name = instance_resource(model, instance)
    if isinstance(at, int):
        return filled(tree_pb2.ExplainRowRequest, name=name, sequence=at)
    return filled(tree_pb2.ExplainRowRequest, name=name, time=to_timestamp(at))
