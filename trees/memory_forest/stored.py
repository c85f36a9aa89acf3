"""Conversion of the members of a served forest to and from columns of numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.kernels.forest import check_served_trees
from quercus.trees.learners.conformal import UNKNOWN, Basis, Calibration
from quercus.trees.memory_forest.codes import Codebook
from quercus.trees.memory_forest.groves import FIELDS
from quercus.trees.memory_forest.served import BayesTable, ServedMembers

Columns = Mapping[str, NDArray[Any]]


def columns_of(members: ServedMembers) -> dict[str, NDArray[Any]]:
    """Return the members as columns, whose names begin with `forest_`."""
    tables = [table for each in members.bayes for table in each.frequencies]
    l = members.size
    return {
        "forest_named": members.book.named,
        "forest_cut_counts": np.array([len(cuts) for cuts in members.book.cuts]),
        "forest_cuts": np.concatenate([np.empty(0), *members.book.cuts]),
        "forest_keys": members.keys,
        "forest_node_counts": members.node_counts,
        "forest_opinion_counts": members.opinion_counts,
        "forest_nodes": np.ascontiguousarray(members.nodes.T),
        "forest_opinions": members.opinions,
        "forest_bayes_weights": np.array([each.weight for each in members.bayes], dtype=np.float64),
        "forest_priors": np.array([each.prior for each in members.bayes]).reshape(-1, l),
        "forest_means": np.concatenate([np.empty((0, l)), *(each.means for each in members.bayes)]),
        "forest_deviations": np.concatenate([np.empty((0, l)), *(each.deviations for each in members.bayes)]),
        "forest_name_counts": np.array([len(table) for table in tables], dtype=np.int64),
        "forest_frequencies": np.concatenate([np.empty((0, l)), *tables]),
        "forest_bayes": members.bayes_numbers,
        "forest_weights": members.weights,
        "forest_level": np.array([members.level]),
        "forest_told": np.array([members.labelled]),
    }


def members_of(columns: Columns, size: int) -> ServedMembers:
    """Return the members from the columns that `columns_of` returned; `size` is the number of classes.

    Raises
    ------
    ValueError
        If the columns do not fit together.
    """
    columns = {
        name: np.require(column, requirements=["C", "A"])
        for name, column in columns.items()
        if name.startswith("forest_")
    }
    named, nodes = columns["forest_named"], np.ascontiguousarray(columns["forest_nodes"].T)
    node_counts, opinion_counts = columns["forest_node_counts"], columns["forest_opinion_counts"]
    _check_shapes(columns, size)
    check_served_trees(nodes, node_counts, opinion_counts, len(columns["forest_opinions"]), len(named), size)
    cuts = np.split(columns["forest_cuts"], np.cumsum(columns["forest_cut_counts"])[:-1])
    return ServedMembers(
        book=Codebook(named, tuple(cuts), np.empty(0, np.int64)),
        size=size,
        keys=columns["forest_keys"],
        node_counts=node_counts,
        opinion_counts=opinion_counts,
        nodes=nodes,
        opinions=columns["forest_opinions"],
        bayes=_bayes_tables(columns, int((~named).sum()), int(named.sum())),
        bayes_numbers=columns["forest_bayes"],
        weights=columns["forest_weights"],
        level=columns["forest_level"].item(),
        labelled=columns["forest_told"].item(),
    )


def calibration_columns(calibration: Calibration) -> dict[str, NDArray[Any]]:
    """Return the scores for prediction sets of stated coverage as columns."""
    return {
        "forest_scores": calibration.scores,
        "forest_basis": np.array([list(Basis).index(calibration.basis)]),
        "forest_scores_in_order": np.array([calibration.in_order]),
    }


def calibration_of(columns: Columns) -> Calibration:
    """Return the scores from the columns that `calibration_columns` returned; `UNKNOWN` if there are none."""
    if "forest_scores" not in columns:
        return UNKNOWN
    in_order = "forest_scores_in_order" in columns and columns["forest_scores_in_order"].item()
    return Calibration(columns["forest_scores"], list(Basis)[columns["forest_basis"].item()], bool(in_order))


def _check_shapes(columns: Columns, size: int) -> None:
    """Raise `ValueError` if compiled code would read beyond an array."""
    named, cuts, names = columns["forest_named"], columns["forest_cut_counts"], columns["forest_name_counts"]
    trees, bayes, members = (len(columns[f"forest_{name}"]) for name in ("keys", "bayes_weights", "bayes"))
    numbers = int((~named).sum())
    shapes = {
        "cut_counts": (len(named),),
        "cuts": (cuts.sum(),),
        "node_counts": (trees,),
        "opinion_counts": (trees,),
        "nodes": (FIELDS, columns["forest_node_counts"].sum()),
        "opinions": (columns["forest_opinion_counts"].sum(), 3, size),
        "priors": (bayes, size),
        "means": (bayes * numbers, size),
        "deviations": (bayes * numbers, size),
        "name_counts": (bayes * (len(named) - numbers),),
        "frequencies": (names.sum(), size),
    }
    if trees:  # before a row is labelled there are weights but no members
        shapes["weights"] = (trees + members,)
    for name, shape in shapes.items():
        found = columns[f"forest_{name}"].shape
        if found != shape:
            raise ValueError(f"column forest_{name} has the shape {found}, must be {shape}")
    if cuts.min(initial=0) < 0 or names.min(initial=1) < 1:
        raise ValueError("an attribute of the forest has fewer cuts or names than it can have")


def _bayes_tables(columns: Columns, numbers: int, names: int) -> tuple[BayesTable, ...]:
    tables = np.split(columns["forest_frequencies"], np.cumsum(columns["forest_name_counts"])[:-1])
    bayes = []
    for i, prior in enumerate(columns["forest_priors"]):
        here = slice(i * numbers, (i + 1) * numbers)
        bayes.append(
            BayesTable(
                columns["forest_bayes_weights"][i].item(),
                prior,
                columns["forest_means"][here],
                columns["forest_deviations"][here],
                tuple(tables[i * names : (i + 1) * names]),
            )
        )
    return tuple(bayes)
