"""Pruning of evidential trees: two tests of whether the labels of a node justify the splits below it (theory §3.8).

**Likelihood ratio** of a node and the leaves ``h`` below it: twice what the leaves' own estimates add to the
evidential log likelihood, ``D = 2 (Σ_h ℓ_h(θ̂_h) - ℓ(θ̂))``. With precise labels this is the G statistic. If the
maximiser is not unique, all maximisers have the same likelihood, so ``D`` does not depend on which one was found.

**Chi-square** of a node whose children ``h`` are leaves: ``Δ = Σ_h Σ_c (n_hc - n̂_hc)² / n̂_hc`` as in ID3
(theory §7), with the *expected* class counts ``n_hc = Σ_{i in h} θ̂_c pl_ic / (pl_i · θ̂)``, where ``θ̂`` is that of
the node: what the labels say if the split has no effect, which is the hypothesis of the test. These are the counts of
the EM step at ``θ̂`` (theory §2.2), so over all children they add up to ``n θ̂_c``. The score of child ``h`` is
``n_hc / θ̂_c``, and ``Δ`` is the score test of the split with the information of precise labels in place of the
smaller information of the labels themselves; with uncertain labels it therefore tends to prune too much. Counts by the
children's own ``θ̂`` would treat guesses as evidence: children with labels {A, B} and {A} are explained by A alone, yet
the former may be estimated as B.

Degrees of freedom: ``(leaves - 1)(l - 1)``, for the leaves with an informative label (a vacuous one has the same
plausibility whatever the leaf predicts) and the ``l`` classes that occur: those with a probability above 1e-6 at the
node, or at one of the leaves. A vacuous label counts in neither test.

Notation: ``m`` nodes in pre-order, ``l`` classes, ``d`` contours.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.kernels.likelihood import OCCURS
from quercus.specification.learners import Pruning
from quercus.trees.likelihood.cells import Cells
from quercus.trees.tree.flat import PLAIN, FlatTree
from quercus.trees.tree.node import Stop


def prune_evidential(tree: FlatTree, leaves: Cells, contours: Floats, pruning: Pruning) -> FlatTree:
    """Prune the splits of an evidential tree that its labels do not justify; the module describes the tests.

    Parameters
    ----------
    tree
        A tree whose `theta` are maximum likelihood estimates.
    leaves
        One cell per leaf, in pre-order: how often each contour occurs among its rows.
    contours
        (d, l) contours.
    pruning
        The test and its level.
    """
    return collapse_nodes(
        tree, collapsible_nodes(NodeEvidence.of_leaves(tree.parent, tree.theta, leaves, contours), pruning)
    )


def collapse_nodes(tree: FlatTree, found: Bools) -> FlatTree:
    """Return the tree with the nodes `found` (nodes,) made leaves. No node may have a mass function."""
    fallen = np.zeros(tree.size, dtype=bool)
    for node in np.flatnonzero(found):
        fallen[node + 1 : tree.last_below[node] + 1] = True
    kept = ~fallen
    index = np.cumsum(kept) - 1
    lengths = np.diff(tree.interval_start)
    intervals = np.repeat(kept, lengths)
    columns: dict[str, NDArray[Any]] = {name: getattr(tree, name)[kept] for name in PLAIN}
    columns |= {
        "attribute": np.where(found, -1, tree.attribute)[kept],
        "parent": np.where(tree.parent < 0, -1, index[tree.parent])[kept],
        "undecided": (tree.undecided & ~found)[kept],
        "stop": np.where(found, Stop.PRUNED.value, tree.stop)[kept].astype(np.int8),
        "threshold": np.where(found, np.nan, tree.threshold)[kept],
    }
    return FlatTree(
        **columns,
        interval_start=np.concatenate([[0], np.cumsum(lengths[kept])]),
        interval_attribute=tree.interval_attribute[intervals],
        interval_lower=tree.interval_lower[intervals],
        interval_upper=tree.interval_upper[intervals],
    )


@dataclass(frozen=True, slots=True, eq=False)
class NodeEvidence:
    """A tree, and the evidence in each of its nodes.

    Parameters
    ----------
    parent
        (m,) parent of each node, -1 for the root, which is the first.
    theta
        (m, l) maximum likelihood estimate of each node.
    cells
        One cell per node: how often each contour occurs among its rows.
    contours
        (d, l) contours.
    """

    parent: Ints
    theta: Floats
    cells: Cells
    contours: Floats

    @classmethod
    def of_leaves(cls, parent: Ints, theta: Floats, leaves: Cells, contours: Floats) -> "NodeEvidence":
        """Return the tree whose leaves, in pre-order, have these cells; the cells of inner nodes are their sums."""
        inner = np.bincount(parent[1:], minlength=parent.size) > 0
        d = max(1, len(contours))
        keys = np.repeat(np.flatnonzero(~inner), np.diff(leaves.start)) * d + leaves.ids
        counts, found = leaves.counts, [(keys, leaves.counts)]
        while keys.size:  # all counts move one level up, and equal keys are summed
            above = parent[keys // d]
            going = above >= 0
            keys, counts = _merge_keys(above[going] * d + keys[going] % d, counts[going])
            found.append((keys, counts))
        keys, counts = _merge_keys(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
        start = np.searchsorted(keys, np.arange(parent.size + 1) * d).astype(np.int64)
        return cls(parent, theta, Cells(start, (keys % d).astype(np.int32), counts), contours)

    @property
    def is_inner(self) -> Bools:
        """(m,) whether each node is split."""
        inner: Bools = np.bincount(self.parent[1:], minlength=self.parent.size) > 0
        return inner

    def nodes_by_depth(self) -> list[Ints]:
        """Return the nodes of each depth, the root first."""
        depth = np.zeros(self.parent.size, dtype=np.int64)
        for node, parent in enumerate(self.parent[1:].tolist(), start=1):
            depth[node] = depth[parent] + 1
        order = np.argsort(depth, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)

    def informative_labels(self) -> tuple[Ints, Floats, Floats]:
        """Return the informative labels: node (t,), contour (t, l), and number of rows with it there (t,).

        Each contour is scaled to maximum 1: a factor has no meaning, and products of tiny plausibilities would
        underflow.
        """
        node = np.repeat(np.arange(self.parent.size), np.diff(self.cells.start))
        says = (self.contours.min(axis=1) < self.contours.max(axis=1))[self.cells.ids]
        contours = self.contours / self.contours.max(axis=1, keepdims=True)
        return node[says], contours[self.cells.ids[says]], self.cells.counts[says].astype(np.float64)


def collapsible_nodes(tree: NodeEvidence, pruning: Pruning) -> Bools:
    """Return which inner nodes become leaves, (m,), found from the leaves up.

    The nodes below such a node are removed with it, whatever their own result.
    """
    if pruning.kind == "likelihood":
        return _rejected_by_likelihood(tree, pruning.level)
    return _rejected_by_chi_square(tree, pruning.level)


def log_likelihoods(tree: NodeEvidence) -> Floats:
    """Return ``ℓ(θ̂)`` of every node, (m,), in nats, of `NodeEvidence.informative_labels`."""
    node, contours, times = tree.informative_labels()
    values = times * np.log((contours * tree.theta[node]).sum(axis=1))
    return _sums_by_group(node, values, tree.parent.size)


def _rejected_by_likelihood(tree: NodeEvidence, level: float) -> Bools:
    own, inner, parent = log_likelihoods(tree), tree.is_inner, tree.parent
    informed = np.bincount(tree.informative_labels()[0], minlength=parent.size) > 0
    occurs = (tree.theta > OCCURS) & informed[:, np.newaxis]
    below = np.where(inner, 0.0, own)  # sum of the likelihoods of the leaves below
    leaves = np.where(inner, 0, informed)
    classes = np.where(inner[:, np.newaxis], False, occurs)
    found = np.zeros(parent.size, dtype=bool)
    for nodes in reversed(tree.nodes_by_depth()):
        split = nodes[inner[nodes]]
        classes[split] |= occurs[split]
        freedom = (leaves[split] - 1) * (classes[split].sum(axis=1) - 1)
        gone = split[_is_accepted(2 * (below[split] - own[split]), freedom, level)]
        found[gone] = True
        below[gone], leaves[gone], classes[gone] = own[gone], informed[gone], occurs[gone]
        here = nodes[parent[nodes] >= 0]
        np.add.at(below, parent[here], below[here])
        np.add.at(leaves, parent[here], leaves[here])
        np.logical_or.at(classes, parent[here], classes[here])
    return found


def expected_counts(tree: NodeEvidence) -> Floats:
    """Return the expected number of rows of each class in every node, given its parent's ``θ̂``, (m, l).

    The root has no parent, so its own ``θ̂`` is used. Vacuous labels are left out.
    """
    node, contours, times = tree.informative_labels()
    above = np.where(tree.parent < 0, 0, tree.parent)[node]
    shares = contours * tree.theta[above]
    shares *= (times / shares.sum(axis=1))[:, np.newaxis]
    return np.stack([_sums_by_group(node, column, tree.parent.size) for column in shares.T], axis=1)


def _rejected_by_chi_square(tree: NodeEvidence, level: float) -> Bools:
    counts, inner, parent = expected_counts(tree), tree.is_inner, tree.parent
    above = parent[1:]
    totals = np.zeros_like(counts)
    np.add.at(totals, above, counts[1:])
    rows = totals.sum(axis=1, keepdims=True)
    share = np.divide(totals, rows, out=np.zeros_like(totals), where=rows > 0)
    occurs = share > OCCURS
    wanted = counts[1:].sum(axis=1, keepdims=True) * share[above]
    off = np.divide(
        (counts[1:] - wanted) ** 2, wanted, out=np.zeros_like(wanted), where=occurs[above] & (wanted > 0)
    )
    deviation = _sums_by_group(above, off.sum(axis=1), parent.size)
    populated = np.bincount(above[counts[1:].any(axis=1)], minlength=parent.size)
    chance = inner & _is_accepted(deviation, (populated - 1) * (occurs.sum(axis=1) - 1), level)
    found = np.zeros(parent.size, dtype=bool)
    holding = np.zeros(parent.size, dtype=bool)  # whether a child stays split
    for nodes in reversed(tree.nodes_by_depth()):
        found[nodes] = chance[nodes] & ~holding[nodes]
        standing = nodes[inner[nodes] & ~found[nodes] & (parent[nodes] >= 0)]
        holding[parent[standing]] = True
    return found


def _sums_by_group(groups: Ints, values: Floats, count: int) -> Floats:
    return np.bincount(groups, weights=values, minlength=count).astype(np.float64)


def _merge_keys(keys: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Return the distinct keys, ascending, and the sum of the counts of each."""
    distinct, at = np.unique(keys, return_inverse=True)
    sums = np.zeros(distinct.size, dtype=counts.dtype)
    np.add.at(sums, at, counts)
    return distinct, sums


def _is_accepted(statistic: Floats, freedom: Ints, level: float) -> Bools:
    """Return where a statistic does not reject "no effect", (s,); without degrees of freedom none does."""
    from scipy.special import chdtrc  # noqa: PLC0415  (11 MB of memory that most models do not need)

    free = freedom > 0
    chance = chdtrc(np.where(free, freedom, 1), np.maximum(statistic, 0.0))
    accepted: Bools = ~free | (chance > level)
    return accepted
