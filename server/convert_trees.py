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


def encode_head(specification: Specification, edges: Edges, names: Sequence[Sequence[str]]) -> tree_pb2.Tree:
    """Convert what a tree's numbers mean to its message, which is without nodes yet.

    Parameters
    ----------
    specification : of the model.
    edges : inner edges in force, one tuple an attribute.
    names : branch names, one sequence an attribute.
    """
    message = tree_pb2.Tree(classes=specification.frame.classes)
    for attribute, cut, branches in zip(specification.attributes, edges, names, strict=True):
        message.attributes.add(
            attribute=attribute.name, branches=branches, edges=cut, numeric=isinstance(attribute, Numeric)
        )
    return message


def encode_nodes(flat: FlatTree) -> tree_pb2.Nodes:
    """Convert the nodes of a tree to their message."""
    # from lists: protobuf takes Python's numbers three times as fast as numpy's
    return tree_pb2.Nodes(
        parents=flat.parent.tolist(),
        branches=np.maximum(flat.branch, 0).tolist(),
        attributes=flat.attribute.tolist(),
        class_indices=flat.klass.tolist(),
        counts=flat.count.tolist(),
        theta=flat.theta.ravel().tolist(),
        belief=flat.belief.ravel().tolist(),
        plausibility=flat.plausibility.ravel().tolist(),
        undecided=flat.undecided.tolist(),
        stops=flat.stop.tolist(),
        interval_counts=np.diff(flat.interval_start).tolist(),
        interval_attributes=flat.interval_attribute.tolist(),
        interval_lowers=flat.interval_lower.tolist(),
        interval_uppers=flat.interval_upper.tolist(),
    )


def decode_snapshot(model: str, snapshot: Snapshot) -> tree_pb2.Tree:
    """Return the message of a stored tree with its name, version, sequence and time."""
    message, flat = snapshots.read(snapshot.data)
    message.nodes.CopyFrom(encode_nodes(flat))
    message.name = tree_name(model, snapshot.version)
    message.version = snapshot.version
    message.as_of = snapshot.as_of
    message.create_time.CopyFrom(timestamp(snapshot.created_at))
    return message


def decode_tree(message: tree_pb2.Tree) -> FlatTree:
    """Convert a tree message to arrays."""
    nodes = message.nodes

    def ints(column: Sequence[int]) -> NDArray[np.int64]:
        return np.array(column, dtype=np.int64)

    def floats(column: Sequence[float]) -> NDArray[np.float64]:
        return np.array(column, dtype=np.float64)

    parent, shape = ints(nodes.parents), (len(nodes.parents), len(message.classes))
    return FlatTree(
        attribute=ints(nodes.attributes),
        parent=parent,
        branch=np.where(parent >= 0, ints(nodes.branches), -1),
        klass=ints(nodes.class_indices),
        count=ints(nodes.counts),
        theta=floats(nodes.theta).reshape(shape),
        belief=floats(nodes.belief).reshape(shape),
        plausibility=floats(nodes.plausibility).reshape(shape),
        undecided=np.array(nodes.undecided, dtype=bool),
        stop=np.array(nodes.stops, dtype=np.int8),
        interval_start=np.concatenate([[0], np.cumsum(ints(nodes.interval_counts))]),
        interval_attribute=ints(nodes.interval_attributes),
        interval_lower=floats(nodes.interval_lowers),
        interval_upper=floats(nodes.interval_uppers),
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
        theta = flat.theta.take(nodes, axis=0).ravel().tolist()
        response = classify_pb2.ClassifyResponse(
            tree_version=self.version,
            as_of=self.as_of,
            classes=self.classes,
            class_indices=flat.klass.take(nodes).tolist(),
            theta=theta,
            pignistic=theta,
            belief=flat.belief.take(nodes, axis=0).ravel().tolist(),
            plausibility=flat.plausibility.take(nodes, axis=0).ravel().tolist(),
            nodes=nodes.tolist(),
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
