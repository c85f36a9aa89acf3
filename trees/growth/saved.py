"""A growth state as columns, and back: the evidence, and the tree, which is a function of it, as far as it is grown."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quercus.specification.model import Specification
from quercus.trees.ask.query import QueryPosition
from quercus.trees.growth.incremental.live_tree import LiveTree, _with_codes
from quercus.trees.growth.incremental.saved_tree import restore_tree, saved_tree
from quercus.trees.growth.stream import GrowthState
from quercus.trees.tree.encoding import Edges, edges_in_force

_TREE: Final = "tree."


@dataclass(frozen=True, slots=True, eq=False)
class SavedEvidence:
    """The evidence of a growth state.

    Attributes
    ----------
    answers : int
        How many were given.
    asked : QueryPosition or None
        Of the newest query that was settled.
    columns : mapping of str to array
        Of the rows: ``codes`` (n, K), ``ids`` (n,) and ``askable`` (n,), see `Sample`. ``contours`` (d, l) by their
        numbers; ``warmup`` values of the rows that set the bins; ``answered`` rows, and the ``pushed`` numbers of their
        contours before anybody answered; of a tree with a memory ``moments`` when each row was first labelled; behind
        ``tree.`` those of `saved_tree`, which may be missing. They may be views: good until the state grows.
    """

    answers: int
    asked: QueryPosition | None
    columns: Mapping[str, NDArray[Any]]


def saved_evidence(state: GrowthState) -> SavedEvidence:
    """Return the evidence of a state, to be saved."""
    sample = state.evidence
    columns: dict[str, NDArray[Any]] = {
        "codes": sample.codes,
        "ids": sample.ids,
        "askable": sample.askable,
        "contours": sample.table.contours,
        "warmup": state._warmup,
        "answered": np.fromiter(state._pushed, np.int64, len(state._pushed)),
        "pushed": np.fromiter(state._pushed.values(), np.int32, len(state._pushed)),
    }
    if state._memory is not None:
        columns["moments"] = state._memory.label_moments
    columns |= {f"{_TREE}{name}": column for name, column in saved_tree(state._live).items()}
    return SavedEvidence(state.answers, state.asked, columns)


def restored_state(specification: Specification, saved: SavedEvidence) -> GrowthState:
    """Return the state with this evidence; `ValueError` when the columns do not fit together, or the specification.

    Parameters
    ----------
    specification
        In force when the state was saved.
    saved
        Result of `saved_evidence`; it is copied.
    """
    columns, state = saved.columns, GrowthState(specification)
    _check_columns(specification, columns)
    state.answers, state.asked = saved.answers, saved.asked
    state._warmup = np.array(columns["warmup"])
    state._edges = edges_in_force(specification, state._warmup)
    state._pushed = dict(zip(columns["answered"].tolist(), columns["pushed"].tolist(), strict=True))
    _refill_tree(state._live, columns, state._edges)
    if state._memory is not None:
        state._memory.restore(np.array(columns["moments"]))
    tree = {name.removeprefix(_TREE): column for name, column in columns.items() if name.startswith(_TREE)}
    if tree:
        restore_tree(state._live, tree)
    return state


def _refill_tree(live: LiveTree, columns: Mapping[str, NDArray[Any]], edges: Edges) -> None:
    """Give a tree without rows those of another, whose contours keep their numbers."""
    contours, codes = columns["contours"], columns["codes"]
    if (live.table.intern(contours) != np.arange(len(contours))).any():
        raise ValueError("two contours are the same")
    live._edges, live._arities = edges, _with_codes(live._arities, codes)
    live._rows.append_rows(codes, columns["ids"])
    live._rows.askable[:] = columns["askable"]


def _check_columns(specification: Specification, columns: Mapping[str, NDArray[Any]]) -> None:
    n, attributes = len(columns["ids"]), len(specification.attributes)
    d = len(columns["contours"])
    shapes = {
        "codes": (n, attributes),
        "ids": (n,),
        "askable": (n,),
        "contours": (d, specification.frame.size),
        "warmup": (min(n, specification.warmup_rows), attributes),
        "answered": (len(columns["pushed"]),),
        "pushed": (len(columns["pushed"]),),
    }
    if specification.memory_rows is not None:
        shapes["moments"] = (n,)
    for name, shape in shapes.items():
        if columns[name].shape != shape:
            raise ValueError(f"column {name} has the shape {columns[name].shape}, must be {shape}")
    for name, bound in (("ids", d), ("pushed", d), ("answered", n), ("codes", np.iinfo(np.int16).max)):
        column = columns[name]
        if column.size and not (column.min() >= 0 and column.max() < bound):
            raise ValueError(f"column {name} has numbers outside [0, {bound})")
