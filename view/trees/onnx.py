"""A tree as an ONNX model, whose predictions are bit-identical to those of the service.

ONNX tree ensembles find the node in which a row ends; the predictions of that node come from tables of doubles, so
nothing is rounded. In Quercus, a row whose value is missing where the tree has no branch for missing values goes down
several branches. ONNX trees cannot do that: the row's numbers are NaN, and its class is empty.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from quercus.belief.errors import InvalidInput
from quercus.client.results import AttributeBranches, Tree
from quercus.client.tree_nodes import TreeNode
from quercus.specification.attributes import MISSING_NAME, other_names, threshold_branch

UNSEEN: Final = -1.0
"""Code of an unknown name: the row stays at the node that tests it."""
NO_BRANCH: Final = -2.0
"""Code of a missing name, if the attribute has no branch for missing values."""
_LABEL: Final = "label"
_PREDICTIONS: Final = ("probabilities", "belief", "plausibility")
_BELOW, _ABOVE, _NO_NUMBER = 0, 1, 2


def to_onnx(tree: Tree) -> bytes:
    """Return a tree as an ONNX model.

    Its inputs are the attributes that the tree tests, by name, each (n, 1): doubles, NaN where missing, or strings,
    spelled as in the tree, empty where missing. Its outputs are ``label`` (n,) and ``probabilities``, ``belief`` and
    ``plausibility`` (n, l), in the order of the classes in the metadata. An attribute with the name of an output is put
    in parentheses: ``(label)``.

    Parameters
    ----------
    tree
        A single tree, which splits by value or threshold.

    Raises
    ------
    InvalidInput
        If the model has several trees, or its tree routes rows by class densities.
    ModuleNotFoundError
        When the package onnx is not installed.
    """
    if len(tree.members) > 1:
        raise InvalidInput(
            "tree",
            f"is one of {len(tree.members)}, whose predictions {tree.learner} combines, which ONNX cannot",
        )
    if tree.learner == "belief-entropy":
        raise InvalidInput("tree", "routes rows by class densities, which ONNX trees cannot")
    from onnx import TensorProto, checker, helper, numpy_helper  # noqa: PLC0415 - an optional package

    tested = {node.attribute for node in tree.nodes}
    used = [each for each in tree.attributes if each.attribute in tested] or list(tree.attributes[:1])
    inputs = _input_names(used)
    names = [_inner(f"number {k}") for k in range(len(used))]
    row, end, ends, last, place = map(_inner, ("row", "end", "ends", "last", "node"))
    steps = [
        helper.make_node("Identity", [given], [name])
        if each.numeric
        else helper.make_node("LabelEncoder", [given], [name], domain="ai.onnx.ml", **_codes(each, helper))
        for each, given, name in zip(used, inputs, names, strict=True)
    ]
    steps += [
        helper.make_node("Concat", names, [row], axis=1),
        helper.make_node(
            "TreeEnsembleRegressor", [row], [end], domain="ai.onnx.ml", **_ends(tree, used, helper)
        ),
        helper.make_node("Cast", [end], [ends], to=TensorProto.INT64),
        helper.make_node("Squeeze", [ends, last], [place]),
        *(helper.make_node("Gather", [_inner(name), place], [name]) for name in (_LABEL, *_PREDICTIONS)),
    ]
    tables = [
        numpy_helper.from_array(np.array([1], np.int64), last),
        helper.make_tensor(_inner(_LABEL), TensorProto.STRING, [len(tree.nodes) + 1], [*_labels(tree), b""]),
        *(
            numpy_helper.from_array(
                np.array([*(getattr(node, field) for node in tree.nodes), [math.nan] * len(tree.classes)]),
                _inner(name),
            )
            for name, field in zip(_PREDICTIONS, ("theta", "belief", "plausibility"), strict=True)
        ),
    ]
    taken = [
        helper.make_tensor_value_info(
            given, TensorProto.DOUBLE if each.numeric else TensorProto.STRING, ["n", 1]
        )
        for each, given in zip(used, inputs, strict=True)
    ]
    outputs = [helper.make_tensor_value_info(_LABEL, TensorProto.STRING, ["n"])]
    outputs += [
        helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["n", len(tree.classes)])
        for name in _PREDICTIONS
    ]
    model = helper.make_model(
        helper.make_graph(steps, "tree", taken, outputs, tables),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 4)],
        ir_version=9,
        producer_name="quercus",
    )
    said = {"model": tree.model, "version": tree.version, "as_of": tree.as_of, "learner": tree.learner}
    helper.set_model_props(
        model, {"classes": json.dumps(tree.classes), **{key: str(v) for key, v in said.items()}}
    )
    checker.check_model(model)
    return bytes(model.SerializeToString())


def _inner(name: str) -> str:
    """Return the name of an intermediate value; a tab in it keeps it distinct from every attribute."""
    return f"\t{name}"


def _input_names(used: list[AttributeBranches]) -> list[str]:
    """Return distinct names for the inputs: the attributes' names, changed where they equal the name of an output."""
    names = {each.attribute for each in used}
    found = []
    for each in used:
        name = each.attribute
        while name in (_LABEL, *_PREDICTIONS) or (name != each.attribute and name in names):
            name = f"({name})"
        found.append(name)
    return found


def _labels(tree: Tree) -> Iterator[bytes]:
    return (node.class_name.encode() for node in tree.nodes)


def _codes(attribute: AttributeBranches, helper: Any) -> dict[str, Any]:
    """Return the codes of an attribute's values, as attributes of a LabelEncoder."""
    names = list(attribute.branches)
    missing = float(names.index(MISSING_NAME)) if MISSING_NAME in names else NO_BRANCH
    has_bucket = len(names) > 1 and names[-1] == other_names(set(names[:-1]))
    codes = {name: float(code) for code, name in enumerate(names)} | {MISSING_NAME: missing, "": missing}
    others = len(names) - 1.0 if has_bucket else UNSEEN
    string, double = 8, 11  # ONNX type codes
    return {
        "keys_tensor": helper.make_tensor("keys", string, [len(codes)], [name.encode() for name in codes]),
        "values_tensor": helper.make_tensor("values", double, [len(codes)], list(codes.values())),
        "default_tensor": helper.make_tensor("default", double, [1], [others]),
    }


class _Ends:
    """The nodes of an ONNX tree, in reverse: the root is added last."""

    def __init__(self) -> None:
        self.nodes: list[
            tuple[str, int, float, int, int]
        ] = []  # mode, attribute, value, node if true, node if false

    def add(self, mode: str, attribute: int, value: float, true: int = 0, false: int = 0) -> int:
        self.nodes.append((mode, attribute, value, true, false))
        return len(self.nodes) - 1

    def end(self, node: int) -> int:
        """Add a leaf, for rows that end in this node of the tree."""
        return self.add("LEAF", 0, float(node))


def _ends(tree: Tree, used: list[AttributeBranches], helper: Any) -> dict[str, Any]:
    """Return the tests of a tree, with node numbers as leaf values, as attributes of a TreeEnsembleRegressor."""
    place = {each.attribute: k for k, each in enumerate(used)}
    ends, entry = _Ends(), dict[int, int]()
    for node in reversed(tree.nodes):  # children before their parents
        if node.attribute is None:
            entry[node.index] = ends.end(node.index)
            continue
        k = place[node.attribute]
        children = {tree.nodes[child].branch: entry[child] for child in node.children}
        entry[node.index] = _add_tests(ends, node, k, used[k], children, nowhere=len(tree.nodes))
    rows = list(reversed(ends.nodes))
    last = len(rows) - 1
    leaves = [i for i, row in enumerate(rows) if row[0] == "LEAF"]
    zeros = [0] * len(rows)
    double = 11
    return {
        "n_targets": 1,
        "nodes_treeids": zeros,
        "nodes_nodeids": list(range(len(rows))),
        "nodes_modes": [row[0] for row in rows],
        "nodes_featureids": [row[1] for row in rows],
        "nodes_values_as_tensor": helper.make_tensor("tests", double, [len(rows)], [row[2] for row in rows]),
        "nodes_truenodeids": [0 if row[0] == "LEAF" else last - row[3] for row in rows],
        "nodes_falsenodeids": [0 if row[0] == "LEAF" else last - row[4] for row in rows],
        "nodes_missing_value_tracks_true": zeros,
        "target_treeids": [0] * len(leaves),
        "target_nodeids": leaves,
        "target_ids": [0] * len(leaves),
        "target_weights_as_tensor": helper.make_tensor(
            "ends", double, [len(leaves)], [rows[i][2] for i in leaves]
        ),
    }


def _add_tests(
    ends: _Ends,
    node: TreeNode,
    k: int,
    attribute: AttributeBranches,
    children: dict[str | None, int],
    *,
    nowhere: int,
) -> int:
    """Add the tests of a node, in sequence; return the first.

    Parameters
    ----------
    k
        Position of the attribute among the inputs.
    children
        First test of each child, by branch.
    nowhere
        Number of the leaf for rows with a missing value, if there is no branch for them.
    """

    def follow(branch: str) -> int:
        return children[branch] if branch in children else ends.end(node.index)

    if not attribute.numeric:
        at = ends.end(node.index)
        for number, name in enumerate(attribute.branches):
            if name != MISSING_NAME and name in children:
                at = ends.add("BRANCH_EQ", k, float(number), children[name], at)
        missing = children[MISSING_NAME] if MISSING_NAME in children else ends.end(nowhere)
        is_listed = MISSING_NAME in attribute.branches
        code = float(attribute.branches.index(MISSING_NAME)) if is_listed else NO_BRANCH
        return ends.add("BRANCH_EQ", k, code, missing, at)
    if node.threshold is not None:
        below, above, lost = (threshold_branch(node.threshold, side) for side in (_BELOW, _ABOVE, _NO_NUMBER))
        at = ends.add("BRANCH_LT", k, node.threshold, follow(below), follow(above))
    else:
        lost = MISSING_NAME
        at = follow(attribute.branches[len(attribute.edges)])
        for edge, branch in zip(
            reversed(attribute.edges), reversed(attribute.branches[: len(attribute.edges)]), strict=True
        ):
            at = ends.add("BRANCH_LT", k, edge, follow(branch), at)
    missing = children[lost] if lost in children else ends.end(nowhere)
    return ends.add("BRANCH_LEQ", k, math.inf, at, missing)
