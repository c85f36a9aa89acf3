"""Predictions as a table of Arrow."""

from dataclasses import replace

import numpy as np
import polars as pl

from quercus.client.classifications import Classifications, CoverageBasis, PredictionSets, merged

THETA = np.array([[0.75, 0.25], [0.5, 0.5]])


def predictions(nodes: np.ndarray | None, sets: PredictionSets | None) -> Classifications:
    return Classifications(
        ("a|b", "c"),
        np.array([0, 1]),
        THETA,
        THETA + 0.01,
        THETA / 2,
        THETA + 0.2,
        nodes,
        np.array([7, 8]),
        7,
        90,
        class_sets=np.array([1, 3], np.uint64),
        prediction_sets=sets,
    )


def test_every_column_has_its_numbers() -> None:
    """A name with a bar stays as it is."""
    masks = PredictionSets(np.array([2, 3], np.uint64), 0.9, 50, CoverageBasis.LABELLED)
    table = predictions(np.array([4, 5]), masks).to_arrow()
    assert table.to_pydict() == {
        "class": ["a|b", "c"],
        "theta:a|b": [0.75, 0.5],
        "theta:c": [0.25, 0.5],
        "pignistic:a|b": [0.76, 0.51],
        "pignistic:c": [0.26, 0.51],
        "belief:a|b": [0.375, 0.25],
        "belief:c": [0.125, 0.25],
        "plausibility:a|b": [0.95, 0.7],
        "plausibility:c": [0.45, 0.7],
        "classes": [["a|b"], ["a|b", "c"]],
        "set": [["c"], ["a|b", "c"]],
        "node": [4, 5],
        "version": [7, 8],
    }


def test_both_kinds_of_doubt_are_columns_where_they_are_known() -> None:
    found = replace(predictions(None, None), overlap=np.array([0.5, 1.0]), ignorance=np.array([0.25, 0.0]))
    told = found.to_arrow().select(["overlap", "ignorance", "version"]).to_pydict()
    assert told == {"overlap": [0.5, 1.0], "ignorance": [0.25, 0.0], "version": [7, 8]}


def test_other_libraries_read_predictions_themselves() -> None:
    found = predictions(None, None)
    frame = pl.DataFrame(found)
    assert frame.columns == [name for name in found.to_arrow().column_names if name not in {"set", "node"}]
    assert frame.equals(pl.DataFrame(found.to_arrow()))


def test_predictions_of_no_rows_are_a_table_too() -> None:
    table = merged([], ("a", "b"), False).to_arrow()
    assert (table.num_rows, table.column_names[:2]) == (0, ["class", "theta:a"])
