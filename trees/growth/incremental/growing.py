"""An exact tree that follows its rows: one sweep from the root applies all changes.

A sweep goes down level by level, and carries for each node the rows that are new or changed below it. They are counted
into the node's cells, the changed cells are solved (all cells of a level in one batch), and the node is decided again.
If its split stays, the rows go on to its children; if not, its subtree is removed, and all its rows go on as new.
Growing a tree from scratch is a sweep in which every row is new. A removed subtree is shelved (`shelves`): if its split
wins again, the subtree is restored, and only the rows that have arrived since go down it.

Batch growth (`quercus.trees.growth.batch`) computes the same tree node by node, from all rows. The two implementations
are kept separate on purpose, because each is a test of the other; they share the rules of a split
(`quercus.trees.rules`).

Large nodes keep their counts and intervals (`tally`). Small ones keep nothing, and are grown again with their subtrees
whenever one of their rows changes: counting their rows costs no more than maintaining counts. Nodes at the greatest
depth keep only their own counts, whatever their size.
"""

from dataclasses import dataclass

import numpy as np

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.kernels.growth import (
    NONE,
    link_rows,
    list_rows,
    merge_changes,
    relist_rows,
    send_changes,
    sum_groups,
)
from quercus.specification.parameters import PREDICTION_LEVEL
from quercus.trees.growth.incremental.evidence import RowEvidence
from quercus.trees.growth.incremental.layout import Layout
from quercus.trees.growth.incremental.nodes import NodeColumns
from quercus.trees.growth.incremental.numbered import Deltas, Ids
from quercus.trees.growth.incremental.shelves import SubtreeShelves
from quercus.trees.growth.incremental.tally import ContourCounts, KeptEntropies
from quercus.trees.growth.sample import ContourTable
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.rules.choice import Choices, CountedEntropies, Entropies, choose_splits
from quercus.trees.rules.earned import level_at
from quercus.trees.rules.stopping import GOES_ON, stops_after, stops_before
from quercus.trees.tree.node import Stop
from quercus.trees.tree.splits import NO_SPLIT

SMALL = 128  # rows; nodes with fewer keep no counts
THIN_ROWS = 16  # nor do nodes with fewer rows per cell of an attribute: their counts would be mostly zeros
# Maximum number of shelved nodes: a multiple of the tree's nodes, or LEAST_ROOM for a small tree, within a limit in
# bytes. With many attributes and classes, a node may take 300 kB.
SHELVED = 2
LEAST_ROOM = 4096
SHELF_BYTES = 64 << 20
SWEEP_CELLS = 1_000_000  # cells counted at once, which bounds the memory of a sweep


@dataclass(frozen=True, slots=True)
class TreeRules:
    """The rules by which a tree is grown.

    Parameters
    ----------
    alpha, min_instances, max_depth, prediction_level, split_significance
        See `quercus.specification.Specification`.
    frugal
        Whether to skip the exact intervals of attributes that cheap outer bounds prove to be dominated, and report
        those bounds. The tree is the same.
    """

    alpha: float
    min_instances: int
    max_depth: int | None
    frugal: bool = False
    prediction_level: float = PREDICTION_LEVEL.default
    split_significance: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class RowChanges:
    """The changes below the nodes of one level: rows grouped by node.

    Attributes
    ----------
    nodes : (g,) the nodes, each with at least one row
    start : (g + 1,) start of each node's rows
    rows : (m,) rows
    was : (m,) contour under which each row was counted before, -1 for a row that is new to the node
    opened : (m,) change in the number of askable rows
    """

    nodes: Ids
    start: Ints
    rows: Ids
    was: Ids
    opened: Deltas

    def totals_by_node(self) -> tuple[Ids, Ids, Bools]:
        """Return for each node the number of new rows, the change in askable rows, and whether it was altered: (g,).

        A node is altered if the contour of one of its earlier rows changed.
        """
        arriving, opening = sum_groups(self.was, self.opened, self.start)
        return arriving, opening, arriving < np.diff(self.start)

    @property
    def first_new(self) -> Ids:
        """Return the smallest number of a row that is new to each node: (g,)."""
        rows = np.where(self.was < 0, self.rows, np.iinfo(np.int32).max)
        return np.minimum.reduceat(rows, self.start[:-1])

    def of_groups(self, chosen: Bools) -> "RowChanges":
        """Return the changes of the chosen groups (g,)."""
        if chosen.all():
            return self
        sizes = np.diff(self.start)
        mask = np.repeat(chosen, sizes)
        start = np.concatenate([[0], np.cumsum(sizes[chosen])])
        return RowChanges(self.nodes[chosen], start, self.rows[mask], self.was[mask], self.opened[mask])


class GrowingTree:
    """The tree of all applied rows.

    Parameters
    ----------
    evidence
        The rows.
    table
        Their contours.
    layout
        Slots of a node: one for every code.
    rules
        Rules of growth.
    small
        Nodes with fewer rows keep no counts; by default, see `SMALL` and `THIN_ROWS`. The tree does not depend on it.
    """

    def __init__(
        self,
        evidence: RowEvidence,
        table: ContourTable,
        layout: Layout,
        rules: TreeRules,
        small: int | None = None,
    ) -> None:
        self.nodes = NodeColumns(layout.splits, table.contours.shape[1])
        self.layout = layout
        self._evidence = evidence
        self._table = table
        self._rules = rules
        self._deepest = np.iinfo(np.int32).max if rules.max_depth is None else rules.max_depth
        thin = THIN_ROWS * layout.cell_count // len(layout.widths)
        self._small = max(SMALL, thin) if small is None else small
        # Cuts are chosen by estimates at level 1; if that is the tree's level, the ends serve as estimates.
        estimates = any(layout.cuts) and rules.alpha < 1
        self._tally = ContourCounts(layout, evidence, table, estimates=estimates)
        self._deep_tally = ContourCounts(Layout(()), evidence, table)
        self._shelves = SubtreeShelves(self.nodes, self._let_go)
        none = np.array([NONE], np.int32)
        self.root = int(self.nodes.add_leaves(none, none, np.zeros(1, np.int32))[0])
        size = table.contours.shape[1]
        self.nodes.stop[self.root] = Stop.FEW_INSTANCES.value
        self.nodes.theta[self.root] = 1 / size
        self.nodes.plausibility[self.root] = 1.0

    @property
    def solver(self) -> IntervalSolver:
        """Entropy intervals over all contours."""
        return self._table.solver(self._rules.alpha)

    @property
    def _interval_solvers(self) -> tuple[IntervalSolver, IntervalSolver]:
        """The solvers of the tree's level, and of level 1, which only the choice of cuts needs."""
        return self.solver, self._table.solver(1.0) if any(self.layout.cuts) else self.solver

    def take_up(self, rows: Ids, was: Ids, opened: Deltas) -> None:
        """Update the tree with rows that are new or changed, see `RowChanges`."""
        changes = RowChanges(np.array([self.root], np.int32), np.array([0, rows.size]), rows, was, opened)
        while changes.rows.size:
            changes = self._decide_level(changes)
        nodes = self.nodes.used_count
        room = max(SHELVED * (nodes - self._shelves.size), LEAST_ROOM)
        self._shelves.shrink_to(min(room, SHELF_BYTES * nodes // max(1, self._tally.held_bytes)))
        for solver in {*self._interval_solvers}:
            solver.end_look()

    def rows_of_node(self, node: int) -> Ids:
        """Return the rows of a node, ascending."""
        if node == self.root:
            return np.arange(self._evidence.count, dtype=np.int32)
        _, leaves, owner, _ = self.nodes.nodes_below(np.array([node], np.int32))
        rows, _ = self._list_rows(leaves, owner)
        rows.sort()
        return rows

    def rows_of_leaves(self, leaves: Ids) -> tuple[Ids, Ids]:
        """Return the rows of leaves, and the index in `leaves` of each row's leaf."""
        return self._list_rows(leaves, np.arange(leaves.size))

    def leaf_cells(self) -> Cells:
        """Return one cell per leaf, in pre-order: the counts of its labels."""
        order, _ = self.nodes.preorder(self.root)
        leaves = order[self.nodes.attribute[order] < 0]
        rows, whose = self.rows_of_leaves(leaves)
        start = np.zeros(leaves.size + 1, np.int64)
        np.cumsum(np.bincount(whose, minlength=leaves.size), out=start[1:])
        return self._tally.count_nodes(rows[np.argsort(whose, kind="stable")], start)

    def gain_bounds(self, nodes: Ids) -> tuple[Floats, Floats]:
        """Return the exact ends of the gain ratio (n, T) of every candidate at nodes (n,), leaves or not."""
        blocks = self.nodes.block[nodes]
        kept = (blocks >= 0) & (self.nodes.depth[nodes] < self._deepest)
        lower, upper = np.full((2, nodes.size, self.layout.splits.split_count), np.nan)
        if kept.any():
            cached = KeptEntropies(*self._interval_solvers, self._tally, blocks[kept])
            found = choose_splits(self.layout.split_cells, cached.size, cached, frugal=False)
            lower[kept], upper[kept] = found.lower, found.upper
        for place in np.flatnonzero(~kept):
            rows = self.rows_of_node(int(nodes[place]))
            unchanged = np.full(rows.size, NONE, np.int32), np.zeros(rows.size, np.int8)
            changes = RowChanges(nodes[place : place + 1], np.array([0, rows.size]), rows, *unchanged)
            size, counted = self._counted_ends(changes)
            found = choose_splits(self.layout.split_cells, size, counted, frugal=False)
            lower[place], upper[place] = found.lower[0], found.upper[0]
        return lower, upper

    def _decide_level(self, changes: RowChanges) -> RowChanges:
        """Decide the nodes of a level; return the changes of the next one."""
        nodes = self.nodes
        arriving, opening, altered = changes.totals_by_node()
        self._shelves.clear_shelves(changes.nodes[altered])
        fresh = nodes.block[changes.nodes] < 0
        falling = fresh & (nodes.count[changes.nodes] > 0)
        if falling.any():
            changes = self._collapse_subtrees(changes, falling)
            arriving, opening, altered = changes.totals_by_node()
        nodes.count[changes.nodes] = np.where(fresh, 0, nodes.count[changes.nodes]) + arriving
        nodes.open[changes.nodes] = np.where(fresh, 0, nodes.open[changes.nodes]) + opening
        large = (nodes.count[changes.nodes] >= self._small) | (nodes.depth[changes.nodes] >= self._deepest)
        split = np.full(changes.nodes.size, NO_SPLIT, np.int32)
        split[large] = self._decide_large(changes.of_groups(large))
        split[~large] = self._decide_small(changes.of_groups(~large))
        turning = ~fresh & (split != nodes.attribute[changes.nodes])
        if turning.any():
            changes = self._exchange_subtrees(changes, turning, altered, split)
        return self._apply_splits(changes, split)

    def _collapse_subtrees(self, changes: RowChanges, chosen: Bools) -> RowChanges:
        """Remove the subtrees of the chosen nodes, and make all rows of these nodes new to them."""
        folded = changes.nodes[chosen]
        inner, leaves, owner, _ = self.nodes.nodes_below(folded)
        listed = self._list_rows(leaves, owner)
        self._let_go(np.concatenate([inner, leaves[~np.isin(leaves, folded)]]))
        self.nodes.fold_to_leaves(folded)
        return self._with_rows(changes, chosen, *listed)

    def _exchange_subtrees(
        self, changes: RowChanges, chosen: Bools, altered: Bools, split: Ids
    ) -> RowChanges:
        """Replace the subtrees of the chosen nodes by the shelved subtrees of their new splits, if any.

        The rows that a shelved subtree knows go into the lists of its leaves; all others become new to the nodes.
        """
        nodes = self.nodes
        turned = changes.nodes[chosen]
        _, leaves, owner, weight = nodes.nodes_below(turned)
        listed = self._list_rows(leaves, owner)
        nodes.first[leaves] = NONE
        since, altered = changes.first_new[chosen], altered[chosen]
        known = np.zeros(turned.size, np.int32)
        for i, (node, attribute) in enumerate(zip(turned.tolist(), split[chosen].tolist(), strict=True)):
            if nodes.attribute[node] >= 0:
                self._shelves.shelve_subtree(node, int(since[i]), int(weight[i]))
                if altered[i]:  # the shelved subtree does not know the change
                    self._shelves.clear_shelves(turned[i : i + 1])
            if attribute >= 0:
                known[i] = self._shelves.restore_subtree(node, attribute) or 0
        unknown = relist_rows(
            self._evidence.codes, *self.layout.split_columns, *listed, turned, known,
            nodes.attribute, nodes.kids, nodes.kid, nodes.first, self._evidence.leaf_links,
        )  # fmt: skip
        return self._with_rows(changes, chosen, *unknown)

    def _list_rows(self, leaves: Ids, owner: Ints) -> tuple[Ids, Ids]:
        """Return the rows in the lists of leaves, and the owner of each row's leaf."""
        nodes = self.nodes
        most = int(nodes.count[leaves].sum())
        rows, whose = np.empty(most, np.int32), np.empty(most, np.int32)
        count = list_rows(leaves, owner, nodes.first, self._evidence.leaf_links, rows, whose)
        return rows[:count], whose[:count]

    def _let_go(self, nodes: Ids) -> None:
        """Release nodes, with their counts and shelves."""
        self._shelves.clear_shelves(nodes)
        counted = nodes[self.nodes.block[nodes] >= 0]
        deep = self.nodes.depth[counted] >= self._deepest
        self._tally.close_blocks(self.nodes.block[counted[~deep]])
        self._deep_tally.close_blocks(self.nodes.block[counted[deep]])
        self.nodes.free_nodes(nodes)

    def _with_rows(self, changes: RowChanges, chosen: Bools, rows: Ids, whose: Ids) -> RowChanges:
        """Add rows from the lists of the chosen nodes, as new; `whose` is the index of each row's node.

        Earlier changes of these rows are dropped, since all of them are new.
        """
        group = np.flatnonzero(chosen).astype(np.int32)[whose]
        evidence = self._evidence
        start, rows, was, opened = merge_changes(
            changes.rows, changes.was, changes.opened, changes.start, chosen, rows, group,
            evidence.ids, evidence.askable, self._table.precise,
        )  # fmt: skip
        return RowChanges(changes.nodes, start, rows, was, opened)

    def _decide_large(self, changes: RowChanges) -> Ids:
        """Count changes into the cells of nodes that keep counts, and decide the nodes: split or -1 (g,)."""
        split = np.full(changes.nodes.size, NO_SPLIT, np.int32)
        deep = self.nodes.depth[changes.nodes] >= self._deepest
        if deep.any():
            self._count_changes(self._deep_tally, changes.of_groups(deep))
        if deep.all():
            return split
        changes = changes.of_groups(~deep)
        blocks, going = self._count_changes(self._tally, changes)
        blocks = blocks[going]
        ends = KeptEntropies(*self._interval_solvers, self._tally, blocks)
        found = self._choose_splits(changes.nodes[going], ends.size, ends)
        split[np.flatnonzero(~deep)[going]] = self._keep_decisions(changes.nodes[going], found)
        return split

    def _count_changes(self, tally: ContourCounts, changes: RowChanges) -> tuple[Ids, Bools]:
        """Count changes into cells; return the block of each node, and whether it has to be decided (g,)."""
        nodes, here = self.nodes, changes.nodes
        new = here[nodes.block[here] < 0]
        nodes.block[new] = tally.open_blocks(new.size)
        blocks = nodes.block[here]
        tally.add_rows(changes.rows, changes.was, changes.start, here, blocks, nodes.parent, nodes.attribute)
        return blocks, self._predict_nodes(here, tally.cells_of(blocks, np.zeros_like(blocks)))

    def _decide_small(self, changes: RowChanges) -> Ids:
        """Decide nodes that keep no counts, from all their rows: split or -1 (g,)."""
        split = np.full(changes.nodes.size, NO_SPLIT, np.int32)
        if not split.size:
            return split
        cells = self._tally.count_nodes(changes.rows, changes.start)
        going = self._predict_nodes(changes.nodes, cells)
        counted = self.layout.entry_limits(np.diff(changes.start))
        chunk = np.cumsum(counted * going) // SWEEP_CELLS
        for number in range(int(chunk[-1]) + 1):
            chosen = going & (chunk == number)
            few = changes.of_groups(chosen)
            split[chosen] = self._keep_decisions(
                few.nodes, self._choose_splits(few.nodes, *self._counted_ends(few))
            )
        return split

    def _choose_splits(self, nodes: Ids, size: Ids, ends: Entropies) -> Choices:
        """Choose the splits of nodes by the rules of this tree."""
        rules = self._rules
        tested = rules.split_significance > 0
        level = level_at(rules.split_significance, self.nodes.depth[nodes]) if tested else None
        return choose_splits(self.layout.split_cells, size, ends, frugal=rules.frugal, level=level)

    def _counted_ends(self, changes: RowChanges) -> tuple[Ids, CountedEntropies]:
        """Count the cells of nodes from all their rows: the size of each cell, and the entropies."""
        nodes = self.nodes
        group, cell, rows, cells = self._tally.count_cells(
            changes.rows, changes.start, changes.nodes, nodes.parent, nodes.attribute
        )
        size = np.zeros((changes.nodes.size, self.layout.cell_count), np.int32)
        size[group, cell] = rows
        return size, CountedEntropies(*self._interval_solvers, group, cell, cells, size.shape)

    def _predict_nodes(self, nodes: Ids, cells: Cells) -> Bools:
        """Set the predictions of nodes, given their own cells, and return whether each has to be decided (g,)."""
        columns = self.nodes
        theta, unique = self.solver.estimate_cells(cells)
        columns.theta[nodes] = theta
        columns.silent[nodes] = cells.cells_with_only(self._table.vacuous)
        bounds = self.solver.bound_classes_cells(cells, self._rules.prediction_level)
        columns.belief[nodes], columns.plausibility[nodes] = bounds
        counts, depths, rules = columns.count[nodes], columns.depth[nodes], self._rules
        stop = stops_before(counts, (theta, unique), depths, rules.min_instances, rules.max_depth)
        columns.stop[nodes] = stop
        columns.judged[nodes] = False
        columns.contested[nodes] = False
        going: Bools = stop == GOES_ON
        return going

    def _keep_decisions(self, nodes: Ids, found: Choices) -> Ids:
        """Store the choices at nodes; return the split of each, or -1."""
        columns, first = self.nodes, self.layout.splits.first_splits
        columns.judged[nodes] = found.split >= 0
        lower, upper = found.lower, found.upper
        if first.size < lower.shape[1]:  # all but one of an attribute's cuts are NaN
            lower, upper = np.fmax.reduceat(lower, first, axis=1), np.fmax.reduceat(upper, first, axis=1)
        stop = stops_after(found.split, upper, found.justified)
        columns.stop[nodes] = stop
        columns.gain_lower[nodes], columns.gain_upper[nodes] = lower, upper
        columns.rivals[nodes] = np.packbits(found.rivals, axis=1)
        columns.contested[nodes] = ~found.justified | (np.count_nonzero(found.rivals, axis=1) > 1)
        return np.where(stop == GOES_ON, found.split, NO_SPLIT).astype(np.int32)

    def _apply_splits(self, changes: RowChanges, split: Ids) -> RowChanges:
        """Apply new and kept splits, add the rows that reached a leaf to its list, and send the others down."""
        nodes = self.nodes
        anew = (split >= 0) & (split != nodes.attribute[changes.nodes])
        nodes.split_leaves(changes.nodes[anew], split[anew])
        codes, after = self._evidence.codes, self._evidence.leaf_links
        rows, was, start, at = changes.rows, changes.was, changes.start, changes.nodes
        link_rows(rows, was, start, at, split, nodes.first, after)
        place, group, sent = send_changes(
            codes,
            *self.layout.split_columns,
            nodes.width,
            rows,
            was,
            changes.opened,
            start,
            at,
            split,
            nodes.kids,
        )
        born = nodes.kid[place] < 0
        parent = at[group[born]]
        code = (place[born] - nodes.kids[parent]).astype(np.int32)
        nodes.kid[place[born]] = nodes.add_leaves(parent, code, nodes.depth[parent] + 1)
        return RowChanges(nodes.kid[place], *sent)
