"""The trees of a memory, which grow together, and their predictions (theory §10.1, §10.2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.kernels.forest import add_of_leaves, add_opinions, grow, overlaps
from quercus.trees.memory_forest.codes import Codes
from quercus.trees.memory_forest.evidence import EvidenceMoment
from quercus.trees.memory_forest.unpickled import WritableArrays

Keys = NDArray[np.uint64]
Rows = NDArray[np.int32]

FIELDS = 4  # numbers per node


@dataclass(frozen=True, eq=False)
class MemoryChanges:
    """The rows that a memory has gained and lost since its trees last grew.

    Parameters
    ----------
    come
        Rows that were gained, in the order of their contours (`EvidenceMoment.by_rank`).
    go
        Rows that were lost; a row whose contour changed is both lost and gained.
    gone
        (all rows,) whether each row is among `go`.
    """

    come: Rows
    go: Rows
    gone: Bools

    @classmethod
    def between(cls, moment: EvidenceMoment, old: Rows, kinds: Rows, new: Rows) -> "MemoryChanges":
        """Return the changes from `old` rows, with contours `kinds`, to the `new` rows of a moment."""
        stays, gone = np.zeros(moment.count, dtype=np.bool_), np.zeros(moment.count, dtype=np.bool_)
        stays[new] = True
        go = old[~stays[old] | (kinds != moment.kinds[old])]
        gone[go] = True
        had = np.zeros(moment.count, dtype=np.bool_)  # a fresh array: unwritten pages cost nothing
        had[old] = True
        had[go] = False
        return cls(moment.by_rank(new[~had[new]]), go, gone)


@dataclass(frozen=True, eq=False)
class MemberTree:
    """A single tree of a grove.

    Parameters
    ----------
    key
        Key of the root.
    nodes
        (4, nodes) attribute, test, skip and size of each node.
    rows, opinions
        See `grow` in `kernels/forest/growing.hpp`.
    """

    key: np.uint64
    nodes: Rows
    rows: Rows
    opinions: Floats

    def __len__(self) -> int:
        return int(self.nodes.shape[1])


@dataclass(frozen=True, eq=False)
class Grove(WritableArrays):
    """The trees of a memory. A row changes all of them, so they grow in one call, and predict in one.

    Parameters
    ----------
    keys
        (trees,) keys of the roots.
    nodes, rows, opinions, counts
        See `grow` in `kernels/forest/growing.hpp`.
    level
        Level of the likelihood cut of the bounds in `opinions`; NaN if there are none.
    """

    keys: Keys
    nodes: Rows
    rows: Rows
    opinions: Floats
    counts: Ints
    level: float

    @classmethod
    def seed(cls, keys: Keys, size: int) -> "Grove":
        """Return trees without rows."""
        none = np.empty(0, np.int32)
        counts = np.zeros((len(keys), 2), np.int64)
        return cls(keys, np.empty((0, FIELDS), np.int32), none, np.empty((0, 3, size)), counts, math.nan)

    @classmethod
    def of(cls, trees: Sequence[MemberTree], level: float) -> "Grove":
        """Return a grove of at least one tree; raise `ValueError` if their numbers of rows differ."""
        if len({len(tree.rows) for tree in trees}) > 1:
            raise ValueError("trees of a memory have different numbers of rows, which do not fit together")
        return cls(
            np.array([tree.key for tree in trees], np.uint64),
            np.ascontiguousarray(nodes_of(trees).T),
            np.concatenate([tree.rows for tree in trees]),
            np.concatenate([tree.opinions for tree in trees]),
            np.array([(len(tree), len(tree.opinions)) for tree in trees], np.int64),
            level,
        )

    def grown_after(
        self, moment: EvidenceMoment, changes: MemoryChanges, members: Sequence[int] = ()
    ) -> "Grove":
        """Return the trees after changes of their memory, equal to trees grown from scratch.

        `members` are the numbers of the trees in the forest, which determine their completions of uncertain values.
        """
        completions = moment.evidence.completions
        if completions is None:
            return self._grown(moment, changes, moment.codes())
        evidence, codes, found = moment.evidence, moment.codes().copy(), []
        held = np.union1d(self.rows[: len(self.rows) // len(self)], changes.come).astype(np.int64)
        rows, attributes, drawn = completions.codes_of_members(
            members, held, evidence.values[: moment.count], evidence.book
        )
        for mine, tree in zip(drawn.T, self.trees, strict=True):
            codes[rows, attributes] = mine
            alone = Grove.of([tree], self.level)
            found += alone._grown(moment, changes, codes).trees
        return Grove.of(found, self.level)

    def _grown(self, moment: EvidenceMoment, changes: MemoryChanges, codes: Codes) -> "Grove":
        distinct = moment.evidence.contours
        nodes, rows, opinions, counts = grow(
            codes,
            moment.evidence.named,
            moment.evidence.book.varying,
            moment.kinds,
            moment.labels,
            distinct.values,
            distinct.sole_class,
            distinct.lexicographic_rank,
            self.keys,
            self.nodes,
            self.rows,
            _in_lines(self.opinions),
            self.counts,
            changes.come,
            changes.go,
            changes.gone,
        )
        return Grove(
            self.keys, nodes, rows, opinions.reshape(-1, *self.opinions.shape[1:]), counts, self.level
        )

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def trees(self) -> list[MemberTree]:
        """Views of the single trees."""
        ends = np.cumsum(self.counts, axis=0)
        starts = (ends - self.counts).tolist()
        n = len(self.rows) // len(self)
        return [
            MemberTree(key, self.nodes[a:b].T, self.rows[m * n : m * n + n], self.opinions[c:d])
            for m, (key, (a, c), (b, d)) in enumerate(zip(self.keys, starts, ends.tolist(), strict=True))
        ]

    def add_opinions(
        self, codes: Codes, named: Bools, weights: Floats, level: float, predicted: Floats
    ) -> None:
        """Add the weighted opinions of the trees to `predicted`, see `kernels/forest/routing.hpp`."""
        opinions, sums = _in_lines(self.opinions), _in_lines(predicted)
        add_opinions(codes, named, self.keys, self.nodes, opinions, self.counts, weights, level, sums)

    def add_overlaps(self, codes: Codes, named: Bools, weights: Floats, sums: Floats) -> None:
        """Add the weighted overlap of the leaves in which rows end to `sums` (m,), see `kernels/forest/overlap.hpp`."""
        add_of_leaves(codes, named, self.keys, self.nodes, self.counts, weights, self._overlaps, sums)

    @cached_property
    def _overlaps(self) -> Floats:
        return np.array(overlaps(self.nodes, _in_lines(self.opinions), self.counts))


def _in_lines(array: Floats) -> Floats:
    """Return a view (n, a b) of an array (n, a, b)."""
    return array.reshape(len(array), math.prod(array.shape[1:]))


def nodes_of(trees: Sequence[MemberTree]) -> Rows:
    """Return the nodes (4, nodes) of trees, concatenated and C-contiguous."""
    return np.ascontiguousarray(
        np.concatenate([np.empty((FIELDS, 0), np.int32), *(tree.nodes for tree in trees)], axis=1)
    )
