"""Trees over codes whose rows may go down several branches, in parts (theory §14); they are grown anew at each look.

An uncertain cell allows several codes. The weight of its row is shared among them in proportion to the node's rows with
each of these codes, so every new row changes the weights of all uncertain rows, and with them the counts of all cells
below: nothing can be kept between looks. Trees of rows without uncertain cells grow incrementally
(`quercus.trees.growth.incremental`).

For choosing queries, a row is assigned to one leaf: it follows the largest of its parts at each split.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.specification.learners import Pruning
from quercus.trees.ask.query import Contest, contests_among
from quercus.trees.growth.batch import (
    Decision,
    OpenNode,
    SplitChoice,
    decide_nodes,
    tree_of,
)
from quercus.trees.growth.incremental.growing import TreeRules
from quercus.trees.growth.sample import Sample
from quercus.trees.learners.cells import ColumnParts
from quercus.trees.learners.evidential import EvidentialRules, compared_intervals, node_counts, sample_weights
from quercus.trees.learners.sharing import LEAST_PART
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.rules.choice import SplitCells
from quercus.trees.rules.evidential_pruning import prune_evidential
from quercus.trees.rules.ties import Interval
from quercus.trees.tree.encoding import Edges
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.node import Path


@dataclass(frozen=True, slots=True)
class ContestedChoice(SplitChoice):
    """A choice, with the splits that no other dominates."""

    rivals: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class CodeTests:
    """The populated splits of a node, and their cells; see `quercus.trees.rules.choice.SplitCells`.

    Parameters
    ----------
    split
        (t,) numbers of the splits.
    cells
        The cells: the node, then the populated branches of each split.
    counts
        Counts of contours in the cells.
    size
        (c,) weight of the rows in each cell.
    """

    split: Ints
    cells: SplitCells
    counts: Cells
    size: Floats


@dataclass(frozen=True, eq=False)
class CodeRules(EvidentialRules):
    """The rules of ABC4.5 over codes; what they call attributes are splits, see `quercus.trees.tree.splits`.

    Parameters
    ----------
    sample
        The rows. The code of an uncertain cell is one of those it allows.
    uncertain
        The codes that uncertain cells allow, by attribute.
    limits
        The limits of growth.
    home
        The rows assigned to each node for choosing queries, by path; see the module docstring.
    """

    sample: Sample
    uncertain: Mapping[int, ColumnParts]
    limits: TreeRules
    home: dict[Path, Ints] = field(default_factory=dict)

    def root(self) -> OpenNode:
        """Return the root, with all rows."""
        rows = np.arange(len(self.sample.ids))
        self.home[()] = rows
        return OpenNode((), rows, tuple(range(self.sample.splits.split_count)))

    def choose_split(self, place: OpenNode) -> ContestedChoice | None:
        """Return the choice, or None if no split is populated."""
        tests = self.node_tests(place)
        if tests is None:
            return None
        found = self.compare(
            tests.cells, tests.counts, tests.size, frugal=self.limits.frugal, level=self.level(place)
        )
        rivals = tuple(tests.split[found.rivals[0]].tolist())
        justified = bool(found.justified[0])
        is_open = bool(self.sample.candidates(self.home[place.path]).size)
        return ContestedChoice(
            attribute=int(tests.split[found.split[0]]),
            intervals=compared_intervals(tests.split, found),
            undecided=(len(rivals) > 1 or not justified) and is_open,
            justified=justified,
            rivals=rivals,
        )

    def gain_intervals(self, place: OpenNode) -> Mapping[int, Interval]:
        """Return the exact interval of every candidate, including those that are not significant."""
        tests = self.node_tests(place)
        if tests is None:
            return {}
        found = self.compare(tests.cells, tests.counts, tests.size, frugal=False, level=None)
        return compared_intervals(tests.split, found)

    def branches(self, place: OpenNode, choice: SplitChoice) -> list[OpenNode]:
        """Return a child for every populated branch, in order; the split cannot be used again below."""
        split = choice.attribute
        splits, k = self.sample.splits, int(self.sample.splits.attribute[split])
        branch = splits.branches_of(split, self.sample.codes[place.rows, k])
        left = tuple(each for each in place.attributes if each != split)
        standing, opened = np.isin(place.rows, self.home[place.path]), self.open_cells(place, k)
        found = []
        if opened is None:
            for code in np.unique(branch).tolist():
                here = branch == code
                own = None if place.weights is None else place.weights[here]
                found.append(place.child(split, code, place.rows[here], left, own))
                self.home[found[-1].path] = place.rows[here & standing]
            return found
        at, shares = opened
        own = sample_weights(self.sample, place)
        weights = np.ones(place.rows.size) if own is None else own
        of_code = splits.branches_of(split, np.arange(splits.arities[k]))
        of_branch = np.zeros((at.size, int(splits.branches[split])))
        np.add.at(of_branch.T, of_code, shares.T)
        branch[at] = of_branch.argmax(axis=1)
        for code in range(of_branch.shape[1]):
            parts = np.where(branch == code, weights, 0.0)
            parts[at] = weights[at] * of_branch[:, code]
            here = parts > 0.0
            if here.any():
                found.append(place.child(split, code, place.rows[here], left, parts[here]))
                self.home[found[-1].path] = place.rows[here & standing & (branch == code)]
        return found

    def open_cells(self, place: OpenNode, k: int) -> tuple[Ints, Floats] | None:
        """Return the positions (u,) of a node's rows with an uncertain cell, and the shares of their codes (u, codes).

        None if attribute `k` is certain in all rows of the node.
        """
        column = self.uncertain.get(k)
        found = None if column is None else column.among(place.rows)
        if found is None:
            return None
        (at, cells), arity = found, self.sample.splits.arities[k]
        steps = np.zeros((at.size, arity + 1))
        cell = np.repeat(np.arange(at.size), np.diff(cells.start))
        np.add.at(steps, (cell, cells.low.astype(np.int64)), 1.0)
        np.add.at(steps, (cell, cells.high.astype(np.int64) + 1), -1.0)
        allowed: Floats = steps.cumsum(axis=1)[:, :-1] * self._reachable(place, k)
        weights = sample_weights(self.sample, place)
        known = np.ones(place.rows.size) if weights is None else weights.copy()
        known[at] = 0.0
        seen = np.bincount(self.sample.codes[place.rows, k], known, minlength=arity)
        shares: Floats = allowed * seen
        shares = np.where(shares.sum(axis=1, keepdims=True) > 0.0, shares, allowed)
        shares /= shares.sum(axis=1, keepdims=True)
        if weights is not None:
            whole = weights[at] < LEAST_PART
            shares[whole] = np.eye(arity)[shares[whole].argmax(axis=1)]
        return at, shares

    def _reachable(self, place: OpenNode, k: int) -> Bools:
        """Return, for each code of an attribute, whether it passes the tests above a node."""
        splits = self.sample.splits
        codes = np.arange(splits.arities[k])
        found = np.ones(codes.size, dtype=bool)
        for split, branch in place.path:
            if splits.attribute[split] == k:
                found &= splits.branches_of(split, codes) == branch
        return found

    def node_tests(self, place: OpenNode) -> CodeTests | None:
        """Return the populated splits of a node with their cells; None if there are none."""
        sample, splits = self.sample, self.sample.splits
        used, labels = np.unique(sample.ids[place.rows], return_inverse=True)
        labels, weights = labels.ravel(), sample_weights(sample, place)
        own = np.ones(labels.size) if weights is None else weights
        whole: Floats = np.bincount(labels, own, minlength=used.size)[np.newaxis].astype(np.float64)
        parts: list[Floats] = [whole]
        found: list[Ints] = []
        widths: list[int] = []
        bounds, attribute = [0], splits.attribute[list(place.attributes)]
        left = np.array(place.attributes, np.int64)
        for k in np.unique(attribute).tolist():
            mine = left[attribute == k]
            counted = self._code_counts(place, k, labels, used.size, own)
            cuts = splits.cuts[k]
            if not cuts:
                tests = counted[counted.any(axis=1)][np.newaxis]
                chosen = mine
            else:
                bins, missing = counted[: cuts + 1], counted[cuts + 1 :].sum(axis=0)
                below, above = np.cumsum(bins, axis=0), np.cumsum(bins[::-1], axis=0)[-2::-1]
                informative = np.flatnonzero(bins[:-1].any(axis=1) & above.any(axis=1))
                if informative.size:
                    sides = [below[informative], above[informative]]
                    if missing.any():
                        sides.append(np.broadcast_to(missing, sides[0].shape))
                    tests, chosen = np.stack(sides, axis=1), splits.first_splits[k] + informative
                else:
                    tests = np.stack([below[-1], missing])[np.newaxis]
                    tests, chosen = tests[:, tests.any(axis=(0, 2))], splits.first_splits[[k]]
                spent = ~np.isin(chosen, mine)
                tests, chosen = tests[~spent], chosen[~spent]
            if tests.shape[1] < 2 or not chosen.size:
                continue
            parts.append(tests.reshape(-1, used.size))
            found.append(chosen)
            widths += [tests.shape[1]] * len(tests)
            bounds.append(bounds[-1] + len(tests))
        if not found:
            return None
        together = np.concatenate(parts)
        dense = Cells.of_dense(together)
        first = np.cumsum([1, *widths])
        return CodeTests(
            np.concatenate(found),
            SplitCells(first[:-1], np.array(bounds), int(first[-1])),
            Cells(dense.start, used[dense.ids], dense.counts),
            together.sum(axis=1),
        )

    def _code_counts(self, place: OpenNode, k: int, labels: Ints, size: int, own: Floats) -> Floats:
        """Return the weight of the rows with each pair of code and contour at a node, (codes, contours)."""
        arity, opened = self.sample.splits.arities[k], self.open_cells(place, k)
        settled = own
        if opened is not None:
            settled = own.copy()
            settled[opened[0]] = 0.0
        pairs = self.sample.codes[place.rows, k].astype(np.int64) * size + labels
        counted: Floats = (
            np.bincount(pairs, settled, minlength=arity * size).reshape(arity, size).astype(np.float64)
        )
        if opened is not None:
            at, shares = opened
            of_contours = np.zeros((at.size, size))
            of_contours[np.arange(at.size), labels[at]] = own[at]
            counted = counted + np.einsum("mb,mc->bc", shares, of_contours)
        return counted


class SharedGrowth:
    """The tree of rows that may go down several branches; a `quercus.trees.ask.query.QueryableTree`.

    Parameters
    ----------
    rules
        The rules of growth, which hold the rows.
    """

    def __init__(self, rules: CodeRules) -> None:
        self._rules = rules
        self._decided = list(decide_nodes(rules.root(), rules))
        self._places = {decision.place.path: decision for decision, _ in self._decided}

    @property
    def solver(self) -> IntervalSolver:
        """Entropy intervals over all contours."""
        return self._rules.solver

    def flat(self, edges: Edges) -> FlatTree:
        """Return the tree as arrays; `edges` are the cuts in force."""
        tree, splits = FlatTree.of(tree_of(self._decided, self._rules)), self._rules.sample.splits
        cuts = np.full(splits.split_count, np.nan)
        for k, first in enumerate(splits.first_splits.tolist()):
            if splits.cuts[k]:
                cuts[first : first + len(edges[k])] = edges[k]
        split = tree.attribute
        return replace(
            tree,
            attribute=np.where(split >= 0, splits.attribute[split], split),
            threshold=np.where(split >= 0, cuts[split], np.nan),
            interval_attribute=splits.attribute[tree.interval_attribute],
        )

    def pruned(self, flat: FlatTree, pruning: Pruning) -> FlatTree:
        """Return the pruned tree as arrays."""
        return prune_evidential(flat, self._leaf_cells, self._rules.sample.table.contours, pruning)

    @cached_property
    def _leaf_cells(self) -> Cells:
        leaves = [each.place for each, _ in self._decided if each.stop is not None]
        counts: NDArray[Any] = np.array(
            [node_counts(self._rules.sample, place) for place in leaves], np.float64
        )
        return Cells.of_dense(counts)

    def find_node(self, path: Path) -> OpenNode | None:
        """See `quercus.trees.ask.query.QueryableTree`; the rows are those assigned to the node."""
        found = self._places.get(path)
        return None if found is None else self._standing(found)

    def contested_nodes(self) -> Iterator[tuple[OpenNode, tuple[int, ...]]]:
        """See `quercus.trees.ask.query.QueryableTree`."""
        for decision, _ in self._decided:
            if decision.undecided and isinstance(decision.choice, ContestedChoice):
                yield self._standing(decision), decision.choice.rivals

    def row_leaves(self) -> tuple[Ints, Callable[[int], Path]]:
        """See `quercus.trees.ask.query.QueryableTree`."""
        ends = [decision.place.path for decision, _ in self._decided if decision.stop is not None]
        of = np.zeros(len(self._rules.sample.ids), dtype=np.int64)
        for number, path in enumerate(ends):
            of[self._rules.home[path]] = number
        return of, lambda number: ends[number]

    def gain_intervals(self, place: OpenNode) -> Mapping[int, Interval]:
        """See `quercus.trees.ask.query.QueryableTree`."""
        found = self._places.get(place.path)
        return self._rules.gain_intervals(place if found is None else found.place)

    def contests_above(self, paths: Sequence[Path]) -> list[Contest | None]:
        """See `quercus.trees.ask.query.QueryableTree`."""
        return contests_among(self, paths)

    def _standing(self, decision: Decision) -> OpenNode:
        place = decision.place
        return OpenNode(place.path, self._rules.home[place.path], place.attributes)
