"""The members of a forest at one moment, and their predictions (theory §10.1, §10.3)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Floats
from quercus.kernels.forest import member_key
from quercus.trees.memory_forest.codes import Codebook, Codes
from quercus.trees.memory_forest.evidence import DistinctContours, EvidenceMoment
from quercus.trees.memory_forest.groves import Grove, MemberTree, MemoryChanges
from quercus.trees.memory_forest.labelled_rows import common_length
from quercus.trees.memory_forest.leaf_bounds import with_bounds
from quercus.trees.memory_forest.memories import (
    BAYES,
    LADDER,
    MEMORIES,
    memories_of,
    remembered_places,
)
from quercus.trees.memory_forest.naive_bayes import NaiveBayes
from quercus.trees.memory_forest.share_bounds import share_bounds

Rows = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Members:
    """Trees and naive-Bayes members; there are none before a row is labelled.

    Parameters
    ----------
    book
        The codes that the trees were grown with.
    size
        Number of classes.
    labelled, kinds
        (T,) labelled rows, in the order in which they were first labelled, and the numbers of their contours.
    groves
        The trees of each memory; tree m of the forest is in grove m modulo the number of groves.
    bayes
        The naive-Bayes members, which are numbered after the trees.
    """

    book: Codebook
    size: int
    labelled: Rows
    kinds: Rows
    groves: Sequence[Grove]
    bayes: Sequence[NaiveBayes]

    @classmethod
    def of(cls, moment: EvidenceMoment, trees: int, seed: int, before: "Members | None") -> "Members":
        """Return the members of a moment; those of an earlier one, `before`, save work."""
        evidence = moment.evidence
        moment.codes()  # brings the codebook up to date
        rows, kinds = moment.labelled, moment.labelled_kinds
        if not len(rows):
            return cls(evidence.book, evidence.size, rows, kinds, (), ())
        if before is not None and before.is_of(evidence.book, rows, kinds):
            return before
        if before is None or before.book is not evidence.book or not before.groves:
            keys = np.array([member_key(seed, m) for m in range(trees)], np.uint64)
            young = [
                Grove.seed(keys[step :: len(LADDER)].copy(), evidence.size)
                for step in range(min(trees, len(LADDER)))
            ]
            before = cls(evidence.book, evidence.size, rows[:0], kinds[:0], young, ())
        agreed, grown = before.agreed_count(moment), []
        changes_of: dict[int, MemoryChanges | None] = {}
        steps = range(len(before.groves))
        for step, memory, grove in zip(steps, memories_of(trees, evidence.size), before.groves, strict=False):
            if memory not in changes_of:
                changes_of[memory] = before.memory_changes(memory, moment, agreed)
            changes = changes_of[memory]
            numbers = range(step, trees, len(before.groves))
            grown.append(grove if changes is None else grove.grown_after(moment, changes, numbers))
        return cls(evidence.book, evidence.size, rows, kinds, grown, before.next_bayes(moment, agreed))

    @property
    def tree_count(self) -> int:
        """Number of trees."""
        return sum(map(len, self.groves))

    @property
    def trees(self) -> list[MemberTree]:
        """Views of the single trees, in the order of their numbers."""
        apart = [grove.trees for grove in self.groves]
        return [apart[m % len(apart)][m // len(apart)] for m in range(self.tree_count)]

    def agreed_count(self, moment: EvidenceMoment) -> int:
        """Return how many labelled rows, from the first on, are the same at a moment, with the same contours."""
        same_rows = common_length(self.labelled, moment.labelled)
        return min(same_rows, common_length(self.kinds, moment.labelled_kinds))

    def memory_changes(self, memory: int, moment: EvidenceMoment, agreed: int) -> MemoryChanges | None:
        """Return the changes of a memory until a moment, or None; for `agreed` see `agreed_count`."""
        old, new = (
            remembered_places(memory, len(self.labelled)),
            remembered_places(memory, len(moment.labelled)),
        )
        if self._is_unchanged(old, moment, new, agreed):
            return None
        return MemoryChanges.between(moment, self.labelled[old], self.kinds[old], moment.labelled[new])

    def next_bayes(self, moment: EvidenceMoment, agreed: int) -> list[NaiveBayes]:
        """Return the naive-Bayes members at a moment; those that remember the same rows are the same object."""
        evidence = moment.evidence
        member_of = {}
        if self.bayes:
            for memory, member in zip(BAYES, self.bayes, strict=True):
                old, new = (
                    remembered_places(memory, len(self.labelled)),
                    remembered_places(memory, len(moment.labelled)),
                )
                if self._is_unchanged(old, moment, new, agreed):
                    member_of[new.start, new.stop] = member
        members = []
        for memory in BAYES:
            new = remembered_places(memory, len(moment.labelled))
            if (new.start, new.stop) not in member_of:
                member_of[new.start, new.stop] = NaiveBayes.of(
                    evidence.values,
                    moment.labelled[new].astype(np.int64),
                    evidence.named,
                    moment.labelled_kinds[new],
                    evidence.contours,
                )
            members.append(member_of[new.start, new.stop])
        return members

    def _is_unchanged(self, old: slice, moment: EvidenceMoment, new: slice, agreed: int) -> bool:
        """Return whether labelled rows and contours at the `old` places equal those at the `new` ones at a moment."""
        if old == new and new.stop <= agreed:
            return True
        return np.array_equal(self.labelled[old], moment.labelled[new]) and np.array_equal(
            self.kinds[old], moment.labelled_kinds[new]
        )

    def is_of(self, book: Codebook, labelled: Rows, kinds: Rows) -> bool:
        """Return whether the members are those of these labelled rows, by this codebook."""
        n = len(labelled)
        is_alike = self.book is book and len(self.labelled) == n and len(self.groves) > 0
        return is_alike and common_length(self.labelled, labelled) == n == common_length(self.kinds, kinds)

    def with_bounds(self, contours: DistinctContours, level: float) -> "Members":
        """Return the members with the bounds of all leaves over the cut at `level`; `self` if it has them already."""
        if all(grove.level == level and not np.isnan(grove.opinions[:, 1]).any() for grove in self.groves):
            return self
        kinds = np.zeros(int(self.labelled.max()) + 1, np.int32)
        kinds[self.labelled] = self.kinds
        return replace(self, groves=with_bounds(self.groves, kinds, contours, level))

    def mean_opinions(
        self, values: Floats, weights: Floats, level: float, parts: int = 3, codes: Codes | None = None
    ) -> Floats:
        """Return the members' mean opinion of rows: estimate, belief and plausibility of each class, (m, parts, l).

        Parameters
        ----------
        values
            (m, K) values of the rows.
        weights
            (members,) weight of each member; they sum to 1.
        level
            Level of the likelihood cut (theory §10.4).
        parts
            3, for which the members must have the bounds for `level` (`with_bounds`); or 1 for the estimate alone.
        codes
            (m, K) codes of the values; None: they are computed.
        """
        predicted = np.zeros((len(values), parts, self.size))
        if not self.groves:
            predicted[:, :1] = 1.0 / self.size
            predicted[:, 2:] = 1.0
            return predicted
        codes, trees = self.book.codes(values) if codes is None else codes, self.tree_count
        for step, grove in enumerate(self.groves):
            mine = np.ascontiguousarray(weights[step : trees : len(self.groves)])
            grove.add_opinions(codes, self.book.named, mine, level, predicted)
        shares: dict[int, float] = {}
        for each, weight in zip(self.bayes, weights[trees:], strict=True):
            shares[id(each)] = shares.get(id(each), 0.0) + float(weight)
        for each in {id(each): each for each in self.bayes}.values():
            theta = each.theta(values)
            bounds = share_bounds(theta, each.weight, level) if parts > 1 else ()
            predicted += shares[id(each)] * np.stack([theta, *bounds], axis=1)
        return predicted

    def overlaps(self, values: Floats, weights: Floats, codes: Codes | None = None) -> Floats:
        """Return the trees' mean overlap for rows of values (m, K): (m,) in bits (theory §10.9).

        `weights` are those of all members; `codes` (m, K) are those of the values, None: they are computed.
        """
        sums = np.zeros(len(values))
        codes, mine = self.book.codes(values) if codes is None else codes, weights[: self.tree_count]
        for step, grove in enumerate(self.groves):
            share = np.ascontiguousarray(mine[step :: len(self.groves)]) / mine.sum()
            grove.add_overlaps(codes, self.book.named, share, sums)
        return sums

    def member_estimates(self, values: Floats, codes: Codes) -> Floats:
        """Return the estimate of each member for rows (m, K), whose codes are known: (members, m, l)."""
        trees, m = self.tree_count, len(values)
        estimates = np.zeros((trees + len(self.bayes), m, self.size))
        for step, grove in enumerate(self.groves):
            apart = np.zeros((len(grove) * m, 1, self.size))
            grove.add_opinions(codes, self.book.named, np.ones(len(grove)), 1.0, apart)
            estimates[step : trees : len(self.groves)] = apart.reshape(len(grove), m, self.size)
        for place, each in enumerate(self.bayes, trees):
            estimates[place] = each.theta(values)
        return estimates

    def memory_estimates(self, values: Floats, codes: Codes | None = None) -> Floats:
        """Return the estimate of each memory for rows, the mean of its members' estimates: (memories, m, l).

        `codes` (m, K) are those of the values; None: they are computed.
        """
        estimates = np.full((MEMORIES, len(values), self.size), 1.0 / self.size)
        if not self.groves:
            return estimates
        codes = self.book.codes(values) if codes is None else codes
        for step, grove in enumerate(self.groves):
            predicted = np.zeros((len(values), 1, self.size))
            grove.add_opinions(codes, self.book.named, np.full(len(grove), 1.0 / len(grove)), 1.0, predicted)
            estimates[step] = predicted[:, 0]
        theta_of = {id(each): each.theta(values) for each in {id(each): each for each in self.bayes}.values()}
        for place, each in enumerate(self.bayes, len(LADDER)):
            estimates[place] = theta_of[id(each)]
        return estimates
