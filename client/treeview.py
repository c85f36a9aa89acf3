"""Parameters and results of the calls about trees, for both clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from quercus.client.errors import FailedPrecondition
from quercus.client.messages import enum_value, filled
from quercus.client.resources import tree_resource
from quercus.v1 import tree_pb2

RenderFormat = Literal["text", "dot", "svg"]


@dataclass(frozen=True)
class TreeVersion:
    """An update from :meth:`Client.watch_versions`: which tree is newest, and the end of the log when it was sent."""

    version: int
    as_of: int
    committed_sequence: int

    @property
    def lag(self) -> int:
        """Events committed but not in this tree."""
        return max(0, self.committed_sequence - self.as_of)


def replaced_error(model: str) -> FailedPrecondition:
    """Return the error for a caller who waits for a model whose name another has taken."""
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
