"""Base classes with the hand-written properties and methods of results.

Their annotations are the fields of the result that they use.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from quercus.client import notebooks
from quercus.specification.attributes import plain_number
from quercus.specification.written_labels import write_set

if TYPE_CHECKING:
    from quercus.client.results import AccuracyBlock, Evidence, Member, Model, Query, Tree
    from quercus.client.specifications import Specification
    from quercus.client.tree_nodes import TreeNode
    from quercus.specification.reasons import Fact, FactValue

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

_GROWER_WORDS: Final = {
    "off": "off: this server grows no trees",
    "restarting": "restarting: it ended, and starts again soon",
    "silent": "silent: it makes no progress",
}
"""Explanations of those states of a grower whose name does not explain itself."""


class RecentAccuracyAdditions:
    """Sums over the blocks of recent predictions."""

    blocks: tuple[AccuracyBlock, ...]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(block.rows for block in self.blocks)

    @property
    def precise_rows(self) -> int:
        """Number of rows whose label is one class."""
        return sum(block.precise_rows for block in self.blocks)

    @property
    def accuracy(self) -> float | None:
        """Share of the precise rows whose class was predicted; None if there are none."""
        right = sum(block.right for block in self.blocks)
        return right / self.precise_rows if self.precise_rows else None

    @property
    def expected(self) -> float:
        """Mean pignistic probability, under the labels of all rows, of the classes that were predicted."""
        return sum(block.expected for block in self.blocks) / self.rows if self.rows else 0.0


class ModelAdditions:
    """Numbers derived from the state of a model."""

    specification: Specification
    sequence_committed: int
    sequence_grown: int

    @property
    def budget(self) -> int:
        """Maximum number of answered and leased queries."""
        return self.specification.budget or 0

    @property
    def lag(self) -> int:
        """Number of events that are committed but not yet in the tree."""
        return self.sequence_committed - self.sequence_grown

    def _repr_html_(self: Model) -> str:  # type: ignore[misc]  # the result that this is the base of
        """Return what a notebook shows."""
        return notebooks.model_html(self)


class StatusAdditions:
    """The health of a server, and its grower in words."""

    grower: str
    grower_at: str
    grower_restarts: int
    lag_s: float
    store_trouble: str
    damaged: Mapping[str, str]
    stopped: Mapping[str, str]

    @property
    def is_grower_healthy(self) -> bool:
        """True if the grower runs, or if the server runs without one."""
        return self.grower in ("off", "running")

    @property
    def grower_text(self) -> str:
        """The state of the grower in words."""
        again = f"started again {self.grower_restarts} time{'' if self.grower_restarts == 1 else 's'}"
        parts = [
            _GROWER_WORDS.get(self.grower, self.grower),
            f"at model {self.grower_at}" if self.grower_at else "",
            again if self.grower_restarts else "",
            f"{self.lag_s:.1f} s behind" if self.lag_s else "",
        ]
        return ", ".join(filter(None, parts))

    @property
    def is_healthy(self) -> bool:
        """True if the store can be used, all its models are sound and grown, and the grower is healthy."""
        return not (self.store_trouble or self.damaged or self.stopped) and self.is_grower_healthy


class CallerAdditions:
    """The permissions of a caller."""

    models: tuple[str, ...] | None
    methods: frozenset[str]

    def may_call(self, method: str) -> bool:
        """Return whether the caller may call an RPC, as in ``"TreeService/GetTree"``."""
        return method in self.methods

    def may_use(self, model: str) -> bool:
        """Return whether the caller may use a model."""
        return self.models is None or model in self.models


class RivalAdditions:
    """The name of a rival."""

    attribute: str
    threshold: float | None

    @property
    def name(self) -> str:
        """The attribute, with the threshold if there is one."""
        return (
            self.attribute if self.threshold is None else f"{self.attribute} < {plain_number(self.threshold)}"
        )


class ReasonAdditions:
    """The facts of a strategy, by name."""

    facts: tuple[Fact, ...]

    def fact(self, name: str) -> FactValue | None:
        """Return the value of the fact with this name; ``None`` if there is none."""
        return next((fact.value for fact in self.facts if fact.name == name), None)


class QueryAdditions:
    """A query in a notebook."""

    def _repr_html_(self: Query) -> str:  # type: ignore[misc]
        """Return what a notebook shows."""
        return notebooks.query_html(self)


class LogEventAdditions:
    """The identifier of an event."""

    sequence: int
    model_uid: str
    evidence: Evidence

    @property
    def id(self) -> str:
        """Identifier of the event, which no other event ever has.

        It ends with the time of the event, in microseconds since 1970: after a log was reset to an earlier state (a
        restored backup, a failover that lost commits), its numbers are used again for other events.
        """
        return f"{self.model_uid}/{self.sequence}/{(self.evidence.created_at - _EPOCH) // _MICROSECOND}"


class TreeAdditions:
    """The nodes of a tree by kind, and their paths."""

    nodes: tuple[TreeNode, ...]
    classes: tuple[str, ...]
    members: tuple[Member, ...]
    member: int

    @property
    def node_classes(self) -> tuple[str, ...]:
        """The classes that its nodes distinguish: the frame, or one class and all the others."""
        return self.members[self.member].classes if self.members else self.classes

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
        """The nodes whose split is provisional: further labels could decide it."""
        return tuple(node for node in self.nodes if node.undecided)

    @property
    def depth(self) -> int:
        """Number of tests on the longest path."""
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
        """Return the tree below a node as nested dicts, as in ``quercus induce --json`` (attribute, ...)."""
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

    def _repr_html_(self: Tree) -> str:  # type: ignore[misc]
        """Return what a notebook shows."""
        return notebooks.tree_html(self)


class TreeUpdateAdditions:
    """The lag of a tree behind the log."""

    tree: Tree
    committed_sequence: int

    @property
    def lag(self) -> int:
        """Number of events that are committed but not in this tree."""
        return max(0, self.committed_sequence - self.tree.as_of)
