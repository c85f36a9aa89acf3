"""Rows, their contours, and their tree, as arrays for classification and node by node for choosing queries."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Floats, Ints
from quercus.kernels.growth import NONE
from quercus.specification.learners import Pruning
from quercus.trees.ask.query import Contest, QueryContext
from quercus.trees.growth.batch import OpenNode
from quercus.trees.growth.incremental.evidence import RowEvidence
from quercus.trees.growth.incremental.growing import GrowingTree, TreeRules
from quercus.trees.growth.incremental.layout import Layout
from quercus.trees.growth.sample import ContourTable, Ids, Sample
from quercus.trees.rules.evidential_pruning import prune_evidential
from quercus.trees.rules.ties import TIE, Interval
from quercus.trees.tree.encoding import Edges, Parts, Range
from quercus.trees.tree.flat import FlatTree, nearest_speaking
from quercus.trees.tree.node import Path
from quercus.trees.tree.splits import Splits

if TYPE_CHECKING:
    from quercus.trees.growth.shared_growth import SharedGrowth


class LiveTree:
    """The tree of growing rows with changing labels; it is updated lazily, when it is read.

    Parameters
    ----------
    arities
        Number of initially known codes of each attribute; rows may add more.
    classes
        Size of the frame.
    rules
        Rules of growth.
    small
        Nodes with fewer rows are grown again rather than updated, see `GrowingTree`.
    cuts
        Number of cuts of each attribute, see `quercus.trees.tree.splits`; empty if no attribute has cuts.
    edges
        Cuts of each attribute that are in force, at most as many as `cuts` says.
    """

    def __init__(
        self,
        arities: tuple[int, ...],
        classes: int,
        rules: TreeRules,
        small: int | None = None,
        cuts: tuple[int, ...] = (),
        edges: Edges = (),
    ) -> None:
        self.table = ContourTable(classes)
        self._declared = arities
        self._arities = arities
        self._rules = rules
        self._small = small
        self._cuts = cuts
        self._edges = edges
        self._rows = RowEvidence(len(arities))
        self._before: dict[int, tuple[int, bool]] = {}  # contour and askability still counted in the tree
        self._taken = 0  # number of rows in the tree
        self._tree: GrowingTree | None = None
        self._flat: FlatTree | None = None
        self._parts: dict[tuple[int, int], tuple[Range, ...]] = {}  # codes that uncertain cells allow
        self._shared: SharedGrowth | None = None  # used instead of `_tree` if there are such cells

    @property
    def count(self) -> int:
        """Number of rows."""
        return self._rows.count

    @property
    def sample(self) -> Sample:
        """The current rows; later changes may write into these arrays."""
        rows = self._rows
        return Sample(rows.codes, self._arities, rows.ids, rows.askable, self.table, self._cuts)

    def contour_id(self, row: int) -> int:
        """Return the number of a row's contour."""
        return int(self._rows.ids[row])

    @property
    def parts(self) -> Parts:
        """The ranges of codes that uncertain cells allow, by row and attribute; read only."""
        return self._parts

    def append_rows(
        self, codes: NDArray[np.integer], contours: Floats, parts: Parts = MappingProxyType({})
    ) -> None:
        """Append rows: codes (m, K), none negative, and contours (m, l).

        `parts` are the ranges of codes that uncertain cells allow, by row (from 0 on) and attribute; `codes` has one of
        them for such a cell.
        """
        first = self.count
        self._arities = with_codes(self._arities, codes, parts)
        self._rows.append_rows(codes, self.table.intern(contours))
        if parts:
            if not self._parts:
                self._forget_tree()
            self._parts |= {(first + row, k): ranges for (row, k), ranges in parts.items()}
        self._flat = self._shared = None

    def recode_rows(
        self, codes: NDArray[np.integer], edges: Edges, parts: Parts = MappingProxyType({})
    ) -> None:
        """Replace the codes (n, K) of all rows, see `append_rows`, and the cuts in force."""
        self._edges = edges
        self._rows.recode_rows(codes)
        self._arities = with_codes(self._declared, codes, parts)
        self._parts = dict(parts)
        self._forget_tree()

    def set_label(self, row: int, contour: Floats | None, *, askable: bool = False) -> None:
        """Set the contour of a row (None: unchanged), and whether an oracle may be asked about it."""
        rows = self._rows
        if row < self._taken:
            self._before.setdefault(row, (int(rows.ids[row]), bool(self._is_askable(np.array([row]))[0])))
        rows.askable[row] = askable
        if contour is not None:
            rows.ids[row] = self.table.intern(contour[np.newaxis])[0]
        self._flat = self._shared = None

    def follow_rules(self, rules: TreeRules) -> None:
        """Use other rules from now on."""
        self._rules = rules
        self._forget_tree()

    @property
    def flat(self) -> FlatTree:
        """The tree as arrays."""
        if self._flat is None:
            self._flat = (
                self._grown_shared().flat(self._edges)
                if self._parts
                else flat_tree(self._grown_tree(), self._edges)
            )
        return self._flat

    def pruned_tree(self, pruning: Pruning) -> FlatTree:
        """Return the pruned tree as arrays; the tree itself is unchanged."""
        if self._parts:
            return self._grown_shared().pruned(self.flat, pruning)
        return prune_evidential(self.flat, self._grown_tree().leaf_cells(), self.table.contours, pruning)

    def context(self, ordered: tuple[int, ...]) -> QueryContext:
        """Return the context for choosing queries; valid until the next change."""
        if self._parts:
            growth = self._grown_shared()
            return QueryContext(self.sample, growth.solver, growth, ordered)
        tree = self._grown_tree()
        return QueryContext(self.sample, tree.solver, TreeView(tree), ordered)

    def _grown_shared(self) -> "SharedGrowth":
        """Return the tree, grown anew from rows of which some have uncertain cells."""
        if self._shared is None:
            # such rows are rare, and a server without any does not need the module
            from quercus.trees.growth.shared_growth import CodeRules, SharedGrowth  # noqa: PLC0415
            from quercus.trees.learners.cells import columns_of  # noqa: PLC0415

            self._shared = SharedGrowth(CodeRules(self.sample, columns_of(self._parts), self._rules))
            self.table.end_look()
        return self._shared

    def _grown_tree(self) -> GrowingTree:
        """Return the tree, brought up to date."""
        if self._tree is not None and not self._tree.layout.holds_codes(self._arities):
            self._forget_tree()
        if self._tree is None:
            layout = Layout((1,) * len(self._arities), self._cuts).widened_for(self._arities)
            self._tree = GrowingTree(self._rows, self.table, layout, self._rules, self._small)
        arrived = np.arange(self._taken, self.count, dtype=np.int32)
        changed = np.fromiter(self._before, np.int32, len(self._before))
        before = np.array(list(self._before.values()), np.int32).reshape(-1, 2)
        rows = np.concatenate([arrived, changed])
        opened = self._is_askable(rows).astype(np.int8)
        opened[arrived.size :] -= before[:, 1].astype(np.int8)
        was = np.concatenate([np.full(arrived.size, NONE, np.int32), before[:, 0]])
        try:
            self._tree.take_up(rows, was, opened)
        except BaseException:  # out of memory or interrupted: a partial sweep leaves no valid tree
            self._forget_tree()
            raise
        self._taken = self.count
        self._before.clear()
        return self._tree

    def _is_askable(self, rows: NDArray[np.integer]) -> NDArray[np.bool_]:
        open_: NDArray[np.bool_] = self._rows.askable[rows] & ~self.table.precise[self._rows.ids[rows]]
        return open_

    def _forget_tree(self) -> None:
        """Discard the tree, so that the next one is grown from all rows."""
        self._tree = None
        self._flat = self._shared = None
        self._taken = 0
        self._before.clear()


def with_codes(
    arities: tuple[int, ...], codes: NDArray[np.integer], parts: Parts = MappingProxyType({})
) -> tuple[int, ...]:
    """Return the number of known codes of each attribute after further rows with `codes` (n, K)."""
    seen = codes.max(axis=0, initial=-1) + 1
    for (_, k), ranges in parts.items():
        seen[k] = max(seen[k], *(high + 1 for _, high in ranges))
    return tuple(max(a, int(b)) for a, b in zip(arities, seen, strict=True))


def flat_tree(tree: GrowingTree, edges: Sequence[Sequence[float]]) -> FlatTree:
    """Return the tree as arrays.

    Parameters
    ----------
    tree
        The tree to read.
    edges
        Cuts in force of every attribute that is split at cuts.
    """
    nodes, splits = tree.nodes, tree.layout.splits
    order, parent = nodes.preorder(tree.root)
    split = nodes.attribute[order].astype(np.int64)
    theta = nodes.theta[order[nearest_speaking(parent, nodes.silent[order])]]
    judged = nodes.judged[order]
    lower, upper = nodes.gain_lower[order], nodes.gain_upper[order]
    known = judged[:, np.newaxis] & ~np.isnan(lower)
    return FlatTree(
        attribute=np.where(split >= 0, splits.attribute[split], NONE),
        parent=parent,
        branch=nodes.code[order].astype(np.int64),
        klass=(theta >= theta.max(axis=1, keepdims=True) - TIE).argmax(axis=1),
        count=nodes.count[order].astype(np.int64),
        theta=theta,
        belief=nodes.belief[order],
        plausibility=nodes.plausibility[order],
        undecided=nodes.undecided[order],
        stop=nodes.stop[order],
        interval_start=np.concatenate([[0], np.cumsum(known.sum(axis=1))]),
        interval_attribute=np.nonzero(known)[1],
        interval_lower=lower[known],
        interval_upper=upper[known],
        threshold=_thresholds_of(splits, split, edges),
    )


def _thresholds_of(splits: Splits, split: Ints, edges: Sequence[Sequence[float]]) -> Floats:
    """Return the thresholds of nodes with these splits (m,); NaN for splits by code."""
    cuts = np.full(splits.split_count, np.nan)
    for k, first in enumerate(splits.first_splits.tolist()):
        if splits.cuts[k]:
            cuts[first : first + len(edges[k])] = edges[k]
    return np.where(split >= 0, cuts[split], np.nan)


class TreeView:
    """The current tree as a `quercus.trees.ask.query.QueryableTree`, which creates nodes on request.

    The view is valid until the next change of the tree.

    Parameters
    ----------
    tree
        The tree, up to date.
    """

    def __init__(self, tree: GrowingTree) -> None:
        self._tree = tree
        self._gains: dict[int, Mapping[int, Interval]] = {}

    def find_node(self, path: Path) -> OpenNode | None:
        """Return the node at `path`, or None if the tree has no such node."""
        node = self._node_at(path)
        return None if node == NONE else self._open_node(node, path)

    def contested_nodes(self) -> Iterator[tuple[OpenNode, tuple[int, ...]]]:
        """See `quercus.trees.ask.query.QueryableTree`."""
        nodes = self._tree.nodes
        order, _ = nodes.preorder(self._tree.root)
        for node in order[nodes.undecided[order]]:
            yield (
                self._open_node(int(node), self._path_of(int(node))),
                nodes.rivals_of(int(node)),
            )

    def row_leaves(self) -> tuple[Ints, Callable[[int], Path]]:
        """See `quercus.trees.ask.query.QueryableTree`."""
        nodes = self._tree.nodes
        order, _ = nodes.preorder(self._tree.root)
        ends = order[nodes.attribute[order] < 0]
        rows, leaf = self._tree.rows_of_leaves(ends)
        of = np.zeros(rows.size, np.int64)
        of[rows] = leaf
        return of, lambda number: self._path_of(int(ends[number]))

    def gain_intervals(self, place: OpenNode) -> Mapping[int, Interval]:
        """Return the exact gain-ratio interval of every candidate at a node, even if growth did not need it."""
        node = self._node_at(place.path)
        if node not in self._gains:
            self._find_gains(np.array([node], np.int32))
        return self._gains[node]

    def contests_above(self, paths: Sequence[Path]) -> list[Contest | None]:
        """See `quercus.trees.ask.query.QueryableTree`; the intervals of all found nodes are solved together."""
        nodes, found = self._tree.nodes, [self._contested_above(path) for path in paths]
        there = np.unique(np.array(found, np.int32))
        there = there[there != NONE]
        if there.size:
            self._find_gains(there)
        contests = {
            node: Contest.of(
                self._path_of(node), nodes.rivals_of(node), self._gains[node], int(nodes.count[node])
            )
            for node in there.tolist()
        }
        return [contests.get(node) for node in found]

    def _contested_above(self, path: Path) -> int:
        """Return the deepest undecided node on the path to a node, inclusive; `NONE` if there is none."""
        nodes, node = self._tree.nodes, self._node_at(path)
        while node != NONE and not nodes.undecided[node]:
            node = int(nodes.parent[node])
        return node

    def _find_gains(self, nodes: Ids) -> None:
        lower, upper = self._tree.gain_bounds(nodes)
        for node, *ends in zip(nodes.tolist(), lower, upper, strict=True):
            known = np.flatnonzero(~np.isnan(ends[0])).tolist()
            self._gains[node] = {k: (float(ends[0][k]), float(ends[1][k])) for k in known}

    def _node_at(self, path: Path) -> int:
        nodes, node = self._tree.nodes, self._tree.root
        for split, branch in path:
            if nodes.attribute[node] != split or not 0 <= branch < nodes.width[split]:
                return NONE
            node = int(nodes.kid[nodes.kids[node] + branch])
            if node == NONE:
                return NONE
        return node

    def _path_of(self, node: int) -> Path:
        nodes, steps = self._tree.nodes, []
        while nodes.parent[node] >= 0:
            parent = int(nodes.parent[node])
            steps.append((int(nodes.attribute[parent]), int(nodes.code[node])))
            node = parent
        return tuple(reversed(steps))

    def _open_node(self, node: int, path: Path) -> OpenNode:
        spent = {split for split, _ in path}
        left = tuple(k for k in range(self._tree.layout.splits.split_count) if k not in spent)
        return OpenNode(path, self._tree.rows_of_node(node).astype(np.int64), left)
