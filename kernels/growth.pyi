"""Counts, cells and splits of growing trees."""

from typing import overload

import numpy
import numpy.typing


NONE: int = -1

NO_SPLIT: int = -1

BELOW: int = 0

ABOVE: int = 1

NO_NUMBER: int = 2

TIE: float = 1e-09

FIRST_WIDTH: int = 4

@overload
def send_changes(codes: numpy.typing.NDArray[numpy.int8], attribute: numpy.typing.NDArray[numpy.int64], cut: numpy.typing.NDArray[numpy.int64], bins: numpy.typing.NDArray[numpy.int64], branches: numpy.typing.NDArray[numpy.int64], rows: numpy.typing.NDArray[numpy.int32], was: numpy.typing.NDArray[numpy.int32], opened: numpy.typing.NDArray[numpy.int8], start: numpy.typing.NDArray[numpy.int64], nodes: numpy.typing.NDArray[numpy.int32], split: numpy.typing.NDArray[numpy.int32], kids: numpy.typing.NDArray[numpy.int64]) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int32], tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int8]]]: ...

@overload
def send_changes(codes: numpy.typing.NDArray[numpy.int16], attribute: numpy.typing.NDArray[numpy.int64], cut: numpy.typing.NDArray[numpy.int64], bins: numpy.typing.NDArray[numpy.int64], branches: numpy.typing.NDArray[numpy.int64], rows: numpy.typing.NDArray[numpy.int32], was: numpy.typing.NDArray[numpy.int32], opened: numpy.typing.NDArray[numpy.int8], start: numpy.typing.NDArray[numpy.int64], nodes: numpy.typing.NDArray[numpy.int32], split: numpy.typing.NDArray[numpy.int32], kids: numpy.typing.NDArray[numpy.int64]) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int32], tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int8]]]:
    """
    Send the changes of split nodes to their children; return place and parent of each child, and the changes.
    """

@overload
def relist_rows(codes: numpy.typing.NDArray[numpy.int8], attribute: numpy.typing.NDArray[numpy.int64], cut: numpy.typing.NDArray[numpy.int64], bins: numpy.typing.NDArray[numpy.int64], rows: numpy.typing.NDArray[numpy.int32], whose: numpy.typing.NDArray[numpy.int32], roots: numpy.typing.NDArray[numpy.int32], known: numpy.typing.NDArray[numpy.int32], split: numpy.typing.NDArray[numpy.int32], kids: numpy.typing.NDArray[numpy.int64], kid: numpy.typing.NDArray[numpy.int32], first: numpy.typing.NDArray[numpy.int32], after: numpy.typing.NDArray[numpy.int32]) -> tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32]]: ...

@overload
def relist_rows(codes: numpy.typing.NDArray[numpy.int16], attribute: numpy.typing.NDArray[numpy.int64], cut: numpy.typing.NDArray[numpy.int64], bins: numpy.typing.NDArray[numpy.int64], rows: numpy.typing.NDArray[numpy.int32], whose: numpy.typing.NDArray[numpy.int32], roots: numpy.typing.NDArray[numpy.int32], known: numpy.typing.NDArray[numpy.int32], split: numpy.typing.NDArray[numpy.int32], kids: numpy.typing.NDArray[numpy.int64], kid: numpy.typing.NDArray[numpy.int32], first: numpy.typing.NDArray[numpy.int32], after: numpy.typing.NDArray[numpy.int32]) -> tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32]]:
    """
    Send the rows that subtrees know to the lists of their leaves; return the other rows and their owners.
    """

@overload
def count_rows(codes: numpy.typing.NDArray[numpy.int8], offsets: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], rows: numpy.typing.NDArray[numpy.int32], was: numpy.typing.NDArray[numpy.int32], start: numpy.typing.NDArray[numpy.int64], nodes: numpy.typing.NDArray[numpy.int32], parent: numpy.typing.NDArray[numpy.int32], split: numpy.typing.NDArray[numpy.int32], spent: numpy.typing.NDArray[numpy.int64], blocks: numpy.typing.NDArray[numpy.int32], pool: numpy.typing.NDArray[numpy.int32], at: numpy.typing.NDArray[numpy.int64], width: numpy.typing.NDArray[numpy.int32], used: numpy.typing.NDArray[numpy.int32], column: numpy.typing.NDArray[numpy.int32], dirty: numpy.typing.NDArray[numpy.bool_], size: numpy.typing.NDArray[numpy.int32]) -> None: ...

@overload
def count_rows(codes: numpy.typing.NDArray[numpy.int16], offsets: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], rows: numpy.typing.NDArray[numpy.int32], was: numpy.typing.NDArray[numpy.int32], start: numpy.typing.NDArray[numpy.int64], nodes: numpy.typing.NDArray[numpy.int32], parent: numpy.typing.NDArray[numpy.int32], split: numpy.typing.NDArray[numpy.int32], spent: numpy.typing.NDArray[numpy.int64], blocks: numpy.typing.NDArray[numpy.int32], pool: numpy.typing.NDArray[numpy.int32], at: numpy.typing.NDArray[numpy.int64], width: numpy.typing.NDArray[numpy.int32], used: numpy.typing.NDArray[numpy.int32], column: numpy.typing.NDArray[numpy.int32], dirty: numpy.typing.NDArray[numpy.bool_], size: numpy.typing.NDArray[numpy.int32]) -> None:
    """
    Count rows in the blocks of their nodes, and remove their earlier counts.
    """

@overload
def count_cells(codes: numpy.typing.NDArray[numpy.int8], offsets: numpy.typing.NDArray[numpy.int64], widths: numpy.typing.NDArray[numpy.int64], cuts: numpy.typing.NDArray[numpy.int64], first: numpy.typing.NDArray[numpy.int64], slots: int, ids: numpy.typing.NDArray[numpy.int32], rows: numpy.typing.NDArray[numpy.int32], start: numpy.typing.NDArray[numpy.int64], nodes: numpy.typing.NDArray[numpy.int32], parent: numpy.typing.NDArray[numpy.int32], split: numpy.typing.NDArray[numpy.int32], spent: numpy.typing.NDArray[numpy.int64], column: numpy.typing.NDArray[numpy.int32], contours: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.int64]) -> tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int64]]: ...

@overload
def count_cells(codes: numpy.typing.NDArray[numpy.int16], offsets: numpy.typing.NDArray[numpy.int64], widths: numpy.typing.NDArray[numpy.int64], cuts: numpy.typing.NDArray[numpy.int64], first: numpy.typing.NDArray[numpy.int64], slots: int, ids: numpy.typing.NDArray[numpy.int32], rows: numpy.typing.NDArray[numpy.int32], start: numpy.typing.NDArray[numpy.int64], nodes: numpy.typing.NDArray[numpy.int32], parent: numpy.typing.NDArray[numpy.int32], split: numpy.typing.NDArray[numpy.int32], spent: numpy.typing.NDArray[numpy.int64], column: numpy.typing.NDArray[numpy.int32], contours: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.int64]) -> tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int64]]:
    """
    Count the rows of nodes; return node, number and size of each populated cell, and where its entries begin.
    """

def merge_changes(rows: numpy.typing.NDArray[numpy.int32], was: numpy.typing.NDArray[numpy.int32], opened: numpy.typing.NDArray[numpy.int8], start: numpy.typing.NDArray[numpy.int64], chosen: numpy.typing.NDArray[numpy.bool_], more: numpy.typing.NDArray[numpy.int32], group: numpy.typing.NDArray[numpy.int32], ids: numpy.typing.NDArray[numpy.int32], askable: numpy.typing.NDArray[numpy.bool_], precise: numpy.typing.NDArray[numpy.bool_]) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int8]]:
    """
    Add new rows to groups of changes; drop the changes of earlier rows in the chosen groups.
    """

def link_rows(rows: numpy.typing.NDArray[numpy.int32], was: numpy.typing.NDArray[numpy.int32], start: numpy.typing.NDArray[numpy.int64], nodes: numpy.typing.NDArray[numpy.int32], split: numpy.typing.NDArray[numpy.int32], first: numpy.typing.NDArray[numpy.int32], after: numpy.typing.NDArray[numpy.int32]) -> None:
    """Insert the rows that arrived at a leaf at the front of its list."""

def list_rows(leaves: numpy.typing.NDArray[numpy.int32], owner: numpy.typing.NDArray[numpy.int64], first: numpy.typing.NDArray[numpy.int32], after: numpy.typing.NDArray[numpy.int32], rows: numpy.typing.NDArray[numpy.int32], whose: numpy.typing.NDArray[numpy.int32]) -> int:
    """
    Write the rows in the lists of the leaves, and the owner of each row's leaf; return their number.
    """

def new_columns(ids: numpy.typing.NDArray[numpy.int32], rows: numpy.typing.NDArray[numpy.int32], start: numpy.typing.NDArray[numpy.int64], blocks: numpy.typing.NDArray[numpy.int32], pool: numpy.typing.NDArray[numpy.int32], at: numpy.typing.NDArray[numpy.int64], width: numpy.typing.NDArray[numpy.int32], used: numpy.typing.NDArray[numpy.int32], contours: int, column: numpy.typing.NDArray[numpy.int32]) -> numpy.typing.NDArray[numpy.int32]:
    """Return the most columns that each group of rows may add to its block."""

def copy_blocks(pool: numpy.typing.NDArray[numpy.int32], old: numpy.typing.NDArray[numpy.int64], old_width: numpy.typing.NDArray[numpy.int32], to: numpy.typing.NDArray[numpy.int32], fresh: numpy.typing.NDArray[numpy.int64], new_width: numpy.typing.NDArray[numpy.int32], used: numpy.typing.NDArray[numpy.int32], slots: int) -> None:
    """Copy blocks within or between pools, each with its own widths."""

def count_nodes(ids: numpy.typing.NDArray[numpy.int32], rows: numpy.typing.NDArray[numpy.int32], start: numpy.typing.NDArray[numpy.int64], column: numpy.typing.NDArray[numpy.int32]) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int64]]:
    """Return the contours of rows, group by group, in sparse form."""

def cell_sizes(size: numpy.typing.NDArray[numpy.int32], dirty: numpy.typing.NDArray[numpy.bool_], offsets: numpy.typing.NDArray[numpy.int64], widths: numpy.typing.NDArray[numpy.int64], cuts: numpy.typing.NDArray[numpy.int64], first: numpy.typing.NDArray[numpy.int64], to: numpy.typing.NDArray[numpy.int32], changed: numpy.typing.NDArray[numpy.bool_]) -> None:
    """
    Write the sizes of cells, and which cells changed, from the sizes and marks of slots.
    """

def gather_cells(blocks: numpy.typing.NDArray[numpy.int32], cells: numpy.typing.NDArray[numpy.int32], pool: numpy.typing.NDArray[numpy.int32], at: numpy.typing.NDArray[numpy.int64], width: numpy.typing.NDArray[numpy.int32], used: numpy.typing.NDArray[numpy.int32], offsets: numpy.typing.NDArray[numpy.int64], cuts: numpy.typing.NDArray[numpy.int64], slot: numpy.typing.NDArray[numpy.int64], attribute: numpy.typing.NDArray[numpy.int64], cut: numpy.typing.NDArray[numpy.int64], branch: numpy.typing.NDArray[numpy.int64]) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int64]]:
    """Return cells of blocks in sparse form, their contours ascending."""

def preorder(root: int, split: numpy.typing.NDArray[numpy.int32], width: numpy.typing.NDArray[numpy.int64], kids: numpy.typing.NDArray[numpy.int64], kid: numpy.typing.NDArray[numpy.int32]) -> tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int64]]:
    """
    Return the nodes of a tree in pre-order, and the index of each one's parent.
    """

def sum_groups(was: numpy.typing.NDArray[numpy.int32], opened: numpy.typing.NDArray[numpy.int8], start: numpy.typing.NDArray[numpy.int64]) -> tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32]]:
    """
    Return for each group the number of new rows, and the change in the number of rows to ask about.
    """

def keep_one_cut(first: numpy.typing.NDArray[numpy.int64], bounds: numpy.typing.NDArray[numpy.int64], size: numpy.typing.NDArray[numpy.float64], entropy: numpy.typing.NDArray[numpy.float64], standing: numpy.typing.NDArray[numpy.bool_]) -> None:
    """
    Keep in `standing` one split of each attribute: the cut with the largest gain, the middle one of ties.
    """

def compare_splits(first: numpy.typing.NDArray[numpy.int64], size: numpy.typing.NDArray[numpy.float64], information: numpy.typing.NDArray[numpy.float64], lower: numpy.typing.NDArray[numpy.float64], upper: numpy.typing.NDArray[numpy.float64], candidates: numpy.typing.NDArray[numpy.bool_], gain_lower: numpy.typing.NDArray[numpy.float64], gain_upper: numpy.typing.NDArray[numpy.float64], rivals: numpy.typing.NDArray[numpy.bool_]) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the best split of each node; write the gain ratios of its candidates, and mark the rivals.
    """

def test_splits(first: numpy.typing.NDArray[numpy.int64], size: numpy.typing.NDArray[numpy.float64], reached: numpy.typing.NDArray[numpy.float64], bound: numpy.typing.NDArray[numpy.float64], classes: numpy.typing.NDArray[numpy.uint64], candidates: numpy.typing.NDArray[numpy.bool_], share: numpy.typing.NDArray[numpy.float64], earned: numpy.typing.NDArray[numpy.bool_]) -> None:
    """Mark the candidates whose gain is beyond chance."""

def chi_square_tail(value: float, freedom: int) -> float:
    """
    Return the probability that chi-square with a whole number of degrees of freedom exceeds a value.
    """
