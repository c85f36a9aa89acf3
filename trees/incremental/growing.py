"""An exact tree that follows its rows: one sweep from the root takes up all that has changed.

A sweep goes down level by level. Of each node it carries the rows that are new or changed below it; they are counted
into the node's cells, the cells that changed are solved, all of a level in one batch, and the node is decided again.
If its split stays, the rows go on to its children; if not, its subtree falls, and all its rows go on, as new. A tree
from scratch is a sweep in which every row is new.

Large nodes keep their counts and intervals (`tally`). Small ones keep nothing and are grown again, with all below
them, whenever a row of theirs changes: counting their rows costs no more than looking after their counts would.
"""

from dataclasses import dataclass

import numpy as np

from quercus.trees.cells import Cells
from quercus.trees.dominance import TIE
from quercus.trees.incremental import routing
from quercus.trees.incremental.arrays import NONE, Bools, Deltas, Floats, Ids, Ints
from quercus.trees.incremental.ends import CountedEnds, KeptEnds, verdicts
from quercus.trees.incremental.evidence import Evidence
from quercus.trees.incremental.layout import Layout
from quercus.trees.incremental.nodes import Nodes
from quercus.trees.incremental.tally import Tally
from quercus.trees.incremental.verdicts import Verdicts
from quercus.trees.interval import IntervalSolver
from quercus.trees.sample import ContourTable
from quercus.trees.tree import Stop

SMALL = 128  # rows; nodes with fewer keep no counts,
THIN = (
    16  # nor do those with fewer rows than this for each value of an attribute: theirs would be mostly zeros
)
MAX_CELLS = 1_000_000  # counted at once: the memory of a sweep is bounded


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What changed below the nodes of one level: rows, group by group.

    Attributes
    ----------
    nodes : (g,) the nodes, each with a row at least
    start : (g + 1,) where each node's rows begin
    rows : (m,) rows
    was : (m,) contour each is counted under so far, -1 for a row that is new to the node
    opened : (m,) by how much the number of rows that may be asked about changes
    """

    nodes: Ids
    start: Ints
    rows: Ids
    was: Ids
    opened: Deltas

    @property
    def group(self) -> Ints:
        """Group of each row: (m,)."""
        return np.repeat(np.arange(self.nodes.size), np.diff(self.start))

    @property
    def arriving(self) -> Bools:
        """Which rows are new to their node: (m,)."""
        return self.was < 0

    def of(self, chosen: Bools) -> "Changes":
        """Return the changes of the chosen groups (g,)."""
        if chosen.all():
            return self
        sizes = np.diff(self.start)
        mask = np.repeat(chosen, sizes)
        start = np.concatenate([[0], np.cumsum(sizes[chosen])])
        return Changes(self.nodes[chosen], start, self.rows[mask], self.was[mask], self.opened[mask])


@dataclass(frozen=True, slots=True)
class Rules:
    """How a tree is grown.

    Parameters
    ----------
    alpha, min_instances, max_depth
        See `quercus.trees.specification.Specification`.
    frugal
        Of an attribute that cheap outer bounds prove dominated, no exact interval is computed, and these bounds are
        what is reported. The tree is the same.
    """

    alpha: float
    min_instances: int
    max_depth: int | None
    frugal: bool = False


class GrowingTree:
    """The tree of all rows that were taken up.

    Parameters
    ----------
    evidence
        The rows.
    table
        Their contours.
    layout
        Slots of a node; has one for every code.
    rules
        How the tree is grown.
    small
        Nodes with fewer rows keep no counts, `SMALL` and `THIN` unless given; the tree is the same whatever it is.
    """

    def __init__(
        self, evidence: Evidence, table: ContourTable, layout: Layout, rules: Rules, small: int | None = None
    ) -> None:
        self.nodes = Nodes(layout.widths, table.contours.shape[1])
        self.layout = layout
        self._evidence = evidence
        self._table = table
        self._rules = rules
        self._deepest = np.iinfo(np.int32).max if rules.max_depth is None else rules.max_depth
        thin = THIN * layout.slots // len(layout.widths)
        self._small = max(SMALL, thin) if small is None else small
        self._tally = Tally(layout, evidence, table)
        none = np.array([NONE], np.int32)
        self.root = int(self.nodes.add(none, none, np.zeros(1, np.int32))[0])
        size = table.contours.shape[1]
        self.nodes.stop[self.root] = Stop.FEW_INSTANCES.value
        self.nodes.theta[self.root] = 1 / size
        self.nodes.plausibility[self.root] = 1.0

    @property
    def solver(self) -> IntervalSolver:
        """Entropy intervals over all contours."""
        return self._table.solver(self._rules.alpha)

    def take_up(self, rows: Ids, was: Ids, opened: Deltas) -> None:
        """Bring the tree up to date with rows that are new or changed, see `Changes`."""
        changes = Changes(np.array([self.root], np.int32), np.array([0, rows.size]), rows, was, opened)
        while changes.rows.size:
            changes = self._down(changes)

    def rows(self, node: int) -> Ids:
        """Return the rows of a node, ascending."""
        if node == self.root:
            return np.arange(self._evidence.count, dtype=np.int32)
        _, leaves, owner = self.nodes.below(np.array([node], np.int32))
        rows, _ = routing.listed(leaves, owner, self.nodes.first, self._evidence.after)
        rows.sort()
        return rows

    def listed(self, leaves: Ids) -> tuple[Ids, Ints]:
        """Return the rows of leaves, and in which of `leaves` each is."""
        return routing.listed(leaves, np.arange(leaves.size), self.nodes.first, self._evidence.after)

    def gains(self, node: int) -> tuple[Floats, Floats]:
        """Return the exact ends of the gain ratio (K,) of every attribute at a node, whether it is a leaf or not."""
        here = np.array([node], np.int32)
        blocks = self.nodes.block[here]
        if blocks[0] >= 0:
            ends = KeptEnds(self.solver, self._tally, blocks)
            found = verdicts(self.layout, self._tally.size[blocks], ends, frugal=False)
        else:
            rows = self.rows(node)
            unchanged = np.full(rows.size, NONE, np.int32), np.zeros(rows.size, np.int8)
            changes = Changes(here, np.array([0, rows.size]), rows, *unchanged)
            found = self._counted_verdicts(changes, frugal=False)
        return found.lower[0], found.upper[0]

    def _down(self, changes: Changes) -> Changes:
        """Decide the nodes of a level; return what changed on the next one."""
        nodes = self.nodes
        fresh = nodes.block[changes.nodes] < 0
        changes = self._with_all_rows(changes, fresh & (nodes.count[changes.nodes] > 0))
        nodes.count[changes.nodes[fresh]] = 0
        nodes.open[changes.nodes[fresh]] = 0
        nodes.count[changes.nodes] += np.add.reduceat(changes.arriving, changes.start[:-1], dtype=np.int32)
        nodes.open[changes.nodes] += np.add.reduceat(changes.opened, changes.start[:-1], dtype=np.int32)
        large = nodes.count[changes.nodes] >= self._small
        split = np.full(changes.nodes.size, NONE, np.int32)
        split[large] = self._decide_large(changes.of(large))
        split[~large] = self._decide_small(changes.of(~large))
        changes = self._with_all_rows(changes, ~fresh & (split != nodes.attribute[changes.nodes]))
        return self._apply(changes, split)

    def _with_all_rows(self, changes: Changes, chosen: Bools) -> Changes:
        """Fold the chosen nodes: what is below them falls, and all their rows become new to them."""
        if not chosen.any():
            return changes
        folded = changes.nodes[chosen]
        inner, leaves, owner = self.nodes.below(folded)
        rows, whose = routing.listed(leaves, owner, self.nodes.first, self._evidence.after)
        below = np.concatenate([inner, leaves[~np.isin(leaves, folded)]])
        blocks = self.nodes.block[below]
        self._tally.close(blocks[blocks >= 0])
        self.nodes.drop(below)
        self.nodes.fold(folded)
        group = changes.group
        kept = ~chosen[group] | changes.arriving
        return self._grouped(
            changes.nodes,
            np.concatenate([group[kept], np.flatnonzero(chosen)[whose]]),
            np.concatenate([changes.rows[kept], rows]),
            np.concatenate([changes.was[kept], np.full(rows.size, NONE, np.int32)]),
            np.concatenate([changes.opened[kept], self._open(rows)]),
        )

    def _open(self, rows: Ids) -> Deltas:
        """Tell of each row, as 0 or 1, whether an oracle may be asked about it."""
        evidence = self._evidence
        return (evidence.askable[rows] & ~self._table.precise[evidence.ids[rows]]).astype(np.int8)

    @staticmethod
    def _grouped(nodes: Ids, group: Ints, rows: Ids, was: Ids, opened: Deltas) -> Changes:
        order, start = routing.group(group, nodes.size)
        return Changes(nodes, start, rows[order], was[order], opened[order])

    def _decide_large(self, changes: Changes) -> Ids:
        """Count changes into the cells of nodes that keep counts, and decide these: attribute or -1 (g,)."""
        nodes, tally = self.nodes, self._tally
        split = np.full(changes.nodes.size, NONE, np.int32)
        if not split.size:
            return split
        new = changes.nodes[nodes.block[changes.nodes] < 0]
        nodes.block[new] = tally.open(new.size)
        blocks = nodes.block[changes.nodes]
        tally.add(changes.rows, changes.was, changes.start, blocks)
        going = self._weigh(changes.nodes, tally.cells(blocks, np.zeros_like(blocks)))
        blocks = blocks[going]
        ends = KeptEnds(self.solver, tally, blocks)
        found = verdicts(self.layout, tally.size[blocks], ends, frugal=self._rules.frugal)
        split[going] = self._settle(changes.nodes[going], found)
        return split

    def _decide_small(self, changes: Changes) -> Ids:
        """Decide nodes that keep no counts, from all their rows: attribute or -1 (g,)."""
        split = np.full(changes.nodes.size, NONE, np.int32)
        if not split.size:
            return split
        cells = self._tally.nodes(changes.rows, changes.start)
        going = self._weigh(changes.nodes, cells)
        counted = np.diff(changes.start) * (len(self.layout.widths) + 1) + self.layout.slots
        chunk = np.cumsum(counted * going) // MAX_CELLS
        for number in range(int(chunk[-1]) + 1):
            chosen = going & (chunk == number)
            few = changes.of(chosen)
            split[chosen] = self._settle(few.nodes, self._counted_verdicts(few, frugal=self._rules.frugal))
        return split

    def _counted_verdicts(self, changes: Changes, *, frugal: bool) -> Verdicts:
        """Judge nodes from all their rows."""
        nodes = self.nodes
        group, slot, rows, cells = self._tally.count(
            changes.rows, changes.start, changes.nodes, nodes.parent, nodes.attribute
        )
        size = np.zeros((changes.nodes.size, self.layout.slots), np.int32)
        size[group, slot] = rows
        ends = CountedEnds(self.solver, group, slot, cells, size.shape)
        return verdicts(self.layout, size, ends, frugal=frugal)

    def _weigh(self, nodes: Ids, cells: Cells) -> Bools:
        """Set what nodes predict, given their own cells, and tell which go on to be judged (g,)."""
        columns = self.nodes
        theta, unique = self.solver.estimate_cells(cells)
        columns.theta[nodes] = theta
        columns.belief[nodes], columns.plausibility[nodes] = self.solver.bound_classes_cells(cells)
        few = columns.count[nodes] < self._rules.min_instances
        pure = unique & (theta.max(axis=1) >= 1 - TIE)
        deep = columns.depth[nodes] >= self._deepest
        reasons = (Stop.FEW_INSTANCES.value, Stop.PURE.value, Stop.MAX_DEPTH.value)
        stop = np.select([few, pure, deep], reasons, 0)
        columns.stop[nodes] = stop
        columns.judged[nodes] = False
        columns.rivals[nodes] = False
        going: Bools = stop == 0
        return going

    def _settle(self, nodes: Ids, found: Verdicts) -> Ids:
        """Keep what was found at nodes; return the attribute that splits each, or -1."""
        columns = self.nodes
        stop = np.where(found.gainless, Stop.NO_GAIN.value, 0)
        stop[found.attribute < 0] = Stop.NO_ATTRIBUTE.value
        columns.stop[nodes] = stop
        columns.judged[nodes] = found.attribute >= 0
        columns.gain_lower[nodes], columns.gain_upper[nodes] = found.lower, found.upper
        columns.rivals[nodes] = found.rivals
        return np.where(stop == 0, found.attribute, NONE).astype(np.int32)

    def _apply(self, changes: Changes, split: Ids) -> Changes:
        """Split nodes anew or let them stand, list the rows that reached a leaf, and send the others down."""
        nodes = self.nodes
        anew = (split >= 0) & (split != nodes.attribute[changes.nodes])
        nodes.split(changes.nodes[anew], split[anew])
        codes, after = self._evidence.codes, self._evidence.after
        rows, was, start, at = changes.rows, changes.was, changes.start, changes.nodes
        routing.link(rows, was, start, at, split, nodes.first, after)
        child, place, group, below = routing.meet(codes, rows, start, at, split, nodes.kids, nodes.rank)
        born = nodes.kid[place] < 0
        parent = at[group[born]]
        code = (place[born] - nodes.kids[parent]).astype(np.int32)
        nodes.kid[place[born]] = nodes.add(parent, code, nodes.depth[parent] + 1)
        return Changes(nodes.kid[place], below, *routing.descend(rows, was, changes.opened, child, below))
