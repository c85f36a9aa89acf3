"""Counts of cells, kept or made for one decision, against a slow count of the rows of each branch."""

from itertools import pairwise

import numpy as np
import pytest
from support.plain_rules import is_candidate

from quercus.kernels.growth import NONE, send_changes
from quercus.trees.growth.incremental.evidence import RowEvidence
from quercus.trees.growth.incremental.layout import Layout
from quercus.trees.growth.incremental.tally import ContourCounts
from quercus.trees.growth.sample import ContourTable
from quercus.trees.likelihood.cells import Cells

CONTOURS = np.vstack([np.eye(3), 1 - np.eye(3), np.ones((1, 3))])


def counted(seed: int) -> tuple[ContourCounts, RowEvidence, Layout, np.ndarray]:
    """Rows at two nodes without a split above them: by code, and at cuts with and without missing values."""
    rng = np.random.default_rng(seed)
    cuts = (0, 5, 3, 0)
    layout = Layout((3, 6, 5, 200 if seed % 2 else 2), cuts)  # codes of bytes, or wider ones
    rows = int(rng.integers(1, 80))
    codes = np.column_stack([rng.integers(0, width, rows) for width in layout.widths])
    codes[:, 1] = rng.choice(codes[:, 1], rows) if seed % 3 else codes[0, 1]
    table, evidence = ContourTable(3), RowEvidence(len(cuts))
    evidence.append_rows(codes, table.intern(CONTOURS[rng.integers(0, len(CONTOURS), rows)]))
    return ContourCounts(layout, evidence, table), evidence, layout, rng.permutation(rows).astype(np.int32)


def plain_cell(evidence: RowEvidence, layout: Layout, rows: np.ndarray, cell: int) -> np.ndarray:
    """The number of rows of a cell with each contour."""
    if cell:
        split = int(layout.split_cells.split_of[cell - 1])
        branch = layout.splits.branches_of(split, evidence.codes[rows, layout.splits.attribute[split]])
        rows = rows[branch == cell - layout.first_cells[split]]
    return np.bincount(evidence.ids[rows], minlength=len(CONTOURS))


def dense(cells: Cells) -> np.ndarray:
    table = np.zeros((len(cells), len(CONTOURS)), np.int64)
    table[np.repeat(np.arange(len(cells)), np.diff(cells.start)), cells.ids] = cells.counts
    return table


@pytest.mark.parametrize("seed", range(24))
def test_cells_hold_the_rows_of_their_branches(seed: int) -> None:
    tally, evidence, layout, rows = counted(seed)
    start = np.array([0, rows.size // 3, rows.size])
    parts = [rows[a:b] for a, b in pairwise(start)]
    root = np.full(2, NONE, np.int32)
    nodes = np.arange(2, dtype=np.int32)
    blocks = tally.open_blocks(2)
    tally.add_rows(rows, np.full(rows.size, NONE, np.int32), start, nodes, blocks, root, root)
    size, changed = tally.cell_sizes(blocks)
    group, cell, rows_in, cells = tally.count_cells(rows, start, nodes, root, root)
    entered = {(int(g), int(c)): i for i, (g, c) in enumerate(zip(group, cell, strict=True))}
    for g, own in enumerate(parts):
        every = np.arange(layout.cell_count, dtype=np.int32)
        kept = dense(tally.cells_of(np.full(every.size, blocks[g], np.int32), every))
        candidates = [
            is_candidate(layout.splits, t, np.bincount(evidence.codes[own, k], minlength=layout.widths[k]))
            for t, k in enumerate(layout.splits.attribute.tolist())
        ]
        for c in every.tolist():
            wanted = plain_cell(evidence, layout, own, c)
            assert kept[c].tolist() == wanted.tolist()
            split = int(layout.split_cells.split_of[c - 1]) if c else None
            if split is not None and layout.splits.cut[split] >= 0 and not candidates[split]:
                assert size[g, c] == 0
                assert (g, c) not in entered
                continue
            assert size[g, c] == wanted.sum()
            if wanted.sum():
                assert changed[g, c]
                assert rows_in[entered[g, c]] == wanted.sum()
                assert dense(cells)[entered[g, c]].tolist() == wanted.tolist()


@pytest.mark.parametrize("seed", range(6))
def test_changed_contours_are_counted_anew(seed: int) -> None:
    """Rows that are counted under other contours give the counts of rows that had the present ones from the start."""
    tally, evidence, layout, rows = counted(seed)
    root, nodes, start = np.full(1, NONE, np.int32), np.zeros(1, np.int32), np.array([0, rows.size])
    block = tally.open_blocks(1)
    tally.add_rows(rows, np.full(rows.size, NONE, np.int32), start, nodes, block, root, root)
    tally.dirty[:] = False
    some = rows[::2].copy()
    was = evidence.ids[some].copy()
    evidence.ids[some] = np.random.default_rng(seed).integers(0, evidence.ids.max() + 1, some.size)
    tally.add_rows(some, was, np.array([0, some.size]), nodes, block, root, root)
    every = np.arange(layout.cell_count, dtype=np.int32)
    kept = dense(tally.cells_of(np.repeat(block, every.size), every))
    assert kept.tolist() == [plain_cell(evidence, layout, rows, c).tolist() for c in every.tolist()]
    assert tally.dirty[block[0], 0] == (was != evidence.ids[some]).any()


def test_arrays_of_another_kind_are_refused_and_not_copied() -> None:
    """Kernels write into the arrays that they are given: a silent copy would lose it."""
    _, evidence, layout, rows = counted(0)
    splits = (*layout.split_columns, layout.splits.branches)
    changes = np.full(rows.size, NONE, np.int32), np.ones(rows.size, np.int8), np.array([0, rows.size])
    nodes = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int64)
    send_changes(evidence.codes, *splits, rows, *changes, *nodes)
    for codes in (evidence.codes.astype(np.int64), np.asfortranarray(evidence.codes)):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            send_changes(codes, *splits, rows, *changes, *nodes)
