"""Marks of classes: all differ, stand out from what is behind them, and do not move when a class is appended."""

import re
from itertools import combinations, product

import numpy as np
import pytest

from quercus.belief.arrays import Floats
from quercus.belief.frame import MAX_CLASSES, MIN_CLASSES
from quercus.specification.class_marks import (
    CLASS_MARKS,
    OTHER_CLASSES,
    PATTERNS,
    contrast_ratio,
    ink_on,
    pattern_path,
    relative_luminance,
)

APART = 0.09
"""Least distance of two colours of one pattern in OKLab, in which black and white are 1 apart."""
APART_BLIND = 0.10
"""Least distance of two of the first eight colours, also for those who see no red or no green."""
BACKGROUNDS = {"light": ("#ffffff", "#f6f6f2"), "dark": ("#1d211d", "#141714", "#223428")}

TO_CONES = np.array([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
                     [0.0883024619, 0.2817188376, 0.6299787005]])  # fmt: skip
TO_LAB = np.array([[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
                   [0.0259040371, 0.7827717662, -0.8086757660]])  # fmt: skip
NO_RED = np.array(
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
)
NO_GREEN = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)


def linear_rgb(colour: str) -> Floats:
    parts = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def oklab(linear: Floats) -> Floats:
    found: Floats = TO_LAB @ np.cbrt(TO_CONES @ np.clip(linear, 0, 1))
    return found


def distance(one: str, other: str, sight: Floats | None = None) -> float:
    seen = np.eye(3) if sight is None else sight
    return float(np.linalg.norm(oklab(seen @ linear_rgb(one)) - oklab(seen @ linear_rgb(other))))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_classes_of_a_frame_are_told_apart(theme: str) -> None:
    """By their pattern, or else by colours that are far apart; no colour and pattern come twice."""
    for size in range(MIN_CLASSES, MAX_CLASSES + 1):
        pairs = [(getattr(mark, theme), mark.pattern) for mark in CLASS_MARKS[:size]]
        assert len(set(pairs)) == size
        *before, (newest, pattern) = pairs
        assert all(distance(newest, colour) >= APART for colour, theirs in before if theirs == pattern)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_first_eight_colours_need_neither_red_nor_green_cones(theme: str) -> None:
    colours = [getattr(mark, theme) for mark in CLASS_MARKS[:8]]
    for sight in (None, NO_RED, NO_GREEN):
        assert min(distance(*pair, sight) for pair in combinations(colours, 2)) >= APART_BLIND


def test_patterns_come_above_twenty_classes_alone() -> None:
    assert {mark.pattern for mark in CLASS_MARKS[:20]} == {""}
    assert [PATTERNS.index(mark.pattern) for mark in CLASS_MARKS] == [
        place // 20 for place in range(MAX_CLASSES)
    ]
    assert all(distance(OTHER_CLASSES.light, mark.light) > 0.05 for mark in CLASS_MARKS)
    assert all(distance(OTHER_CLASSES.dark, mark.dark) > 0.05 for mark in CLASS_MARKS)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_mark_stands_out_from_the_page_and_text_from_the_mark(theme: str) -> None:
    """WCAG 2.2: 3 for graphics (1.4.11), 4.5 for text (1.4.3)."""
    for mark, behind in product((*CLASS_MARKS, OTHER_CLASSES), BACKGROUNDS[theme]):
        colour = getattr(mark, theme)
        assert re.fullmatch("#[0-9a-f]{6}", colour)
        assert contrast_ratio(colour, behind) >= 3.0, (colour, behind)
        assert contrast_ratio(colour, ink_on(colour)) >= 4.5, colour


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast_ratio("#000000", "#ffffff") == pytest.approx(21)
    assert contrast_ratio("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # a well-known near miss
    assert relative_luminance("#ff0000") == pytest.approx(0.2126)


def test_strokes_continue_in_the_next_tile() -> None:
    """Each stroke that leaves a tile on one side enters it on the other."""
    for pattern in PATTERNS[1:]:
        path = pattern_path(pattern, 8)
        lines = [tuple(map(float, re.findall(r"-?[\d.]+", part))) for part in re.findall(r"M\S+ L\S+", path)]
        assert len(lines) == 3 * len(pattern)
        for a, b, c, d in lines:
            slope = (d - b) / (c - a)
            assert abs(slope) == 1
            assert (b - slope * a) % 8 == 0  # where the stroke crosses the side, in this tile and in the next
