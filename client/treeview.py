"""Watching and drawing the trees of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from quercus.client.errors import FailedPrecondition
from quercus.client.messages import enum_value, filled
from quercus.client.resources import tree_resource
from quercus.client.results import Model
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


class WatchState:
    """The state of a watch, which may continue after an outage, but not with another model.

    Parameters
    ----------
    model
        Name of the model.
    uid
        Identity of the model; empty: that of the first tree that comes.
    """

    def __init__(self, model: str, uid: str = "") -> None:
        self._model, self._uid = model, uid
        self._version = 0

    def is_new(self, update: tree_pb2.WatchTreeResponse) -> bool:
        """Return whether a tree is new; raise :class:`FailedPrecondition` if it belongs to another model."""
        if self._uid not in {"", update.model_uid}:
            raise replaced_error(self._model)
        self._uid = update.model_uid
        newer = update.tree.version > self._version
        self._version = max(self._version, update.tree.version)
        return newer


def replaced_error(model: str) -> FailedPrecondition:
    """Return the error for a caller who waits for a model whose name another has taken."""
    return FailedPrecondition(f"model {model!r} was deleted, and another has its name: start again")


def wanted_sequence(before: str, now: Model, sequence: int | None) -> int:
    """Return the number of the event up to which to wait for growth: as given, else the end of the log.

    ``before`` is the uid that the client knew under the name. The client waits for a number beyond the end of the log,
    since a push may follow, unless the number belongs to a deleted model.
    """
    if sequence is None:
        return now.sequence_committed
    if before not in {"", now.uid} and sequence > now.sequence_committed:
        raise replaced_error(now.name)
    return sequence


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
