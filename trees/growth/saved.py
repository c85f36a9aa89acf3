"""Conversion of a growth state to and from columns: the evidence, and the tree as of the last look.

The tree is a function of the evidence. It is saved so that a restart need not count all rows again: with its counts,
but without its entropies, which follow from the counts and are needed only for nodes that change, and without its
shelves.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Ints
from quercus.kernels.growth import NONE, copy_blocks
from quercus.specification.model import Specification
from quercus.trees.ask.query import QueryPosition
from quercus.trees.growth.incremental.growing import GrowingTree
from quercus.trees.growth.incremental.layout import Layout
from quercus.trees.growth.incremental.live_tree import LiveTree, with_codes
from quercus.trees.growth.incremental.numbered import Ids
from quercus.trees.growth.incremental.tally import ContourCounts
from quercus.trees.growth.stream import GrowthState, LaterAttributes, edges_of
from quercus.trees.tree.uncertain import UncertainCells

_TREE: Final = "tree."
Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class SavedEvidence:
    """The evidence of a growth state.

    Attributes
    ----------
    answers : int
        Number of answers.
    asked : QueryPosition or None
        Position of the newest answered or refused query.
    columns : mapping of str to array
        The columns below. The arrays may be views, which are valid until the state grows.

    Notes
    -----
    The columns are

    - ``codes`` (n, K), ``ids`` (n,) and ``askable`` (n,) of the rows, see `Sample`; ``contours`` (d, l) by number;
    - ``warmup``: the values of the rows that set the bins;
    - ``later`` (1 + groups, 2): the number of attributes that rows have now and 0; then, for each group of attributes
      that were added later, the number of rows before them and the number of the first of them. ``later.0``,
      ``later.1``, ... have the values of each group in the rows that set its bins;
    - with the prefix ``parts.``, the codes that uncertain cells allow; with ``warmup_parts.``, the values that they
    allow
      in rows that set bins (`UncertainCells`);
    - ``answered`` rows, and ``pushed``: the numbers of their contours before anybody answered;
    - ``moments``, if the tree has a memory: when each row was first labelled;
    - with the prefix ``tree.``, the columns of `saved_tree`, which may be missing.
    """

    answers: int
    asked: QueryPosition | None
    columns: Columns


def saved_evidence(state: GrowthState) -> SavedEvidence:
    """Return the evidence of a state, for saving."""
    sample = state.evidence
    columns: dict[str, NDArray[Any]] = {
        "codes": sample.codes,
        "ids": sample.ids,
        "askable": sample.askable,
        "contours": sample.table.contours,
        "warmup": state._warmup,
        "later": np.array([[state._attributes, 0], *((e.row, e.first) for e in state._later)], np.int64),
        "answered": np.fromiter(state._pushed, np.int64, len(state._pushed)),
        "pushed": np.fromiter(state._pushed.values(), np.int32, len(state._pushed)),
    }
    if state._memory is not None:
        columns["moments"] = state._memory.label_moments
    columns |= {f"later.{at}": each.values for at, each in enumerate(state._later)}
    for name, parts in (("parts", state._live.parts), ("warmup_parts", state._warmup_parts)):
        columns |= UncertainCells.of(parts).columns(name)
    columns |= {f"{_TREE}{name}": column for name, column in saved_tree(state._live).items()}
    return SavedEvidence(state.answers, state.asked, columns)


def restored_state(specification: Specification, saved: SavedEvidence) -> GrowthState:
    """Return the state with this evidence.

    Parameters
    ----------
    specification
        The specification at the time of saving.
    saved
        Result of `saved_evidence`; it is copied.

    Raises
    ------
    ValueError
        If columns do not fit the specification or each other.
    """
    columns, state = saved.columns, GrowthState(specification)
    _check_columns(specification, columns)
    state.answers, state.asked = saved.answers, saved.asked
    state._warmup = np.array(columns["warmup"])
    later = columns["later"].tolist()
    state._attributes = int(later[0][0])
    state._later = tuple(
        LaterAttributes(row, first, np.array(columns[f"later.{at}"]))
        for at, (row, first) in enumerate(later[1:])
    )
    state._edges = edges_of(state)
    state._pushed = dict(zip(columns["answered"].tolist(), columns["pushed"].tolist(), strict=True))
    live, contours, codes = state._live, columns["contours"], columns["codes"]
    if (live.table.intern(contours) != np.arange(len(contours))).any():
        raise ValueError("two contours are the same")
    state._warmup_parts = UncertainCells.restored(columns, "warmup_parts", *codes.shape).parts
    live._parts = dict(UncertainCells.restored(columns, "parts", *codes.shape).parts)
    live._edges, live._arities = state._edges, with_codes(live._arities, codes, live._parts)
    live._rows.append_rows(codes, columns["ids"])
    live._rows.askable[:] = columns["askable"]
    if state._memory is not None:
        state._memory.restore(np.array(columns["moments"]))
    tree = {name.removeprefix(_TREE): column for name, column in columns.items() if name.startswith(_TREE)}
    if tree:
        restore_tree(live, tree)
    return state


def _check_columns(specification: Specification, columns: Columns) -> None:
    n, attributes = len(columns["ids"]), len(specification.attributes)
    d = len(columns["contours"])
    shapes = {
        "codes": (n, attributes),
        "ids": (n,),
        "askable": (n,),
        "contours": (d, specification.frame.size),
        "warmup": (min(n, specification.warmup_rows), attributes),
        "answered": (len(columns["pushed"]),),
        "pushed": (len(columns["pushed"]),),
    }
    shapes["later"] = (len(columns["later"]), 2)
    starts = [first for _, first in columns["later"][1:].tolist()] + columns["later"][:1, 0].tolist()
    if sorted(starts) != starts or not starts or starts[-1] > attributes:
        raise ValueError(f"attributes that begin at {starts} are not those of {attributes}")
    for at, (row, first) in enumerate(columns["later"][1:].tolist()):
        shapes[f"later.{at}"] = (min(n - row, specification.warmup_rows), starts[at + 1] - first)
    if specification.memory_rows is not None:
        shapes["moments"] = (n,)
    for name, shape in shapes.items():
        if columns[name].shape != shape:
            raise ValueError(f"column {name} has the shape {columns[name].shape}, must be {shape}")
    for name, bound in (("ids", d), ("pushed", d), ("answered", n), ("codes", np.iinfo(np.int16).max)):
        _check_range(name, columns[name], 0, bound)


_NODE_COLUMNS: Final = (
    "attribute", "code", "depth", "count", "open", "stop", "first", "judged", "gain_lower", "gain_upper", "contested",
    "silent", "theta", "belief", "plausibility",
)  # fmt: skip


def saved_tree(live: LiveTree) -> dict[str, NDArray[Any]]:
    """Return the columns of the tree as of the last look; empty if there was none.

    - For each node, in pre-order: the columns of `NodeColumns`, with ``rivals`` as int8; ``above``, the index of its
      parent; and ``kept``, whether it has counts.
    - For each node with counts: ``used``, the number of contours in its block, and the blocks, concatenated in
    ``pool``;
      for nodes at the greatest depth these are ``deep_used`` and ``deep_pool``.
    - For each row: ``after``, its link in the list of a leaf.
    - ``changed``: the rows whose label changed since the look; ``before``: their contour, and whether they were open.
    - ``widths`` of the layout, and ``taken``, the number of rows in the tree.
    """
    tree = live._tree
    if tree is None:
        return {}
    nodes = tree.nodes
    order, above = nodes.preorder(tree.root)
    blocks = nodes.block[order]
    deep = nodes.depth[order] >= tree._deepest
    columns: dict[str, NDArray[Any]] = {name: getattr(nodes, name)[order] for name in _NODE_COLUMNS}
    columns |= {
        "rivals": nodes.rivals[order].view(np.int8),
        "above": above.astype(np.int32),
        "kept": blocks >= 0,
        "after": live._rows.leaf_links,
        "changed": np.fromiter(live._before, np.int32, len(live._before)),
        "before": np.array(list(live._before.values()), np.int32).reshape(-1, 2),
        "widths": np.array(tree.layout.widths, np.int64),
        "taken": np.array([live._taken], np.int64),
    }
    for name, tally, mine in (("", tree._tally, ~deep), ("deep_", tree._deep_tally, deep)):
        used, pool = _packed_blocks(tally, blocks[mine & (blocks >= 0)])
        columns |= {f"{name}used": used, f"{name}pool": pool}
    return columns


def restore_tree(live: LiveTree, columns: Columns) -> None:
    """Restore a saved tree in a `LiveTree` that has none; raise `ValueError` if the columns contradict each other."""
    for name, shape in (("widths", (len(live._arities),)), ("taken", (1,))):
        if columns[name].shape != shape:
            raise ValueError(f"column {name} has the shape {columns[name].shape}, must be {shape}")
    taken = int(columns["taken"][0])
    layout = Layout(tuple(columns["widths"].tolist()), live._cuts)
    tree = GrowingTree(live._rows, live.table, layout, live._rules, live._small)
    _check_tree(live, tree, columns, taken)
    live._rows.leaf_links[:] = columns["after"]
    numbers = _restore_nodes(tree, columns)
    deep = columns["depth"] >= tree._deepest
    for name, tally, mine in (("", tree._tally, ~deep), ("deep_", tree._deep_tally, deep)):
        with_counts = numbers[mine & columns["kept"]]
        tree.nodes.block[with_counts] = _unpacked_blocks(
            tally, columns[f"{name}used"], columns[f"{name}pool"]
        )
    changed, before = columns["changed"].tolist(), columns["before"].tolist()
    live._before = {row: (known, bool(was)) for row, (known, was) in zip(changed, before, strict=True)}
    live._tree, live._taken = tree, taken


def _restore_nodes(tree: GrowingTree, columns: Columns) -> Ids:
    """Create the nodes, in pre-order; return their numbers."""
    nodes, attribute, above, code = tree.nodes, columns["attribute"], columns["above"], columns["code"]
    fresh = np.full(above.size - 1, NONE, np.int32)
    numbers: Ids = np.append(np.int32(tree.root), nodes.add_leaves(fresh, code[1:], columns["depth"][1:]))
    nodes.parent[numbers[1:]] = numbers[above[1:]]
    for name in _NODE_COLUMNS:
        getattr(nodes, name)[numbers] = columns[name]
    nodes.rivals[numbers] = columns["rivals"].view(np.uint8)
    inner = attribute >= 0
    nodes.split_leaves(numbers[inner], np.array(attribute[inner]))
    nodes.kid[nodes.kids[nodes.parent[numbers[1:]]] + code[1:]] = numbers[1:]
    return numbers


def _packed_blocks(tally: ContourCounts, blocks: Ids) -> tuple[Ids, Ids]:
    """Return the number of contours used in each block, and the blocks trimmed to that width, concatenated."""
    used = tally._used[blocks]
    at, length = _block_places(used, tally.layout.slot_count)
    pool = np.zeros(length, np.int32)
    stored = tally._pool, tally._at[blocks], tally._width[blocks]
    copy_blocks(*stored, pool, at, used, used, tally.layout.slot_count)
    return used, pool


def _unpacked_blocks(tally: ContourCounts, used: Ids, pool: Ids) -> Ids:
    """Return new blocks with the contents that `_packed_blocks` returned."""
    used, pool = np.array(used, np.int32), np.array(pool, np.int32)  # kernels need writable memory
    slots = tally.layout.slot_count
    blocks = tally.open_blocks(used.size)
    at, _ = _block_places(used, slots)
    tally._widen_blocks(blocks, used)
    tally._used[blocks] = used
    stored = tally._pool, tally._at[blocks], tally._width[blocks]
    copy_blocks(pool, at, used, *stored, used, slots)
    some = used > 0
    if some.any():
        starts = at[some, np.newaxis] + used[some, np.newaxis] * np.arange(slots + 1)
        tally.size[blocks[some]] = np.add.reduceat(pool, starts.ravel()).reshape(starts.shape)[:, 1:]
    return blocks


def _block_places(used: Ids, slots: int) -> tuple[Ints, int]:
    """Return the start of each block, and the end of the last one."""
    ends = np.cumsum(used.astype(np.int64) * (1 + slots))
    return ends - used.astype(np.int64) * (1 + slots), int(ends[-1]) if ends.size else 0


def _check_tree(live: LiveTree, tree: GrowingTree, columns: Columns, taken: int) -> None:
    """Raise `ValueError` if saved columns are inconsistent, since the compiled loops do not check bounds."""
    n, m, contours, nodes = live.count, columns["above"].size, live.table.size, tree.nodes
    widths = nodes.width
    _check_range("taken", columns["taken"], 0, n + 1)
    for name in _NODE_COLUMNS:
        if columns[name].shape != (m, *getattr(nodes, name).shape[1:]):
            raise ValueError(f"column {name} has the shape {columns[name].shape}")
    for name, shape in (
        ("rivals", (m, nodes.rivals.shape[1])),
        ("kept", (m,)),
        ("after", (n,)),
        ("before", (columns["changed"].size, 2)),
    ):
        if columns[name].shape != shape:
            raise ValueError(f"column {name} has the shape {columns[name].shape}, must be {shape}")
    _check_range("after", columns["after"], NONE, n)
    _check_range("first", columns["first"], NONE, n)
    _check_range("changed", columns["changed"], 0, max(taken, 1))
    _check_range("before", columns["before"], 0, max(contours, 2))
    _check_range("attribute", columns["attribute"], NONE, widths.size)
    above, code = columns["above"], columns["code"]
    if not m or above[0] != NONE or (above[1:] >= np.arange(1, m)).any():
        raise ValueError("nodes are not in pre-order")
    _check_range("above", above[1:], 0, m)
    split = columns["attribute"][above[1:]]
    if (split < 0).any() or (code[1:] < 0).any() or (code[1:] >= widths[split]).any():
        raise ValueError("a node is not a child of its parent")
    deep: Bools = columns["depth"] >= tree._deepest
    for name, slots, mine in (("", tree.layout.slot_count, ~deep), ("deep_", 1, deep)):
        used, pool = columns[f"{name}used"], columns[f"{name}pool"]
        _check_range(f"{name}used", used, 0, contours + 1)
        if (
            used.size != np.count_nonzero(columns["kept"] & mine)
            or pool.size != _block_places(used, slots)[1]
        ):
            raise ValueError(f"{used.size} blocks of {pool.size} numbers do not fit the nodes")


def _check_range(name: str, column: NDArray[Any], low: int, end: int) -> None:
    if column.size and not (column.min() >= low and column.max() < end):
        raise ValueError(f"column {name} has numbers outside [{low}, {end})")
