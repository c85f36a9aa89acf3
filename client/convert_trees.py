"""Trees from protobuf, with every name resolved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import Literal

import numpy as np

from quercus.client.convert import enum_word, model_of, to_datetime
from quercus.client.errors import invalid
from quercus.client.messages import filled
from quercus.client.treeview import AttributeBranches, Member, Tree, TreeNode
from quercus.specification.attributes import plain_number
from quercus.v1 import tree_pb2

RenderFormat = Literal["text", "dot", "svg"]


def tree_from_proto(message: tree_pb2.Tree) -> Tree:
    """Return the tree in a message, with every name resolved."""
    attributes = tuple(
        AttributeBranches(a.attribute, tuple(a.branches), tuple(a.edges), a.numeric)
        for a in message.attributes
    )
    members = tuple(Member(m.nodes, m.leaves, m.depth, tuple(m.classes)) for m in message.members)
    classes = members[message.member].classes if members else tuple(message.classes)
    nodes = _nodes_from_proto(message.nodes, classes, attributes)
    return Tree(
        model_of(message.name),
        message.version,
        message.as_of,
        tuple(message.classes),
        attributes,
        nodes,
        to_datetime(message.create_time),
        message.algorithm,
        members,
        message.member,
    )


def _nodes_from_proto(
    columns: tree_pb2.Nodes, classes: Sequence[str], attributes: Sequence[AttributeBranches]
) -> tuple[TreeNode, ...]:
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
    masses = _node_masses(columns, classes)
    nodes: list[TreeNode] = []
    for index, (parent, attribute) in enumerate(zip(columns.parents, columns.attributes, strict=True)):
        candidates = islice(intervals, columns.interval_counts[index])
        nodes.append(
            TreeNode(
                index=index,
                parent=parent if index else None,
                depth=nodes[parent].depth + 1 if index else 0,
                branch=_branch_name(columns, index, attributes) if index else None,
                attribute=attributes[attribute].attribute if attribute >= 0 else None,
                class_name=classes[columns.class_indices[index]],
                count=columns.counts[index],
                theta=theta[index],
                belief=belief[index],
                plausibility=plausibility[index],
                intervals={attributes[k].attribute: (lower, upper) for k, lower, upper in candidates},
                undecided=columns.undecided[index],
                stop=_stop_name(columns.stops[index]),
                children=tuple(children[index]),
                threshold=_node_threshold(columns, index),
                mass=masses[index] if masses else None,
                conflict=bool(columns.conflicts) and columns.conflicts[index],
                weight=columns.weights[index] if columns.weights else float(columns.counts[index]),
            )
        )
    return tuple(nodes)


def _node_threshold(columns: tree_pb2.Nodes, index: int) -> float | None:
    value = columns.thresholds[index] if columns.thresholds else math.nan
    return None if math.isnan(value) else value


def _branch_name(columns: tree_pb2.Nodes, index: int, attributes: Sequence[AttributeBranches]) -> str:
    """Return the name of the branch that leads to a node."""
    parent, code = columns.parents[index], columns.branches[index]
    threshold = _node_threshold(columns, parent)
    if threshold is not None:
        text = plain_number(threshold)
        return (f"< {text}", f"≥ {text}", "?")[code]
    return attributes[columns.attributes[parent]].branches[code]


def _node_masses(
    columns: tree_pb2.Nodes, classes: Sequence[str]
) -> list[dict[tuple[str, ...], float]] | None:
    if not columns.mass_counts:
        return None
    pairs = zip(columns.mass_sets, columns.masses, strict=True)
    return [
        {
            tuple(name for c, name in enumerate(classes) if mask >> c & 1): m
            for mask, m in islice(pairs, count)
        }
        for count in columns.mass_counts
    ]


def _stop_name(stop: tree_pb2.StopReason.ValueType) -> str | None:
    return enum_word(tree_pb2.StopReason, stop, "STOP_REASON") if stop else None


def tree_resource(model_name: str, version: int | None) -> str:
    """Return ``models/{model}/trees/{version}``, or ``.../latest``."""
    return f"models/{model_name}/trees/{'latest' if version is None else version}"


def render_request(
    model_name: str,
    version: int | None,
    form: RenderFormat,
    member: int | None = None,
    depth: int | None = None,
) -> tree_pb2.RenderTreeRequest:
    """Return the request of RenderTree."""
    formats = {
        "text": tree_pb2.RenderTreeRequest.FORMAT_TEXT,
        "dot": tree_pb2.RenderTreeRequest.FORMAT_DOT,
        "svg": tree_pb2.RenderTreeRequest.FORMAT_SVG,
    }
    if form not in formats:
        raise invalid("form", f"{form!r} is none of {', '.join(formats)}")
    return filled(
        tree_pb2.RenderTreeRequest,
        name=tree_resource(model_name, version),
        format=formats[form],
        member=member,
        depth=depth,
    )
