"""Compiled: a member grown from scratch on the rows of its memory (theory §10.2)."""

import numpy as np

from quercus.trees.likelihood.solver.compiled import compiled
from quercus.trees.memory_forest.draws import LEFT, PLACES, RIGHT, keyed
from quercus.trees.memory_forest.nodes import (
    NONE,
    SOLE,
    Bools,
    Codes,
    Floats,
    Ints,
    Kinds,
    Rows,
    choose,
    estimate,
    goes_left,
    runs_of,
)

Columns = tuple[Kinds, Kinds, Kinds, Kinds]
"""attribute, test, skip, count of each node, in pre-order: the left child follows its parent, the right one stands
`skip` further on. A leaf has attribute -1, and in `skip` the number of its opinion: below l, that class alone."""


@compiled
def grow(
    codes: Codes, named: Bools, rows: Rows, kinds: Kinds, contours: Floats, beliefs: Floats, sole: Kinds,
    key: np.uint64, table: Floats,
) -> tuple[int, Kinds, Kinds, Kinds, Kinds, int, Floats]:  # fmt: skip
    """Grow a member.

    Parameters
    ----------
    codes : (all rows, K)
    named : (K,) whether the attribute is nominal
    rows : (n,) of the memory, in the order of their contours; left in the order of the leaves
    kinds : (all rows,) the contour of each
    contours, beliefs : (contours, l) plausibilities, 1 at most; beliefs of the single classes
    sole : (contours,) the class of a precise contour, else -1
    key : of the root
    table : of `quercus.trees.memory_forest.nodes.log_table`

    Returns
    -------
    number of nodes, the columns of the nodes, number of opinions, and these (opinions, 3, l): of each leaf that is not
    pure the estimate, the mean belief and the mean plausibility of its rows
    """
    n, l = rows.shape[0], contours.shape[1]
    attribute, test = np.empty(2 * n, np.int32), np.empty(2 * n, np.int32)
    skip, size = np.empty(2 * n, np.int32), np.empty(2 * n, np.int32)
    opinions = np.empty((n, 3, l))
    starts, ends, parents = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    keys = np.empty(n + 1, np.uint64)
    most = min(n, contours.shape[0])
    kind, count, left = np.empty(most, np.int32), np.empty(most, np.int64), np.empty(most, np.int64)
    share, theta = np.empty((most, l)), np.empty(l)
    order, buffer = np.empty(named.shape[0], np.int64), np.empty(n, np.int32)
    starts[0], ends[0], parents[0], keys[0] = 0, n, NONE, key
    waiting, nodes, said = 1, 0, 0
    while waiting > 0:
        waiting -= 1
        start, end, here = starts[waiting], ends[waiting], keys[waiting]
        node = nodes
        nodes += 1
        if parents[waiting] >= 0:
            skip[parents[waiting]] = node - parents[waiting]
        runs = runs_of(rows, start, end, kinds, kind, count)
        precise = estimate(runs, kind, count, contours, sole, theta, share)
        top = np.argmax(theta)
        k, chosen = NONE, 0
        if end - start > 1 and theta[top] < SOLE:
            k, chosen = choose(
                codes, named, rows, start, end, here, runs, count, precise, share, table, order, left
            )
        attribute[node], test[node], size[node] = k, chosen, end - start
        if k == NONE:
            if theta[top] >= SOLE:
                skip[node] = top
            else:
                skip[node] = l + said
                opine(runs, kind, count, contours, beliefs, theta, opinions[said])
                said += 1
            continue
        mask = keyed(keyed(here, PLACES + named.shape[0] + k), chosen)
        middle = partition(codes, rows, start, end, k, named[k], chosen, mask, buffer)
        starts[waiting], ends[waiting], parents[waiting] = middle, end, node
        keys[waiting] = keyed(here, RIGHT)
        starts[waiting + 1], ends[waiting + 1], parents[waiting + 1] = start, middle, NONE
        keys[waiting + 1] = keyed(here, LEFT)
        waiting += 2
    return nodes, attribute, test, skip, size, said, opinions


@compiled
def opine(
    runs: int, kind: Kinds, count: Ints, contours: Floats, beliefs: Floats, theta: Floats, opinion: Floats
) -> None:
    """Write the estimate of a leaf, and the mean belief and plausibility of its rows."""
    total = 0.0
    opinion[:] = 0.0
    for d in range(runs):
        total += count[d]
        for c in range(theta.shape[0]):
            opinion[1, c] += count[d] * beliefs[kind[d], c]
            opinion[2, c] += count[d] * contours[kind[d], c]
    for c in range(theta.shape[0]):
        opinion[0, c] = theta[c]
        opinion[1, c] /= total
        opinion[2, c] /= total


@compiled
def partition(
    codes: Codes, rows: Rows, start: int, end: int, k: int, named: bool, test: int, key: np.uint64,
    buffer: Rows,
) -> int:  # fmt: skip
    """Put the rows that go left first, both sides in their order; return where the right ones begin."""
    middle, others = start, 0
    for i in range(start, end):
        row = rows[i]
        if goes_left(np.int64(codes[row, k]), named, test, key):
            rows[middle] = row
            middle += 1
        else:
            buffer[others] = row
            others += 1
    for i in range(others):
        rows[middle + i] = buffer[i]
    return middle
