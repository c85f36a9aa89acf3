"""Compiled: the predictions of a member (theory §10.3, §10.4)."""

import numpy as np

from quercus.trees.learners.gaussian import FARTHEST, LOG_SQRT_2PI
from quercus.trees.likelihood.solver.compiled import borrowing, compiled
from quercus.trees.memory_forest.draws import LEFT, RIGHT, derived_key
from quercus.trees.memory_forest.nodes import Bools, Codes, Floats, Ints, Keys, Kinds, goes_left, names_key


@borrowing
def add_opinions(
    codes: Codes, named: Bools, keys: Keys, nodes: Kinds, opinions: Floats, counts: Ints, weights: Floats,
    level: float, predicted: Floats,
) -> None:  # fmt: skip
    """Add the trees' predictions of m rows, times `weights` (trees,), to `predicted` (m, 3, l).

    These are estimate, belief and plausibility, or the estimate alone for `predicted` (m, 1, l). Of a leaf whose n rows
    have one class, the cut at `level` leaves this class ``level^(1/n)`` at least. A tree of weight 0 is skipped. See
    `quercus.trees.memory_forest.growing.grow`.
    """
    l, by_name = predicted.shape[2], False
    for a in range(named.shape[0]):
        by_name = by_name or named[a]
    first, first_opinion = 0, 0
    for m in range(keys.shape[0]):
        tree, weight = nodes[first : first + counts[m, 0]], weights[m]
        for i in range(codes.shape[0] if weight > 0.0 else 0):
            node, here, k = 0, keys[m], tree[0, 0]
            while k >= 0:
                test, code = tree[node, 1], np.int64(codes[i, np.uint32(k)])
                on_left = (test & 1) == 1 if code == 0 else code <= test >> 1
                if by_name:
                    if named[k]:
                        on_left = goes_left(code, True, test, names_key(here, test))
                    here = derived_key(here, LEFT if on_left else RIGHT)
                node += 1 if on_left else tree[node, 2]
                k = tree[node, 0]
            opinion, size = tree[node, 2], tree[node, 3]
            own = first_opinion + opinion - l
            if opinion < l:
                predicted[i, 0, opinion] += weight
            else:
                for c in range(l):
                    predicted[i, 0, c] += weight * opinions[own, 0, c]
            if predicted.shape[1] == 1:
                continue
            if opinion < l:
                sure = weight * (level if size == 1 else level ** (1.0 / size))
                predicted[i, 1, opinion] += sure
                for c in range(l):
                    predicted[i, 2, c] += weight if c == opinion else weight - sure
            else:
                for c in range(l):
                    predicted[i, 1, c] += weight * opinions[own, 1, c]
                    predicted[i, 2, c] += weight * opinions[own, 2, c]
        first += counts[m, 0]
        first_opinion += counts[m, 1]


@compiled
def add_densities(values: Floats, means: Floats, deviations: Floats, logs: Floats) -> None:
    """Add ``Σ_k ln φ(x_k; μ_kc, σ_kc)`` of rows (m, K), without missing values, to `logs` (m, l).

    Of each number the greatest one over the classes is left out, which tells no class from another. So a number far
    from all classes does not drown what others say, and one that is as dense under all adds nothing to the last bit.
    """
    constant, own = np.empty(deviations.shape), np.empty(deviations.shape[1])
    for k in range(deviations.shape[0]):
        for c in range(deviations.shape[1]):
            constant[k, c] = np.log(deviations[k, c]) + LOG_SQRT_2PI
    for i in range(values.shape[0]):
        for k in range(values.shape[1]):
            x = values[i, k]
            if np.isnan(x):
                continue
            least = np.inf
            for c in range(logs.shape[1]):
                z = (x - means[k, c]) / deviations[k, c]
                own[c] = 0.5 * min(z * z, FARTHEST) + constant[k, c]
                least = min(least, own[c])
            for c in range(logs.shape[1]):
                logs[i, c] -= own[c] - least
