"""Compiled: what a member says of rows (theory §10.3, §10.4)."""

import numpy as np

from quercus.trees.learners.gaussian import FARTHEST, LOG_SQRT_2PI
from quercus.trees.likelihood.solver.compiled import compiled
from quercus.trees.memory_forest.draws import LEFT, PLACES, RIGHT, keyed
from quercus.trees.memory_forest.nodes import Bools, Codes, Floats, Kinds, goes_left


@compiled
def add_opinions(
    codes: Codes, named: Bools, nodes: Kinds, opinions: Floats, key: np.uint64,
    weight: float, level: float, said: Floats,
) -> None:  # fmt: skip
    """Add to `said` (m, 3, l) what a member says of m rows: estimate, belief and plausibility, times `weight`.

    What a leaf of n rows believes is discounted to the reliability ``level^(1/n)``.
    """
    K, l = named.shape[0], said.shape[2]
    for i in range(codes.shape[0]):
        node, here = 0, key
        while nodes[0, node] >= 0:
            k = nodes[0, node]
            mask = here
            if named[k]:
                mask = keyed(keyed(here, PLACES + K + k), nodes[1, node])
            if goes_left(np.int64(codes[i, k]), named[k], nodes[1, node], mask):
                here = keyed(here, LEFT)
                node += 1
            else:
                here = keyed(here, RIGHT)
                node += nodes[2, node]
        sure = weight * (level if nodes[3, node] == 1 else level ** (1.0 / nodes[3, node]))
        opinion = nodes[2, node]
        for c in range(l):
            said[i, 2, c] += weight - sure
        if opinion < l:
            said[i, 0, opinion] += weight
            said[i, 1, opinion] += sure
            said[i, 2, opinion] += sure
        else:
            for c in range(l):
                said[i, 0, c] += weight * opinions[opinion - l, 0, c]
                said[i, 1, c] += sure * opinions[opinion - l, 1, c]
                said[i, 2, c] += sure * opinions[opinion - l, 2, c]


@compiled
def add_densities(values: Floats, means: Floats, deviations: Floats, logs: Floats) -> None:
    """Add ``Σ_k ln φ(x_k; μ_kc, σ_kc)`` of rows (m, K), missing values left out, to `logs` (m, l)."""
    constant = np.log(deviations) + LOG_SQRT_2PI
    for i in range(values.shape[0]):
        for k in range(values.shape[1]):
            x = values[i, k]
            if np.isnan(x):
                continue
            for c in range(logs.shape[1]):
                z = (x - means[k, c]) / deviations[k, c]
                logs[i, c] -= 0.5 * min(z * z, FARTHEST) + constant[k, c]
