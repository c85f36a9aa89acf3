"""The labels in y, in all their forms."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning

from quercus.belief.errors import InvalidInput
from quercus.belief.label import ClassSet, Masses
from quercus.belief.mass import MassFunction
from quercus.estimators.labels import as_classes, read_labels

MASS = MassFunction.of(3, {0b001: 0.25, 0b110: 0.75})
NAN = float("nan")


@pytest.mark.parametrize(
    ("y", "classes", "contours"),
    [
        (["b", "a"], ["a", "b"], [[0, 1], [1, 0]]),
        (["b", NAN, "a"], ["a", "b"], [[0, 1], [1, 1], [1, 0]]),
        ([3, 1, 3], [1, 3], [[0, 1], [1, 0], [0, 1]]),
        ([1.0, NAN, 0.0], [0, 1], [[0, 1], [1, 1], [1, 0]]),
        (np.array(["b", None, "a"], dtype=object), ["a", "b"], [[0, 1], [1, 1], [1, 0]]),
        (pd.Series(["b", pd.NA, "a"], dtype="string"), ["a", "b"], [[0, 1], [1, 1], [1, 0]]),
        (pd.Series(pd.Categorical(["b", None, "a"])), ["a", "b"], [[0, 1], [1, 1], [1, 0]]),
        (pd.Series(pd.array([1, None, 0], dtype="Int64")), [0, 1], [[0, 1], [1, 1], [1, 0]]),
        ([True, False], [False, True], [[0, 1], [1, 0]]),
        (np.array([[0.5, 1.0], [0.0, 1.0]]), [0, 1], [[0.5, 1], [0, 1]]),
        ([(0.5, 1.0), (0.0, 1.0)], [0, 1], [[0.5, 1], [0, 1]]),
        (pd.DataFrame({"b": [0.5, 0.0], "a": [1.0, 1.0]}), ["b", "a"], [[0.5, 1], [0, 1]]),
        (["a", {"a", "c"}, None, {"b": 1.0, "a": 0.5}], ["a", "b", "c"],
         [[1, 0, 0], [1, 0, 1], [1, 1, 1], [0.5, 1, 0]]),
        ([MASS, MASS], [0, 1, 2], [[0.25, 0.75, 0.75]] * 2),
        ([{frozenset("a"): 0.25, frozenset("bc"): 0.75}], ["a", "b", "c"], [[0.25, 0.75, 0.75]]),
        ([np.array([0.5, 1.0]), None], [0, 1], [[0.5, 1], [1, 1]]),
        ([2, {1, 2}], [1, 2], [[0, 1], [1, 1]]),
    ],
)  # fmt: skip
def test_forms(y: Any, classes: list[Any], contours: list[list[float]]) -> None:
    found = read_labels(y)
    assert found.classes.tolist() == classes
    np.testing.assert_array_equal(found.plausibility_matrix(), contours)


def test_masses_stay_masses() -> None:
    assert read_labels([MASS, {0, 1}, None], [0, 1, 2]).labels == (Masses(MASS), ClassSet(3), ClassSet(7))


@pytest.mark.parametrize("classes", [["c", "a", "b"], np.array(["c", "a", "b"]), ("c", "a", "b")])
def test_the_frame_may_be_given(classes: Any) -> None:
    found = read_labels(["a", None], classes)
    assert found.classes.tolist() == ["c", "a", "b"]
    np.testing.assert_array_equal(found.plausibility_matrix(), [[0, 1, 0], [1, 1, 1]])


@pytest.mark.parametrize(
    ("missing", "y"),
    [
        (-1, [0, -1, 1]),
        (np.int64(-1), np.array([0, -1, 1])),
        (-1, [{0}, np.int64(-1), 1]),
        ("none", ["a", "none", "b"]),
        (None, ["a", None, "b"]),
    ],
)
def test_another_missing_label(missing: object, y: Any) -> None:
    found = read_labels(y, missing=missing)
    assert len(found.classes) == 2
    assert found.plausibility_matrix()[1].tolist() == [1, 1]


def test_a_column_of_labels_is_taken_with_a_warning() -> None:
    with pytest.warns(DataConversionWarning, match="column-vector"):
        found = read_labels(np.array([["a"], ["b"]]))
    assert found.classes.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("y", "classes", "words"),
    [
        (None, None, "requires y to be passed"),
        (["a", "a"], None, "y names one class, 'a'; two or more are needed"),
        ([NAN, NAN], None, "y names no class at all"),
        ([None, {"a"}], None, "y names one class"),
        (["a", "d"], ["a", "b"], r"y\[1\]: is 'd', must be one of the classes \['a', 'b'\]"),
        (["b", "a", "b", "d", "c"], ["a", "b"], r"y\[3\]: is 'd', must be one of the classes \['a', 'b'\]"),
        ([{"a"}, {"d"}], ["a", "b"], r"y\[1\]: 'd' is not a class"),
        (["a", "b"], ["a", "a"], r"classes: are \['a', 'a'\], must be distinct"),
        ([0.5, 1.5, 2.5], None, "Unknown label type: continuous"),
        ([float("inf"), 1.0], None, r"y\[0\]: is infinite"),
        ([[0.5, 1.5]], None, r"y\[0\]\[1\]: is 1.5, must lie in \[0, 1\]"),
        ([[0.5, 0.5]], ["a", "b", "c"], "must have rows of 3 plausibilities"),
        ([MASS, MassFunction.vacuous(2)], None, r"frames of \[2, 3\] classes"),
        ([MASS, {"a", "b"}], None, "must be given if some labels name classes and others number them"),
    ],
)
def test_what_is_no_y(y: Any, classes: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_labels(y, classes)


def test_classes_keep_their_types() -> None:
    assert as_classes(["a", 1]).tolist() == ["a", 1]
    assert as_classes([1, 2]).dtype.kind == "i"
    with pytest.raises(InvalidInput, match="must be distinct"):
        as_classes([1, 1])


def test_the_text_nan_is_no_class_unless_it_is_said_to_be_one() -> None:
    """NumPy makes the text "nan" of a missing label among texts: it became a class, and no row was unlabelled."""
    y = np.array(["hi", "lo", np.nan])
    with pytest.raises(InvalidInput, match=r"y\[2\]: is the text 'nan', .* missing_label='nan'"):
        read_labels(y)
    with pytest.raises(InvalidInput, match=r"y\[1\]: is the text '<NA>'"):
        read_labels(["hi", "<NA>", {"hi", "lo"}])
    found = read_labels(y, missing="nan")
    assert found.classes.tolist() == ["hi", "lo"]
    assert found.plausibility_matrix().tolist() == [[1, 0], [0, 1], [1, 1]]
    assert read_labels(y, ["hi", "lo", "nan"]).plausibility_matrix().tolist()[2] == [0, 0, 1]
