from math import log2

import numpy as np
import pytest
from support.plain_rules import gain_ratio_interval, non_dominated

from quercus.trees.rules.gain import split_information
from quercus.trees.rules.ties import first_largest, largest_mid_value


def test_split_information() -> None:
    shares = (0.5, 0.25, 0.25)
    assert split_information(np.array([4, 0, 2, 2])) == pytest.approx([-sum(f * log2(f) for f in shares)])
    assert split_information(np.array([0, 7, 0])).tolist() == [0.0]
    many = split_information(np.array([[4, 0, 2, 2, 1, 1], [0, 0, 0, 9, 2, 0]]), np.array([0, 4]))
    assert many == pytest.approx(np.array([[1.5, 1.0], [0.0, 0.0]]))


def test_gain_ratio_of_the_paper() -> None:
    """Example 2 of the paper, at level 0.9."""
    interval = gain_ratio_interval(
        (1.4522, 1.5751), np.array([0, 0, 0.7950]), np.array([0.1614, 0.4822, 1.0319]), np.array([8, 5, 8])
    )
    assert interval == pytest.approx((0.5682, 0.8188), abs=1e-4)


def test_the_examples_of_the_paper() -> None:
    intervals = {0: (0.7, 1.2), 1: (0.5, 1.3), 2: (0.3, 0.4)}
    assert non_dominated(intervals) == (0, 1)
    assert largest_mid_value(intervals, (0, 1)) == 0


def test_a_tie_does_not_dominate() -> None:
    assert non_dominated({0: (0.5, 0.5), 1: (0.5 + 5e-10, 0.5 + 5e-10)}) == (0, 1)
    assert non_dominated({0: (0.5, 0.5), 1: (0.5 + 3e-9, 0.5 + 3e-9)}) == (1,)
    assert non_dominated({3: (0.0, 0.0)}) == (3,)
    assert non_dominated({}) == ()


def test_of_tied_mid_values_the_earlier_attribute() -> None:
    assert largest_mid_value({4: (0.2, 0.4), 2: (0.1, 0.5), 7: (0.3, 0.3 + 1e-9)}, (7, 4, 2)) == 2


def test_first_largest() -> None:
    assert first_largest([0.1, 0.4 - 5e-10, 0.4]) == 1
    assert first_largest([0.1, 0.4 - 2e-9, 0.4]) == 2
