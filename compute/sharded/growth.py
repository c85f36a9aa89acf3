"""One tree of the rows of several workers, the same to the bit as the tree of one process.

The workers hold the rows. Level by level, each counts its own rows by node, slot and contour. The counts of a node go
to one of the workers, which adds them up, decides the node, and computes the predictions of its children. This
process passes the counts on, sends the splits to all workers, and keeps the tree. The amount of data between them
depends on the nodes and not on the rows.
"""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from quercus.belief.errors import InvalidInput, shown
from quercus.compute.errors import ExecutorError, WorkerLostError
from quercus.compute.sharded.shard import DecidedNodes, NextLevel, NodeDecider, Rows, goes_on
from quercus.compute.sharded.workers import ShardWorkers, open_shard_workers
from quercus.specification.compute import EXECUTOR
from quercus.specification.model import Specification
from quercus.trees import FlatTree
from quercus.trees.growth.incremental.arrays import Bools, Floats, Ids, Ints
from quercus.trees.growth.incremental.layout import Layout
from quercus.trees.growth.incremental.reading import flat_tree
from quercus.trees.growth.sample import ContourTable
from quercus.trees.growth.stream import declared_codes
from quercus.trees.likelihood.cells import Cells
from quercus.trees.tree.encoding import cut_counts, edges_in_force

MAX_SHARDS = 1024
MOST_LOSSES = 3
"""Number of times that a tree is begun again because a worker was lost."""


def grow_sharded(
    specification: Specification, shards: Sequence[Rows], executor: str = EXECUTOR.default
) -> FlatTree:
    """Grow the tree of rows that several workers hold.

    Parameters
    ----------
    specification
        Specification of the tree.
    shards
        Functions that return the rows of a shard in blocks, values (n, K) and contours (n, l). Each is called in the
        worker that holds the shard, so a shard may be read where it lies. The tree is that of the rows of all shards in
        order. They are called twice, and again if a worker is lost.
    executor
        Name of an executor; its workers share the shards out.

    Returns
    -------
    FlatTree
        The tree, as `quercus.trees.GrowthState.unpruned_tree` returns it after all rows.

    Raises
    ------
    InvalidInput
        When a shard's rows or the name are wrong, or the specification asks for pruning.
    ExecutorError
        When workers are lost too often.
    """
    if not 1 <= len(shards) <= MAX_SHARDS:
        raise InvalidInput("shards", f"are {len(shards)}, must be 1 to {MAX_SHARDS}")
    if specification.pruning is not None:
        raise InvalidInput(
            "pruning",
            f"is {shown(specification.pruning)}, must be None: shards grow the whole tree of all rows",
        )
    for _ in range(MOST_LOSSES + 1):
        try:
            with open_shard_workers(executor, specification, shards) as workers:
                return _Growth(specification, workers).tree()
        except WorkerLostError as error:
            lost = error
    raise ExecutorError(
        f"executor {executor}: lost workers of a tree {MOST_LOSSES + 1} times ({lost})"
    ) from lost


def deal(values: Floats, contours: Floats, shards: int) -> list[Rows]:
    """Divide rows into a number of shards of equal size, to be sent to workers."""
    bounds = np.linspace(0, len(values), shards + 1).astype(np.int64).tolist()
    return [partial(_given_rows, values[a:b], contours[a:b]) for a, b in pairwise(bounds)]


def _given_rows(values: Floats, contours: Floats) -> list[tuple[Floats, Floats]]:
    return [(values, contours)]


class _Growth:
    def __init__(self, specification: Specification, workers: ShardWorkers) -> None:
        self._specification = specification
        self._workers = workers

    def tree(self) -> FlatTree:
        """Return the tree."""
        spec, workers = self._specification, self._workers
        warmup = np.empty((0, len(spec.attributes)))
        for each in range(workers.shards):
            if len(warmup) < spec.warmup_rows:
                warmup = np.concatenate([warmup, workers.call(each, "first_values")])
        edges = edges_in_force(spec, warmup)
        self._forget_older(workers.call_all("encode", [(edges,)] * workers.shards))
        seen = np.max(workers.call_all("code_counts", [()] * workers.shards), axis=0)
        arities = tuple(np.maximum(seen, declared_codes(spec)).tolist())
        layout = Layout((1,) * len(arities), cut_counts(spec.attributes)).widened_for(arities)
        table, counts = self._agree_on_contours(layout)
        tree = NodeDecider(spec, table.contours, layout)
        if counts.sum():
            self._grow_levels(tree, counts)
        return flat_tree(tree, edges)

    def _forget_older(self, labelled: Sequence[int]) -> None:
        """Keep the last labelled rows, as many as the memory holds, and all others; `labelled` counts them by shard."""
        memory = self._specification.memory_rows
        if memory is None or sum(labelled) <= memory:
            return
        before = np.cumsum([0, *labelled[:-1]])
        forgotten = np.clip(sum(labelled) - memory - before, 0, labelled)
        self._workers.call_all("forget", [(count,) for count in forgotten.tolist()])

    def _agree_on_contours(self, layout: Layout) -> tuple[ContourTable, Ints]:
        """Number the contours of all shards; return them and how often each occurs."""
        table, workers = ContourTable(self._specification.frame.size), self._workers
        labels = workers.call_all("labels", [()] * workers.shards)
        numbers = [table.intern(contours) for contours, _ in labels]
        workers.call_all("agree", [(table.contours, each, layout) for each in numbers])
        counts = np.zeros(table.size, np.int64)
        for each, (_, times) in zip(numbers, labels, strict=True):
            counts[each] += times
        return table, counts

    def _grow_levels(self, tree: NodeDecider, counts: Ints) -> None:
        workers, root = self._workers, np.array([tree.root], np.int32)
        here = np.flatnonzero(counts).astype(np.int32)
        going = tree.predict(root, Cells(np.array([0, here.size]), here, counts[here]))
        frontier = root[going]
        free = np.ones((frontier.size, len(tree.layout.widths)), bool)
        split, parent, code = (
            np.empty(0, np.int32),
            np.zeros(frontier.size, np.int64),
            np.zeros(frontier.size, np.int64),
        )
        depth = 0
        while frontier.size:
            share = np.linspace(0, frontier.size, workers.shards + 1).astype(np.int64)
            parts = workers.call_all(
                "count", [(NextLevel(split, parent, code, free, share),)] * workers.shards
            )
            spans = list(pairwise(share.tolist()))
            tasks = [
                (
                    depth,
                    free[a:b],
                    tree.nodes.count[frontier[a:b]].astype(np.int64),
                    [part[s] for part in parts],
                )
                for s, (a, b) in enumerate(spans)
            ]
            decided = [nodes_of_part for each in workers.call_all("decide", tasks) for nodes_of_part in each]
            frontier, split, parent, code, free = _enter_decided(tree, frontier, free, decided)
            depth += 1


def _enter_decided(
    tree: NodeDecider, frontier: Ids, free: Bools, decided: Sequence[DecidedNodes]
) -> tuple[Ids, Ids, Ints, Ints, Bools]:
    """Enter decided nodes and their children into the tree; return the data of the next level."""
    nodes = tree.nodes
    joined: dict[str, Any] = {
        name: np.concatenate([each.nodes[name] for each in decided]) for name in decided[0].nodes
    }
    split: Ids = joined.pop("attribute")
    for name, values in joined.items():
        getattr(nodes, name)[frontier] = values
    nodes.split_leaves(frontier[split >= 0], split[split >= 0])
    before = np.cumsum([0, *(each.nodes["attribute"].size for each in decided)])[:-1]
    parent = np.concatenate([each.parent + low for each, low in zip(decided, before, strict=True)])
    code = np.concatenate([each.code for each in decided])
    above = frontier[parent]
    born = nodes.add_leaves(above, code.astype(np.int32), nodes.depth[above] + 1)
    nodes.kid[nodes.kids[above] + code] = born
    for name in decided[0].children:
        getattr(nodes, name)[born] = np.concatenate([each.children[name] for each in decided])
    going = goes_on(nodes.stop[born])
    left = free[parent[going]]
    spent = tree.layout.spent_attributes[split[parent[going]]]
    left[np.flatnonzero(spent >= 0), spent[spent >= 0]] = False
    return born[going], split, parent[going], code[going], left
