"""Trees grown a second time, row by row, with nothing of the package: ID3 and C4.5 as the books define them.

A row is (values, shares of the classes, weight); a missing value is None.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import log2

TIE = 1e-9


@dataclass(frozen=True)
class Rules:
    arities: tuple[int | None, ...]  # number of values, None for a number
    fractional: bool = False  # C4.5: parts of rows go down every branch; else missing is a branch of its own
    ratio: bool = False
    average_gain: bool = False
    penalty: bool = False
    min_branch: float = 0.0
    min_side: float = 0.0
    min_instances: float = 2.0
    stop_without_gain: bool = True
    middle: bool = True  # of tied cuts, the middle one by rows; C4.5's program takes the lowest


def bits(parts):
    total = sum(parts)
    return -sum(p / total * log2(p / total) for p in parts if p > 0)


def counts(rows):
    return [sum(weight * shares[c] for _, shares, weight in rows) for c in range(len(rows[0][1]))]


def size(rows):
    return sum(weight for _, _, weight in rows)


def code(value, cut):
    return value if cut is None else int(value >= cut)


def cuts(rows, k):
    known = sorted({values[k] for values, _, _ in rows if values[k] is not None})
    found = [(a + b) / 2 for a, b in pairwise(known)]
    return found or (known if any(values[k] is None for values, _, _ in rows) else [])


def groups(rows, k, cut, rules):
    missing = 2 if rules.arities[k] is None else rules.arities[k]
    known = [row for row in rows if row[0][k] is not None]
    parts = {}
    for row in known:
        parts.setdefault(code(row[0][k], cut), []).append(row)
    lost = [row for row in rows if row[0][k] is None]
    if not rules.fractional and lost:
        parts[missing] = lost
    return dict(sorted(parts.items())), lost


def information_gain(rows, parts):
    known = [row for part in parts.values() for row in part]
    inside = sum(size(part) / size(known) * bits(counts(part)) for part in parts.values())
    return size(known) / size(rows) * (bits(counts(known)) - inside)


def is_enough(rows, parts, k, rules):
    least = rules.min_branch
    if rules.arities[k] is None:
        known = sum(size(part) for part in parts.values())
        least = max(least, min(25.0, rules.min_side * known / len(rows[0][1])))
    return sum(size(part) >= least - TIE for part in parts.values()) >= 2


def attribute_test(rows, k, rules):
    """Gain and worth of the best test of attribute k, and its cut; None without one."""
    tests = []
    options = [None] if rules.arities[k] is not None else cuts(rows, k)
    for cut in options:
        parts, lost = groups(rows, k, cut, rules)
        if len(parts) > 1 and is_enough(rows, parts, k, rules):
            tests.append((information_gain(rows, parts), cut, parts, lost))
    if not tests:
        return None
    top = max(gain for gain, *_ in tests)
    tied = [test for test in tests if test[0] >= top - TIE]
    if len(tied) > 1 and rules.middle:
        below = [size(parts[0]) for _, _, parts, _ in tied]
        off = [abs(rows - (below[0] + below[-1]) / 2) for rows in below]
        tied = [test for test, far in zip(tied, off, strict=True) if far <= min(off) + TIE]
    gain, cut, parts, lost = tied[0]
    if rules.penalty and rules.arities[k] is None:
        gain -= log2(len(tests)) / size(rows)
    if not rules.ratio:
        return gain, gain, cut
    spread = [size(part) for part in parts.values()] + ([size(lost)] if rules.fractional and lost else [])
    return gain, gain / bits(spread), cut


def choose(rows, left, rules):
    tests = {k: test for k in left if (test := attribute_test(rows, k, rules))}
    if not tests:
        return None
    if rules.stop_without_gain and max(worth for _, worth, _ in tests.values()) <= TIE:
        return None
    useful = [gain for gain, _, _ in tests.values() if gain >= -TIE]
    bar = sum(useful) / len(useful) if rules.average_gain and useful else float("-inf")
    worths = {k: worth for k, (gain, worth, _) in tests.items() if gain >= bar - TIE}
    best = min(k for k in worths if worths[k] >= max(worths.values()) - TIE)
    return best, tests[best][2]


def grow(rows, rules, left=None):
    """Return (attribute, cut, counts of the classes, children)."""
    left = tuple(range(len(rules.arities))) if left is None else left
    tally = counts(rows)
    if size(rows) < rules.min_instances - TIE or max(tally) >= size(rows) * (1 - TIE):
        return None, None, tally, {}
    choice = choose(rows, left, rules)
    if choice is None:
        return None, None, tally, {}
    k, cut = choice
    parts, lost = groups(rows, k, cut, rules)
    below = left if rules.arities[k] is None else tuple(a for a in left if a != k)
    known = sum(size(part) for part in parts.values())
    children = {}
    for value, part in parts.items():
        share = size(part) / known
        spread = (
            [(values, shares, weight * share) for values, shares, weight in lost] if rules.fractional else []
        )
        children[value] = grow(part + spread, rules, below)
    return k, cut, tally, children


def predict(tree, values, rules):
    """C4.5's class distribution of a row, a missing value spread over the branches."""
    k, cut, tally, children = tree
    total = sum(tally)
    if k is None:
        return [c / total for c in tally]
    if values[k] is not None:
        child = children.get(code(values[k], cut))
        return [c / total for c in tally] if child is None else predict(child, values, rules)
    below = sum(sum(child[2]) for child in children.values())
    parts = [(sum(child[2]) / below, predict(child, values, rules)) for child in children.values()]
    return [sum(share * part[c] for share, part in parts) for c in range(len(tally))]
