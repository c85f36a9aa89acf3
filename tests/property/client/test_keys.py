"""Every class has a key of its own, which does not contradict its name, and every command has one beside them."""

import string
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quercus.client.keys import COMMANDS, aria_shortcut, labelling_keys
from quercus.specification.parameters import MAX_CLASSES

KEYBOARD = string.ascii_letters + string.digits + string.punctuation
NAMES = st.one_of(
    st.sampled_from(KEYBOARD),
    st.integers(0, 120).map(str),
    st.sampled_from([command.label for command in COMMANDS]),
    st.text(min_size=1, max_size=8).filter(str.strip),
)
CLASSES = st.lists(NAMES, unique=True, min_size=2, max_size=20).map(tuple)


@given(CLASSES)
def test_no_key_means_two_things_and_every_keyboard_has_it(classes: tuple[str, ...]) -> None:
    check_unique(classes)


def check_unique(classes: tuple[str, ...]) -> None:
    keys = labelling_keys(classes)
    every = [key for of in (*keys.classes, *keys.commands.values()) for key in of]
    assert len(every) == len(set(every))
    assert set(keys.commands) == {command.name for command in COMMANDS}
    assert all(of[0] in KEYBOARD for of in (*keys.classes, *keys.commands.values()))
    assert all(len(key) == 1 for key in every)
    for (key, name), of in zip(keys.class_keys(), keys.classes, strict=True):
        assert {keys.class_of(each) for each in of} == {name}
        assert keys.command_of(key) is None
    for command in COMMANDS:
        of = keys.commands[command.name]
        assert {keys.command_of(each) for each in of} == {command.name}
        assert all(keys.class_of(each) is None for each in of)


@given(CLASSES)
def test_a_name_of_one_character_is_a_key_of_its_class(classes: tuple[str, ...]) -> None:
    keys = labelling_keys(classes)
    for name in classes:
        if len(name) == 1 and name.strip():
            assert keys.class_of(name) == name
            assert name not in KEYBOARD or dict(map(reversed, keys.class_keys()))[name] == name  # type: ignore[arg-type]


@given(CLASSES)
def test_a_class_that_is_added_moves_no_key_except_one_that_is_its_name(classes: tuple[str, ...]) -> None:
    for size in range(1, len(classes)):
        was, added = labelling_keys(classes[:size]).class_keys(), classes[size]
        now = labelling_keys(classes[: size + 1]).class_keys()
        moved = [old for old, new in zip(was, now, strict=False) if old != new]
        assert all(key.lower() == added.lower() for key, _ in moved)
        assert all(key != name for key, name in moved)


@given(CLASSES)
def test_case_does_not_matter_where_no_other_class_needs_it(classes: tuple[str, ...]) -> None:
    keys = labelling_keys(classes)
    for key, name in keys.class_keys():
        other = key.swapcase()
        assert keys.class_of(other) == name or other in classes


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        (tuple("0123456789"), "0123456789"),
        (tuple(string.ascii_uppercase), string.ascii_uppercase),
        (tuple(string.ascii_letters), string.ascii_letters),
        (("0", "1", "10", "5", "11"), "01e5f"),  # never a digit that another number begins with
        (("10", "20", "1"), "021"),
        (tuple(f"class-{k:02d}" for k in range(12)), "0123456789cl"),
        (("Barolo", "Grignolino", "Barbera"), "bga"),
        (("cat", "car", "dog", "at", "tac"), "cadt1"),
        (("edible", "e"), "de"),
        (("Élan", "été", "ß", "山", "я"), "ets12"),
        (("+", "-", "+1", "-1", "?"), "+-1e?"),
    ],
)
def test_keys_agree_with_names(classes: tuple[str, ...], expected: str) -> None:
    assert [key for key, _ in labelling_keys(classes).class_keys()] == list(expected)


@pytest.mark.parametrize(
    "names",
    [
        KEYBOARD[:MAX_CLASSES],
        KEYBOARD[-MAX_CLASSES:],
        [f"one of the long names, number {k}" for k in range(MAX_CLASSES)],
        [chr(0x4E00 + k) for k in range(MAX_CLASSES)],
        [*string.punctuation, *(2 * each for each in string.punctuation)],
    ],
)
def test_as_many_classes_as_a_model_can_have(names: Sequence[str]) -> None:
    check_unique(tuple(names))


def test_commands_keep_off_the_keys_of_classes() -> None:
    usual = labelling_keys(("0", "1")).commands
    assert [keys[0] for keys in usual.values()] == [command.key for command in COMMANDS]
    assert usual["back"] == ("b", "z")
    some = labelling_keys(("skunk", "quite", "bird")).commands
    assert (some["set"], some["quit"], some["back"], some["skip"]) == (("+",), ("!",), ("z",), ("k",))
    letters = labelling_keys(tuple(string.ascii_uppercase)).commands
    assert [keys[0] for keys in letters.values()] == [command.mark for command in COMMANDS]
    marks = [command.mark for command in COMMANDS]
    assert all(one != other for one, other in pairwise(sorted(marks)))


@pytest.mark.parametrize(
    ("keys", "spoken"),
    [(("A", "a"), "a"), (("é", "e"), "é e"), (("+",), "Plus"), (("X",), "Shift+X"), (("5",), "5")],
)
def test_keys_are_spoken(keys: tuple[str, ...], spoken: str) -> None:
    assert aria_shortcut(keys) == spoken


@given(st.lists(st.sampled_from("efghijklmnot"), unique=True, min_size=2, max_size=8), st.randoms())
def test_a_class_has_the_same_key_in_every_model_whose_names_allow_it(
    letters: list[str], chance: Any
) -> None:
    """Neither their order nor the other classes matter if no two classes begin with the same letter."""
    names = {f"{letter}{letter}xyz": letter for letter in letters}
    mixed = list(names)
    chance.shuffle(mixed)
    for some in (mixed, mixed[:2]):
        assert dict(map(reversed, labelling_keys(tuple(some)).class_keys())) == {  # type: ignore[arg-type]
            name: names[name] for name in some
        }
