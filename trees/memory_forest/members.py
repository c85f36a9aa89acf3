"""The members of a forest at one moment, and what they say (theory §10.1, §10.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.trees.memory_forest import growing, routing
from quercus.trees.memory_forest.codes import Bools, Codebook, Codes
from quercus.trees.memory_forest.draws import member_key
from quercus.trees.memory_forest.evidence import Evidence
from quercus.trees.memory_forest.naive_bayes import NaiveBayes
from quercus.trees.memory_forest.nodes import log_table

Floats = NDArray[np.float64]
Rows = NDArray[np.int32]

LADDER = (200, 600, 2_000, 6_000, 20_000, None)
"""Memories of trees, in told rows; None for all of them. The trees share them out evenly."""
BAYES = (600, 2_000, None)
"""Memories of the naive-Bayes members."""
MEMORIES = len(LADDER) + len(BAYES)
TABLE = log_table()


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree: its nodes in pre-order, see `quercus.trees.memory_forest.growing`.

    Parameters
    ----------
    key
        Of the root.
    attribute, test, skip, size
        A number a node.
    opinions
        (opinions, 3, l) of the leaves that are not pure.
    rows
        (n,) that it was grown from, in the order of the leaves.
    """

    key: np.uint64
    attribute: Rows
    test: Rows
    skip: Rows
    size: Rows
    opinions: Floats
    rows: Rows

    @classmethod
    def of(cls, evidence: Evidence, rows: Rows, key: np.uint64) -> "Tree":
        """Grow from rows in the order of their contours."""
        told, mine = evidence.contours, rows.copy()
        nodes, attribute, test, skip, size, said, opinions = growing.grow(
            evidence.codes(),
            evidence.named,
            mine,
            evidence.kinds,
            told.values,
            told.beliefs,
            told.sole,
            key,
            TABLE,
        )
        columns = attribute[:nodes].copy(), test[:nodes].copy(), skip[:nodes].copy(), size[:nodes].copy()
        return cls(key, *columns, opinions[:said].copy(), mine)

    def __len__(self) -> int:
        return len(self.attribute)

    def add(self, codes: Codes, named: Bools, weight: float, level: float, said: Floats) -> None:
        """Add what the tree says, see `quercus.trees.memory_forest.routing.add_opinions`."""
        columns = self.attribute, self.test, self.skip, self.size
        routing.add_opinions(codes, named, *columns, self.opinions, self.key, weight, level, said)


@dataclass(frozen=True, eq=False)
class Members:
    """Trees and naive-Bayes members, none before a row is told.

    Parameters
    ----------
    book
        The codes that the trees were grown with.
    size
        Number of classes.
    told
        Number of told rows.
    trees, bayes
        The members, in this order.
    """

    book: Codebook
    size: int
    told: int
    trees: Sequence[Tree]
    bayes: Sequence[NaiveBayes]

    @classmethod
    def of(cls, evidence: Evidence, trees: int, seed: int) -> "Members":
        """Return the members that the evidence says."""
        evidence.codes()  # brings the book up to date
        told = len(evidence.told)
        if not told:
            return cls(evidence.book, evidence.size, 0, (), ())
        memories = {min(told, length or told): evidence.memory(length) for length in LADDER}
        lengths = [min(told, LADDER[m % len(LADDER)] or told) for m in range(trees)]
        grown = [Tree.of(evidence, memories[length], member_key(seed, m)) for m, length in enumerate(lengths)]
        known: dict[int, NaiveBayes] = {}
        for length in {min(told, each or told) for each in BAYES}:
            rows = evidence.told[-length:]
            known[length] = NaiveBayes.of(evidence.values[rows], evidence.named, *evidence.ranked(rows))
        bayes = [known[min(told, each or told)] for each in BAYES]
        return cls(evidence.book, evidence.size, told, grown, bayes)

    def opinions(self, values: Floats, weights: Floats, level: float) -> Floats:
        """Return the mean of what the members say of rows: estimate, belief and plausibility of each class (m, 3, l).

        Parameters
        ----------
        values
            (m, K).
        weights
            (members,) with sum 1.
        level
            At which leaves are discounted (theory §10.4).
        """
        said = np.zeros((len(values), 3, self.size))
        if not self.told:
            said[:, 0] = 1.0 / self.size
            said[:, 2] = 1.0
            return said
        codes = self.book.codes(values)
        for tree, weight in zip(self.trees, weights[: len(self.trees)], strict=True):
            tree.add(codes, self.book.named, float(weight), level, said)
        shares: dict[int, float] = {}
        for each, weight in zip(self.bayes, weights[len(self.trees) :], strict=True):
            shares[id(each)] = shares.get(id(each), 0.0) + float(weight)
        for each in {id(each): each for each in self.bayes}.values():
            theta, sure = each.theta(values), level ** (1.0 / self.told)
            parts = (theta, sure * theta, 1.0 - sure + sure * theta)
            said += shares[id(each)] * np.stack(parts, axis=1)
        return said

    def estimates(self, values: Floats) -> Floats:
        """Return what each memory says of rows, the mean of its members' estimates: (memories, m, l)."""
        found = np.full((MEMORIES, len(values), self.size), 1.0 / self.size)
        if not self.told:
            return found
        codes = self.book.codes(values)
        for step in range(len(LADDER)):
            said, trees = np.zeros((len(values), 3, self.size)), self.trees[step :: len(LADDER)]
            for tree in trees:
                tree.add(codes, self.book.named, 1.0 / len(trees), 1.0, said)
            if trees:
                found[step] = said[:, 0]
        known = {id(each): each.theta(values) for each in {id(each): each for each in self.bayes}.values()}
        for place, each in enumerate(self.bayes, len(LADDER)):
            found[place] = known[id(each)]
        return found


def memory_of(trees: int) -> NDArray[np.int64]:
    """Return the number of each member's memory: of the trees', then of the naive-Bayes members, each one of its own.

    Examples
    --------
    >>> memory_of(8).tolist()
    [0, 1, 2, 3, 4, 5, 0, 1, 6, 7, 8]
    """
    return np.append(np.arange(trees) % len(LADDER), len(LADDER) + np.arange(len(BAYES)))
