"""Folds are even, stratified, and their seeds depend on names alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quercus.belief.errors import InvalidInput
from quercus.experiments.folds import fold_numbers, seed_of


@given(st.lists(st.integers(0, 4), min_size=2, max_size=60), st.integers(2, 10), st.integers(0, 99))
def test_folds_are_even_in_rows_and_classes(classes, folds, seed):
    targets = np.array(classes)
    folds = min(folds, len(targets))
    numbers = fold_numbers(targets, folds, np.random.SeedSequence(seed))
    for rows in (np.ones(len(targets), bool), *(targets == c for c in range(5))):
        sizes = np.bincount(numbers[rows], minlength=folds)
        assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("folds", [1, 11])
def test_impossible_folds_are_refused(folds):
    with pytest.raises(InvalidInput, match=r"folds: are \d+, must lie in \[2, 10\]"):
        fold_numbers(np.arange(10), folds, np.random.SeedSequence(0))


def test_seeds_differ_by_every_part_of_the_name():
    names = [(0, "a", 1), (1, "a", 1), (0, "b", 1), (0, "a", 2), (0, "a", "1"), (0, "a1"), (0, "a")]
    states = {tuple(seed_of(*name).generate_state(4)) for name in names}
    assert len(states) == len(names)
