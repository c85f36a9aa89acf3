"""The nodes of trees, with all names resolved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from quercus.client.reading import Words
from quercus.specification.attributes import threshold_branch
from quercus.v1 import tree_pb2

_STOPS: Final = Words(
    {number: name.removeprefix("STOP_REASON_").lower() for name, number in tree_pb2.StopReason.items()}
)


@dataclass(frozen=True)
class TreeNode:
    """A node of a tree.

    ``branch`` is the name of the branch from the parent. ``attribute`` is the splitting attribute (``None`` for a
    leaf), with its ``threshold`` if there is one. ``intervals`` has the gain-ratio interval of every candidate, and
    ``stop`` the reason why a leaf does not split. ``mass`` gives each focal set its mass, for learners with mass
    functions; it is a mean if the labels ``conflict``. ``weight`` is the weight of its rows.
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


def nodes_of(message: tree_pb2.Tree) -> tuple[TreeNode, ...]:
    """Return the nodes of a tree."""
    columns, attributes = message.nodes, message.attributes
    classes = (message.members[message.member] if message.members else message).classes
    count, size = len(columns.parents), len(classes)
    theta, belief, plausibility = (
        [tuple(row) for row in np.array(column, dtype=np.float64).reshape(count, size).tolist()]
        for column in (columns.theta, columns.belief, columns.plausibility)
    )
    intervals = iter(
        zip(columns.interval_attributes, columns.interval_lowers, columns.interval_uppers, strict=True)
    )
    children: list[list[int]] = [[] for _ in range(count)]
    for index in range(1, count):
        children[columns.parents[index]].append(index)
    pairs = zip(columns.mass_sets, columns.masses, strict=True)
    masses = [
        {tuple(name for c, name in enumerate(classes) if mask >> c & 1): m for mask, m in islice(pairs, own)}
        for own in columns.mass_counts
    ]

    def threshold(index: int) -> float | None:
        value = columns.thresholds[index] if columns.thresholds else math.nan
        return None if math.isnan(value) else value

    nodes: list[TreeNode] = []
    for index, (parent, attribute) in enumerate(zip(columns.parents, columns.attributes, strict=True)):
        candidates = islice(intervals, columns.interval_counts[index])
        branch = None
        if index:
            code = columns.branches[index]
            above = threshold(parent)
            names = attributes[columns.attributes[parent]].branches
            branch = names[code] if above is None else threshold_branch(above, code)
        nodes.append(
            TreeNode(
                index=index,
                parent=parent if index else None,
                depth=nodes[parent].depth + 1 if index else 0,
                branch=branch,
                attribute=attributes[attribute].attribute if attribute >= 0 else None,
                class_name=classes[columns.class_indices[index]],
                count=columns.counts[index],
                theta=theta[index],
                belief=belief[index],
                plausibility=plausibility[index],
                intervals={attributes[k].attribute: (lower, upper) for k, lower, upper in candidates},
                undecided=columns.undecided[index],
                stop=_STOPS[columns.stops[index]] if columns.stops[index] else None,
                children=tuple(children[index]),
                threshold=threshold(index),
                mass=masses[index] if masses else None,
                conflict=bool(columns.conflicts) and columns.conflicts[index],
                weight=columns.weights[index] if columns.weights else float(columns.counts[index]),
            )
        )
    return tuple(nodes)
