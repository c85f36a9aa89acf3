"""Conversion of learned models to and from columns of numbers, for snapshots and for processes that only predict.

A model consists of its trees (`quercus.trees.tree.flat.FlatTree`), the rule that combines them (`StoredForm`), and the
fitted splits of belief-entropy trees (`fitted_columns`). All trees of a model are concatenated in one set of columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from quercus.specification.attributes import Attribute
from quercus.specification.learners import SpecifiedLearner
from quercus.trees.learners.components import Component, Frequencies, Gaussians
from quercus.trees.learners.entropy_model import BeliefEntropyModel, Rule
from quercus.trees.learners.forest import ForestModel, Vote
from quercus.trees.learners.learner import Learner
from quercus.trees.learners.one_against_rest import Combine, OneAgainstRest
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.memory_forest.served import ServedForest
from quercus.trees.memory_forest.stored import calibration_columns, calibration_of, columns_of, members_of
from quercus.trees.tree.encoding import Edges
from quercus.trees.tree.flat import PLAIN, RAGGED, FlatTree

Columns = Mapping[str, NDArray[Any]]
Kind = Literal["tree", "one-against-rest", "belief-entropy", "active-forest", "own"]

OWN: Final = "own."
"""Prefix of the array names of a model with its learner's own class."""

PEOPLE_READ = (
    *(name for name, plain in PLAIN.items() if plain.people_read),
    *(name for each in RAGGED.values() if each.people_read for name in (each.count, *each.columns)),
)
"""Columns of `join_trees` that predictions do not need."""
_NOTHING, _GAUSSIANS, _FREQUENCIES = 0, 1, 2  # kinds of fitted splits


@dataclass(frozen=True)
class StoredForm:
    """The rule by which the trees of a model make one prediction.

    Parameters
    ----------
    kind
        Kind of each member.
    combine
        Combination of trees that each distinguish one class from the rest; None for others.
    leaf
        Rule of the leaves of belief-entropy trees; None for others.
    vote
        Vote of a forest; None if the model is a single member.
    state
        JSON state of a model with its learner's own class.
    """

    kind: Kind
    combine: Combine | None = None
    leaf: Rule | None = None
    vote: Vote | None = None
    state: Mapping[str, Any] | None = None


def form_of(model: LearnedModel) -> StoredForm:
    """Return the rule by which the trees of a model make one prediction."""
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
        case TreeModel():
            return StoredForm("tree")
        case _:
            return StoredForm("own", state=model.stored_state()[0])


def restore_model(
    form: StoredForm,
    columns: Columns,
    attributes: tuple[Attribute, ...],
    size: int,
    edges: Edges = (),
    learner: SpecifiedLearner | None = None,
) -> LearnedModel:
    """Return the model from the results of `form_of`, `join_trees` and `fitted_columns`.

    Parameters
    ----------
    form
        Rule that combines the trees' predictions.
    columns
        The trees, and the fitted splits of their nodes.
    attributes, edges
        See `TreeModel`.
    size
        Number of classes.
    learner
        Its learner, which restores models of its own class.
    """
    if form.kind == "own":
        if not isinstance(learner, Learner):
            raise TypeError("a model with its learner's own class needs the learner")
        arrays = {name.removeprefix(OWN): array for name, array in columns.items() if name.startswith(OWN)}
        return learner.restore_model(dict(form.state or {}), arrays, attributes, size)
    flats = part_trees(columns)
    models: list[LearnedModel]
    if form.kind == "belief-entropy":
        components, logs = list(_component_columns(columns, size)), columns.get("commonalities")
        models, start = [], 0
        for flat in flats:
            here = slice(start, start := start + flat.size)
            own = np.zeros((0, 0)) if logs is None else logs[here]
            fitted = tuple(components[here])
            models.append(BeliefEntropyModel(attributes, size, form.leaf or "LBE", flat, fitted, own))
    else:
        alone = [TreeModel(attributes, flat.theta.shape[1], flat, edges) for flat in flats]
        if form.kind == "active-forest":
            return ServedForest(
                attributes, size, alone[0], members_of(columns, size), calibration_of(columns)
            )
        models = [*alone]
        if form.kind == "one-against-rest":
            models = [
                OneAgainstRest(attributes, size, tuple(alone[at : at + size]), form.combine or "dempster")
                for at in range(0, len(alone), size)
            ]
    return models[0] if form.vote is None else ForestModel(attributes, size, tuple(models), form.vote)


def join_trees(flats: Sequence[FlatTree]) -> dict[str, NDArray[Any]]:
    """Return the concatenated columns of several trees, without those that have only default values.

    Starts (of intervals and focal sets) become counts per node. Each tree begins where the parent is -1.
    """
    if not flats:
        return {}
    found = {name: _joined_column(flats, name) for name in PLAIN}
    for name, plain in PLAIN.items():
        if plain.absent is not None:
            absent = plain.absent(found["count"])
            if np.array_equal(found[name], absent, equal_nan=absent.dtype.kind == "f"):
                del found[name]
    for start, each in RAGGED.items():
        count = np.concatenate([np.diff(getattr(flat, start)) for flat in flats])
        if count.any() or not each.optional:
            found |= {each.count: count, **{name: _joined_column(flats, name) for name in each.columns}}
    return found


def part_trees(columns: Columns) -> tuple[FlatTree, ...]:
    """Return the trees in columns of `join_trees`; columns that only people read may be absent."""
    if "parent" not in columns:  # no tree
        return ()
    parent = columns["parent"]
    nodes = len(parent)
    bounds = [*np.flatnonzero(parent < 0).tolist(), nodes]
    none = np.zeros(nodes, dtype=np.int64)
    starts = {
        start: np.concatenate([[0], np.cumsum(columns.get(each.count, none))])
        for start, each in RAGGED.items()
    }
    unread = {name: np.zeros(nodes, plain.dtype) for name, plain in PLAIN.items() if plain.people_read}
    for each in RAGGED.values():
        unread |= {name: np.zeros(0, dtype) for name, dtype in each.columns.items()}
    whole = {**unread, **columns}
    found = []
    for a, b in pairwise(bounds):
        part = {name: whole[name][a:b] for name in PLAIN if name in whole}
        for start, each in RAGGED.items():
            here = starts[start][a : b + 1]
            part[start] = here - here[0]
            part |= {name: whole[name][here[0] : here[-1]] for name in each.columns}
        found.append(FlatTree(**part))
    return tuple(found)


def _joined_column(flats: Sequence[FlatTree], name: str) -> NDArray[Any]:
    return np.concatenate([getattr(flat, name) for flat in flats])


def fitted_columns(model: LearnedModel) -> dict[str, NDArray[Any]]:
    """Return the columns of a model other than its trees.

    These are the arrays of a model with its learner's own class, the fitted splits of belief-entropy trees, or the
    members of the forest of many memories.
    """
    if isinstance(model, ServedForest):
        return columns_of(model.members) | calibration_columns(model.scores)
    if form_of(model).kind == "own":
        return {OWN + name: array for name, array in model.stored_state()[1].items()}
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


def _component_columns(columns: Columns, size: int) -> Iterator[Component | None]:
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
