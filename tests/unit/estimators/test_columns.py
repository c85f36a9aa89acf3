"""The kinds of columns, and X as numbers."""

import datetime
import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from quercus.belief.errors import InvalidInput
from quercus.client import Between as GivenBetween
from quercus.estimators import ActiveForestClassifier, C45Classifier
from quercus.estimators.columns import FittedColumns, as_array, distinct_names
from quercus.specification.attributes import Nominal, Numeric
from quercus.trees.learners.cells import Between

NAN = math.nan
FRAME = pd.DataFrame(
    {
        "float": [1.5, NAN, 3.0],
        "int": [1, 2, 3],
        "nullable": pd.array([1, None, 3], dtype="Int64"),
        "bool": [True, False, True],
        "category": pd.Categorical(["b", None, "a"], categories=["b", "a", "c"]),
        "text": pd.array(["x", "y", None], dtype="string"),
        "object": np.array(["q", None, "p"], dtype=object),
        "numbers": np.array([2, 1.5, None], dtype=object),
    }
)


def kinds(columns: FittedColumns) -> list[tuple[str, tuple[str, ...] | None]]:
    return [(a.name, a.values if isinstance(a, Nominal) else None) for a in columns.attributes]


def test_kinds_by_dtype() -> None:
    assert kinds(FittedColumns.of(FRAME)) == [
        ("float", None),
        ("int", None),
        ("nullable", None),
        ("bool", None),
        ("category", ("b", "a", "c")),
        ("text", ("x", "y")),
        ("object", ("p", "q")),
        ("numbers", None),
    ]


def test_values() -> None:
    expected = [
        [1.5, 1, 1, 1, 0, 0, 1, 2],
        [NAN, 2, NAN, 0, NAN, 1, NAN, 1.5],
        [3, 3, 3, 1, 1, NAN, 0, NAN],
    ]
    np.testing.assert_array_equal(FittedColumns.of(FRAME).values(FRAME), expected)


def test_unseen_names_are_unknown() -> None:
    columns = FittedColumns.of(pd.DataFrame({"c": ["a", "b"]}))
    found = columns.values(pd.DataFrame({"c": pd.Categorical(["b", "new", None])}))
    np.testing.assert_array_equal(found, [[1], [NAN], [NAN]])


@pytest.mark.parametrize(
    "rows", [[["a", 1], ["b", 2.5]], np.array([["a", 1], ["b", 2.5]], dtype=object)], ids=["lists", "array"]
)
def test_mixed_rows(rows: Any) -> None:
    array = as_array(rows)
    columns = FittedColumns.of(array)
    assert kinds(columns) == [("x0", ("a", "b")), ("x1", None)]
    np.testing.assert_array_equal(columns.values(array), [[0, 1], [1, 2.5]])


def test_text_arrays_are_names() -> None:
    array = np.array([["1", "b"], ["2", "b"]])
    assert kinds(FittedColumns.of(array)) == [("x0", ("1", "2")), ("x1", ("b",))]


@pytest.mark.parametrize("nominal", [[1], ["int"], [False, True, False], 1, "int", np.int64(1), ("int",)])
def test_numbers_that_are_names(nominal: Any) -> None:
    frame = FRAME[["float", "int", "nullable"]]
    columns = FittedColumns.of(frame, nominal)
    assert columns.attributes == (Numeric("float"), Nominal("int", ("1", "2", "3")), Numeric("nullable"))
    np.testing.assert_array_equal(columns.values(frame)[:, 1], [0, 1, 2])


def test_no_column_of_names() -> None:
    assert FittedColumns.of(FRAME[["int"]], None).attributes == (Numeric("int"),)
    with pytest.raises(ValueError, match="column 'text' holds numbers: 'x' is not a number"):
        FittedColumns.of(FRAME[["text"]], None).values(FRAME[["text"]])


@pytest.mark.parametrize("number", [np.inf, -np.inf, pytest.param(10**400, id="many digits")])
@pytest.mark.parametrize("dtype", ["object", "float"])
def test_numbers_that_are_not_finite_are_refused(number: Any, dtype: str) -> None:
    """As scikit-learn refuses them in arrays of floats."""
    if dtype == "float" and isinstance(number, int):
        number = 1e308 * 10
    frame = pd.DataFrame({"x": pd.Series([1.0, 2.0], dtype=dtype)})
    columns = FittedColumns.of(frame)
    for X in (
        pd.DataFrame({"x": pd.Series([1.0, number], dtype=dtype)}),
        np.array([[1.0], [number]], object),
    ):
        with pytest.raises(ValueError, match="holds a number that is infinite or too large"):
            columns.values(X)
    for cell in (number, {number}):
        with pytest.raises(ValueError, match="column 'x' holds a number that is infinite or too large"):
            columns.uncertain_rows(pd.DataFrame({"x": [{1.0, 2.0}, cell]}))
    assert columns.uncertain_rows(pd.DataFrame({"x": [Between(0.0, np.inf)]})) == [[Between(0.0, np.inf)]]


def test_a_set_of_names_in_a_column_without_names_is_unknown() -> None:
    columns = FittedColumns.of(np.array([[NAN, 1.0], [NAN, 2.0]]), [0])
    assert columns.uncertain_rows(np.array([[{"a", "b"}, 1.0]], dtype=object)) == [[None, 1.0]]


@pytest.mark.parametrize("nominal", [["nowhere"], [7], [True]])
def test_columns_that_are_not_there(nominal: Any) -> None:
    with pytest.raises(InvalidInput, match="categorical_features"):
        FittedColumns.of(FRAME[["int", "float"]], nominal)


def test_what_is_neither_name_nor_number() -> None:
    with pytest.raises(TypeError, match=r"column 'x0' is of dtype complex128.*must be a string or a number"):
        FittedColumns.of(np.array([[1j]]))
    with pytest.raises(TypeError, match="column 'x0': the argument must be a string or a number, not 'dict'"):
        FittedColumns.of(np.array([[{}], ["a"]], dtype=object))


def test_text_in_a_column_of_numbers() -> None:
    columns = FittedColumns.of(FRAME[["float"]])
    with pytest.raises(ValueError, match="column 'float' holds numbers: 'x' is not a number"):
        columns.values(pd.DataFrame({"float": ["x"]}))


def test_sets_and_ranges() -> None:
    columns = FittedColumns.of(pd.DataFrame({"c": ["a", "b", "d"], "n": [1.0, 2.0, 3.0]}))
    rows = pd.DataFrame({"c": [{"a", "d"}, "b", {"new"}], "n": [Between(1, 2), {1, 3}, None]}, dtype=object)
    assert columns.uncertain_rows(rows) == [
        [frozenset({0, 2}), Between(1, 2)],
        [1.0, frozenset({1.0, 3.0})],
        [None, None],
    ]
    assert columns.uncertain_rows(pd.DataFrame({"c": ["a"], "n": [1.0]})) is None


def test_names_are_distinct() -> None:
    assert distinct_names([1, "1", 1.0, True, "", " ", "?"]) == (
        "1",
        "'1'",
        "1.0",
        "True",
        "''",
        "' '",
        "'?'",
    )
    assert distinct_names(["True", "True #2", True]) == ("True", "True #2", "True #3")
    long = distinct_names(["a" * 300, "a" * 301])
    assert len(set(long)) == 2
    assert max(map(len, long)) <= 200


def test_two_columns_may_have_one_name() -> None:
    """scikit-learn's own estimators take such frames."""
    frame = pd.DataFrame([["a", 1.0, "u"], ["b", 2.0, "v"]], columns=["x", "y", "x"])
    columns = FittedColumns.of(frame)
    assert len({attribute.name for attribute in columns.attributes}) == 3
    np.testing.assert_array_equal(columns.values(frame), [[0, 1, 0], [1, 2, 1]])
    both = FittedColumns.of(pd.DataFrame([[1, 2, 3]], columns=["x", "y", "x"]), ["x"])
    assert [isinstance(attribute, Nominal) for attribute in both.attributes] == [True, False, True]


def test_numbers_in_a_column_without_names_are_unknown() -> None:
    columns = FittedColumns.of(np.array([[NAN, 1.0], [NAN, 2.0]]), [0])
    np.testing.assert_array_equal(columns.values(np.array([[3.0, 5.0]])), [[NAN, 5.0]])


RANGES = [(1, 2), Between(1, 2), GivenBetween(1, 2)]


@pytest.mark.parametrize("cell", RANGES, ids=["pair", "of the trees", "of the client"])
def test_a_range_in_any_form(cell: Any) -> None:
    columns = FittedColumns.of(np.array([["a", 1.0], ["b", 2.0]], dtype=object))
    wanted = [[frozenset({0, 1}), Between(1, 2)], [1.0, 3]]
    for X in (
        as_array([[{"a", "b"}, cell], ["b", 3]]),
        as_array((({"a", "b"}, cell), ("b", 3))),
        pd.DataFrame({"x0": [{"a", "b"}, "b"], "x1": [cell, 3]}, dtype=object),
    ):
        assert columns.uncertain_rows(X) == wanted
    numbers = FittedColumns.of(np.array([[1.0, 1.0]]))
    assert numbers.uncertain_rows(as_array([[(1, 2), cell]])) == [[Between(1, 2), Between(1, 2)]]


@pytest.mark.parametrize(
    ("column", "cell", "said"),
    [
        ("n", (2, 1), r"rows\[1\].n: is \(2, 1\), must be a range \(low, high\)"),
        ("n", (1, 2, 3), r"rows\[1\].n: is \(1, 2, 3\), must be a range"),
        ("n", (1, None), r"rows\[1\].n: is \(1, None\), must be a range"),
        ("n", (0, 10**400), r"rows\[1\], column 'n' holds a number that is infinite or too large"),
        ("n", GivenBetween(2, 1), r"rows\[1\].n: is Between\(low=2, high=1\), must be a range"),
        ("n", set(), r"rows\[1\].n: is the empty set"),
        ("n", {"a"}, r"rows\[1\], column 'n' holds numbers: 'a' is not a number"),
        ("n", "a", r"rows\[1\], column 'n' holds numbers: 'a' is not a number"),
        ("c", set(), r"rows\[1\].c: is the empty set"),
        ("c", (1, 2), r"rows\[1\].c: lies between two numbers, must be named values"),
    ],
)
def test_what_is_no_value_names_row_and_column(column: str, cell: Any, said: str) -> None:
    known = pd.DataFrame({"c": ["a", "b"], "n": [1.0, 2.0]})
    rows = pd.DataFrame({"c": [{"a", "b"}, "a"], "n": [1.0, 2.0]}, dtype=object)
    rows.at[1, column] = cell
    for model in (C45Classifier(), ActiveForestClassifier(n_estimators=2)):
        with pytest.raises(ValueError, match=said):
            model.fit(known, ["x", "y"]).predict(rows)


@pytest.mark.parametrize(
    ("column", "cell"), [("c", {"a", "b"}), ("c", frozenset({"a"})), ("n", (1, 2)), ("n", Between(1, 2))]
)
def test_uncertain_values_are_refused_in_a_pool(column: str, cell: Any) -> None:
    known = pd.DataFrame({"c": ["a", "b"], "n": [1.0, 2.0]})
    rows = known.astype(object)
    rows.at[1, column] = cell
    forest = ActiveForestClassifier(n_estimators=2)
    forest.fit(rows, ["x", "y"])
    forest.partial_fit(rows, ["x", "y"])
    said = rf"rows\[1\], column '{column}'.*not in those of a pool"
    for candidates in (rows, None):
        with pytest.raises((TypeError, ValueError), match=said):
            forest.query(known if candidates is rows else rows, ["x", None], candidates=candidates)


@pytest.mark.parametrize(
    ("column", "cell"), [("c", (1, 2)), ("c", Between(1, 2)), ("n", (2, 1)), ("n", (0, np.inf))]
)
def test_uncertain_values_of_the_wrong_kind_are_refused(column: str, cell: Any) -> None:
    rows = pd.DataFrame({"c": ["a", "b"], "n": [1.0, 2.0]}).astype(object)
    rows.at[1, column] = cell
    with pytest.raises((TypeError, ValueError), match=column):
        ActiveForestClassifier(n_estimators=2).fit(rows, ["x", "y"])


@pytest.mark.parametrize(
    "cells", [[True, False, None], ["true", "false", None], ["TRUE", "FALSE", "?"], [np.True_, "False", NAN]]
)
def test_a_column_of_truth_has_one_spelling(cells: list[Any]) -> None:
    fitted = FittedColumns.of(pd.DataFrame({"on": ["True", "False"]}))
    assert fitted.attributes == (Nominal("on", ("false", "true")),)
    np.testing.assert_array_equal(fitted.values(pd.DataFrame({"on": cells}, dtype=object)), [[1], [0], [NAN]])


def test_whole_numbers_are_one_name_however_they_are_typed() -> None:
    fitted = FittedColumns.of(pd.DataFrame({"code": [101, 102, 9]}), ["code"])
    assert fitted.attributes == (Nominal("code", ("9", "101", "102")),)
    found = fitted.values(pd.DataFrame({"code": [102.0, NAN, 9.0]}))
    np.testing.assert_array_equal(found, [[2], [NAN], [0]])
    found = fitted.values(pd.DataFrame({"code": ["102.0", " 9", "1e3"]}))
    np.testing.assert_array_equal(found, [[2], [0], [NAN]])


@pytest.mark.parametrize("cells", [pd.to_datetime(["1970-01-02", None]), [datetime.date(1970, 1, 2), None]])
def test_moments_are_seconds(cells: Any) -> None:
    frame = pd.DataFrame({"at": cells})
    fitted = FittedColumns.of(frame)
    assert fitted.attributes == (Numeric("at"),)
    np.testing.assert_array_equal(fitted.values(frame), [[86400.0], [NAN]])
    np.testing.assert_array_equal(
        fitted.values(pd.DataFrame({"at": ["1970-01-01T00:01Z", "60"]})), [[60], [60]]
    )


ROWS = {
    "on": [True, False, True, False] * 5,
    "hue": ["red", "blue", None, "red"] * 5,
    "x": [0.5, 1.5, 2.5, None] * 5,
}


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize(
    "model", [C45Classifier(), ActiveForestClassifier(n_estimators=2, random_state=0)], ids=["tree", "forest"]
)
def test_frames_of_every_library_are_learned_alike(kind: Any, model: Any) -> None:
    """Labels too: a series, a column, and a frame of plausibilities."""
    y = ["a", "b", "b", None] * 5
    known = model.fit(pd.DataFrame(ROWS), y)
    wanted = known.predict_proba(pd.DataFrame(ROWS))
    frame = kind(ROWS)
    labels = kind({"y": y})
    for given in (y, labels, labels["y"]):
        np.testing.assert_array_equal(model.fit(frame, given).predict_proba(frame), wanted)
    plausible = kind({"a": [1.0, 0.0, 0.0, 1.0] * 5, "b": [0.0, 1.0, 1.0, 1.0] * 5})
    np.testing.assert_array_equal(model.fit(frame, plausible).predict_proba(frame), wanted)


def test_names_mean_the_same_whatever_the_batches() -> None:
    cells = ["TRUE", "maybe", "true", "True", "TRUE"]
    whole = FittedColumns.of(pd.DataFrame({"c": cells}), as_they_come=True)
    parts = FittedColumns.of(pd.DataFrame({"c": cells[:1]}), as_they_come=True)
    for cell in cells[1:]:
        parts = parts.with_new_names(pd.DataFrame({"c": [cell]}))
    assert parts.attributes == whole.attributes
    frame = pd.DataFrame({"c": cells})
    np.testing.assert_array_equal(parts.values(frame), whole.values(frame))


def test_a_class_is_found_in_any_spelling() -> None:
    model = C45Classifier(classes=["false", "true"])
    X = [[0.0], [1.0]] * 5
    found = [
        model.fit(X, y).predict(X).tolist()
        for y in (["false", "true"] * 5, ["FALSE", "True"] * 5, [{False}, True] * 5)
    ]
    assert found == [["false", "true"] * 5] * 3
    with pytest.raises(InvalidInput, match="'True' and 'true', which are the same value, true"):
        C45Classifier().fit(X, ["True", "true"] * 5)


def test_names_beyond_the_bound_share_a_bucket_as_in_a_served_model() -> None:
    """The first 1,000 names in the order of the rows are kept, also over several calls; the others are told of."""
    names = [f"v{(7 * i) % 1_003}" for i in range(3_009)]
    rows = pd.DataFrame({"size": 1.0, "town": names})
    kept = set(names[:1_000])
    words = r"column 'town' has more than 1,000 names: .* those of 9 rows count as \(other names\)"
    with pytest.warns(UserWarning, match=words):
        columns = FittedColumns.of(rows)
    (_, town) = columns.attributes
    assert isinstance(town, Nominal)
    assert set(town.values) == {*kept, "(other names)"}
    assert town.values[-1] == "(other names)"
    codes = columns.values(pd.DataFrame({"size": 1.0, "town": [*names, "new", None]}))[:, 1]
    wanted = [town.values.index(name) if name in kept else 1_000 for name in names]
    assert codes[:-1].tolist() == [*wanted, 1_000]
    assert math.isnan(codes[-1])
    grown = FittedColumns.of(rows[:500], as_they_come=True)
    with pytest.warns(UserWarning, match="those of 9 rows"):
        grown = grown.with_new_names(rows)
    (_, town) = grown.attributes
    assert isinstance(town, Nominal)
    assert town.values == (*names[:1_000], "(other names)")


@pytest.mark.parametrize("made", [ActiveForestClassifier(n_estimators=5), C45Classifier()])
def test_estimators_learn_from_names_beyond_the_bound(made: Any) -> None:
    """A name of the bucket tells the class, and so does one that comes only afterwards."""
    names = [f"v{i}" for i in range(1_000)] + [f"w{i}" for i in range(1_000)]
    X = pd.DataFrame({"town": names})
    y = ["kept"] * 1_000 + ["beyond"] * 1_000
    with pytest.warns(UserWarning, match="those of 1,000 rows"):
        made.fit(X, y)
    assert made.predict(pd.DataFrame({"town": ["w7", "never seen"]})).tolist() == ["beyond", "beyond"]
