"""ABC4.5 on raw values written a second time: every cut looked at alone, from the rows on either side of it.

One cut stands for an attribute (theory §9): that of largest gain at level 1, of tied ones the middle one by rows.

A row is (values, contour); a missing value is None. How entropies and estimates are found is the caller's choice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import log2

TIE = 1e-9

Rows = list[tuple[tuple[float | None, ...], tuple[float, ...]]]
Interval = tuple[float, float]


@dataclass
class Slow:
    arities: tuple[int | None, ...]  # number of values, None for a number
    entropy: Callable[[list[tuple[float, ...]]], Interval]
    entropy_at_1: Callable[[list[tuple[float, ...]]], Interval]
    estimate: Callable[[list[tuple[float, ...]]], tuple[tuple[float, ...], bool]]
    min_instances: int = 2
    fixed: tuple[tuple[float, ...], ...] | None = None

    def cuts(self, rows: Rows, k: int) -> list[float | None]:
        if self.arities[k] is not None:
            return [None]
        known = sorted({x[k] for x, _ in rows if x[k] is not None})
        if self.fixed is None:
            found = [(a + b) / 2 for a, b in pairwise(known)]
            alone = known[:1]
        else:
            found, seen = [], set()
            for t in self.fixed[k]:
                below = sum(v < t for v in known)
                if 0 < below < len(known) and below not in seen:
                    seen.add(below)
                    found.append(t)
            alone = list(self.fixed[k][:1])
        return found or (alone if known and any(x[k] is None for x, _ in rows) else [])

    def parts(self, rows: Rows, k: int, cut: float | None) -> dict[int, Rows]:
        parts: dict[int, Rows] = {}
        for row in rows:
            value = row[0][k]
            missing = 2 if cut is not None else self.arities[k]
            code = missing if value is None else int(value) if cut is None else int(value >= cut)
            parts.setdefault(code, []).append(row)
        return dict(sorted(parts.items()))

    def gain(self, rows: Rows, parts: list[Rows]) -> float:
        def mid(some: Rows) -> float:
            return sum(self.entropy_at_1([pl for _, pl in some])) / 2

        return mid(rows) - sum(len(part) / len(rows) * mid(part) for part in parts)

    def best_cut(self, rows: Rows, k: int) -> float | None:
        parted = {cut: self.parts(rows, k, cut) for cut in self.cuts(rows, k)}
        if len(parted) == 1:
            return next(iter(parted))
        gains = {cut: self.gain(rows, list(parts.values())) for cut, parts in parted.items()}
        tied = [cut for cut in gains if gains[cut] >= max(gains.values()) - TIE]
        below = {cut: len(parted[cut][0]) for cut in tied}
        middle = (min(below.values()) + max(below.values())) / 2
        return min(tied, key=lambda cut: (abs(below[cut] - middle), cut))

    def tests(self, rows: Rows, left: tuple[int, ...]) -> dict[tuple[int, float | None], Interval]:
        ends = self.entropy([pl for _, pl in rows])
        found = {}
        for k in left:
            for cut in [self.best_cut(rows, k)] if self.cuts(rows, k) else []:
                parts = self.parts(rows, k, cut).values()
                if len(parts) < 2:
                    continue
                low = high = spread = 0.0
                for part in parts:
                    share = len(part) / len(rows)
                    inside = self.entropy([pl for _, pl in part])
                    low, high = low + share * inside[0], high + share * inside[1]
                    spread -= share * log2(share)
                found[k, cut] = (ends[0] - high) / spread, (ends[1] - low) / spread
        return found

    def tree(
        self, rows: Rows, left: tuple[int, ...] | None = None, above: tuple[float, ...] | None = None
    ) -> dict:
        """Return the tree of rows; where none says anything, the estimate is that of the node `above`."""
        left = tuple(range(len(self.arities))) if left is None else left
        theta, unique = self.estimate([pl for _, pl in rows])
        if above is not None and all(min(pl) == max(pl) for _, pl in rows):
            theta = above
        node = {"split": None, "theta": theta, "rows": rows, "children": {}, "tests": {}, "rivals": []}
        if len(rows) < self.min_instances or (unique and max(theta) >= 1 - TIE):
            return node
        node["tests"] = tests = self.tests(rows, left)
        if not tests or max(high for _, high in tests.values()) <= TIE:
            return node
        bar = max(low for low, _ in tests.values())
        node["rivals"] = rivals = [test for test, (_, high) in tests.items() if high >= bar - TIE]
        best = max(sum(tests[test]) / 2 for test in rivals)
        k, cut = node["split"] = next(test for test in rivals if sum(tests[test]) / 2 >= best - TIE)
        below = left if self.arities[k] is None else tuple(a for a in left if a != k)
        node["children"] = {c: self.tree(part, below, theta) for c, part in self.parts(rows, k, cut).items()}
        return node
