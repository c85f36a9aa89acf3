"""Conversion of a forest to and from columns, so that a restart grows from the saved members, not from all rows.

Saved are the rows and their labels, the blocks that determine the weights, and the trees that will judge the next
block. Everything else is a function of these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from quercus.kernels.forest import member_key
from quercus.kernels.growth import NONE
from quercus.trees.learners.recent_accuracy import BLOCK, BLOCKS, AccuracyBlock
from quercus.trees.memory_forest.codes import Codebook
from quercus.trees.memory_forest.completions import Completions
from quercus.trees.memory_forest.evidence import (
    ASKED,
    NEVER,
    NOT_YET,
    UNLABELLED,
    EvidenceMoment,
    ForestEvidence,
)
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.memory_forest.groves import FIELDS, Grove, MemberTree, nodes_of
from quercus.trees.memory_forest.members import Members
from quercus.trees.memory_forest.memories import LADDER, MEMORIES
from quercus.trees.memory_forest.recent import EarlyPieces, JudgedBlock, RecentScores, WaitingRows
from quercus.trees.tree.uncertain import UncertainCells

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class SavedForest:
    """A forest as columns.

    Attributes
    ----------
    begun, piece_begun : int
        Number of rows that were labelled before the present block, and before the present piece of the first block.
    columns : mapping of str to array
        The columns; they may be views, which are valid until the next label.
    """

    GROWING: ClassVar = frozenset({"values", "codes", "told"})
    """Columns that may have unused room behind their rows, where later rows are written."""

    begun: int
    piece_begun: int
    columns: Columns


def saved_forest(forest: MemoryForest) -> SavedForest | None:
    """Return a forest and its members as columns; None if the evidence has changed since the members were grown."""
    if not forest.is_grown:
        return None
    evidence, recent = forest.evidence, forest.recent
    judges, judged = recent.judging_members, recent.judged_blocks
    labelled, l = evidence.labelled, evidence.size
    kinds = evidence.kinds[labelled]
    same_labelled = np.array_equal(judges.labelled, labelled[: len(judges.labelled)])
    same_kinds = same_labelled and np.array_equal(judges.kinds, kinds[: len(judges.labelled)])
    columns: dict[str, NDArray[Any]] = {
        "contours": evidence.contours.values,
        "values": evidence.values,
        "codes": evidence.codes(),
        "kinds": evidence.kinds,
        "told": labelled,
        **_book_columns("cuts", evidence.book),
        **_book_columns("judge_cuts", judges.book),
        "judge_told_count": np.array([len(judges.labelled)]),
        "judge_told": judges.labelled[:0] if same_kinds else judges.labelled,
        "judge_kinds": judges.kinds[:0] if same_kinds else judges.kinds,
        "judged_trees": np.array([block.trees for block in judged], np.int64),
        "judged_theta": np.array([block.theta for block in judged]).reshape(-1, MEMORIES, BLOCK, l),
        "judged_contours": np.array([block.contours for block in judged]).reshape(-1, BLOCK, l),
        **_tree_columns(judges.trees, l),
        "tree_levels": np.array([grove.level for grove in judges.groves], np.float64),
        "judged_arrival": np.array([block.at_arrival for block in judged]).reshape(-1, MEMORIES, BLOCK, l),
        "judge_rows": np.array([recent.since]),
        "waiting": recent.waiting.rows,
        "waiting_theta": recent.waiting.theta,
        "judged_asked": np.array([block.asked for block in judged], np.bool_).reshape(-1, BLOCK),
        "origin": evidence.origin,
        "constant_rows": evidence.constant_rows,
        "since": evidence.since,
        "judge_varies": np.isin(np.arange(len(evidence.named)), judges.book.varying),
        **_early_columns(recent.early),
        **({} if evidence.completions is None else evidence.completions.cells.columns("cells")),
    }
    return SavedForest(recent.begun, recent.early.begun, columns)


def restore_forest(forest: MemoryForest, saved: SavedForest) -> None:
    """Restore a saved forest into an empty one.

    The forest may keep views of the columns, but does not overwrite the rows that these hold.

    Raises
    ------
    ValueError
        If the columns do not fit the forest or each other.
    """
    columns, size = saved.columns, forest.evidence.size
    _check_columns(columns, len(forest.evidence.named), size)
    _check_labelled(columns["told"], columns["kinds"])
    evidence = ForestEvidence.restored(
        forest.evidence.named,
        columns["contours"],
        values=columns["values"],
        codes=columns["codes"],
        kinds=columns["kinds"],
        labelled=columns["told"],
        book=_book_of(
            "cuts",
            columns,
            forest.evidence.named,
            np.flatnonzero(columns["constant_rows"] < len(columns["kinds"])),
        ),
        constant_rows=np.array(columns["constant_rows"]),
        origin=columns["origin"],
        since=np.array(columns["since"]),
    )
    cells = UncertainCells.restored(columns, "cells", *evidence.values.shape)
    if len(cells.rows):
        evidence.completions = Completions(forest.seed, forest.trees)
        evidence.completions.add_cells(cells)
    judges = _judges_of(evidence, columns, forest.seed)
    counts = {judges.tree_count, *columns["judged_trees"].tolist()}
    if not counts <= {0, forest.trees} or not 0 <= saved.begun <= len(evidence.labelled):
        raise ValueError(f"{counts} trees and {saved.begun} rows do not fit the forest")
    of_rows = (columns[f"judged_{name}"] for name in ("theta", "contours", "asked", "arrival"))
    blocks = zip(columns["judged_trees"].tolist(), *of_rows, strict=True)
    judged = [JudgedBlock(trees, *map(np.array, parts)) for trees, *parts in blocks]
    early = _early_of(evidence, columns, saved.piece_begun, forest)
    waiting = WaitingRows(np.array(columns["waiting"]), np.array(columns["waiting_theta"]))
    since = columns["judge_rows"].item()
    forest.continue_from(evidence, RecentScores.of(judges, judged, saved.begun, early, since, waiting))


def _early_columns(early: EarlyPieces) -> dict[str, NDArray[Any]]:
    """Return the columns of the accuracy in the first block, and of the evidence before its present piece."""
    none = np.empty(0, np.int64)
    before = None if early.is_over else early.before
    return {
        "early": np.array([astuple(piece)[:6] for piece in early.judged], np.float64).reshape(-1, 6),
        "early_cells": np.array(
            [(place, *cell) for place, piece in enumerate(early.judged) for cell in piece.confusion], np.int64
        ).reshape(-1, 4),
        "early_count": np.array([-1 if early.is_over else 0 if before is None else before.count]),
        "early_told": none if before is None else before.labelled,
        "early_kinds": none.astype(np.int32) if before is None else before.labelled_kinds,
    }


def _early_of(evidence: ForestEvidence, columns: Columns, begun: int, forest: MemoryForest) -> EarlyPieces:
    early, count = EarlyPieces(forest.recent.early.judges), columns["early_count"].item()
    cells = columns["early_cells"].tolist()
    early.judged = [
        AccuracyBlock(
            *(int(rows), int(precise), int(right), expected, int(unasked), unasked_expected),
            confusion=tuple((said, holds, count) for of, said, holds, count in cells if of == place),
        )
        for place, (rows, precise, right, expected, unasked, unasked_expected) in enumerate(
            columns["early"].tolist()
        )
    ]
    early.begun, early.is_over = begun, count < 0
    labelled, kinds = np.array(columns["early_told"]), np.array(columns["early_kinds"])
    _check_range("early_count", columns["early_count"], int(labelled.max(initial=-2)) + 1, len(evidence) + 1)
    if len(labelled):
        _check_earlier(labelled, kinds, evidence)
        early.before = EvidenceMoment(evidence, count, labelled, kinds)
        early.judges = Members.of(early.before, forest.trees, forest.seed, None)
    return early


def _judges_of(evidence: ForestEvidence, columns: Columns, seed: int) -> Members:
    """Return the members from before the present block, which will judge it."""
    count = columns["judge_told_count"].item()
    if len(columns["judge_told"]):
        labelled, kinds = np.array(columns["judge_told"]), np.array(columns["judge_kinds"])
        _check_earlier(labelled, kinds, evidence)
    else:
        now = evidence.present_moment()
        labelled, kinds = now.labelled[:count], now.labelled_kinds[:count]
    if len(labelled) != count:
        raise ValueError(f"{len(labelled)} rows were labelled before the last block, must be {count}")
    book = _book_of("judge_cuts", columns, evidence.named, np.flatnonzero(columns["judge_varies"]))
    if book.is_same(evidence.book):
        book = evidence.book
    trees = _trees_of(columns, len(evidence), evidence.size, seed)
    levels = columns["tree_levels"].tolist()
    groves = [Grove.of(trees[step :: len(LADDER)], level) for step, level in enumerate(levels)]
    without = Members(book, evidence.size, labelled, kinds, groves, ())
    bayes = without.next_bayes(EvidenceMoment(evidence, len(evidence), labelled, kinds), 0) if trees else ()
    return replace(without, bayes=bayes)


def _book_columns(name: str, book: Codebook) -> dict[str, NDArray[Any]]:
    return {
        f"{name}_counts": np.array([len(cuts) for cuts in book.cuts], np.int64),
        name: np.concatenate([np.empty(0), *book.cuts]),
    }


def _book_of(name: str, columns: Columns, named: NDArray[np.bool_], varying: NDArray[np.int64]) -> Codebook:
    counts = columns[f"{name}_counts"]
    if counts.min(initial=0) < 0 or counts.sum() != len(columns[name]):
        raise ValueError(f"column {name} has {len(columns[name])} cuts, must have {counts.sum()}")
    return Codebook(named, tuple(np.split(np.array(columns[name]), np.cumsum(counts)[:-1])), varying)


def _tree_columns(trees: Sequence[MemberTree], size: int) -> dict[str, NDArray[Any]]:
    counts = [(len(tree), len(tree.rows), len(tree.opinions)) for tree in trees]
    return {
        "tree_counts": np.array(counts, np.int64).reshape(-1, 3),
        "tree_nodes": nodes_of(trees),
        "tree_rows": np.concatenate([np.empty(0, np.int32), *(tree.rows for tree in trees)]),
        "tree_opinions": np.concatenate([np.empty((0, 3, size)), *(tree.opinions for tree in trees)]),
    }


def _trees_of(columns: Columns, rows: int, size: int, seed: int) -> list[MemberTree]:
    ends = np.cumsum(columns["tree_counts"], axis=0)
    have = (columns["tree_nodes"].shape[1], len(columns["tree_rows"]), len(columns["tree_opinions"]))
    if columns["tree_counts"].min(initial=0) < 0 or (len(ends) and tuple(ends[-1]) != have):
        raise ValueError(f"the trees have {have} nodes, rows and opinions, which do not fit their counts")
    found, begin = [], (0, 0, 0)
    for m, end in enumerate(ends.tolist()):
        nodes = columns["tree_nodes"][:, begin[0] : end[0]]
        mine = columns["tree_rows"][begin[1] : end[1]]
        opinions = columns["tree_opinions"][begin[2] : end[2]]
        _check_tree(nodes, mine, size + len(opinions), rows, columns["codes"].shape[1])
        found.append(MemberTree(np.uint64(member_key(seed, m)), nodes, mine, opinions))
        begin = tuple(end)
    return found


def _check_tree(
    nodes: NDArray[np.int32], mine: NDArray[np.int32], opinions: int, rows: int, attributes: int
) -> None:
    """Raise `ValueError` if compiled code would read beyond an array of this tree."""
    attribute, _, skip, size = nodes
    leaf, inner = attribute < 0, np.flatnonzero(attribute >= 0)
    _check_range("attributes of nodes", attribute, NONE, attributes)
    _check_range("opinions of leaves", skip[leaf], 0, opinions)
    _check_range("steps to right children", skip[inner], 2, len(skip))
    _check_range("right children", inner + skip[inner], 0, len(skip))
    _check_range("rows of trees", mine, 0, rows)
    whole = len(size) > 0 and size[0] == size[leaf].sum() == len(mine)
    if not whole or (size[inner] != size[inner + 1] + size[inner + skip[inner]]).any():
        raise ValueError(f"{len(size)} nodes of a tree do not fit its {len(mine)} rows")


def _check_labelled(labelled: NDArray[Any], kinds: NDArray[np.int32]) -> None:
    """Raise `ValueError` unless the labelled rows, without the room behind them, are exactly those with a contour."""
    count = np.count_nonzero(kinds != UNLABELLED)
    labelled = labelled[:count]
    _check_range("told", labelled, 0, len(kinds))
    if np.count_nonzero(kinds[labelled] != UNLABELLED) != count:
        raise ValueError("column told names other rows than the labelled ones")


def _check_earlier(labelled: NDArray[Any], kinds: NDArray[np.int32], evidence: ForestEvidence) -> None:
    """Raise `ValueError` if rows labelled at an earlier moment do not exist, or had contours that do not."""
    _check_range("told", labelled, 0, len(evidence))
    _check_range("judge_kinds", kinds, 0, len(evidence.contours))


def _check_range(name: str, numbers: NDArray[Any], low: int, end: int) -> None:
    if numbers.size and not (numbers.min() >= low and numbers.max() < end):
        raise ValueError(f"column {name} has numbers outside [{low}, {end})")


def _check_columns(columns: Columns, attributes: int, size: int) -> None:
    n, d, blocks = len(columns["kinds"]), len(columns["contours"]), len(columns["judged_trees"])
    shapes = {
        "contours": (d, size),
        "values": (max(n, len(columns["values"])), attributes),
        "codes": (len(columns["values"]), attributes),
        "kinds": (n,),
        "told": (len(columns["told"]),),
        "cuts_counts": (attributes,),
        "judge_cuts_counts": (attributes,),
        "judge_told_count": (1,),
        "judge_kinds": (len(columns["judge_told"]),),
        "judged_theta": (blocks, MEMORIES, BLOCK, size),
        "judged_contours": (blocks, BLOCK, size),
        "judged_asked": (blocks, BLOCK),
        "judged_arrival": (blocks, MEMORIES, BLOCK, size),
        "judge_rows": (1,),
        "waiting_theta": (MEMORIES, len(columns["waiting"]), size),
        "origin": (n,),
        "tree_counts": (len(columns["tree_counts"]), 3),
        "tree_nodes": (FIELDS, columns["tree_nodes"].shape[-1]),
        "early": (len(columns["early"]), 6),
        "early_cells": (len(columns["early_cells"]), 4),
        "early_count": (1,),
        "early_kinds": (len(columns["early_told"]),),
        "tree_opinions": (len(columns["tree_opinions"]), 3, size),
        "tree_levels": (min(len(columns["tree_counts"]), len(LADDER)),),
        "constant_rows": (attributes,),
        "since": (attributes,),
        "judge_varies": (attributes,),
    }
    for name, shape in shapes.items():
        if columns[name].shape != shape:
            raise ValueError(f"column {name} has the shape {columns[name].shape}, must be {shape}")
    cells = columns["early_cells"]
    for name, numbers, end in (
        ("early_cells", cells[:, 0], len(columns["early"])),
        ("early_cells", cells[:, 1:3], size),
        ("early_cells", cells[:, 3], BLOCK + 1),
    ):
        _check_range(name, numbers, 0, end)
    _check_range("kinds", columns["kinds"], UNLABELLED, d)
    _check_range("waiting", columns["waiting"], 0, n)
    _check_range("judge_rows", columns["judge_rows"], 0, n + 1)
    _check_range("origin", columns["origin"], NOT_YET, ASKED + 1)
    since, constant = columns["since"], columns["constant_rows"]
    _check_range("since", since[since != NEVER], 0, n + 1)
    _check_range("constant_rows", constant[constant != NEVER], 1, n)
    if blocks > BLOCKS:
        raise ValueError(f"{blocks} blocks were judged, at most {BLOCKS} count")
