"""Trees for clients: nodes in pre-order, with all names resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from quercus.client.errors import FailedPrecondition
from quercus.client.results import Model
from quercus.specification.written_labels import write_set
from quercus.v1 import tree_pb2


@dataclass(frozen=True)
class TreeNode:
    """A node of a tree.

    ``branch`` is the value that leads here from the parent. ``attribute`` is the splitting attribute (``None``: a
    leaf), with its ``threshold`` if there is one. ``intervals`` has the gain-ratio interval of every candidate, and
    ``stop`` the reason why a leaf is one. ``mass`` gives each focal set its mass, for learners with mass functions; it
    is a mean if the labels ``conflict``. ``weight`` is the weight of its rows.
    """

    index: int
    parent: int | None
    depth: int
    branch: str | None
    attribute: str | None
    class_name: str
    count: int
    theta: tuple[float, ...]
    belief: tuple[float, ...]
    plausibility: tuple[float, ...]
    intervals: Mapping[str, tuple[float, float]]
    undecided: bool
    stop: str | None
    children: tuple[int, ...]
    threshold: float | None = None
    mass: Mapping[tuple[str, ...], float] | None = None
    conflict: bool = False
    weight: float = 0.0

    @property
    def is_leaf(self) -> bool:
        """True if the node does not split."""
        return self.attribute is None


@dataclass(frozen=True)
class AttributeBranches:
    """The branch names of an attribute in force, and its inner edges if it is numeric."""

    attribute: str
    branches: tuple[str, ...]
    edges: tuple[float, ...]
    numeric: bool


@dataclass(frozen=True)
class Member:
    """One tree of several: its size, and the classes that it distinguishes."""

    nodes: int
    leaves: int
    depth: int
    classes: tuple[str, ...]


@dataclass(frozen=True)
class Tree:
    """A tree at a version: a function of the model's log up to ``as_of``.

    ``members`` are all trees of the version; this is number ``member``. Forests have several, and so have learners that
    distinguish each class from the rest.
    """

    model: str
    version: int
    as_of: int
    classes: tuple[str, ...]
    attributes: tuple[AttributeBranches, ...]
    nodes: tuple[TreeNode, ...]
    created_at: datetime
    algorithm: str = "abc45"
    members: tuple[Member, ...] = ()
    member: int = 0

    @property
    def root(self) -> TreeNode:
        """The first node."""
        return self.nodes[0]

    @property
    def leaves(self) -> tuple[TreeNode, ...]:
        """The nodes that do not split, in pre-order."""
        return tuple(node for node in self.nodes if node.is_leaf)

    @property
    def undecided(self) -> tuple[TreeNode, ...]:
        """The nodes whose split is provisional: labels could still settle it."""
        return tuple(node for node in self.nodes if node.undecided)

    @property
    def depth(self) -> int:
        """Tests on the longest path."""
        return max(node.depth for node in self.nodes)

    def path(self, node: TreeNode) -> tuple[tuple[str, str], ...]:
        """Return the tests from the root to a node, as (attribute, value)."""
        steps: list[tuple[str, str]] = []
        while node.parent is not None:
            parent = self.nodes[node.parent]
            steps.append((parent.attribute or "", node.branch or ""))
            node = parent
        return tuple(reversed(steps))

    def to_dict(self, node: TreeNode | None = None) -> dict[str, Any]:
        """Return the nested form, also that of ``quercus induce --json`` (keys: attribute, class, theta, ...)."""
        node = node or self.root
        own: dict[str, Any] = {} if node.threshold is None else {"threshold": node.threshold}
        if node.mass is not None:
            own["mass"] = {write_set(names): value for names, value in node.mass.items()}
        return {
            "attribute": node.attribute,
            "class": node.class_name,
            "theta": list(node.theta),
            "count": node.count,
            "intervals": {name: list(ends) for name, ends in node.intervals.items()},
            **own,
            "children": {self.nodes[i].branch: self.to_dict(self.nodes[i]) for i in node.children},
        }


@dataclass(frozen=True)
class TreeUpdate:
    """An update from :meth:`Client.watch`: a tree, and the end of the log when it was sent."""

    tree: Tree
    committed_sequence: int

    @property
    def lag(self) -> int:
        """Events committed but not in this tree."""
        return max(0, self.committed_sequence - self.tree.as_of)


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
