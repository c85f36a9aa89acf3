"""The forest of many memories written from theory §10.1 to §10.3 alone, row by row, to compare its ``θ`` with.

Values are numbers, or indices of names of nominal attributes, None where missing. Contours have maximum 1.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Value = float | None
Row = list[Value]
Contour = list[float]

WORD = 2**64
LADDER = (200, 600, 2_000, 6_000, 20_000, 100_000)
BAYES = (600, 2_000, 100_000)


# Draws


def hashed(key: int, number: int) -> int:
    z = (key + (number + 1) * 0x9E3779B97F4A7C15) % WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)


def below(key: int, n: int) -> int:
    return (key >> 32) * n >> 32


def is_heads(key: int) -> bool:
    return key % 2 == 1


def drawn_cut(key: int, low: int, high: int) -> int:
    v = 1
    while low // v != (high - 1) // v:
        v *= 2
    u = low // v * v
    while v > 1:
        c = u + v // 2
        x = max(0, min(c, high) - max(u, low))
        y = max(0, min(u + v, high) - max(c, low))
        if not (y == 0 or (x > 0 and below(hashed(key, c), x + y) < x)):
            u = c
        v //= 2
    return u


def drawn_order(key: int, K: int) -> list[int]:
    order = list(range(K))
    for p in range(K):
        other = p + below(hashed(key, 2 + p), K - p)
        order[p], order[other] = order[other], order[p]
    return order


# Codes and memories


def cuts_of(values: Sequence[Value]) -> list[float]:
    known = sorted(x for x in values if x is not None)
    distinct = sorted(set(known))
    middles = [(a, a / 2 + b / 2, b) for a, b in pairwise(distinct)]
    cuts = [middle if a < middle <= b else b for a, middle, b in middles]
    if len(cuts) <= 200:
        return cuts
    passed = [sum(x < cut for x in known) for cut in cuts]
    kept = set()
    for j in range(1, 201):
        target = j * len(known) / 201
        kept.add(min(range(len(cuts)), key=lambda i: (abs(passed[i] - target), i)))
    return [cuts[i] for i in sorted(kept)]


def rows_that_cut(rows: int) -> int:
    most = rows if rows < 1_000 else 1_000
    while most >= 1_000 and 2 * most <= rows:
        most *= 2
    return most


def remembered(labelled: list[int], memory: int) -> list[int]:
    T = len(labelled)
    n = min(memory, T)
    end = T - T % (500 * 2 ** int(math.log2(n / 2_000))) if n >= 2_000 else T
    return labelled[max(0, end - memory) : end]


def memories(trees: int, size: int) -> list[int]:
    most = 2**29 // (32 + 24 * size)
    mine = [LADDER[m % 6] for m in range(trees)]
    if sum(mine) <= most:
        return mine
    longest = max(M for M in range(1, 100_001) if sum(min(W, M) for W in mine) <= most or M == 1)
    return [min(W, longest) for W in mine]


# Trees


@dataclass
class Node:
    key: int
    theta: list[float]
    attribute: int | None = None
    goes_left: Callable[[int], bool] = lambda _: True
    left: "Node | None" = None
    right: "Node | None" = None


def x_ln_x(x: float) -> float:
    return x * math.log(x) if x > 0 else 0.0


def is_precise(pl: Sequence[float]) -> bool:
    return sum(p > 0 for p in pl) == 1


def likeliest(contours: list[Contour]) -> list[float]:
    n, size = len(contours), len(contours[0])
    counts = sorted(Counter(map(tuple, contours)).items())
    if all(is_precise(pl) for pl, _ in counts):
        return [sum(count for pl, count in counts if pl[c] > 0) / n for c in range(size)]

    def vertex(theta: list[float]) -> list[float] | None:
        a = theta.index(max(theta))
        if any(pl[a] <= 0 for pl, _ in counts):
            return None
        others = (sum(count * pl[c] / pl[a] for pl, count in counts) for c in range(size) if c != a)
        return [float(c == a) for c in range(size)] if all(g < n * (1 - 1e-9) for g in others) else None

    theta = [1 / size] * size
    for step in range(300):
        if step == 4 and (found := vertex(theta)):
            return found
        new = [0.0] * size
        for pl, count in counts:
            for c, share in enumerate(shares_of(theta, pl)):
                new[c] += count * share / n
        excess = max(new[c] / theta[c] - 1 for c in range(size) if theta[c] > 0)
        theta = new
        if excess <= 1e-7:
            break
    return vertex(theta) or theta


def shares_of(theta: Sequence[float], pl: Sequence[float]) -> list[float]:
    joint = [t * p for t, p in zip(theta, pl, strict=True)]
    total = sum(joint)
    return [x / total for x in joint]


@dataclass
class PlainForest:
    """The forest of a log, which `see` and `label` write."""

    named: list[bool]
    size: int
    trees: int
    seed: int
    rows: list[Row] = field(default_factory=list)
    contours: dict[int, Contour] = field(default_factory=dict)
    labelled: list[int] = field(default_factory=list)
    members_at_ends: list["Members"] = field(default_factory=list)
    scores: list[list[float]] = field(default_factory=list)

    def see(self, row: Row) -> None:
        self.rows.append(row)

    def label(self, row: int, contour: Contour) -> None:
        """A label comes, or changes."""
        is_new = row not in self.contours
        self.contours[row] = contour
        if not is_new:
            return
        self.labelled.append(row)
        if len(self.labelled) % 50 == 0:
            block = self.labelled[-50:]
            judge = self.members_at_ends[-1] if self.members_at_ends else None
            self.scores.append([self.brier(judge, memory, block) for memory in range(9)])
            self.members_at_ends.append(Members(self))

    def brier(self, judge: "Members | None", memory: int, block: list[int]) -> float:
        total = 0.0
        for row in block:
            theta = judge.of_memory(memory, self.rows[row]) if judge else [1 / self.size] * self.size
            likely = bets(self.contours[row])
            total += 1 + sum(t * t - 2 * t * p for t, p in zip(theta, likely, strict=True))
        return total / len(block)

    def theta(self, rows: list[Row]) -> list[list[float]]:
        members = Members(self)
        weights = self.weights()
        return [
            [
                sum(w * theta[c] for w, theta in zip(weights, members.estimates(row), strict=True))
                for c in range(self.size)
            ]
            for row in rows
        ]

    def weights(self) -> list[float]:
        memory_of = [m % 6 for m in range(self.trees)] + [6, 7, 8]
        if len(self.scores) < 2:
            return [1 / len(memory_of)] * len(memory_of)
        last = self.scores[-20:]
        mean = [sum(block[memory] for block in last) / len(last) for memory in range(9)]
        weights = [math.exp(-20 * mean[memory]) / memory_of.count(memory) for memory in memory_of]
        return [w / sum(weights) for w in weights]


class Members:
    """Trees and naive-Bayes members at a moment."""

    def __init__(self, forest: PlainForest) -> None:
        self.named, self.size, self.trees = forest.named, forest.size, forest.trees
        self.K = len(forest.named)
        self.rows, self.contours = list(forest.rows), dict(forest.contours)
        first = self.rows[: rows_that_cut(len(self.rows))]
        self.cuts = [[] if name else cuts_of([row[k] for row in first]) for k, name in enumerate(self.named)]
        self.codes = [self.coded(row) for row in self.rows]
        self.roots = [
            self.grow(remembered(forest.labelled, memory), hashed(hashed(forest.seed, 0), m))
            for m, memory in enumerate(memories(forest.trees, forest.size))
        ]
        self.bayes = [self.naive_bayes(remembered(forest.labelled, memory)) for memory in BAYES]

    def coded(self, row: Row) -> list[int]:
        return [
            0
            if x is None
            else 1 + min(int(x), 65_534)
            if self.named[k]
            else 1 + sum(cut <= x for cut in self.cuts[k])
            for k, x in enumerate(row)
        ]

    def estimates(self, row: Row) -> list[list[float]]:
        codes = self.coded(row)
        return [self.leaf(root, codes).theta for root in self.roots] + [each(row) for each in self.bayes]

    def of_memory(self, memory: int, row: Row) -> list[float]:
        if memory >= 6:
            return self.bayes[memory - 6](row)
        codes = self.coded(row)
        each = [self.leaf(root, codes).theta for root in self.roots[memory::6]]
        return [
            sum(theta[c] for theta in each) / len(each) if each else 1 / self.size for c in range(self.size)
        ]

    def leaf(self, node: Node, codes: list[int]) -> Node:
        while node.attribute is not None:
            following = node.left if node.goes_left(codes[node.attribute]) else node.right
            assert following is not None
            node = following
        return node

    def grow(self, rows: list[int], key: int) -> Node:
        theta = likeliest([self.contours[row] for row in rows])
        node = Node(key, theta)
        if len(rows) == 1 or max(theta) >= 1 - 1e-9:
            return node
        shares = {row: shares_of(theta, self.contours[row]) for row in rows}
        best, tests = -math.inf, 0
        for k in drawn_order(key, self.K):
            goes_left = self.test(rows, k, hashed(key, 2 + self.K + k))
            if goes_left is None:
                continue
            gain = 0.0
            for side in (True, False):
                here = [shares[row] for row in rows if goes_left(self.codes[row][k]) is side]
                gain += sum(x_ln_x(sum(s[c] for s in here)) for c in range(self.size)) - x_ln_x(len(here))
            if gain > best + 1e-9:
                best, node.attribute, node.goes_left = gain, k, goes_left
            tests += 1
            if tests == math.ceil(math.sqrt(self.K)):
                break
        if node.attribute is not None:
            k = node.attribute
            node.left = self.grow([r for r in rows if node.goes_left(self.codes[r][k])], hashed(key, 0))
            node.right = self.grow([r for r in rows if not node.goes_left(self.codes[r][k])], hashed(key, 1))
        return node

    def test(self, rows: list[int], k: int, a: int) -> Callable[[int], bool] | None:
        seen = {self.codes[row][k] for row in rows}
        if len(seen) < 2:
            return None
        if self.named[k]:
            for t in range(64):
                b = hashed(a, t)
                if len({is_heads(hashed(b, code)) for code in seen}) == 2:
                    return lambda code, b=b: is_heads(hashed(b, code))  # type: ignore[misc]
            return None
        known = seen - {0}
        if len(known) == 1:
            return lambda code: code > 0
        cut, missing_left = drawn_cut(a, min(known), max(known)), is_heads(a)
        return lambda code: code <= cut if code else missing_left

    # Naive Bayes

    def naive_bayes(self, rows: list[int]) -> Callable[[Row], list[float]]:
        labels = [self.contours[row] for row in rows]
        prior = self.frequencies([0] * len(rows), labels, 1)[0]
        logs: list[Callable[[float], list[float]]] = []
        for k in range(self.K):
            column = [self.rows[row][k] for row in rows]
            logs.append(self.names(column, labels) if self.named[k] else self.numbers(column, labels))

        def theta(row: Row) -> list[float]:
            joint = [math.log(p) if p > 0 else -math.inf for p in prior]
            for x, logs_of in zip(row, logs, strict=True):
                if x is not None:
                    joint = [a + b for a, b in zip(joint, logs_of(x), strict=True)]
            top = max(joint)
            shares = [math.exp(x - top) for x in joint]
            return [share / sum(shares) for share in shares]

        return theta

    def frequencies(
        self, names: list[int], labels: list[Contour], r: int
    ) -> tuple[list[float], list[list[float]]]:
        """Return ``π`` and ``P(a | c)``, by name and class."""
        size = self.size
        pi, P = [1 / size] * size, [[1 / r] * size for _ in range(r)]
        for _ in range(100):
            counts = [[0.0] * size for _ in range(r)]
            for a, pl in zip(names, labels, strict=True):
                joint = [pl[c] * pi[c] * P[a][c] for c in range(size)]
                for c in range(size):
                    counts[a][c] += float(pl[c] > 0) if is_precise(pl) else joint[c] / sum(joint)
            sums = [sum(row[c] for row in counts) for c in range(size)]
            new_pi = [s / sum(sums) for s in sums] if sum(sums) else pi
            new_P = [[(counts[a][c] + 0.5) / (sums[c] + r / 2) for c in range(size)] for a in range(r)]
            moved = max(abs(x - y) for x, y in zip(new_pi, pi, strict=True))
            moved = max([moved, *(abs(new_P[a][c] - P[a][c]) for a in range(r) for c in range(size))])
            pi, P = new_pi, new_P
            if moved <= 1e-6:
                break
        return pi, P

    def names(self, column: list[Value], labels: list[Contour]) -> Callable[[float], list[float]]:
        known = [(int(x), pl) for x, pl in zip(column, labels, strict=True) if x is not None]
        r = max((a for a, _ in known), default=-1) + 2
        _, P = self.frequencies([a for a, _ in known], [pl for _, pl in known], r)
        return lambda x: [math.log(p) for p in P[min(int(x), r - 1)]]

    def numbers(self, column: list[Value], labels: list[Contour]) -> Callable[[float], list[float]]:
        size = self.size
        known = [(x, pl) for x, pl in zip(column, labels, strict=True) if x is not None]
        vague = sum(min(pl) / max(pl) for pl in labels) / len(labels)
        mean, deviation = moments([(x, 1.0) for x, _ in known])
        largest = max((abs(x) for x, _ in known), default=0.0)
        floor = max((0.01 + 0.2 * vague) * deviation, 2.0**-50 * (largest or 1.0))
        normals = [(mean, max(deviation, floor))] * size

        def m_step(t: list[list[float]]) -> list[float]:
            sums = [sum(share[c] for share in t) for c in range(size)]
            for c in range(size):
                if sums[c] > 0:
                    middle, spread = moments([(x, s[c]) for (x, _), s in zip(known, t, strict=True)])
                    normals[c] = middle, max(spread, floor)
            return [s / sum(sums) if sum(sums) else 1 / size for s in sums]

        def e_step(pi: list[float]) -> tuple[list[list[float]], float]:
            t, likelihood = [], 0.0
            for x, pl in known:
                logs = [
                    math.log(pl[c] * pi[c]) + normal(x, *normals[c]) if pl[c] * pi[c] > 0 else -math.inf
                    for c in range(size)
                ]
                top = max(logs)
                shares = [math.exp(each - top) for each in logs]
                t.append([share / sum(shares) for share in shares])
                likelihood += top + math.log(sum(shares))
            return t, likelihood

        pi = m_step([[p / sum(pl) for p in pl] for _, pl in known])
        excess = [[p - min(pl) for p in pl] for _, pl in known]
        m_step([[p / sum(e) if sum(e) else 0.0 for p in e] for e in excess])
        if known and not all(is_precise(pl) for _, pl in known):
            t, now = e_step(pi)
            for _ in range(100):
                pi = m_step(t)
                before = now
                t, now = e_step(pi)
                if now - before < 1e-3:
                    break
        return lambda x: [normal(x, *normals[c]) for c in range(size)]


def bets(contour: Contour) -> list[float]:
    """Return ``BetP`` of the consonant mass function of a contour of maximum 1."""
    ranked = sorted(range(len(contour)), key=lambda c: -contour[c])
    found = [0.0] * len(contour)
    for r, c in enumerate(ranked):
        step = contour[c] - (contour[ranked[r + 1]] if r + 1 < len(ranked) else 0.0)
        for member in ranked[: r + 1]:
            found[member] += step / (r + 1)
    return found


def moments(cells: list[tuple[float, float]]) -> tuple[float, float]:
    """Return mean and deviation of numbers with weights, about the first number."""
    total = sum(w for _, w in cells)
    if total <= 0:
        return 0.0, 0.0
    origin = cells[0][0]
    mean = sum(w * (x - origin) for x, w in cells) / total
    return origin + mean, math.sqrt(sum(w * (x - origin - mean) ** 2 for x, w in cells) / total)


def normal(x: float, mean: float, deviation: float) -> float:
    return -0.5 * ((x - mean) / deviation) ** 2 - math.log(deviation) - 0.5 * math.log(2 * math.pi)
