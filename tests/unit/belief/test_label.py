import math

import numpy as np
import pytest

from quercus.belief.codec import decode, decode_contours, encode
from quercus.belief.contour import check_contour, check_contours, is_precise, is_vacuous
from quercus.belief.errors import InvalidInput
from quercus.belief.evidence import update
from quercus.belief.frame import Frame
from quercus.belief.label import (
    ClassSet,
    Masses,
    Plausibilities,
    check_label,
    class_set,
    contour,
    precise,
    set_contours,
    vacuous,
)
from quercus.belief.mass import MassFunction
from quercus.belief.rules import conjunctive

FRAME = Frame(("o", "s", "x"))


def test_labels_by_name() -> None:
    assert vacuous(FRAME) == ClassSet(0b111)
    assert precise(FRAME, "s") == ClassSet(0b010)
    assert class_set(FRAME, ["x", "o"]) == ClassSet(0b101)
    assert contour(class_set(FRAME, ["x", "o"]), 3).tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(InvalidInput, match="class: 'y' is not one of"):
        precise(FRAME, "y")
    with pytest.raises(InvalidInput, match="label: is the empty set of classes"):
        class_set(FRAME, [])


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ([0.5, 1.5, 0.1], "contour[1]", "is 1.5, must lie in [0, 1]"),
        ([0.5, 0.2, -0.1], "contour[2]", "is -0.1, must lie in [0, 1]"),
        ([math.nan, 0.2, 0.1], "contour[0]", "is nan, must lie in [0, 1]"),
        ([0.5, math.inf, 0.1], "contour[1]", "is inf, must lie in [0, 1]"),
        ([0.0, 0.0, 0.0], "contour", "is zero for every class"),
        ([1.0, 0.0], "contour", "has shape (2,), must have one plausibility for each of 3 classes"),
        ([[1.0, 0.0, 0.0]], "contour", "has shape (1, 3)"),
        (["a", "b", "c"], "contour", "must be numbers in [0, 1]"),
        ([10**400, 0, 0], "contour", "must be numbers in [0, 1]"),
        (
            [10**5000, 0, 0],
            "contour",
            "is list with a number of thousands of digits, must be numbers in [0, 1]",
        ),
        ([[1.0], [1.0, 2.0], []], "contour", "must be numbers in [0, 1]"),
        (None, "contour[0]", ""),
    ],
)
def test_bad_contours(values: object, field: str, words: str) -> None:
    if values is None:
        values, words = [None, 1.0, 1.0], "must lie in [0, 1]"
    with pytest.raises(InvalidInput) as caught:
        check_contour(values, 3)  # type: ignore[arg-type]
    assert caught.value.field == field
    assert words in caught.value.reason


def test_subnormal_contours_are_evidence() -> None:
    assert check_contour([0.1, 0.2, 0.05], 3).tolist() == [0.1, 0.2, 0.05]
    assert bool(is_vacuous(np.array([0.2, 0.2, 0.2])))
    assert bool(is_precise(np.array([0.0, 0.2, 0.0])))
    assert not is_vacuous(np.zeros(3))


def test_a_checked_contour_is_a_copy() -> None:
    given = np.array([1.0, 0.5])
    checked = check_contour(given, 2)
    checked[0] = 0.0
    assert given[0] == 1.0


def test_bad_row_of_many_contours_is_named() -> None:
    assert check_contours(np.empty((0, 3)), 3).shape == (0, 3)
    with pytest.raises(InvalidInput, match=r"contours\[1\]\[2\]: is 7\.0, must lie in \[0, 1\]"):
        check_contours([[1, 1, 1], [0, 0, 7]], 3)
    with pytest.raises(InvalidInput, match=r"contours\[2\]: is zero for every class"):
        check_contours([[1, 1, 1], [0, 0, 1], [0, 0, 0]], 3)
    with pytest.raises(InvalidInput, match=r"contours: has shape \(1, 2\), must have rows of 3"):
        check_contours([[1, 1]], 3)


def test_bad_labels() -> None:
    with pytest.raises(InvalidInput, match="must be an integer bit mask"):
        ClassSet(1.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="label: is 0x10000000000000000"):
        ClassSet(2**64)
    with pytest.raises(InvalidInput, match=r"contour\[1\]: is 2\.0"):
        Plausibilities((1.0, 2.0))
    conflicting = conjunctive(MassFunction(2, ((1, 0.5), (3, 0.5))), MassFunction(2, ((2, 1.0),)))
    with pytest.raises(InvalidInput, match=r"label: has mass 0\.5 on the empty set"):
        Masses(conflicting)


def test_labels_must_fit_the_frame() -> None:
    for label, words in (
        (ClassSet(0b1000), "is 0x8, must lie in"),
        (Plausibilities((1.0, 0.0)), "has 2 plausibilities, must have one for each of 3 classes"),
        (Masses(MassFunction.vacuous(4)), "has masses on a frame of 4 classes, must have 3 classes"),
    ):
        with pytest.raises(InvalidInput, match="label: ") as caught:
            check_label(label, 3)
        assert words in caught.value.reason


def test_bytes_are_fixed() -> None:
    """The log keeps these bytes for ever: a change of format must not change them."""
    assert encode(ClassSet(0b101)).hex() == "110500000000000000"
    assert encode(Plausibilities((1.0, 0.5))).hex() == "12000000000000f03f000000000000e03f"
    masses = Masses(MassFunction(2, ((1, 0.5), (3, 0.5))))
    assert encode(masses).hex() == "13" + "0100000000000000" + "0300000000000000" + "000000000000e03f" * 2


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "has no bytes"),
        (b"\x11" + bytes(7), "must be a multiple of 8"),
        (b"\x11" + bytes(16), "has kind byte 0x11 with 2 numbers"),
        (b"\x21" + bytes(8), "has kind byte 0x21 with 1 numbers, which this version cannot read"),
        (b"\x13" + bytes(8), "has kind byte 0x13 with 1 numbers"),
        (b"\x11" + bytes(8), "is the empty set"),
        (b"\x11\xff" + bytes(7), "is 0xff, must lie in"),
    ],
)
def test_bad_bytes(data: bytes, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        decode(data, 3)
    assert words in caught.value.reason


def test_bulk_functions_name_the_bad_row() -> None:
    with pytest.raises(InvalidInput, match=r"masks\[1\]: is 0x8, must lie in \[0x1, 0x7\] for 3 classes"):
        set_contours(np.array([1, 8], dtype=np.uint64), 3)
    with pytest.raises(InvalidInput, match=r"masks\[0\]: is 0x0"):
        decode_contours([encode(ClassSet(1))[:1] + bytes(8)], 3)
    assert decode_contours([], 3).shape == (0, 3)


def test_a_certain_answer_replaces() -> None:
    updated = update(np.array([0.9, 0.2, 0.2]), np.array([0.0, 0.4, 0.0]), 1.0)
    assert updated.contour.tolist() == [0.0, 1.0, 0.0]
    assert not updated.conflict


def test_a_certain_answer_against_what_is_known_is_a_conflict_and_wins() -> None:
    updated = update(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]), 1.0)
    assert updated.contour.tolist() == [0.0, 1.0, 0.0]
    assert updated.conflict


def test_an_uncertain_answer_in_total_conflict_wins() -> None:
    updated = update(np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.5, 0.25]), 1.0)
    assert updated.contour.tolist() == [0.0, 1.0, 0.5]
    assert updated.conflict


def test_an_uncertain_answer_is_discounted_and_multiplied() -> None:
    updated = update(np.array([1.0, 0.5, 0.25]), np.array([0.0, 1.0, 1.0]), 0.75)
    assert updated.contour == pytest.approx(np.array([0.25, 0.5, 0.25]) / 0.5)
    assert not updated.conflict


def test_tiny_contours_do_not_underflow_into_a_conflict() -> None:
    updated = update(np.array([1e-200, 1e-200]), np.array([1e-200, 5e-201]), 1.0)
    assert updated.contour == pytest.approx([1.0, 0.5])
    assert not updated.conflict


def test_update_checks_its_input() -> None:
    good = np.array([1.0, 1.0])
    with pytest.raises(InvalidInput, match="known: is zero for every class"):
        update(np.zeros(2), good, 1.0)
    with pytest.raises(InvalidInput, match=r"answer: has shape \(3,\)"):
        update(good, np.ones(3), 1.0)
    with pytest.raises(InvalidInput, match=r"reliability: is 2\.0"):
        update(good, good, 2.0)
