"""Agreement beyond chance, on published numbers."""

import numpy as np
import pytest

from quercus.labelling.crowds.kappa import cohen_kappa, krippendorff_alpha

# Krippendorff (2013), §12.3.4: four observers, twelve units, five classes, with missing values; alpha nominal is .743.
OBSERVERS = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)


def test_alpha_of_krippendorffs_example() -> None:
    """The published value, with units of which one or no observer says something left out."""
    units = [[code for code in unit if code is not None] for unit in zip(*OBSERVERS, strict=True)]
    counts = np.array([np.bincount(unit, minlength=6)[1:] for unit in units if len(unit) > 1])
    assert krippendorff_alpha(counts) == pytest.approx(0.743, abs=5e-4)


def test_kappa_of_two_readers() -> None:
    """50 proposals, of which both readers accept 20 and refuse 15: kappa .4 (observed .7, by chance .5)."""
    assert cohen_kappa(np.array([[20, 5], [10, 15]])) == pytest.approx(0.4)


@pytest.mark.parametrize("seed", range(5))
def test_alpha_by_counting_pairs(seed: int) -> None:
    """Alpha is 1 - observed / expected disagreement, with every pair of labels counted one by one."""
    random = np.random.default_rng(seed)
    rows = [random.integers(0, 3, size=random.integers(2, 5)).tolist() for _ in range(12)]
    total = sum(map(len, rows))
    observed = sum(
        (one != other) / (len(row) - 1)
        for row in rows
        for i, one in enumerate(row)
        for j, other in enumerate(row)
        if i != j
    )
    every = [label for row in rows for label in row]
    expected = sum(one != other for i, one in enumerate(every) for j, other in enumerate(every) if i != j)
    alpha = 1 - (observed / total) / (expected / (total * (total - 1)))
    counts = np.array([np.bincount(row, minlength=3) for row in rows])
    assert krippendorff_alpha(counts) == pytest.approx(alpha)


def test_nothing_is_no_agreement() -> None:
    """There is no figure where only one class was named, or nothing: chance explains all."""
    assert krippendorff_alpha(np.zeros((0, 2), np.int64)) is None
    assert krippendorff_alpha(np.array([[3, 0], [2, 0]])) is None
    assert cohen_kappa(np.zeros((2, 2), np.int64)) is None
