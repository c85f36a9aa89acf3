"""Distances that queries share: as they are computed at once, in little room."""

import numpy as np
import pytest

from quercus.trees.ask.strategies import covering
from quercus.trees.memory_forest.apart import Apart, ordered
from quercus.trees.memory_forest.codes import Codebook


@pytest.mark.parametrize(("attributes", "number_bytes"), [(78, 2), (79, 4)])
def test_distances_are_kept_in_the_smallest_numbers_that_hold_them(
    attributes: int, number_bytes: int
) -> None:
    """Rows that have no value in common are as far apart as rows can be."""
    book = Codebook(np.ones(attributes, dtype=np.bool_), (np.empty(0),) * attributes)
    codes = np.repeat(np.arange(1, 9, dtype=np.uint16)[:, np.newaxis], attributes, axis=1)
    codes[4:, ::3] = 1
    rows = np.arange(3)
    apart, others = Apart(book, rows, codes), ordered(codes[rows], book.bins())
    for candidates in (np.array([7, 5]), np.array([5, 6, 7, 1])):  # some are known, in another order
        far = apart.far(candidates, codes)
        expected = covering.distances(ordered(codes[candidates], book.bins()), others, book.bins())
        assert np.array_equal(far, expected)
    assert far.max() == covering.UNIT * attributes
    assert apart._far.itemsize == number_bytes
