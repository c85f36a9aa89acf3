"""The part of a worker in a sharded tree: count its rows, and decide its share of the nodes."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.contour import check_contours
from quercus.belief.errors import InvalidInput
from quercus.kernels.growth import add_counts, count_shard, divide_rows
from quercus.specification.model import Specification
from quercus.trees.growth.incremental.arrays import Bools, Codes, Floats, Ids, Ints
from quercus.trees.growth.incremental.evidence import RowEvidence
from quercus.trees.growth.incremental.growing import GrowingTree
from quercus.trees.growth.incremental.interval_bounds import TransientBounds
from quercus.trees.growth.incremental.layout import Layout
from quercus.trees.growth.incremental.nodes import NodeColumns
from quercus.trees.growth.sample import ContourTable
from quercus.trees.growth.stream import rules_of
from quercus.trees.likelihood.cells import Cells
from quercus.trees.rules.stopping import GOES_ON
from quercus.trees.tree.encoding import Edges, Encoder, check_values
from quercus.trees.tree.indices import NONE

Rows = Callable[[], Iterable[tuple[Floats, Floats]]]
"""Returns the rows of a shard in blocks: values (n, K) as of `quercus.trees.tree.encoding`, contours (n, l)."""

MAX_ENTRIES = 4_000_000
"""Most entries of the cells that are decided at once: a bound of memory."""


@dataclass(frozen=True, slots=True, eq=False)
class NextLevel:
    """The nodes of the next level that a shard counts.

    Parameters
    ----------
    split
        (g,) split of each node counted before, -1 for a leaf.
    parent, code
        (m,) the parent among these of each node to be counted, and the branch that leads to it.
    free
        (m, K) the attributes that may still be split on.
    share
        (shards + 1,) bounds of the nodes that each shard decides.
    """

    split: Ids
    parent: Ints
    code: Ints
    free: Bools
    share: Ints


@dataclass(frozen=True, slots=True, eq=False)
class DecidedNodes:
    """Nodes that were decided, and their children.

    Attributes
    ----------
    nodes : columns of `NodeColumns` by name, one entry a decided node
    children : the same, one entry a child
    parent, code : (c,) which of the decided nodes each child belongs to, and its branch
    """

    nodes: dict[str, NDArray[Any]]
    children: dict[str, NDArray[Any]]
    parent: Ints
    code: Ints


NODE_COLUMNS = ("attribute", "judged", "stop", "contested", "gain_lower", "gain_upper", "rivals")
CHILD_COLUMNS = ("count", "open", "theta", "silent", "belief", "plausibility", "stop")


class NodeDecider(GrowingTree):
    """A tree without rows: it decides nodes from cells that the shards have counted.

    Parameters
    ----------
    specification
        Specification of the tree.
    contours
        (d, l) all distinct contours, by number.
    layout
        Cells of a node.
    """

    def __init__(self, specification: Specification, contours: Floats, layout: Layout) -> None:
        table = ContourTable(specification.frame.size)
        table.intern(contours)
        super().__init__(RowEvidence(len(layout.widths)), table, layout, rules_of(specification))

    def predict(self, nodes: Ids, cells: Cells) -> Bools:
        """Set the predictions of nodes from their own cells; return which nodes must be decided, (g,)."""
        columns = self.nodes
        columns.count[nodes] = sums_of(cells, cells.counts)
        columns.open[nodes] = sums_of(cells, cells.counts * ~self._table.precise[cells.ids])
        return self._predict_nodes(nodes, cells)

    def decide(self, depth: int, group: Ids, cell: Ids, rows: Ids, cells: Cells) -> DecidedNodes:
        """Decide nodes of a depth, given node (0 to m - 1), number, size and contents of their populated cells."""
        count = int(group[-1]) + 1
        columns = self.nodes = NodeColumns(self.layout.splits, self._table.contours.shape[1])
        none = np.full(count, NONE, np.int32)
        here = columns.add_leaves(none, none, np.full(count, depth, np.int32))
        size = np.zeros((count, self.layout.cell_count), np.int32)
        size[group, cell] = rows
        ends = TransientBounds(*self._interval_solvers, group, cell, cells, size.shape)
        split = self._keep_decisions(here, self._choose_splits(here, size, ends))
        columns.attribute[here] = split
        branch = cell - self.layout.first_cells[split[group]]
        chosen = (split[group] >= 0) & (cell > 0) & (branch >= 0)
        chosen &= branch < self.layout.splits.branches[split[group]]
        parent, code = group[chosen].astype(np.int64), branch[chosen].astype(np.int64)
        nodes = {name: getattr(columns, name)[here] for name in NODE_COLUMNS}
        below = columns.add_leaves(
            here[parent], code.astype(np.int32), np.full(parent.size, depth + 1, np.int32)
        )
        if parent.size:
            self.predict(below, cells.chosen_cells(chosen))
        return DecidedNodes(
            nodes, {name: getattr(columns, name)[below] for name in CHILD_COLUMNS}, parent, code
        )


class Shard:
    """Rows of a tree.

    Parameters
    ----------
    specification
        Specification of the tree.
    rows
        Returns the rows; called twice, and always with the same result.
    """

    def __init__(self, specification: Specification, rows: Rows) -> None:
        self._specification = specification
        self._rows = rows
        self._table = ContourTable(specification.frame.size)
        self._codes: Codes = np.empty((0, len(specification.attributes)), np.int8)
        self._ids = np.empty(0, np.int32)
        self._begin = self._end = np.zeros(1, np.int64)

    def first_values(self) -> Floats:
        """Return the values of the first rows, as many as the edges of bins may need."""
        values_of_blocks, wanted = (
            [np.empty((0, len(self._specification.attributes)))],
            self._specification.warmup_rows,
        )
        for values, _ in self._row_blocks():
            values_of_blocks.append(values[:wanted])
            wanted -= len(values_of_blocks[-1])
            if wanted <= 0:
                break
        return np.concatenate(values_of_blocks)

    def encode(self, edges: Edges) -> int:
        """Read all rows, and turn values into codes; return how many rows are labelled."""
        encoder = Encoder(self._specification.attributes, edges)
        codes, ids = [self._codes], [self._ids]
        for values, contours in self._row_blocks():
            codes.append(_narrow_codes(encoder.codes(values)))
            ids.append(self._table.intern(contours))
        self._codes, self._ids = np.concatenate(codes), np.concatenate(ids)
        return int(np.count_nonzero(self._labelled()))

    def _labelled(self) -> Bools:
        labelled: Bools = ~self._table.vacuous[self._ids]
        return labelled

    def forget(self, count: int) -> None:
        """Forget the first `count` labelled rows, as a bounded memory does (`quercus.trees.growth.remembering`)."""
        if not count:
            return
        kept = np.ones(len(self._ids), bool)
        kept[np.flatnonzero(self._labelled())[:count]] = False
        self._codes, ids = self._codes[kept], self._ids[kept]
        numbers, first = np.unique(ids, return_index=True)
        in_order = numbers[np.argsort(first)]
        contours, self._table = self._table.contours, ContourTable(self._specification.frame.size)
        renumbered = np.full(len(contours), NONE, np.int32)
        renumbered[in_order] = self._table.intern(contours[in_order])
        self._ids = renumbered[ids]

    def code_counts(self) -> Ids:
        """Return how many codes each attribute has here, (K,)."""
        seen: Ids = (self._codes.max(axis=0, initial=-1) + 1).astype(np.int32)
        return seen

    def labels(self) -> tuple[Floats, Ints]:
        """Return the distinct contours of the rows, in the order in which they came, and how often each occurs."""
        return self._table.contours, np.bincount(self._ids, minlength=self._table.size)

    def _row_blocks(self) -> Iterator[tuple[Floats, Floats]]:
        for given, labels in self._rows():
            values = check_values(self._specification, given)
            contours = check_contours(labels, self._specification.frame.size)
            if len(contours) != len(values):
                raise InvalidInput(
                    "contours", f"are {len(contours)}, must be one for each of {len(values)} rows"
                )
            yield values, contours

    def agree(self, contours: Floats, numbers: Ids, layout: Layout) -> None:
        """Take the numbers of all contours, those of the own ones among them, and the cells of a node."""
        self._ids = numbers[self._ids] if self._ids.size else self._ids
        self._end = np.full(1, len(self._ids))
        self._layout = layout
        self._decider = NodeDecider(self._specification, contours, layout)
        self._column = np.full(max(1, len(contours)), NONE, np.int32)

    def count(self, level: NextLevel) -> list[bytes]:
        """Divide the rows of the last level, count those of the next; return the counts for each shard to decide."""
        layout, splits = self._layout, self._layout.splits
        if level.split.size:
            first, stop = divide_rows(
                self._codes,
                self._ids,
                self._begin,
                self._end,
                level.split,
                *layout.split_columns,
                splits.branches,
            )
            at = first[level.parent] + level.code
            begin = np.where(level.code > 0, stop[at - 1], self._begin[level.parent])
            self._begin, self._end = begin, stop[at]
        first, *entries = count_shard(
            self._codes,
            self._ids,
            self._begin,
            self._end,
            level.free,
            layout.first_slots,
            layout.slot_count,
            self._column,
        )
        parts = []
        for low, high in pairwise(level.share):
            here = slice(first[low], first[high])
            parts.append(
                pickle.dumps(
                    (first[low : high + 1] - first[low], *(_narrow_numbers(each[here]) for each in entries))
                )
            )
        return parts

    def decide(self, depth: int, free: Bools, sizes: Ints, parts: Sequence[bytes]) -> list[DecidedNodes]:
        """Decide nodes of a depth.

        Parameters
        ----------
        free
            (m, K) the attributes that may still be split on.
        sizes
            (m,) rows.
        parts
            Their counts, of each shard.
        """
        counts = [pickle.loads(part) for part in parts]  # noqa: S301 - of another shard of the same tree
        layout = self._layout
        room = np.minimum(
            layout.cell_count * np.minimum(sizes, self._column.size), layout.entry_limits(sizes)
        )
        chunk = (np.cumsum(room) - room) // MAX_ENTRIES
        decided = []
        for number in np.unique(chunk).tolist():
            low, high = np.searchsorted(chunk, [number, number + 1]).tolist()
            cut = [_counts_of_range(each, low, high) for each in counts]
            offset = np.cumsum([0, *(each[1].size for each in cut)])[:-1]
            first = np.array([each[0] for each in cut]) + offset[:, np.newaxis]
            slot, contour, count = (
                np.concatenate([each[i] for each in cut]).astype(np.int32) for i in (1, 2, 3)
            )
            entries = int(room[low:high].sum())
            contours, counts_of = np.empty(entries, np.int32), np.empty(entries, np.int64)
            group, cell, size, start = add_counts(
                high - low, first, slot, contour, count, free[low:high], *layout.attribute_columns,
                layout.slot_count, self._column, contours, counts_of,
            )  # fmt: skip
            cells = Cells(start, contours[: start[-1]], counts_of[: start[-1]])
            decided.append(self._decider.decide(depth, group, cell, size, cells))
        return decided


def sums_of(cells: Cells, values: NDArray[Any]) -> Ints:
    """Return the sum of the values of each cell's entries, (m,)."""
    total = np.zeros(values.size + 1, np.int64)
    np.cumsum(values, out=total[1:])
    sums: Ints = total[cells.start[1:]] - total[cells.start[:-1]]
    return sums


def goes_on(stop: NDArray[np.integer]) -> Bools:
    """Return which predicted nodes must be decided."""
    going: Bools = stop == GOES_ON
    return going


def _narrow_codes(codes: NDArray[np.integer]) -> Codes:
    """Return codes in bytes, if they fit."""
    small = codes.max(initial=-1) <= np.iinfo(np.int8).max
    return codes.astype(np.int8 if small else np.int16)


def _narrow_numbers(values: Ids) -> NDArray[Any]:
    """Return numbers in as few bytes as they fit in."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _counts_of_range(counts: tuple[Any, ...], low: int, high: int) -> tuple[Any, ...]:
    """Return the counts of some nodes."""
    first, *entries = counts
    here = slice(first[low], first[high])
    return first[low : high + 1] - first[low], *(each[here] for each in entries)
