"""Compiled loops that grow the trees of a committee, from labels that may be uncertain.

A member is an evidential tree of binary tests: ordered codes are compared with a code, names with one name. At
a node the class probabilities ``θ`` maximise the evidential likelihood of its labels (E2M,
theory §2.2), and every row counts for each class by its share ``θ_c pl_c / Σ θ pl``. The gain of a test is the Shannon
entropy by which it reduces these shares, so with precise labels a member is an information-gain tree.
"""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.likelihood.solver.compiled import borrowing, compiled

Codes = NDArray[np.integer]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MEMBER_STEPS = 100  # of E2M at a node, at most
STILL = 1e-6  # a step that moves no probability by more is the last
SURE = 1 - 1e-9  # a node with such a class is a leaf
GAIN_TIE = 1e-12  # bits; a gain must exceed the best so far by more
LITTLE = (
    1e-6  # probability of every class in every node, so that plausible classes remain where θ excludes them
)


@borrowing
def random_below(state: NDArray[np.uint64], below: int) -> int:
    """Return a number in [0, `below`) and move the generator's `state` (1,) on: splitmix64."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return int(z % np.uint64(below))


@compiled
def estimate_shares(rows: Ints, weights: Floats, labels: Floats, share: Floats) -> Floats:
    """Estimate the classes of rows by E2M (theory §2.2): return ``θ`` (l,), and write each row's `share` (n, l)."""
    l = labels.shape[1]
    theta, found = np.full(l, 1.0 / l), np.empty(l)
    for _ in range(MEMBER_STEPS):
        total, moved = 0.0, 0.0
        for c in range(l):
            found[c] = 0.0
        for i in rows:
            chance = 0.0
            for c in range(l):
                chance += theta[c] * labels[i, c]
            for c in range(l):
                share[i, c] = weights[i] * theta[c] * labels[i, c] / chance
                found[c] += share[i, c]
            total += weights[i]
        for c in range(l):
            found[c] /= total
            moved = max(moved, abs(found[c] - theta[c]))
            theta[c] = found[c]
        if moved <= STILL:
            break
    return theta


@borrowing
def entropy_of_counts(counts: Floats, total: float) -> float:
    """Shannon entropy in bits of `counts` (l,) that sum to `total`."""
    bits = 0.0
    for count in counts:
        if count > 0:
            bits -= count / total * np.log2(count / total)
    return bits


@compiled
def best_code(table: Floats, is_ordered: bool) -> tuple[float, int]:
    """Return the gain of the best test on an attribute, in bits, and its code, given shares by code (arity, l).

    The code is -1 if no test has rows on both sides.
    """
    arity, l = table.shape
    whole, left, right, total = np.zeros(l), np.zeros(l), np.empty(l), 0.0
    for c in range(l):
        for a in range(arity):
            whole[c] += table[a, c]
        total += whole[c]
    before = entropy_of_counts(whole, total)
    best, code = -np.inf, -1
    for a in range(arity):
        inside = 0.0
        for c in range(l):
            left[c] = left[c] + table[a, c] if is_ordered else table[a, c]
            right[c] = max(whole[c] - left[c], 0.0)
            inside += left[c]
        if inside <= 0.0 or total - inside <= 1e-9:
            continue
        gain = before - (inside * entropy_of_counts(left, inside)) / total
        gain -= (total - inside) * entropy_of_counts(right, total - inside) / total
        if gain > best + GAIN_TIE:
            best, code = gain, a
    return best, code


@compiled
def choose_test(
    rows: Ints,
    codes: Codes,
    share: Floats,
    ordered: Ints,
    arities: Ints,
    tries: int,
    state: NDArray[np.uint64],
) -> tuple[int, int]:
    """Return attribute and code of the best test among `tries` attributes that can split; -1, -1 if none can."""
    K, l = codes.shape[1], share.shape[1]
    order = np.arange(K)
    best, attribute, code, tried = -np.inf, -1, -1, 0
    most = 0
    for k in range(K):
        most = max(most, arities[k])
    tables = np.empty((most, l))
    for j in range(K):
        other = j + random_below(state, K - j)
        k = order[other]
        order[other], order[j] = order[j], k
        table = tables[: arities[k]]
        for each in range(arities[k]):
            for c in range(l):
                table[each, c] = 0.0
        for i in rows:
            for c in range(l):
                table[codes[i, k], c] += share[i, c]
        gain, a = best_code(table, ordered[k] > 0)
        if a < 0:
            continue
        if gain > best + GAIN_TIE:
            best, attribute, code = gain, k, a
        tried += 1
        if tried == tries:
            break
    return attribute, code


@compiled
def grow_member(
    codes: Codes, labels: Floats, weights: Floats, ordered: Ints, arities: Ints, tries: int, seed: int
) -> tuple[Ints, Ints, Ints, Floats]:
    """Grow one tree from the rows with a weight above 0.

    Parameters
    ----------
    codes : (m, K)
    labels : (m, l) contours
    weights : (m,)
    ordered : (K,) positive if the codes are in order
    arities : (K,) number of codes
    tries : number of attributes tested at a node
    seed : seed of their order

    Returns
    -------
    attribute, code, first : (nodes,) test of each node, -1 for a leaf, and its first child; the second follows it
    theta : (nodes, l)
    """
    rows, others, drawn = np.empty(weights.shape[0], np.int64), np.empty(weights.shape[0], np.int64), 0
    for i in range(weights.shape[0]):
        if weights[i] > 0.0:
            rows[drawn] = i
            drawn += 1
    state = np.empty(1, np.uint64)
    state[0] = np.uint64(seed)
    size, l = 2 * drawn, labels.shape[1]
    attribute, code, first = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    start, end = np.empty(size, np.int64), np.empty(size, np.int64)
    theta, share = np.empty((size, l)), np.empty((labels.shape[0], l))
    start[0], end[0] = 0, drawn
    count, at = 1, 0
    while at < count:
        here = rows[start[at] : end[at]]
        found = estimate_shares(here, weights, labels, share)
        surest = 0.0
        for c in range(l):
            theta[at, c] = found[c]
            surest = max(surest, found[c])
        k, a = -1, -1
        if here.shape[0] > 1 and surest < SURE:
            k, a = choose_test(here, codes, share, ordered, arities, tries, state)
        attribute[at] = code[at] = first[at] = -1
        if k >= 0:
            middle, outside = start[at], 0
            for i in range(start[at], end[at]):
                row = rows[i]
                if codes[row, k] <= a if ordered[k] > 0 else codes[row, k] == a:
                    rows[middle] = row  # at i or before it
                    middle += 1
                else:
                    others[outside] = row
                    outside += 1
            for i in range(outside):
                rows[middle + i] = others[i]
            attribute[at], code[at], first[at] = k, a, count
            start[count], end[count] = start[at], middle
            start[count + 1], end[count + 1] = middle, end[at]
            count += 2
        at += 1
    return attribute[:count], code[:count], first[:count], theta[:count]


@compiled
def mean_probabilities(
    codes: Codes,
    labels: Floats,
    weights: Floats,
    ordered: Ints,
    arities: Ints,
    tries: int,
    pool: Codes,
    known: Floats,
) -> Floats:
    """Return the members' mean estimate ``θ`` of the class of each row of a pool.

    Votes would mislead: if the evidence leaves two classes, each member considers them equally likely, but would vote
    for the first (theory §11).

    Parameters
    ----------
    codes, labels, ordered, arities, tries : see `grow_member`
    weights : (members, m) number of times that each member drew each row
    pool : (p, K) codes of the rows to predict
    known : (p, l) their contours: a member gives class c a probability in proportion to ``θ_c pl_c``

    Returns
    -------
    (p, l) probabilities, with sum 1
    """
    l = labels.shape[1]
    mean = np.zeros((pool.shape[0], l))
    worth = np.empty(l)
    for b in range(weights.shape[0]):
        attribute, code, first, theta = grow_member(codes, labels, weights[b], ordered, arities, tries, b)
        for i in range(pool.shape[0]):
            at = 0
            while attribute[at] >= 0:
                k = attribute[at]
                inside = pool[i, k] <= code[at] if ordered[k] > 0 else pool[i, k] == code[at]
                at = first[at] if inside else first[at] + 1
            total = 0.0
            for c in range(l):
                worth[c] = (theta[at, c] + LITTLE) * known[i, c]
                total += worth[c]
            for c in range(l):
                mean[i, c] += worth[c] / (total * weights.shape[0])
    return mean
