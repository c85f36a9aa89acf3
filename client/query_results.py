"""Queries with their reasons, and the outcomes of answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from quercus.client.results import Value
from quercus.specification.attributes import plain_number
from quercus.specification.display import Display
from quercus.specification.reasons import Fact, FactValue


@dataclass(frozen=True)
class Rival:
    """An attribute that may still be the best split of a node, with its gain-ratio interval.

    If numbers are split at thresholds, a rival is one ``threshold`` of the attribute.
    """

    attribute: str
    lower: float
    upper: float
    threshold: float | None = None

    @property
    def name(self) -> str:
        """The attribute, with the threshold if there is one."""
        return (
            self.attribute if self.threshold is None else f"{self.attribute} < {plain_number(self.threshold)}"
        )


@dataclass(frozen=True)
class Reason:
    """The reason why an instance is queried.

    ``path`` and ``node_count`` describe the node. An undecided node has ``rivals``, and the instance stands for its
    child ``attribute = value``. If the node is the leaf in which the instance ends, these are empty. If a forest makes
    the query, the node belongs to the tree beside it: the deepest contested node on the instance's path, or the leaf.
    ``score`` is the value of the label in the measure of the ``strategy``; published: by how much the child's entropy
    interval narrows without this label, in bits, and 1 more if the label is vacuous. ``sentence`` and ``facts`` are
    what the strategy says.
    """

    path: tuple[tuple[str, str], ...]
    rivals: tuple[Rival, ...]
    attribute: str
    value: str
    score: float
    node_count: int
    strategy: str = "published"
    sentence: str = ""
    facts: tuple[Fact, ...] = ()

    def fact(self, name: str) -> FactValue | None:
        """Return the value of the fact with this name; ``None`` if there is none."""
        return next((fact.value for fact in self.facts if fact.name == name), None)


@dataclass(frozen=True)
class Query:
    """A question to a labeller. ``instance`` is the id of the row, and ``display`` its display.

    ``place`` is its place on the agenda of the newest tree while it is open or leased (1 is leased first).
    ``expires_at`` is the end of the lease by the server's wall clock, and ``left_s`` the rest of the lease in seconds
    when the server sent the query.
    """

    name: str
    model: str
    number: int
    state: str
    instance: str
    values: Mapping[str, Value]
    contour: tuple[float, ...]
    classes: tuple[str, ...]
    reason: Reason
    tree_version: int
    labeller: str
    expires_at: datetime | None
    lease_token: str = field(repr=False)
    left_s: float | None = None
    answers: int = 0
    answers_wanted: int = 1
    display: Display = ()
    place: int | None = None


@dataclass(frozen=True)
class AnswerReport:
    """A committed answer or refusal.

    ``conflict``: it contradicted the earlier evidence totally, and replaced it. ``wants_more``: the query wants answers
    of other labellers too; ``degree_of_conflict`` and ``ignorance`` are those of the answers so far (mass of the empty
    set, and of the whole frame). ``reliability``: the reliability with which the answer counted.
    """

    query: str
    committed_sequence: int
    conflict: bool = False
    wants_more: bool = False
    degree_of_conflict: float = 0.0
    ignorance: float = 0.0
    reliability: float | None = None
    model_uid: str = ""


@dataclass(frozen=True)
class Lease:
    """The outcome of one attempt to lease: the queries, or the reason why there was none."""

    queries: tuple[Query, ...]
    idle: str | None
    budget_left: int
