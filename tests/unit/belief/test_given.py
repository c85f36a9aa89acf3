"""Labels in the forms in which people and files give them."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from quercus.belief.errors import InvalidInput
from quercus.belief.given import LabelReader
from quercus.belief.label import ClassSet, Label, Masses, Plausibilities
from quercus.belief.mass import MassFunction

MASS = MassFunction.of(3, {0b001: 0.25, 0b110: 0.75})


@pytest.mark.parametrize(
    ("given", "label"),
    [
        ("s", ClassSet(0b010)),
        ({"o", "x"}, ClassSet(0b101)),
        (["x"], ClassSet(0b100)),
        (frozenset("osx"), ClassSet(0b111)),
        (None, ClassSet(0b111)),
        (float("nan"), ClassSet(0b111)),
        (np.float32("nan"), ClassSet(0b111)),
        (pd.NA, ClassSet(0b111)),
        ({"x": 1, "o": 0.5}, Plausibilities((0.5, 0.0, 1.0))),
        (np.array([0.5, 0, 1]), Plausibilities((0.5, 0.0, 1.0))),
        ({frozenset("o"): 0.25, ("s", "x"): 0.75}, Masses(MASS)),
        (MASS, Masses(MASS)),
        (Masses(MASS), Masses(MASS)),
        (ClassSet(1), ClassSet(1)),
    ],
)
def test_forms(given: Any, label: Label) -> None:
    assert LabelReader(("o", "s", "x")).read_label(given) == label


def test_classes_need_not_be_text() -> None:
    reader = LabelReader([10, 20])
    assert reader.read_label(np.int64(20)) == ClassSet(0b10)
    assert reader.read_label({10, 20}) == ClassSet(0b11)
    assert reader.read_label({10: 1.0, 20: 0.5}) == Plausibilities((1.0, 0.5))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("q", "labels.7.: 'q' is not a class; the classes are o, s, x"),
        (b"o", "is not a class"),
        (3, "3 is not a class"),
        (set(), "is the empty set of classes"),
        ({}, "is the empty set of classes"),
        ({"o": 2.0}, r"labels.7..0.: is 2.0, must lie in \[0, 1\]"),
        ({"o": 0.0}, "is zero for every class"),
        ({frozenset("o"): 0.5}, r"labels.7..focal: the masses sum to 0.5"),
        ({("o", "s"): 0.5, ("s", "o"): 0.5}, r"labels.7..focal"),
        ({("o",): 1.5, ("s",): -0.5}, r"labels.7..focal.0.: its mass is 1.5"),
        ({frozenset("q"): 1.0}, "'q' is not a class"),
        ({frozenset("o"): 0.5, "s": 0.5}, "is not a class"),
        (np.array([1.0, 1.0]), "must have one plausibility for each of 3 classes"),
        (MassFunction.vacuous(2), "frame of 2 classes"),
        ([["o"]], "is not a class"),
    ],
)
def test_what_is_no_label(given: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        LabelReader(("o", "s", "x")).read_label(given, "labels[7]")
    assert caught.value.field.startswith("labels[7]")


@pytest.mark.parametrize("classes", [(), ("a",), ("a", "a")])
def test_frames_that_are_none(classes: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput, match="classes: are"):
        LabelReader(classes)
