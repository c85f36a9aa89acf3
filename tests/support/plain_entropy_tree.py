"""A belief-entropy tree written from theory §6 alone, row by row, to compare with.

Values are numbers, or indices of names of nominal attributes, None where missing. Contours have maximum 1.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations

Value = float | None
Density = Callable[[Value], list[float] | None]  # ln φ of each class; None where the value is missing

TIE = 1e-9
GAIN, STEPS = 1e-3, 1_000
NOTHING = -math.inf


def proportional(shares: Sequence[float]) -> list[float]:
    total = sum(shares)
    return [share / total for share in shares] if total > 0 else [0.0] * len(shares)


def exponentials(logs: Sequence[float]) -> tuple[list[float], float]:
    """Return the shares that are proportional to the exponentials, and the logarithm of their sum."""
    top = max(logs)
    total = sum(math.exp(x - top) for x in logs)
    return [math.exp(x - top) / total for x in logs], top + math.log(total)


def logarithm(x: float) -> float:
    return math.log(x) if x > 0 else NOTHING


@dataclass
class PlainEntropyTree:
    """The tree of rows; `arities` has the number of names of each attribute, None for a number."""

    rows: list[list[Value]]
    contours: list[list[float]]
    weights: list[float]
    arities: list[int | None]
    kind: str
    least: float
    root: "Node" = field(init=False)

    def __post_init__(self) -> None:
        self.size = len(self.contours[0])
        self.floors = [self.lower_bound(k) for k in range(len(self.arities))]
        varying = [k for k in range(len(self.arities)) if len({row[k] for row in self.rows}) > 1]
        self.root = self.grow(list(range(len(self.rows))), varying, [])

    def lower_bound(self, k: int) -> float:
        vague = sum(w * min(pl) / max(pl) for w, pl in zip(self.weights, self.contours, strict=True)) / sum(
            self.weights
        )
        known = [(x, w) for row, w in zip(self.rows, self.weights, strict=True) if (x := row[k]) is not None]
        largest = max((abs(x) for x, _ in known), default=0.0)
        return max((0.01 + 0.2 * vague) * moments(known)[1], 2.0**-50 * (largest or 1.0))

    # Densities

    def density(self, rows: list[int], k: int) -> tuple[list[float], Density]:
        """Return ``π`` and ``ln φ`` of an attribute at a node."""
        known = [i for i in rows if self.rows[i][k] is not None]
        possible = [any(self.contours[i][c] > 0 for i in rows) for c in range(self.size)]
        arity = self.arities[k]
        tells = arity is None or len({self.rows[i][k] for i in known}) > 1
        seen = [tells and any(self.contours[i][c] > 0 for i in known) for c in range(self.size)]
        fit = self.fit_numbers(known, k) if arity is None else self.fit_names(known, k, arity)
        prior, logs_of = fit
        whole = self.of_all(known, k, arity)

        def logs(x: Value) -> list[float] | None:
            if x is None:
                return None
            found = logs_of(x)
            return [
                NOTHING if not possible[c] else found[c] if seen[c] else whole(x) for c in range(self.size)
            ]

        return prior, logs if known else lambda x: None if x is None else [0.0] * self.size

    def of_all(self, known: list[int], k: int, arity: int | None) -> Callable[[float], float]:
        """Return ``ln φ`` of all values together, for a class that no row with a value can have."""
        cells = [(self.rows[i][k] or 0.0, self.weights[i]) for i in known]
        total = sum(w for _, w in cells)
        if arity is not None:
            return lambda v: math.log((sum(w for x, w in cells if x == v) + 1 / arity) / (total + 1))
        mean, deviation = moments(cells)
        return lambda x: normal(x, mean, max(deviation, self.floors[k]))

    def first_shares(self, known: list[int], *, beyond: bool) -> list[list[float]]:
        shares = []
        for i in known:
            least = min(self.contours[i]) if beyond else 0.0
            shares.append(proportional([pl - least for pl in self.contours[i]]))
        return shares

    def m_step(
        self,
        known: list[int],
        k: int,
        t: list[list[float]],
        before: list[tuple[float, float]],
    ) -> tuple[list[float], list[tuple[float, float]]]:
        shares, normals = [0.0] * self.size, list(before)
        for c in range(self.size):
            cells = [
                (self.rows[i][k] or 0.0, self.weights[i] * share[c])
                for i, share in zip(known, t, strict=True)
            ]
            shares[c] = sum(w for _, w in cells)
            if shares[c] > 0:
                mean, deviation = moments(cells)
                normals[c] = mean, max(deviation, self.floors[k])
        return proportional(shares), normals

    def e_step(
        self, known: list[int], k: int, pi: list[float], logs_of: Callable[[float], list[float]]
    ) -> tuple[list[list[float]], float]:
        t, likelihood = [], 0.0
        for i in known:
            logs = logs_of(self.rows[i][k] or 0.0)
            joint = [logarithm(self.contours[i][c]) + logarithm(pi[c]) + logs[c] for c in range(self.size)]
            shares, total = exponentials(joint)
            t.append(shares)
            likelihood += self.weights[i] * total
        return t, likelihood

    def fit_numbers(self, known: list[int], k: int) -> tuple[list[float], Callable[[float], list[float]]]:
        anywhere = [(0.0, 1.0)] * self.size
        pi, normals = self.m_step(known, k, self.first_shares(known, beyond=False), anywhere)
        _, normals = self.m_step(known, k, self.first_shares(known, beyond=True), normals)

        def logs_of(x: float) -> list[float]:
            return [normal(x, mean, deviation) for mean, deviation in normals]

        if not known:
            return [1 / self.size] * self.size, logs_of
        t, now = self.e_step(known, k, pi, logs_of)
        for _ in range(STEPS):
            pi, normals = self.m_step(known, k, t, normals)
            before = now
            t, now = self.e_step(known, k, pi, logs_of)
            if now - before < GAIN:
                break
        return pi, logs_of

    def fit_names(
        self, known: list[int], k: int, arity: int
    ) -> tuple[list[float], Callable[[float], list[float]]]:
        table = [[1 / arity] * arity for _ in range(self.size)]

        def logs_of(x: float) -> list[float]:
            return [math.log(table[c][int(x)]) for c in range(self.size)]

        if not known:
            return [1 / self.size] * self.size, logs_of
        plain, t = self.first_shares(known, beyond=False), self.first_shares(known, beyond=True)
        t = [mine if any(mine) else other for mine, other in zip(t, plain, strict=True)]
        before = NOTHING
        for _ in range(STEPS):
            sums = [
                sum(self.weights[i] * share[c] for i, share in zip(known, t, strict=True))
                for c in range(self.size)
            ]
            pi = proportional(sums)
            for c in range(self.size):
                for v in range(arity):
                    here = sum(
                        self.weights[i] * share[c]
                        for i, share in zip(known, t, strict=True)
                        if self.rows[i][k] == v
                    )
                    table[c][v] = (here + 1 / arity) / (sums[c] + 1)
            t, now = self.e_step(known, k, pi, logs_of)
            now += sum(math.log(p) / arity for p in chain.from_iterable(table))
            if now - before < GAIN:
                break
            before = now
        return pi, logs_of

    # The tree

    def grow(self, rows: list[int], left: list[int], path: list["Node"]) -> "Node":
        node = Node(rows, path)
        supports = {tuple(pl > 0 for pl in self.contours[i]) for i in rows}
        pure = len(supports) == 1 and sum(next(iter(supports))) == 1
        if not left or sum(self.weights[i] for i in rows) < self.least - TIE or pure:
            return node
        densities = {k: self.density(rows, k) for k in left}
        entropies = {k: self.mean_entropy(rows, k, logs) for k, (_, logs) in densities.items()}
        best = min(entropies.values())
        node.attribute = next(k for k in left if entropies[k] <= best + TIE)
        node.prior, node.logs = densities[node.attribute]
        by_branch: dict[int, list[int]] = {}
        for i in rows:
            by_branch.setdefault(node.branch(self.rows[i]), []).append(i)
        others = [k for k in left if k != node.attribute]
        node.children = {c: self.grow(some, others, [*path, node]) for c, some in by_branch.items()}
        return node

    def mean_entropy(self, rows: list[int], k: int, logs: Density) -> float:
        total = 0.0
        for i in rows:
            for group, mass in nested_masses(logs(self.rows[i][k]) or [0.0] * self.size):
                if mass > NOTHING:
                    total -= (
                        self.weights[i]
                        * math.exp(mass)
                        * (mass / math.log(2) - math.log2(2 ** len(group) - 1))
                    )
        return total / sum(self.weights[i] for i in rows)

    # Predictions

    def probabilities(self, row: list[Value]) -> list[float]:
        """Return the scores by which the class is chosen: ``BetP``, or the mean plausibilities of OBE."""
        node, passed = self.root, []
        while node.attribute is not None:
            passed.append(node)
            following = node.children.get(node.branch(row))
            if following is None:
                break
            node = following
        weight = sum(self.weights[i] for i in node.rows)
        if self.kind == "OBE":
            return [
                sum(self.weights[i] * self.contours[i][c] for i in node.rows) / weight
                for c in range(self.size)
            ]
        if self.kind == "LBE":
            if not node.path:
                return self.mean_of_labels(node)
            return self.combined(
                [(self.log_contour(at, self.rows[i]), self.weights[i]) for at in node.path for i in node.rows]
            )
        if passed:
            return self.combined([(self.log_contour(at, row), 1.0) for at in passed])
        theta = self.mean_of_labels(node)
        return [(weight * p + 1 / self.size) / (weight + 1) for p in theta]

    def predict(self, row: list[Value]) -> int:
        chances = self.probabilities(row)
        return next(c for c, p in enumerate(chances) if p >= max(chances) - TIE)

    def mean_of_labels(self, node: "Node") -> list[float]:
        weight = sum(self.weights[i] for i in node.rows)
        found = [0.0] * self.size
        for i in node.rows:
            for c, bet in enumerate(bets(self.contours[i])):
                found[c] += self.weights[i] * bet / weight
        return found

    def log_contour(self, node: "Node", row: list[Value]) -> list[float]:
        assert node.attribute is not None
        found = [NOTHING] * self.size
        masses = nested_masses(node.logs(row[node.attribute]) or [0.0] * self.size)
        for c in range(self.size):
            logs = [mass for group, mass in masses if c in group and mass > NOTHING]
            found[c] = min(exponentials(logs)[1], 0.0) if logs else NOTHING
        return found

    def combined(self, evidence: list[tuple[list[float], float]]) -> list[float]:
        """Return ``BetP`` of Dempster's rule over nested masses of these log contours, each so many times."""
        classes = range(self.size)
        sets = [set(some) for n in range(1, self.size + 1) for some in combinations(classes, n)]
        q = {frozenset(some): sum(w * min(pl[c] for c in some) for pl, w in evidence if w) for some in sets}
        top = max(q[frozenset({c})] for c in classes)
        masses: dict[frozenset[int], float] = {}
        for some in sets:
            mass = sum(
                (-1) ** (len(other) - len(some)) * math.exp(q[frozenset(other)] - top)
                for other in sets
                if some <= other
            )
            if mass > 1e-15:
                masses[frozenset(some)] = mass
        total = sum(masses.values())
        return [sum(m / len(some) for some, m in masses.items() if c in some) / total for c in classes]


@dataclass
class Node:
    rows: list[int]
    path: list["Node"]
    attribute: int | None = None
    prior: list[float] = field(default_factory=list)
    logs: Density = lambda _: None
    children: dict[int, "Node"] = field(default_factory=dict)

    def branch(self, row: list[Value]) -> int:
        assert self.attribute is not None
        logs = self.logs(row[self.attribute])
        ranked = [logarithm(p) for p in self.prior] if logs is None else logs
        return next(c for c, value in enumerate(ranked) if value >= max(ranked) - TIE)


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


def nested_masses(logs: list[float]) -> list[tuple[set[int], float]]:
    """Return the nested sets and the logarithms of their masses."""
    shares = [x - exponentials(logs)[1] for x in logs]
    ranked = sorted(range(len(logs)), key=lambda c: -shares[c])
    found: list[tuple[set[int], float]] = []
    inside: set[int] = set()
    tied: list[float] = []
    for place, c in enumerate(ranked):
        inside = inside | {c}
        tied.append(shares[c])
        following = shares[ranked[place + 1]] if place + 1 < len(ranked) else None
        is_tied = following is not None and (following == shares[c] or shares[c] - following <= TIE)
        if not is_tied:
            found.append((inside, exponentials(tied)[1] if max(tied) > NOTHING else NOTHING))
            tied = []
    return found


def bets(contour: list[float]) -> list[float]:
    """Return ``BetP`` of the consonant mass function of a contour of maximum 1."""
    ranked = sorted(range(len(contour)), key=lambda c: -contour[c])
    found = [0.0] * len(contour)
    for r, c in enumerate(ranked):
        step = contour[c] - (contour[ranked[r + 1]] if r + 1 < len(ranked) else 0.0)
        for member in ranked[: r + 1]:
            found[member] += step / (r + 1)
    return found
