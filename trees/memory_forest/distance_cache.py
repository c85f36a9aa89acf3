"""Distances between rows, kept while the codes and the rows to be covered stay the same."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Ints
from quercus.kernels.forest import DISTANCE_UNIT, distances, nearest_distances
from quercus.trees.memory_forest.codes import Codebook, Codes

T = TypeVar("T", bound=np.generic)
Distances = NDArray[np.uint16] | NDArray[np.int32]  # the smaller type where it has room for them


class DistanceCache:
    """Distances of candidates, and of known rows, from some rows.

    From one agenda to the next few candidates change, and few known rows and few rows come or go: only their distances
    are counted.

    Parameters
    ----------
    book
        The codes.
    rows
        (m,) numbers of the rows.
    codes
        (n, A) codes of all rows, of the attributes that vary.
    """

    def __init__(self, book: Codebook, rows: Ints, codes: Codes) -> None:
        self.book, self._bins = book, book.bin_counts()[book.varying]
        self._given = self._rows = rows
        self._others = ordered_codes(codes[rows], self._bins)
        most = DISTANCE_UNIT * len(book.varying)
        small = np.uint16 if most <= np.iinfo(np.uint16).max else np.int32
        self._far = np.empty((0, len(rows)), small)  # up to a million distances
        self._candidates = np.empty(0, np.int64)  # of each line, former ones among them
        nobody = np.empty(0, np.int64)
        self._near = [
            (nobody, self._nearest_distances(codes[:0]))
        ]  # of each group its rows, and distances from them

    def follow_rows(self, rows: Ints, codes: Codes) -> Ints:
        """Take other rows (m,); return them in the order of all distances. `codes` are of all rows.

        Rows that come take the places of rows that go, so only their distances are counted and written.
        """
        if np.array_equal(rows, self._given):
            return self._rows
        fresh, free = np.setdiff1d(rows, self._rows), np.flatnonzero(~np.isin(self._rows, rows))
        columns = ordered_codes(codes[fresh], self._bins)
        far = distances(columns, ordered_codes(codes[self._candidates], self._bins), self._bins).T
        self._far = _replaced(self._far, free, far.astype(self._far.dtype))
        self._near = [
            (known, _replaced(near.copy(), free, self._nearest_of(columns, codes[known])))
            for known, near in self._near
        ]
        self._given, self._rows = rows, _replaced(self._rows.copy(), free, fresh)
        self._others = ordered_codes(codes[self._rows], self._bins)
        return self._rows

    def candidate_distances(self, candidates: Ints, codes: Codes) -> tuple[Distances, Ints]:
        """Return distances (lines, m) of all candidates so far from the rows, and the lines (n,) of these candidates.

        They are read only, and good until the next call. `codes` are of all rows.
        """
        fresh = np.setdiff1d(candidates, self._candidates)
        if fresh.size:
            more = distances(ordered_codes(codes[fresh], self._bins), self._others, self._bins)
            more = more.astype(self._far.dtype)
            free = np.flatnonzero(~np.isin(self._candidates, candidates))[: fresh.size]
            self._far[free], self._candidates[free] = more[: free.size], fresh[: free.size]
            if free.size < fresh.size:
                self._far = np.concatenate([self._far, more[free.size :]])
                self._candidates = np.append(self._candidates, fresh[free.size :])
        order = np.argsort(self._candidates)
        return self._far, order[np.searchsorted(self._candidates, candidates, sorter=order)]

    def group_distances(self, groups: Sequence[Ints], codes: Codes) -> list[Ints]:
        """Return the distance (m,) of each row from the nearest row of each group, numbers of known rows; read only.

        What was counted for a group serves the group at its place the next time. A new group begins with what was
        counted for the one before it.
        """
        for place, known in enumerate(groups):
            if place == len(self._near):
                self._near.append(self._near[-1])
            self._near[place] = known, self._brought_up_to_date(*self._near[place], known, codes)
        return [near for _, near in self._near[: len(groups)]]

    def _brought_up_to_date(self, before: Ints, near: Ints, known: Ints, codes: Codes) -> Ints:
        """Return the distances from the nearest of `known` rows; those from the nearest row of `before` are `near`.

        A row that goes matters to those alone that it was nearest to.
        """
        gone, fresh = np.setdiff1d(before, known), np.setdiff1d(known, before)
        if gone.size:
            near = near.copy()
            left = np.flatnonzero(self._nearest_distances(codes[gone]) <= near)
            stay = ordered_codes(codes[np.intersect1d(before, known)], self._bins)
            near[left] = nearest_distances(self._others[left], stay, self._bins)
        return np.minimum(near, self._nearest_distances(codes[fresh])) if fresh.size else near

    def _nearest_distances(self, codes: Codes) -> Ints:
        """Return the distance (m,) of each row from the nearest row of `codes` (n, K)."""
        return self._nearest_of(self._others, codes)

    def _nearest_of(self, others: NDArray[np.int16], codes: Codes) -> Ints:
        known = ordered_codes(codes, self._bins)
        if 0 < len(known) < len(others):  # faster: each row of the outer loop prepares its distances
            return np.asarray(distances(known, others, self._bins).min(axis=0))
        return nearest_distances(others, known, self._bins)


def _replaced(held: NDArray[T], free: Ints, fresh: NDArray[T]) -> NDArray[T]:
    """Return an array whose `free` places along the last axis `fresh` ones take, with places added or left out."""
    both = min(len(free), fresh.shape[-1])
    held[..., free[:both]] = fresh[..., :both]
    if both < len(free):
        stay = np.delete(np.arange(held.shape[-1]), free[both:])
        return held.take(stay, axis=-1)  # not by an index, which would leave another order in memory
    return np.concatenate([held, fresh[..., both:]], axis=-1) if both < fresh.shape[-1] else held


def ordered_codes(codes: Codes, bins: Ints) -> NDArray[np.int16]:
    """Return codes as `distances` wants them: those of numbers from 0 on, that of a missing one behind them."""
    ranks = np.where(bins > 0, np.where(codes == 0, bins, codes.astype(np.int64) - 1), codes)
    return ranks.astype(np.int16)
