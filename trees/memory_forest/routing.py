"""Compiled: what a member says of rows (theory §10.4)."""

import numpy as np

from quercus.trees.likelihood.solver.compiled import compiled
from quercus.trees.memory_forest.draws import LEFT, PLACES, RIGHT, keyed
from quercus.trees.memory_forest.nodes import Bools, Codes, Floats, Kinds, goes_left


@compiled
def add_opinions(
    codes: Codes, named: Bools, attribute: Kinds, test: Kinds, skip: Kinds, size: Kinds, opinions: Floats,
    key: np.uint64, weight: float, level: float, said: Floats,
) -> None:  # fmt: skip
    """Add to `said` (m, 3, l) what a member says of m rows: estimate, belief and plausibility, times `weight`.

    What a leaf of n rows believes is discounted to the reliability ``level^(1/n)``.
    """
    K, l = named.shape[0], said.shape[2]
    for i in range(codes.shape[0]):
        node, here = 0, key
        while attribute[node] >= 0:
            k = attribute[node]
            mask = here
            if named[k]:
                mask = keyed(keyed(here, PLACES + K + k), test[node])
            if goes_left(np.int64(codes[i, k]), named[k], test[node], mask):
                here = keyed(here, LEFT)
                node += 1
            else:
                here = keyed(here, RIGHT)
                node += skip[node]
        sure = weight * (level if size[node] == 1 else level ** (1.0 / size[node]))
        opinion = skip[node]
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
