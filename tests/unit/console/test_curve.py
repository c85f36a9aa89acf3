"""Pictures of curves: whatever numbers a row has, there is a picture of finite coordinates."""

import math
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quercus.view.svg.curve import Curve, draw_curves

LARGEST_FLOAT = sys.float_info.max
NUMBERS = st.floats(allow_infinity=False)


@given(st.lists(NUMBERS, min_size=1, max_size=9), NUMBERS, st.floats(min_value=0.0, allow_infinity=False))
def test_every_coordinate_lies_in_the_picture(values: list[float], start: float, step: float) -> None:
    picture = draw_curves([Curve("a", values, 0.0 if math.isnan(start) else start, step)])
    points = [point for line in re.findall(r'points="([^"]*)"', picture) for point in line.split()]
    assert all(0 <= float(x) <= 600 and 0 <= float(y) <= 120 for x, y in (p.split(",") for p in points))
    assert bool(points) == any(not math.isnan(value) for value in values)


@pytest.mark.parametrize(
    "curve", [Curve("a", [0.0, 1.0, 2.0], step=LARGEST_FLOAT), Curve("a", [-LARGEST_FLOAT, LARGEST_FLOAT])]
)
def test_the_ends_of_an_axis_may_be_further_apart_than_any_number(curve: Curve) -> None:
    assert "<polyline" in draw_curves([curve])
