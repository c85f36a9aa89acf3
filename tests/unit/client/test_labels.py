"""Labels in every form that people write become the right message, and mistakes name their field."""

import math

import numpy as np
import pandas as pd
import pytest

from quercus.belief.mass import MassFunction
from quercus.client import InvalidArgument
from quercus.client.labels import LabelEncoder
from quercus.client.reading import label_of

ENCODER = LabelEncoder(["o", "s", "x"])


@pytest.mark.parametrize(
    "label",
    [
        None,
        "s",
        frozenset({"o", "x"}),
        {"o": 0.5, "s": 1.0, "x": 0.0},
        {frozenset({"s"}): 0.25, frozenset({"o", "s", "x"}): 0.75},
    ],
)
def test_a_label_survives_the_wire(label: object) -> None:
    assert label_of(ENCODER.encode_label(label), ENCODER.classes) == label  # type: ignore[arg-type]


def test_other_forms_of_the_same_label() -> None:
    assert ENCODER.encode_label(["x", "o"]) == ENCODER.encode_label({"o", "x"})
    assert ENCODER.encode_label({"s": 1.0}).contour.plausibilities == [0.0, 1.0, 0.0]
    assert ENCODER.encode_label(np.array([0.1, 0.2, 1.0])).contour.plausibilities == [0.1, 0.2, 1.0]
    for missing in (math.nan, np.float32("nan"), pd.NA):
        assert ENCODER.encode_label(missing) == ENCODER.encode_label(None)
    assert ENCODER.encode_labels(pd.Series(["s", None, "o"]).tolist()).sets.masks == [0b010, 0b111, 0b001]
    mass = MassFunction(3, ((0b010, 0.25), (0b111, 0.75)))
    assert ENCODER.encode_label(mass) == ENCODER.encode_label({("s",): 0.25, ("o", "s", "x"): 0.75})


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("q", "'q' is not a class; the classes are o, s, x"),
        ({"o", "q"}, "'q' is not a class"),
        ([], "the set of classes is empty"),
        ({}, "the dict is empty"),
        ({"o": "much"}, "must be numbers"),
        ({"o": 10**400}, r"has a number that is too large; plausibilities and masses lie in \[0, 1\]"),
        ({"o": 1.0, frozenset({"s"}): 0.5}, "must be all class names"),
        (np.array([1.0, 0.0]), r"expected 3 plausibilities, got an array of shape \(2,\)"),
        ([1.0, 0.5, 0.0], "is not a label"),
        (7, "7 is not a class"),
        ([1, 0, 0], "is not a label"),
        (b"o", "is not a label"),
    ],
)
def test_a_bad_label_names_the_field(label: object, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words) as caught:
        ENCODER.encode_label(label, "answer")  # type: ignore[arg-type]
    assert caught.value.violations[0].field == "answer"


def test_batches_take_the_most_compact_form() -> None:
    assert ENCODER.encode_labels([None, {"o", "s", "x"}]).WhichOneof("kind") == "all_vacuous"
    assert ENCODER.encode_labels([None, "o", {"s", "x"}]).sets.masks == [0b111, 0b001, 0b110]
    mixed = ENCODER.encode_labels([None, {"o": 0.5, "s": 1.0}, "x"])
    assert mixed.contours.plausibilities == [1, 1, 1, 0.5, 1, 0, 0, 0, 1]
    masses = ENCODER.encode_labels(["o", {frozenset({"o"}): 1.0}])
    assert [each.WhichOneof("kind") for each in masses.list.labels] == ["class_name", "mass"]


def test_a_matrix_of_contours_is_packed_and_its_width_checked() -> None:
    assert ENCODER.encode_labels(np.eye(3)).contours.plausibilities == np.eye(3).ravel().tolist()
    with pytest.raises(InvalidArgument, match=r"labels\[40\]: expected 3 plausibilities per row, got 2"):
        ENCODER.encode_labels(np.ones((5, 2)), start=40)


def test_an_error_in_a_batch_names_the_row_of_the_whole_push() -> None:
    with pytest.raises(InvalidArgument, match=r"labels\[1001\]: 'q' is not a class"):
        ENCODER.encode_labels([None, "q"], start=1000)


@pytest.mark.parametrize("label", [True, np.True_, "true", "TRUE", " True "])
def test_a_class_of_truth_is_found_in_any_spelling(label: object) -> None:
    encoder = LabelEncoder(["false", "true"])
    assert encoder.encode_label(label).class_name == "true"  # type: ignore[arg-type]
    assert encoder.encode_labels([label, False, {True, "FALSE"}]).sets.masks == [0b10, 0b01, 0b11]  # type: ignore[list-item]
    assert encoder.encode_label({label: 1.0, "False": 0.5}).contour.plausibilities == [0.5, 1.0]  # type: ignore[dict-item]


def test_a_class_that_is_a_whole_number_is_found_by_number() -> None:
    encoder = LabelEncoder(["101", "102"])
    assert encoder.encode_labels([101.0, "102.0", np.int64(101), pd.NA]).sets.masks == [1, 2, 1, 3]
