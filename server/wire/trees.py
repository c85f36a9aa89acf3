"""Conversion of stored trees to messages and to classifiers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.server.wire import snapshots
from quercus.server.wire.labels import encode_mass
from quercus.server.wire.models import to_timestamp
from quercus.server.wire.names import tree_name
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.class_marks import CLASS_MARKS, OTHER_CLASSES
from quercus.specification.model import Specification
from quercus.storage import Snapshot
from quercus.trees import (
    Basis,
    Edges,
    FlatTree,
    LearnedModel,
    Predictions,
    RepeatedMasses,
    TreeModel,
    TreeNames,
    UncertainValues,
    undominated,
    undominated_mask,
)
from quercus.trees.learners.stored import part_trees, restore_model
from quercus.v1 import classify_pb2, tree_pb2

MAX_RESPONSES: Final = 4096
"""Most nodes of a tree for which the response to a single row is cached."""
BASIS_VALUES: Final = {
    Basis.NONE: classify_pb2.COVERAGE_BASIS_UNSPECIFIED,
    Basis.LABELLED: classify_pb2.COVERAGE_BASIS_LABELLED,
    Basis.WEIGHTED: classify_pb2.COVERAGE_BASIS_WEIGHTED,
}


def encode_head(specification: Specification, edges: Edges, names: Sequence[Sequence[str]]) -> tree_pb2.Tree:
    """Return the message of a tree without nodes, with the names that numbers in the tree stand for.

    Parameters
    ----------
    specification : specification of the model.
    edges : inner bin edges of each attribute.
    names : branch names of each attribute.
    """
    message = tree_pb2.Tree(classes=specification.frame.classes, learner=specification.learner.name)
    for attribute, cut, branches in zip(specification.attributes, edges, names, strict=True):
        message.attributes.add(
            attribute=attribute.name, branches=branches, edges=cut, numeric=isinstance(attribute, Numeric)
        )
    return message


def encode_nodes(flat: FlatTree) -> tree_pb2.Nodes:
    """Convert the nodes of a tree to their message."""
    # as lists, because protobuf converts Python's numbers three times as fast as numpy's
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
        thresholds=flat.threshold.tolist() if flat.has_thresholds else (),
        mass_counts=np.diff(flat.mass_start).tolist() if flat.has_masses else (),
        mass_sets=flat.mass_set.tolist(),
        masses=flat.mass_value.tolist(),
        conflicts=flat.conflict.tolist() if flat.conflict.any() else (),
        weights=flat.weight.tolist() if (flat.weight != flat.count).any() else (),
    )


def decode_snapshot(model: str, snapshot: Snapshot, member: int = 0) -> tree_pb2.Tree:
    """Return the message of a stored tree with its name, version, sequence and time.

    Parameters
    ----------
    model : id of the model.
    snapshot : the stored version.
    member : number of the tree, if there are several.

    Raises
    ------
    InvalidInput
        If there is no such member.
    """
    stored = snapshots.read_snapshot(snapshot.data)
    flats = part_trees(stored.columns)
    message = stored.head
    message.nodes.CopyFrom(encode_nodes(choose_member(flats, member)))
    message.name = tree_name(model, snapshot.version)
    message.version = snapshot.version
    message.as_of = snapshot.as_of
    message.member = member
    message.create_time.CopyFrom(to_timestamp(snapshot.created_at))
    for at, flat in enumerate(flats):
        classes = member_classes(message.classes, flat, at)
        message.members.add(nodes=flat.size, leaves=flat.leaf_count, depth=flat.depth, classes=classes)
    return message


def check_stored_tree(data: bytes) -> None:
    """Read a complete stored version; damaged bytes raise various errors."""
    part_trees(snapshots.read_snapshot(data).columns)


def encode_tree_head(model: str, version: int, as_of: int) -> tree_pb2.Tree:
    """Return the message of a tree with only its name, version and sequence."""
    return tree_pb2.Tree(name=tree_name(model, version), version=version, as_of=as_of)


def choose_member(flats: Sequence[FlatTree], member: int) -> FlatTree:
    """Return one tree of several.

    Raises
    ------
    InvalidInput
        If there is no such member.
    """
    if not flats:
        raise InvalidInput("model", "has no trees to show: its learner makes a model of another kind")
    if not 0 <= member < len(flats):
        raise InvalidInput("member", f"is {member}, must lie in [0, {len(flats)}), the number of trees")
    return flats[member]


def member_classes(classes: Sequence[str], flat: FlatTree, member: int) -> tuple[str, ...]:
    """Return the classes of a tree's nodes: those of the frame, or one class and all others together."""
    if flat.theta.shape[1] == len(classes):
        return tuple(classes)
    klass = classes[
        member % len(classes)
    ]  # there is one tree for each class, in order, maybe several times over
    return (klass, f"not {klass}")


def names_of(message: tree_pb2.Tree, flat: FlatTree, member: int) -> TreeNames:
    """Return the names that the numbers in a tree stand for."""
    classes = member_classes(message.classes, flat, member)
    is_frame = len(classes) == len(message.classes)
    return TreeNames(
        classes,
        tuple(each.attribute for each in message.attributes),
        tuple(tuple(each.branches) for each in message.attributes),
        () if is_frame else (CLASS_MARKS[member % len(message.classes)], OTHER_CLASSES),
    )


@dataclass(frozen=True, eq=False)
class TreeClassifier:
    """One version of one model, ready to classify.

    Attributes
    ----------
    key : key of the model.
    version, as_of : version of the tree, and the sequence number that it contains.
    classes : the frame.
    model : the model that predicts.
    names : names of the only tree; None if there are several.
    width : number of attributes that the tree knows; a model that was extended since has more.
    """

    key: int
    version: int
    as_of: int
    classes: tuple[str, ...]
    model: LearnedModel
    names: TreeNames | None
    width: int
    _responses: dict[int, classify_pb2.ClassifyResponse] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, key: int, snapshot: Snapshot, specification: Specification) -> TreeClassifier:
        """Return the classifier of a stored tree; `specification` is that of its model."""
        stored = snapshots.read_classifier(snapshot.data)
        attributes = specification.attributes[: len(stored.head.attributes)]
        edges: Edges = tuple(
            () if isinstance(declared, Nominal) else tuple(attribute.edges)
            for declared, attribute in zip(attributes, stored.head.attributes, strict=True)
        )
        model = restore_model(
            stored.form,
            stored.columns,
            attributes,
            len(stored.head.classes),
            edges,
            specification.learner,
        )
        flats = model.flat_trees
        return cls(
            key=key,
            version=snapshot.version,
            as_of=snapshot.as_of,
            classes=tuple(stored.head.classes),
            model=model,
            names=names_of(stored.head, flats[0], 0) if len(flats) == 1 else None,
            width=len(attributes),
        )

    def classify(
        self,
        cells: UncertainValues,
        want_paths: bool = False,
        want_masses: bool = False,
        coverage: float | None = None,
        want_doubt: bool = False,
    ) -> classify_pb2.ClassifyResponse:
        """Classify rows.

        Parameters
        ----------
        cells : the rows.
        want_paths : whether to return the path of every row, for a model with a single tree.
        want_masses : whether to return the mass function of every row, if the model has them.
        coverage : coverage of the prediction sets; None for no prediction sets.
        want_doubt : whether to return the two kinds of doubt, if the learner distinguishes them.

        Raises
        ------
        InvalidInput
            If paths are wanted but there are several trees, or a row has too many combinations of values.
        """
        cells = cells.of_first(self.width)
        values = cells.values
        is_plain = coverage is None and not (want_paths or want_masses or want_doubt or cells.parts)
        if len(values) == 1 and is_plain and not np.isnan(values).any():
            return self.classify_row(values[0].tolist())
        return self._make_response(cells, want_paths, want_masses, coverage, want_doubt)

    def classify_row(self, row: list[float]) -> classify_pb2.ClassifyResponse:
        """Classify one row of known values (K,); other calls share the response."""
        row = row[: self.width]
        if self._tree is not None:
            node = self._tree.end_of_row(row)
            response = self._responses.get(node)
            if response is None:
                response = self._make_response(UncertainValues(np.array([row])))
                if len(self._responses) < MAX_RESPONSES:
                    self._responses[node] = response
            return response
        found = self.model.predict_row(row)
        if found is None:
            return self._make_response(UncertainValues(np.array([row])))
        return classify_pb2.ClassifyResponse(
            tree_version=self.version,
            as_of=self.as_of,
            classes=self.classes,
            class_indices=(found.klass,),
            theta=found.theta,
            pignistic=found.theta,
            belief=found.belief,
            plausibility=found.plausibility,
            class_sets=(undominated_mask(found.belief, found.plausibility),),
            nodes=(found.node,),
        )

    @cached_property
    def _tree(self) -> TreeModel | None:
        """The model, if it is a single tree, whose nodes have one prediction each."""
        return self.model if isinstance(self.model, TreeModel) else None

    def _make_response(
        self,
        cells: UncertainValues,
        want_paths: bool = False,
        want_masses: bool = False,
        coverage: float | None = None,
        want_doubt: bool = False,
    ) -> classify_pb2.ClassifyResponse:
        if want_paths and self.names is None:
            raise InvalidInput(
                "want_paths", "is true, but the model has several trees: a row has no single path"
            )
        predicted = self.model.predict_cells(cells)
        theta = predicted.theta.ravel().tolist()
        response = classify_pb2.ClassifyResponse(
            tree_version=self.version,
            as_of=self.as_of,
            classes=self.classes,
            class_indices=predicted.klass.tolist(),
            theta=theta,
            pignistic=theta,
            belief=predicted.belief.ravel().tolist(),
            plausibility=predicted.plausibility.ravel().tolist(),
            class_sets=self._class_sets(predicted),
        )
        if coverage is not None:
            scored = self.model.calibration
            response.prediction_sets.CopyFrom(
                classify_pb2.PredictionSets(
                    class_sets=_class_masks(scored.sets(predicted.theta, coverage)).tolist(),
                    coverage=coverage,
                    scores=len(scored.scores),
                    basis=BASIS_VALUES[scored.basis],
                )
            )
        if want_doubt and (doubt := self.model.doubt(cells, predicted.theta)) is not None:
            response.doubt.overlap.extend(doubt.overlap.tolist())
            response.doubt.ignorance.extend(doubt.ignorance.tolist())
        if predicted.nodes is not None:
            response.nodes.extend(predicted.nodes.tolist())
            if want_paths and self.names is not None:
                flat, names = self.model.flat_trees[0], self.names
                paths = {node: _path_message(flat, names, node) for node in set(response.nodes)}
                response.paths.extend(paths[node] for node in response.nodes)
        if want_masses and predicted.masses is not None:
            masses: Iterable[MassFunction] = predicted.masses or ()
            which: Iterable[int] = range(len(predicted))
            if isinstance(predicted.masses, RepeatedMasses):  # send each once, with its index for every row
                used, inverse = np.unique(predicted.masses.which, return_inverse=True)
                masses, which = [predicted.masses.distinct[at] for at in used], inverse.ravel().tolist()
            response.masses.extend(map(encode_mass, masses))
            response.mass_indices.extend(which)
        return response

    def _class_sets(self, predicted: Predictions) -> list[int]:
        """Return the set-valued predictions as bit masks; those of nodes are computed in advance."""
        if predicted.nodes is None or not isinstance(self.model, TreeModel):
            masks = _class_masks(predicted.classes)
        else:
            masks = self._node_sets.take(predicted.nodes)
            if predicted.several.size:
                masks[predicted.several] = _class_masks(predicted.classes[predicted.several])
        found: list[int] = masks.tolist()
        return found

    @cached_property
    def _node_sets(self) -> NDArray[np.uint64]:
        flat = self.model.flat_trees[0]
        return _class_masks(undominated(flat.belief, flat.plausibility))


def _class_masks(classes: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return sets of classes (n, l) as bit masks."""
    bits = np.uint64(1) << np.arange(classes.shape[1], dtype=np.uint64)
    masks: NDArray[np.uint64] = np.where(classes, bits, np.uint64(0)).sum(axis=1, dtype=np.uint64)
    return masks


def _path_message(flat: FlatTree, names: TreeNames, node: int) -> classify_pb2.Path:
    steps = [
        classify_pb2.PathStep(
            attribute=names.attributes[int(flat.attribute[flat.parent[at]])], value=names.step(flat, at)
        )
        for at in flat.path_nodes(node)
    ]
    return classify_pb2.Path(steps=steps)
