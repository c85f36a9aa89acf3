"""Queries, and the context for choosing them; the strategies are in `quercus.trees.ask.strategies`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from quercus.belief.arrays import Bools, Ints
from quercus.belief.errors import InvalidInput
from quercus.trees.ask.reasons import UNEXPLAINED, Reason
from quercus.trees.growth.batch import OpenNode
from quercus.trees.growth.sample import Sample
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.rules.ties import Interval
from quercus.trees.tree.node import Path


@dataclass(frozen=True, slots=True)
class QueryPosition:
    """The position of a query in the tree; it is stored with the answer in the log.

    Parameters
    ----------
    path
        Path of the node.
    attribute, code
        The child of that node that the query stands for; None if it stands for the node itself.
    rivals
        Non-dominated attributes at the start of the round, in declared order; `attribute` is one of them. Empty if the
        query is not part of a round because it stands for the node itself.

    Raises
    ------
    InvalidInput
        If only some of `attribute`, `code` and `rivals` are given, or `attribute` is not a rival.
    """

    path: Path
    attribute: int | None
    code: int | None
    rivals: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.attribute is None or self.code is None:
            if self.attribute is not None or self.code is not None or self.rivals:
                raise InvalidInput(
                    "asked", "names part of a child; attribute, code and rivals go together, or none is given"
                )
        elif self.attribute not in self.rivals:
            raise InvalidInput("rivals", f"are {self.rivals}, must contain the attribute {self.attribute}")


@dataclass(frozen=True, slots=True)
class Query:
    """A question to an oracle, with its reason.

    Parameters
    ----------
    instance
        Number of the instance, from 0.
    path
        Path of the node: an undecided one, or the leaf of the instance.
    attribute, code
        The child of the node that the instance stands for; None if it stands for the node itself.
    score
        Value of the query in the strategy's own measure. For the published strategy: by how much the child's interval
        narrows without this label, in bits, plus 1 if the label is vacuous (theory §3.3). Other strategies document
        their own scores.
    rivals
        Attribute, lower and upper end of the current gain ratio of each rival; empty if the query stands for the node
        itself.
    asked
        The position to store with the answer or refusal.
    node_count
        Number of instances in the node.
    reason
        The strategy's reason.
    """

    instance: int
    path: Path
    attribute: int | None
    code: int | None
    score: float
    rivals: tuple[tuple[int, float, float], ...]
    asked: QueryPosition
    node_count: int
    reason: Reason = UNEXPLAINED


@dataclass(frozen=True, slots=True)
class Contest:
    """An undecided node, as reasons describe it.

    Parameters
    ----------
    path
        Path of the node.
    rivals
        Attribute, lower and upper end of the gain ratio of each rival.
    node_count
        Number of instances in the node.
    """

    path: Path
    rivals: tuple[tuple[int, float, float], ...]
    node_count: int

    @classmethod
    def of(
        cls, path: Path, rivals: Sequence[int], gains: Mapping[int, Interval], node_count: int
    ) -> "Contest":
        """Return the contest between rivals, given the intervals of all candidates."""
        return cls(path, tuple((k, *gains[k]) for k in rivals if k in gains), node_count)


class QueryableTree(Protocol):
    """The part of a tree's interface that the choice of queries uses."""

    def find_node(self, path: Path) -> OpenNode | None:
        """Return the node at `path`, or None if the tree has no such node."""

    def contested_nodes(self) -> Iterator[tuple[OpenNode, tuple[int, ...]]]:
        """Yield the undecided nodes in pre-order, with their rivals: several splits, or one that is not earned."""

    def row_leaves(self) -> tuple[Ints, Callable[[int], Path]]:
        """Return the leaf of each row (n,), numbered in pre-order, and a function that returns the path of a leaf."""

    def gain_intervals(self, place: OpenNode) -> Mapping[int, Interval]:
        """Return the gain-ratio interval of every candidate at a node, even if growth did not need it."""

    def contests_above(self, paths: Sequence[Path]) -> list[Contest | None]:
        """Return, for each path, the contest at the deepest undecided node on it, its end included; None if none is."""


def contests_among(tree: QueryableTree, paths: Sequence[Path]) -> list[Contest | None]:
    """Compute `QueryableTree.contests_above` from all undecided nodes of a tree."""
    contested = {place.path: (place, rivals) for place, rivals in tree.contested_nodes()}
    found: list[Contest | None] = []
    for path in paths:
        above = (contested.get(path[:depth]) for depth in range(len(path), -1, -1))
        place, rivals = next(filter(None, above), (None, ()))
        found.append(
            None
            if place is None
            else Contest.of(place.path, rivals, tree.gain_intervals(place), int(place.rows.size))
        )
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _PartlyClosed:
    """A tree with closed rows, in which a node counts as undecided only if another row of it may be asked about."""

    tree: QueryableTree
    sample: Sample

    def find_node(self, path: Path) -> OpenNode | None:
        return self.tree.find_node(path)

    def contested_nodes(self) -> Iterator[tuple[OpenNode, tuple[int, ...]]]:
        return (found for found in self.tree.contested_nodes() if self.sample.candidates(found[0].rows).size)

    def row_leaves(self) -> tuple[Ints, Callable[[int], Path]]:
        return self.tree.row_leaves()

    def gain_intervals(self, place: OpenNode) -> Mapping[int, Interval]:
        return self.tree.gain_intervals(place)

    def contests_above(self, paths: Sequence[Path]) -> list[Contest | None]:
        return contests_among(self, paths)


@dataclass(frozen=True, slots=True, eq=False)
class QueryContext:
    """Everything that the choice of queries needs: the rows, their labels, and their tree.

    Parameters
    ----------
    sample
        The rows; rows that are being asked about are not askable.
    solver
        Entropy intervals over the sample's contours.
    growth
        The tree, which is decided lazily.
    ordered
        Number of ordered codes of each attribute, from 0 on, such as bins of a number; 0 for nominal attributes.
    instances
        Number in the log of each row of the sample, ascending; None: the sample has all rows of the log.
    forest
        The `quercus.trees.memory_forest.forest.MemoryForest` of the same log, if it selects the queries and the tree
        only explains them; None if the tree selects them.
    """

    sample: Sample
    solver: IntervalSolver
    growth: QueryableTree
    ordered: tuple[int, ...]
    instances: Ints | None = None
    forest: Any = None

    def instances_of(self, rows: Ints) -> Ints:
        """Return the numbers in the log of rows of the sample."""
        return rows if self.instances is None else self.instances[rows]

    def row_of(self, instance: int) -> int:
        """Return the row in the sample of an instance of the log."""
        return instance if self.instances is None else int(np.searchsorted(self.instances, instance))

    def without_closed(self, closed: Bools) -> "QueryContext":
        """Return the context in which no instance that is `closed` (n,) is asked about.

        Unlike answered or refused rows, closed ones do not cover other rows.
        """
        sample = replace(self.sample, closed=closed if self.instances is None else closed[self.instances])
        return replace(self, sample=sample, growth=_PartlyClosed(self.growth, sample))
