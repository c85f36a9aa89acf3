"""The layout of counts: the slots of each attribute's values, and the cells of its splits."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quercus.trees.rules.choice import SplitCells
from quercus.trees.tree.splits import ABOVE, BELOW, Splits

Ints = NDArray[np.int64]

SUMMED = -1  # in place of a slot, for cells that are sums of slots


@dataclass(frozen=True)
class Layout:
    """Slots and cells of a node.

    Slot 0 counts the node itself, each other slot one code of one attribute; a row is counted once per attribute. Cell
    0 is the node's own; the others are the branches of splits, in order. Branches by code are slots, and those of a cut
    are sums of slots. If no attribute has cuts, cells and slots are the same.

    Parameters
    ----------
    widths
        Number of slots of each attribute: room for its codes, including future ones.
    cuts
        Number of cuts of each attribute, see `quercus.trees.tree.splits.Splits`.
    """

    widths: tuple[int, ...]
    cuts: tuple[int, ...] = ()

    @cached_property
    def splits(self) -> Splits:
        """The splits; those by code have a branch for every slot."""
        return Splits(self.widths, self.cuts)

    @cached_property
    def first_slots(self) -> Ints:
        """First slot of each attribute: (K,)."""
        return 1 + np.cumsum([0, *self.widths])[:-1]

    @cached_property
    def slot_count(self) -> int:
        """Number of slots, ``S``."""
        return 1 + sum(self.widths)

    @cached_property
    def first_cells(self) -> Ints:
        """First cell of each split: (T,)."""
        return 1 + np.cumsum([0, *self.splits.branches.tolist()])[:-1]

    @cached_property
    def cell_count(self) -> int:
        """Number of cells, ``C``."""
        return 1 + int(self.splits.branches.sum())

    @cached_property
    def split_cells(self) -> SplitCells:
        """The cells of the splits, for `quercus.trees.rules.choice`."""
        return SplitCells(
            self.first_cells, np.append(self.splits.first_splits, self.splits.split_count), self.cell_count
        )

    @cached_property
    def attribute_columns(self) -> tuple[Ints, Ints, Ints, Ints]:
        """First slot, number of slots, number of cuts and first cell of each attribute, for the kernels; (K,) each."""
        splits = self.splits
        widths, cuts = np.array(self.widths, dtype=np.int64), np.array(splits.cuts, dtype=np.int64)
        return self.first_slots, widths, cuts, self.first_cells[splits.first_splits]

    @cached_property
    def cell_sources(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Slot (or `SUMMED`), attribute, cut and branch of each cell, for the kernels; (C,) each."""
        splits = self.splits
        split = self.split_cells.split_of
        attribute, cut = splits.attribute[split], splits.cut[split]
        branch = np.arange(1, self.cell_count) - self.first_cells[split]
        missing = self.first_slots[attribute] + cut_counts(splits)[attribute] + 1
        slot = np.where(cut < 0, self.first_slots[attribute] + branch, missing)
        slot[(cut >= 0) & ((branch == BELOW) | (branch == ABOVE))] = SUMMED
        own = np.zeros(1, dtype=np.int64)
        return tuple(np.concatenate([own, part]) for part in (slot, attribute, cut, branch))  # type: ignore[return-value]

    @cached_property
    def split_columns(self) -> tuple[Ints, Ints, Ints]:
        """Attribute, cut, and number of the attribute's bins of each split, for the kernels; (T,) each."""
        splits = self.splits
        return splits.attribute, splits.cut, cut_counts(splits)[splits.attribute] + 1

    @cached_property
    def spent_attributes(self) -> Ints:
        """Attribute that each split uses up for the nodes below; -1 for a cut: (T,)."""
        return np.where(self.splits.cut < 0, self.splits.attribute, -1)

    def entry_limits(self, rows: Ints) -> Ints:
        """Return a bound of the entries of nodes with `rows` (m,) rows, see `tally.ContourCounts.count_cells`."""
        cuts = cut_counts(self.splits)
        of_cuts = np.minimum(rows * np.count_nonzero(cuts), cuts.sum())
        entries: Ints = rows * (1 + np.count_nonzero(cuts == 0) + of_cuts) + self.cell_count
        return entries

    def holds_codes(self, arities: tuple[int, ...]) -> bool:
        """Return whether there is a slot for every code."""
        return all(arity <= width for arity, width in zip(arities, self.widths, strict=True))

    def widened_for(self, arities: tuple[int, ...]) -> "Layout":
        """Return a layout with a slot for every code; a nominal attribute that gets more at least doubles its width."""
        triples = zip(arities, self.widths, self.splits.cuts, strict=True)
        return Layout(
            tuple(
                width if arity <= width else arity if cuts else max(arity, 2 * width)
                for arity, width, cuts in triples
            ),
            self.cuts,
        )


def cut_counts(splits: Splits) -> Ints:
    """Return the number of cuts of each attribute: (K,)."""
    return np.array(splits.cuts, dtype=np.int64)
