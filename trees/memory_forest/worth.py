"""The worth of labels to a forest, by strategy (theory §10.5)."""

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.trees.memory_forest.evidence import UNLABELLED, ForestEvidence
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.memory_forest.memories import memory_of


def margin_worth(forest: MemoryForest, rows: Ints) -> Floats:
    """Return 1 minus the margin of the mean estimate of each row (n,), conditioned on what is known of its label.

    All are 0 before the first row is labelled.
    """
    evidence = forest.evidence
    if not len(evidence.labelled):
        return np.zeros(rows.size)
    return 1.0 - _top_margin(conditioned_estimates(forest.theta_of_rows(rows), evidence, rows))


def disagreement_worth(forest: MemoryForest, rows: Ints) -> Floats:
    """Return `margin_worth` plus the mean total variation between the memories' estimates and their mean: (n,)."""
    evidence = forest.evidence
    if not len(evidence.labelled):
        return np.zeros(rows.size)
    memories = forest.memory_estimates(rows)
    weights = np.bincount(memory_of(forest.trees), forest.weights, len(memories))
    theta = conditioned_estimates(np.einsum("m,mnc->nc", weights, memories), evidence, rows)
    apart = np.abs(conditioned_estimates(memories, evidence, rows) - theta)
    disagreement: Floats = 0.5 * np.einsum("m,mnc->n", weights, apart)
    return 1.0 - _top_margin(theta) + disagreement


def _top_margin(theta: Floats) -> Floats:
    falling = np.sort(theta, axis=1)
    return np.asarray(falling[:, -1] - falling[:, -2])


def conditioned_estimates(theta: Floats, evidence: ForestEvidence, rows: Ints) -> Floats:
    """Return estimates `theta` (..., n, l) of rows (n,), conditioned on what is known of their labels."""
    kinds = evidence.kinds[rows]
    partly = np.flatnonzero(kinds != UNLABELLED)
    if partly.size:
        of_these = theta[..., partly, :]
        joint = of_these * evidence.contours.values[kinds[partly]]
        total = joint.sum(axis=-1, keepdims=True)
        theta = theta.copy()
        theta[..., partly, :] = np.where(total > 0.0, joint / np.where(total > 0.0, total, 1.0), of_these)
    return theta
