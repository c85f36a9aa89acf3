"""Learned models as columns of numbers and back: for snapshots, and for processes that only predict.

A model is its trees (`quercus.trees.tree.flat.FlatTree`), how they make one prediction (`StoredForm`), and what
belief-entropy trees fitted at their nodes or a forest has as members (`fitted_columns`). All trees of a model stand in one set
of columns, one after the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from quercus.specification.algorithms import Combine, Rule, Vote
from quercus.specification.attributes import Attribute
from quercus.trees.learners.components import Component, Frequencies, Gaussians
from quercus.trees.learners.entropy_model import BeliefEntropyModel
from quercus.trees.learners.forest import ForestModel
from quercus.trees.learners.one_against_rest import OneAgainstRest
from quercus.trees.learners.predicting import Learned, TreeModel
from quercus.trees.memory_forest.served import ServedForest
from quercus.trees.memory_forest.stored import columns_of, voices_of
from quercus.trees.tree.encoding import Edges
from quercus.trees.tree.flat import FlatTree

Columns = Mapping[str, NDArray[Any]]
Kind = Literal["tree", "one-against-rest", "belief-entropy", "active-forest"]

NODE_COLUMNS = tuple(
    each.name for each in fields(FlatTree) if each.init and not each.name.startswith("mass_")
)
INTERVALS = ("interval_attribute", "interval_lower", "interval_upper")
_NOTHING, _GAUSSIANS, _FREQUENCIES = 0, 1, 2  # at a node


@dataclass(frozen=True)
class StoredForm:
    """How the trees of a model make one prediction.

    Parameters
    ----------
    kind
        What each member is.
    combine
        Of trees that tell one class from the rest; None for others.
    leaf
        Of belief-entropy trees; None for others.
    vote
        Of a forest; None where the model is one member.
    """

    kind: Kind
    combine: Combine | None = None
    leaf: Rule | None = None
    vote: Vote | None = None


def form_of(model: Learned) -> StoredForm:
    """Return how the trees of a model make one prediction."""
    match model:
        case ForestModel():
            own = form_of(model.models[0])
            return StoredForm(own.kind, own.combine, own.leaf, model.vote)
        case OneAgainstRest():
            return StoredForm("one-against-rest", combine=model.combine)
        case BeliefEntropyModel():
            return StoredForm("belief-entropy", leaf=model.kind)
        case ServedForest():
            return StoredForm("active-forest")
        case _:
            return StoredForm("tree")


def restore_model(
    form: StoredForm,
    columns: Columns,
    attributes: tuple[Attribute, ...],
    size: int,
    edges: Edges = (),
) -> Learned:
    """Return the model that `form_of`, `join_trees` and `fitted_columns` were made of.

    Parameters
    ----------
    form
        How the trees make one prediction.
    columns
        The trees, and what was fitted at their nodes.
    attributes, edges
        As of `TreeModel`.
    size
        Number of classes.
    """
    flats = part_trees(columns)
    models: list[Learned]
    if form.kind == "belief-entropy":
        models = list(_entropy_models(form.leaf or "LBE", flats, columns, attributes, size))
    else:
        alone = [TreeModel(attributes, flat.theta.shape[1], flat, edges) for flat in flats]
        if form.kind == "active-forest":
            return ServedForest(attributes, size, alone[0], voices_of(columns, size))
        models = [*alone]
        if form.kind == "one-against-rest":
            models = [
                OneAgainstRest(attributes, size, tuple(alone[at : at + size]), form.combine or "dempster")
                for at in range(0, len(alone), size)
            ]
    return models[0] if form.vote is None else ForestModel(attributes, size, tuple(models), form.vote)


def join_trees(flats: Sequence[FlatTree]) -> dict[str, NDArray[Any]]:
    """Return the columns of several trees as one set, without those that say nothing.

    Starts (of intervals and focal sets) become counts a node. Each tree begins where the parent is -1.
    """
    names = [name for name in NODE_COLUMNS if name not in (*INTERVALS, "interval_start")]
    found = {name: _together(flats, name) for name in (*names, *INTERVALS)}
    found["interval_count"] = np.concatenate([np.diff(flat.interval_start) for flat in flats])
    if np.isnan(found["threshold"]).all():
        del found["threshold"]
    if (found["weight"] == found["count"]).all():
        del found["weight"]
    if not found["conflict"].any():
        del found["conflict"]
    if any(flat.has_masses for flat in flats):
        found["mass_count"] = np.concatenate([np.diff(flat.mass_start) for flat in flats])
        found |= {name: _together(flats, name) for name in ("mass_set", "mass_value")}
    return found


def part_trees(columns: Columns) -> tuple[FlatTree, ...]:
    """Return the trees of `join_trees` columns; what is not there of intervals and stops counts as none."""
    parent = columns["parent"]
    nodes = len(parent)
    bounds = [*np.flatnonzero(parent < 0).tolist(), nodes]
    starts = {
        name: np.concatenate([[0], np.cumsum(columns.get(count, np.zeros(nodes, dtype=np.int64)))])
        for name, count in (("interval_start", "interval_count"), ("mass_start", "mass_count"))
    }
    nothing: Columns = {
        "undecided": np.zeros(nodes, dtype=bool),
        "stop": np.zeros(nodes, dtype=np.int8),
        "interval_attribute": np.zeros(0, dtype=np.int64),
        "interval_lower": np.zeros(0),
        "interval_upper": np.zeros(0),
    }
    whole = {**nothing, **columns}
    return tuple(_part(whole, starts, a, b) for a, b in pairwise(bounds))


def _part(columns: Columns, starts: Columns, a: int, b: int) -> FlatTree:
    found: dict[str, Any] = {}
    for name in NODE_COLUMNS:
        if name in columns and name not in INTERVALS:
            found[name] = columns[name][a:b]
    for start, names in (("interval_start", INTERVALS), ("mass_start", ("mass_set", "mass_value"))):
        here = starts[start][a : b + 1]
        found[start] = here - here[0]
        found |= {name: columns[name][here[0] : here[-1]] for name in names if name in columns}
    return FlatTree(**found)


def _together(flats: Sequence[FlatTree], name: str) -> NDArray[Any]:
    return np.concatenate([getattr(flat, name) for flat in flats])


def fitted_columns(model: Learned) -> dict[str, NDArray[Any]]:
    """Return the columns of a model beside its trees.

    Belief-entropy trees fitted something at their nodes; the forest of many memories has its members.
    """
    if isinstance(model, ServedForest):
        return columns_of(model.voices)
    members = model.models if isinstance(model, ForestModel) else (model,)
    entropic = [member for member in members if isinstance(member, BeliefEntropyModel)]
    if not entropic:
        return {}
    parts = [part for member in entropic for part in member.components]
    kinds = [
        _NOTHING if part is None else _GAUSSIANS if isinstance(part, Gaussians) else _FREQUENCIES
        for part in parts
    ]
    normals = [part for part in parts if isinstance(part, Gaussians)]
    tables = [part for part in parts if isinstance(part, Frequencies)]
    size = model.size
    columns: dict[str, NDArray[Any]] = {
        "fitted_kind": np.array(kinds, dtype=np.int8),
        "fitted_normals": np.array(
            [[part.proportions, part.means, part.deviations] for part in normals]
        ).reshape(-1, 3, size),
        "fitted_shares": np.array([part.proportions for part in tables]).reshape(-1, size),
        "fitted_values": np.array([part.log_table.shape[1] for part in tables], dtype=np.int64),
        "fitted_table": np.concatenate([np.zeros(0), *(part.log_table.ravel() for part in tables)]),
    }
    if isinstance(model, ForestModel) and model.vote == "mass" and entropic[0].kind == "LBE":
        columns["commonalities"] = np.concatenate([member.commonalities for member in entropic])
    return columns


def _entropy_models(
    leaf: Rule, flats: Sequence[FlatTree], columns: Columns, attributes: tuple[Attribute, ...], size: int
) -> Iterator[BeliefEntropyModel]:
    components = list(_components(columns, size))
    logs = columns.get("commonalities")
    start = 0
    for flat in flats:
        here = slice(start, start + flat.size)
        own = np.zeros((0, 0)) if logs is None else logs[here]
        yield BeliefEntropyModel(attributes, size, leaf, flat, tuple(components[here]), own)
        start += flat.size


def _components(columns: Columns, size: int) -> Iterator[Component | None]:
    normals = iter(columns["fitted_normals"])
    shares, arities = iter(columns["fitted_shares"]), iter(columns["fitted_values"].tolist())
    table, at = columns["fitted_table"], 0
    for kind in columns["fitted_kind"].tolist():
        if kind == _NOTHING:
            yield None
        elif kind == _GAUSSIANS:
            yield Gaussians(*next(normals))
        else:
            count = size * next(arities)
            yield Frequencies(next(shares), table[at : at + count].reshape(size, -1))
            at += count
