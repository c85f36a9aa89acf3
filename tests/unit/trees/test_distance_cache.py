"""Distances that queries share: as they are computed at once, in little room."""

from collections.abc import Callable

import numpy as np
import pytest

from quercus.belief.arrays import Ints
from quercus.kernels.forest import DISTANCE_UNIT, distances, nearest_distances
from quercus.trees.memory_forest import distance_cache
from quercus.trees.memory_forest.codes import Codebook
from quercus.trees.memory_forest.distance_cache import DistanceCache, ordered_codes


@pytest.mark.parametrize(("attributes", "number_bytes"), [(78, 2), (79, 4)])
def test_distances_are_kept_in_the_smallest_numbers_that_hold_them(
    attributes: int, number_bytes: int
) -> None:
    """Rows that have no value in common are as far apart as rows can be."""
    book = Codebook(np.ones(attributes, dtype=np.bool_), (np.empty(0),) * attributes, np.arange(attributes))
    codes = np.repeat(np.arange(1, 9, dtype=np.uint16)[:, np.newaxis], attributes, axis=1)
    codes[4:, ::3] = 1
    rows = np.arange(3)
    cache, others = DistanceCache(book, rows, codes), ordered_codes(codes[rows], book.bin_counts())
    for candidates in (np.array([7, 5]), np.array([5, 6, 7, 1])):  # some are known, in another order
        held, lines = cache.candidate_distances(candidates, codes)
        far = held[lines]
        expected = distances(ordered_codes(codes[candidates], book.bin_counts()), others, book.bin_counts())
        assert np.array_equal(far, expected)
    assert far.max() == DISTANCE_UNIT * attributes
    assert cache._far.itemsize == number_bytes


def test_distances_from_rows_that_come_and_go_are_as_they_are_counted_at_once() -> None:
    """Groups of known rows grow, shrink, change altogether, become empty, and become more and fewer."""
    rng = np.random.default_rng(3)
    named = np.array([True, False, False])
    values = np.column_stack([rng.integers(0, 5, 90), rng.normal(size=(90, 2))])
    values[rng.random(values.shape) < 0.1] = np.nan
    book = Codebook.of(values, named, np.arange(len(named)))
    codes, rows = book.codes(values), np.arange(0, 90, 2)
    cache, others = DistanceCache(book, rows, codes), ordered_codes(codes[rows], book.bin_counts())
    for _ in range(60):
        groups = [
            np.sort(rng.choice(90, int(rng.integers(0, 25)), replace=False))
            for _ in range(int(rng.integers(1, 5)))
        ]
        if rng.random() < 0.5:
            groups.sort(key=len)
            groups = [np.unique(np.concatenate(groups[: n + 1])) for n in range(len(groups))]
        near = cache.group_distances(groups, codes)
        assert len(near) == len(groups)
        for known, found in zip(groups, near, strict=True):
            expected = nearest_distances(
                others, ordered_codes(codes[known], book.bin_counts()), book.bin_counts()
            )
            assert found.tolist() == expected.tolist()


def test_distances_of_rows_that_come_and_go_are_as_they_are_counted_at_once() -> None:
    """Rows arrive, and a sample of them is looked at: some go, and others come in between."""
    rng = np.random.default_rng(5)
    values = np.column_stack([rng.integers(0, 5, 90), rng.normal(size=(90, 2))])
    values[rng.random(values.shape) < 0.1] = np.nan
    book = Codebook.of(values, np.array([True, False, False]), np.arange(3))
    codes, rows = book.codes(values), np.arange(10)
    apart = DistanceCache(book, rows, codes)
    for _ in range(40):
        rows = np.sort(rng.choice(90, int(rng.integers(1, 60)), replace=False))
        candidates = rng.choice(90, int(rng.integers(1, 40)), replace=False)
        groups = [
            rng.choice(90, int(rng.integers(0, 30)), replace=False) for _ in range(int(rng.integers(1, 4)))
        ]
        followed = apart.follow_rows(rows, codes)
        assert np.array_equal(np.sort(followed), rows)
        rows = followed
        others = ordered_codes(codes[rows], book.bin_counts())
        far = distances(ordered_codes(codes[candidates], book.bin_counts()), others, book.bin_counts())
        held, lines = apart.candidate_distances(candidates, codes)
        assert np.array_equal(held[lines], far)
        for known, near in zip(groups, apart.group_distances(groups, codes), strict=True):
            expected = nearest_distances(
                others, ordered_codes(codes[known], book.bin_counts()), book.bin_counts()
            )
            assert near.tolist() == expected.tolist()


def test_a_row_that_arrives_costs_its_own_distances_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """All distances would else be counted again for each agenda while rows arrive."""
    rng = np.random.default_rng(6)
    values = rng.normal(size=(301, 4))
    book = Codebook.of(values[:200], np.zeros(4, dtype=np.bool_), np.arange(4))
    codes, candidates = book.codes(values), np.arange(100)
    apart = DistanceCache(book, np.arange(300), codes)
    apart.candidate_distances(candidates, codes)
    apart.group_distances([np.arange(50)], codes)
    counted = [0]

    def watched(count: Callable[..., Ints]) -> Callable[..., Ints]:
        def run(rows: Ints, others: Ints, bins: Ints) -> Ints:
            counted[0] += len(rows) * len(others)
            return count(rows, others, bins)

        return run

    monkeypatch.setattr(distance_cache, "distances", watched(distances))
    monkeypatch.setattr(distance_cache, "nearest_distances", watched(nearest_distances))
    assert apart.book.is_same(
        Codebook(book.named.copy(), tuple(cuts.copy() for cuts in book.cuts), book.varying.copy())
    )
    apart.follow_rows(np.arange(301), codes)
    far, _ = apart.candidate_distances(candidates, codes)
    apart.group_distances([np.arange(50)], codes)
    assert counted[0] == 100 + 50
    assert far.shape == (100, 301)
