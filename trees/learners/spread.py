"""The leaves that rows with uncertain values may reach, many rows at once (theory §4)."""

from dataclasses import dataclass

import numpy as np

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.specification.attributes import Nominal
from quercus.trees.learners.cells import UncertainValues
from quercus.trees.tree.encoding import Encoder, declared_count
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.splits import ABOVE, BELOW, NO_NUMBER


@dataclass(frozen=True, eq=False)
class BranchValues:
    """The values that lead to each node from its parent.

    Parameters
    ----------
    flat
        The tree.
    low, high
        (nodes,) the values in ``[low, high)`` lead to the node; tests of the same attribute further up restrict them.
        A nominal value is given by its index.
    missing
        (nodes,) whether only missing values lead to the node.
    """

    flat: FlatTree
    low: Floats
    high: Floats
    missing: Bools

    @classmethod
    def of(cls, flat: FlatTree, encoder: Encoder) -> "BranchValues":
        """Return the branches of a tree with the encoder's codes, and with thresholds on raw numbers."""
        low, high = np.full(flat.size, -np.inf), np.full(flat.size, np.inf)
        missing = np.zeros(flat.size, dtype=bool)
        attribute = np.full(flat.size, -1)
        attribute[1:] = flat.attribute[flat.parent[1:]]
        threshold = np.full(flat.size, np.nan)
        threshold[1:] = flat.threshold[flat.parent[1:]]
        cut = ~np.isnan(threshold)
        high = np.where(cut & (flat.branch == BELOW), threshold, high)
        low = np.where(cut & (flat.branch == ABOVE), threshold, low)
        missing |= cut & (flat.branch == NO_NUMBER)
        for k in np.unique(attribute[~cut & (attribute >= 0)]).tolist():
            here = np.flatnonzero(~cut & (attribute == k))
            code = flat.branch[here]
            low[here], high[here], missing[here] = _values_with_codes(encoder, k, code)
        _narrow_ranges(flat, attribute, low, high)
        return cls(flat, low, high, missing)


def _values_with_codes(encoder: Encoder, k: int, code: Ints) -> tuple[Floats, Floats, Bools]:
    """Return the values of each code (m,) of an attribute."""
    attribute, declared = encoder.attributes[k], declared_count(encoder.attributes[k])
    branch = attribute.missing == "branch"
    missing = (code == declared) & branch
    if isinstance(attribute, Nominal):
        value = (code - (branch & (code > declared))).astype(np.float64)
        return value, value + 1.0, missing
    ends = np.array([-np.inf, *encoder.edges[k], np.inf, np.inf])
    return ends[np.minimum(code, len(ends) - 2)], ends[np.minimum(code + 1, len(ends) - 1)], missing


def _narrow_ranges(flat: FlatTree, attribute: Ints, low: Floats, high: Floats) -> None:
    """Intersect each range with those of tests of the same attribute above, one level at a time."""
    own_low, own_high = low.copy(), high.copy()
    node, above = np.arange(flat.size), flat.parent.copy()
    while node.size:
        climbing = above > 0
        node, above = node[climbing], above[climbing]
        same = attribute[above] == attribute[node]
        some, upper = node[same], above[same]
        low[some] = np.maximum(low[some], own_low[upper])
        high[some] = np.minimum(high[some], own_high[upper])
        above = flat.parent[above]


def row_shares(branches: BranchValues, cells: UncertainValues) -> tuple[Ints, Ints, Floats]:
    """Return the possible ends of rows: row, node, and the row's share, by the weights of the branches on its path.

    Returns
    -------
    rows, nodes, shares
        (ends,) each; the shares of a row sum to 1, and no row has the same node twice.
    """
    flat = branches.flat
    start, below = flat.children
    ranges = cells.ranges()
    width = cells.values.shape[1]
    row, node = np.arange(len(cells)), np.zeros(len(cells), dtype=np.int64)
    share = np.ones(len(cells))
    done: list[tuple[Ints, Ints, Floats]] = []
    while row.size:
        counts = start[node + 1] - start[node]
        entry = np.repeat(np.arange(row.size), counts)
        child = below[_runs_of(start[node], counts)]
        cell = row[entry] * width + flat.attribute[node[entry]]
        at, counts = ranges[0][cell], ranges[0][cell + 1] - ranges[0][cell]
        pair = np.repeat(np.arange(child.size), counts)
        part, to = _runs_of(at, counts), child[pair]
        met = (ranges[1][part] < branches.high[to]) & (ranges[2][part] >= branches.low[to])
        missing = branches.missing[child]
        fits = (np.bincount(pair[met], minlength=child.size) > 0) & ~missing
        has_branch = np.bincount(entry[missing], minlength=row.size) > 0  # for missing values
        open_ = np.where(counts == 0, missing | ~has_branch[entry], fits)  # the children that a row may go to
        weight = np.where(open_, flat.weight[child], 0.0)
        total = np.bincount(entry, weight, row.size)
        ended = total <= 0.0
        done.append((row[ended], node[ended], share[ended]))
        entry, child, weight = entry[open_], child[open_], weight[open_]
        going = total[entry] > 0.0
        entry, child, weight = entry[going], child[going], weight[going]
        row, node, share = row[entry], child, share[entry] * weight / total[entry]
    rows, nodes, shares = (np.concatenate(parts) for parts in zip(*done, strict=True))
    return rows, nodes, shares


def _runs_of(start: Ints, counts: Ints) -> Ints:
    """Return, for each i in turn, the ``counts[i]`` integers from ``start[i]`` on."""
    offset = np.cumsum(counts) - counts
    return np.repeat(start - offset, counts) + np.arange(int(counts.sum()))
