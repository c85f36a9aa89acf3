"""Trees: the grower's node to the stored message, and that message to arrays that route rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.proto.v1 import classify_pb2, tree_pb2
from quercus.server import snapshots
from quercus.server.convert_models import timestamp
from quercus.server.names import tree_name
from quercus.storage.records import Snapshot
from quercus.trees.encoding import Edges, Encoder
from quercus.trees.flat import FlatTree
from quercus.trees.specification import Nominal, Numeric, Specification


def encode_tree(
    flat: FlatTree, specification: Specification, edges: Edges, names: Sequence[Sequence[str]]
) -> tree_pb2.Tree:
    """Convert a grown tree to its message.

    Parameters
    ----------
    flat : the tree.
    specification : of the model.
    edges : inner edges in force, one tuple an attribute.
    names : branch names, one sequence an attribute.
    """
    message = tree_pb2.Tree(classes=specification.frame.classes)
    for attribute, cut, branches in zip(specification.attributes, edges, names, strict=True):
        message.attributes.add(
            attribute=attribute.name, branches=branches, edges=cut, numeric=isinstance(attribute, Numeric)
        )
    for i in range(flat.size):
        node = message.nodes.add(
            parent=int(flat.parent[i]),
            branch=max(int(flat.branch[i]), 0),
            attribute=int(flat.attribute[i]),
            class_index=int(flat.klass[i]),
            count=int(flat.count[i]),
            theta=flat.theta[i],
            belief=flat.belief[i],
            plausibility=flat.plausibility[i],
            undecided=bool(flat.undecided[i]),
            stop=tree_pb2.StopReason.ValueType(int(flat.stop[i])),
        )
        for attribute_index, lower, upper in flat.intervals(i):
            node.intervals.add(attribute=attribute_index, lower=lower, upper=upper)
    return message


def decode_snapshot(model: str, snapshot: Snapshot) -> tree_pb2.Tree:
    """Return the message of a stored tree with its name, version, sequence and time."""
    message = snapshots.read_message(snapshot.data)
    message.name = tree_name(model, snapshot.version)
    message.version = snapshot.version
    message.as_of = snapshot.as_of
    message.create_time.CopyFrom(timestamp(snapshot.created_at))
    return message


def decode_tree(message: tree_pb2.Tree) -> FlatTree:
    """Convert a tree message to arrays."""
    nodes = message.nodes
    shape = (len(nodes), len(message.classes))

    def ints(values: list[int]) -> NDArray[np.int64]:
        return np.array(values, dtype=np.int64)

    def floats(values: list[Sequence[float]]) -> NDArray[np.float64]:
        return np.array([list(row) for row in values], dtype=np.float64).reshape(shape)

    return FlatTree(
        attribute=ints([node.attribute for node in nodes]),
        parent=ints([node.parent for node in nodes]),
        branch=ints([node.branch if node.parent >= 0 else -1 for node in nodes]),
        klass=ints([node.class_index for node in nodes]),
        count=ints([node.count for node in nodes]),
        theta=floats([node.theta for node in nodes]),
        belief=floats([node.belief for node in nodes]),
        plausibility=floats([node.plausibility for node in nodes]),
        undecided=np.array([node.undecided for node in nodes], dtype=bool),
        stop=np.array([node.stop for node in nodes], dtype=np.int8),
        interval_start=np.cumsum(ints([0] + [len(node.intervals) for node in nodes])),
        interval_attribute=ints([each.attribute for node in nodes for each in node.intervals]),
        interval_lower=np.array([each.lower for node in nodes for each in node.intervals]),
        interval_upper=np.array([each.upper for node in nodes for each in node.intervals]),
    )


@dataclass(frozen=True, eq=False)
class Classifier:
    """One version of one model's tree, ready to classify.

    Attributes
    ----------
    version, as_of : of the tree.
    key : of the model.
    """

    key: int
    version: int
    as_of: int
    classes: tuple[str, ...]
    flat: FlatTree
    encoder: Encoder
    names: tuple[tuple[str, tuple[str, ...]], ...]

    @classmethod
    def of(cls, key: int, snapshot: Snapshot, specification: Specification) -> Classifier:
        """Build it from a stored tree and the specification, whose declared values give the codes."""
        message, flat = snapshots.read_classifier(snapshot.data)
        edges: Edges = tuple(
            () if isinstance(declared, Nominal) else tuple(attribute.edges)
            for declared, attribute in zip(specification.attributes, message.attributes, strict=True)
        )
        return cls(
            key=key,
            version=snapshot.version,
            as_of=snapshot.as_of,
            classes=tuple(message.classes),
            flat=flat,
            encoder=Encoder(specification.attributes, edges),
            names=tuple((each.attribute, tuple(each.branches)) for each in message.attributes),
        )

    def classify(self, values: NDArray[np.float64], want_paths: bool) -> classify_pb2.ClassifyResponse:
        """Classify rows.

        Parameters
        ----------
        values : float64 (n, K).
        want_paths : whether to say the path of every row.
        """
        flat = self.flat
        nodes = flat.route(self.encoder.codes(values))
        response = classify_pb2.ClassifyResponse(
            tree_version=self.version,
            as_of=self.as_of,
            classes=self.classes,
            class_indices=flat.klass[nodes],
            theta=flat.theta[nodes].ravel(),
            pignistic=flat.theta[nodes].ravel(),
            belief=flat.belief[nodes].ravel(),
            plausibility=flat.plausibility[nodes].ravel(),
            nodes=nodes,
        )
        if want_paths:
            paths = {node: self._path(node) for node in set(nodes.tolist())}
            response.paths.extend(paths[node] for node in nodes.tolist())
        return response

    def _path(self, node: int) -> classify_pb2.Path:
        steps = [
            classify_pb2.PathStep(attribute=self.names[attribute][0], value=self.names[attribute][1][code])
            for attribute, code in self.flat.path(node)
        ]
        return classify_pb2.Path(steps=steps)
