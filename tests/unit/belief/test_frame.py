import pickle

import pytest

from quercus.belief.errors import InvalidInput, shown
from quercus.belief.frame import Frame


def test_masks_and_names() -> None:
    frame = Frame(("o", "s", "x"))
    assert frame.size == 3
    assert frame.full == 0b111
    assert frame.index("x") == 2
    assert frame.mask(["x", "o", "x"]) == 0b101
    assert frame.names(0b101) == ("o", "x")
    assert frame.names(0) == ()


def test_the_largest_frame() -> None:
    frame = Frame(tuple(f"c{i}" for i in range(64)))
    assert frame.full == 2**64 - 1
    assert frame.names(1 << 63) == ("c63",)


@pytest.mark.parametrize(
    ("classes", "field", "words"),
    [
        ((), "classes", "has 0 names, must have 2 to 64"),
        (("a",), "classes", "has 1 name, must have 2 to 64"),
        (tuple(f"c{i}" for i in range(65)), "classes", "has 65 names, must have 2 to 64"),
        (("a", "b", "a"), "classes[2]", "is 'a', the same as number 1; names must be distinct"),
        (("a", ""), "classes[1]", "is '', must not be empty or blank"),
        (("a", " \t"), "classes[1]", "must not be empty or blank"),
        (("a" * 101, "b"), "classes[0]", "has 101 characters, at most 100 are allowed"),
        (("a", 3), "classes[1]", "is 3, must be text"),
        ("ab", "classes", "is the text 'ab', must be a sequence of names"),
    ],
)
def test_bad_classes(classes: tuple[str, ...], field: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Frame(classes)
    assert caught.value.field == field
    assert words in caught.value.reason


def test_unknown_class_names_the_known_ones() -> None:
    frame = Frame(("o", "s", "x"))
    with pytest.raises(InvalidInput) as caught:
        frame.mask(["o", "y"])
    assert str(caught.value) == "class: 'y' is not one of the 3 classes 'o', 's', 'x'"


@pytest.mark.parametrize("mask", [-1, 0b1000])
def test_mask_outside_the_frame(mask: int) -> None:
    with pytest.raises(InvalidInput, match=r"must lie in \[0x0, 0x7\] for 3 classes"):
        Frame(("o", "s", "x")).names(mask)


def test_messages_stay_short_and_errors_survive_pickling() -> None:
    assert len(shown("x" * 10_000)) == 60
    with pytest.raises(InvalidInput) as caught:
        Frame(("o", "s")).index("y" * 10_000)
    assert len(str(caught.value)) < 200
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert (copy.field, copy.reason, str(copy)) == (
        caught.value.field,
        caught.value.reason,
        str(caught.value),
    )
