"""Corrupted labels: what each level does, and on what a row's draw depends."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quercus.belief.errors import InvalidInput
from quercus.experiments.corruption import Corruption, corrupt

LEVELS = st.floats(0, 1)
SEEDS = st.integers(0, 2**32 - 1)
ROWS = 4000


@st.composite
def problems(draw):
    size = draw(st.integers(2, 6))
    targets = draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=30))
    return np.array(targets), size


def corrupted(problem, corruption, seed):
    return corrupt(*problem, corruption, np.random.SeedSequence(seed))


@given(problems(), SEEDS)
def test_no_corruption_is_none(problem, seed):
    targets, size = problem
    assert (corrupted(problem, Corruption(), seed) == np.eye(size)[targets]).all()


@given(problems(), SEEDS, LEVELS, LEVELS, LEVELS)
def test_without_noise_the_true_class_stays_wholly_possible(problem, seed, v, i, u):
    contours = corrupted(problem, Corruption(vacuous=v, imprecise=i, uncertain=u), seed)
    assert (contours[np.arange(len(contours)), problem[0]] == 1).all()
    assert ((contours >= 0) & (contours <= 1)).all()


@given(problems(), SEEDS, LEVELS, LEVELS, LEVELS, LEVELS, st.booleans())
def test_a_row_does_not_depend_on_those_after_it(problem, seed, v, i, n, u, unit):
    targets, size = problem
    corruption = Corruption(v, i, n, u, unit)
    whole = corrupted(problem, corruption, seed)
    for rows in range(1, len(targets)):
        part = corrupted((targets[:rows], size), corruption, seed)
        assert (part == whole[:rows]).all()


@given(problems(), SEEDS, LEVELS, LEVELS)
def test_what_is_possible_grows_with_v_and_with_i(problem, seed, one, other):
    low, high = sorted((one, other))
    for kind in ("vacuous", "imprecise"):
        less = corrupted(problem, Corruption(**{kind: low}), seed)
        more = corrupted(problem, Corruption(**{kind: high}), seed)
        assert (less <= more).all()


@given(problems(), SEEDS)
def test_level_one_of_v_and_of_i_says_nothing(problem, seed):
    assert (corrupted(problem, Corruption(vacuous=1), seed) == 1).all()
    assert (corrupted(problem, Corruption(imprecise=1), seed) == 1).all()


@given(problems(), SEEDS, LEVELS)
def test_uncertain_plausibilities_stay_below_the_level(problem, seed, u):
    contours = corrupted(problem, Corruption(uncertain=u), seed)
    others = contours[np.eye(problem[1])[problem[0]] == 0]
    assert (others <= u).all()


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_shares_are_the_levels(level):
    targets = np.arange(ROWS) % 4
    spread = 5 * math.sqrt(level * (1 - level) / ROWS)  # five standard deviations of a share
    vacuous = corrupted((targets, 4), Corruption(vacuous=level), 1)
    assert abs((vacuous == 1).all(axis=1).mean() - level) < spread
    noisy = corrupted((targets, 4), Corruption(noise=level), 1)
    assert abs((noisy.argmax(axis=1) != targets).mean() - level * 3 / 4) < spread
    sets = corrupted((targets, 4), Corruption(imprecise=level), 1)
    assert abs((sets.sum() - ROWS) / (3 * ROWS) - level**2) < spread
    doubtful = corrupted((targets, 4), Corruption(uncertain=level), 1)
    assert abs((doubtful.sum(axis=1) > 1).mean() - level) < spread
    assert abs((doubtful.sum() - ROWS) / (3 * ROWS) - level * level / 2) < spread
    wide = corrupted((targets, 4), Corruption(uncertain=level, unit=True), 1)
    assert abs((wide.sum() - ROWS) / (3 * ROWS) - level / 2) < spread


@pytest.mark.parametrize("level", [-0.1, 1.1, math.nan])
@pytest.mark.parametrize("kind", ["vacuous", "imprecise", "noise", "uncertain"])
def test_levels_outside_are_refused(kind, level):
    with pytest.raises(InvalidInput, match=rf"{kind}: .* must lie in \[0, 1\]"):
        Corruption(**{kind: level})
