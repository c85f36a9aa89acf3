"""Distances between rows, which are kept from one agenda to the next while the codes stay the same."""

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
    """Distances of candidates, and of known rows, from the rows to cover.

    From one agenda to the next, few candidates, known rows and rows to cover change, and only the distances of these
    are computed.

    Parameters
    ----------
    book
        The codebook.
    rows
        (m,) numbers of the rows to cover.
    codes
        (n, A) codes of all rows: those of the attributes that vary.
    """

    def __init__(self, book: Codebook, rows: Ints, codes: Codes) -> None:
        self.book, self._bins = book, book.bin_counts()[book.varying]
        self._given = self._rows = rows
        self._others = ordered_codes(codes[rows], self._bins)
        most = DISTANCE_UNIT * len(book.varying)
        small = np.uint16 if most <= np.iinfo(np.uint16).max else np.int32
        self._far = np.empty((0, len(rows)), small)  # up to a million distances
        self._candidates = np.empty(0, np.int64)  # the candidate of each line, which may be a former one
        no_rows = np.empty(0, np.int64)
        # for each group: its rows, and the distances of the rows to cover from the nearest of them
        self._near = [(no_rows, self._nearest_distances(codes[:0]))]

    def follow_rows(self, rows: Ints, codes: Codes) -> Ints:
        """Change to other rows to cover (m,); return them in the order that distances have. `codes` are of all rows.

        New rows take the places of rows that leave, so only the distances of new rows are computed and written.
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
        """Return distances (lines, m) from the rows to cover, and the line of each of `candidates` (n,).

        There are also lines of former candidates. The distances are read only, and valid until the next call. `codes`
        are of all rows.
        """
        fresh = np.setdiff1d(candidates, self._candidates, assume_unique=True)
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
        """Return, for each group of known rows, the distances (m,) of the rows to cover from the nearest; read only.

        The distances of a group are updated from those of the group at the same place in the previous call. A group at
        a new place starts from the distances of the group before it.
        """
        for place, known in enumerate(groups):
            if place == len(self._near):
                self._near.append(self._near[-1])
            self._near[place] = known, self._brought_up_to_date(*self._near[place], known, codes)
        return [near for _, near in self._near[: len(groups)]]

    def _brought_up_to_date(self, before: Ints, near: Ints, known: Ints, codes: Codes) -> Ints:
        """Return the distances from the nearest of the rows `known`, given those from the nearest of `before`: `near`.

        A row that leaves changes only the distances of rows to which it was nearest.
        """
        gone = np.setdiff1d(before, known, assume_unique=True)
        fresh = np.setdiff1d(known, before, assume_unique=True)
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
        if 0 < len(known) < len(others):  # faster, since the kernel prepares each row of the outer loop
            return np.asarray(distances(known, others, self._bins).min(axis=0))
        return nearest_distances(others, known, self._bins)


def _replaced(held: NDArray[T], free: Ints, fresh: NDArray[T]) -> NDArray[T]:
    """Return `held` with `fresh` entries in its `free` places along the last axis, lengthened or shortened to fit."""
    both = min(len(free), fresh.shape[-1])
    held[..., free[:both]] = fresh[..., :both]
    if both < len(free):
        stay = np.delete(np.arange(held.shape[-1]), free[both:])
        return held.take(stay, axis=-1)  # indexing would return another memory order
    return np.concatenate([held, fresh[..., both:]], axis=-1) if both < fresh.shape[-1] else held


def ordered_codes(codes: Codes, bins: Ints) -> NDArray[np.int16]:
    """Return codes as `distances` needs them: those of numbers count from 0, and a missing number comes last."""
    ranks = np.where(bins > 0, np.where(codes == 0, bins, codes.astype(np.int64) - 1), codes)
    return ranks.astype(np.int16)
