"""ABC4.5 written a second time, straight from theory §3.1-§3.5, with no thought of speed.

Dominance has no allowance for a small split information here (theory §3.5).

A row is a dict: its number, its values, its contour, and whether it was asked about. Nothing is imported from
the package: how entropies and estimates are found is the caller's choice.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import log2

TIE = 1e-9

Contours = list[tuple[float, ...]]
Interval = tuple[float, float]


@dataclass
class Slow:
    attributes: list[int]  # number of values of each
    entropy: Callable[[Contours], Interval]
    estimate: Callable[[Contours], tuple[tuple[float, ...], bool]]
    combine: Callable[[tuple[float, ...], tuple[float, ...]], tuple[float, ...]]
    min_instances: int = 2
    max_depth: int | None = None
    _seen: dict = field(default_factory=dict)

    # §3.1

    def interval(self, rows: list[dict]) -> Interval:
        contours = tuple(sorted(row["pl"] for row in rows))
        if contours not in self._seen:
            self._seen[contours] = self.entropy(list(contours)) if contours else (0.0, 0.0)
        return self._seen[contours]

    def gain_ratios(self, rows: list[dict], attributes: list[int]) -> dict[int, Interval]:
        ratios = {}
        lo, hi = self.interval(rows) if rows else (0.0, 0.0)
        for k in attributes:
            parts = [part for part in self.split(rows, k).values() if part]
            shares = [len(part) / len(rows) for part in parts]
            si = -sum(f * log2(f) for f in shares)
            if len(parts) > 1:
                ends = [self.interval(part) for part in parts]
                ratios[k] = (
                    (lo - sum(f * end[1] for f, end in zip(shares, ends, strict=True))) / si,
                    (hi - sum(f * end[0] for f, end in zip(shares, ends, strict=True))) / si,
                )
        return ratios

    def split(self, rows: list[dict], k: int) -> dict[int, list[dict]]:
        return {value: [row for row in rows if row["x"][k] == value] for value in range(self.attributes[k])}

    # §3.2

    def rivals(self, ratios: dict[int, Interval]) -> list[int]:
        return [i for i in ratios if not any(ratios[j][0] > ratios[i][1] + TIE for j in ratios)]

    def best(self, ratios: dict[int, Interval]) -> int:
        mid = {k: sum(ratios[k]) / 2 for k in self.rivals(ratios)}
        return min(k for k in mid if mid[k] >= max(mid.values()) - TIE)

    # §3.3

    def candidates(self, rows: list[dict]) -> list[dict]:
        return [row for row in rows if not row["asked"] and sum(p > 0 for p in row["pl"]) > 1]

    def score(self, rows: list[dict], row: dict) -> float:
        others = [other for other in rows if other is not row]
        width = self.interval(rows)[1] - self.interval(rows)[0]
        width_without = self.interval(others)[1] - self.interval(others)[0]
        return width - width_without + (len(set(row["pl"])) == 1)

    def pick(self, rows: list[dict]) -> tuple[dict, float]:
        scored = [(self.score(rows, row), row) for row in self.candidates(rows)]
        best = max(score for score, _ in scored)
        tied = [(score, row) for score, row in scored if score >= best - TIE]
        most = max(sum(row["pl"]) for _, row in tied)
        score, row = next((score, row) for score, row in tied if sum(row["pl"]) >= most - TIE)
        return row, score

    # §3.4, §3.5

    def tree(
        self,
        rows: list[dict],
        attributes: list[int] | None = None,
        path: tuple = (),
        above: tuple[float, ...] | None = None,
    ) -> dict:
        attributes = list(range(len(self.attributes))) if attributes is None else attributes
        theta, unique = self.estimate([row["pl"] for row in rows])
        if above is not None and all(len(set(row["pl"])) == 1 for row in rows):
            theta, unique = above, False  # of many maximisers the one of the parent
        klass = min(c for c, p in enumerate(theta) if p >= max(theta) - TIE)
        node = {"path": path, "rows": rows, "theta": theta, "class": klass, "attribute": None}
        node |= {"intervals": {}, "children": {}, "rivals": []}
        too_deep = self.max_depth is not None and len(path) >= self.max_depth
        if len(rows) < self.min_instances or (unique and max(theta) >= 1 - TIE) or too_deep:
            return node
        node["intervals"] = ratios = self.gain_ratios(rows, attributes)
        if not ratios or all(hi <= TIE for _, hi in ratios.values()):
            return node
        node["rivals"] = self.rivals(ratios)
        node["attribute"] = k = self.best(ratios)
        left = [j for j in attributes if j != k]
        for value, part in self.split(rows, k).items():
            if part:
                node["children"][value] = self.tree(part, left, (*path, (k, value)), theta)
        return node

    def undecided(self, node: dict) -> dict | None:
        """The first node in pre-order that has more than one rival and somebody to ask."""
        if len(node["rivals"]) > 1 and self.candidates(node["rows"]):
            return node
        found = (self.undecided(child) for child in node["children"].values())
        return next((child for child in found if child is not None), None)

    def at(self, node: dict, path: tuple) -> dict | None:
        for attribute, value in path:
            if node["attribute"] != attribute or value not in node["children"]:
                return None
            node = node["children"][value]
        return node

    def round(self, node: dict) -> list[tuple[int, int]]:
        return [(k, value) for k in node["rivals"] for value in range(self.attributes[k])]

    # the whole of it

    def induce(self, rows: list[dict], budget: int, oracle: Callable) -> tuple[dict, list[tuple]]:
        """Grow, ask a round at the first undecided node, look again from the root; and so on."""
        asked: list[tuple] = []
        answers = 0
        while answers < budget:
            node = self.undecided(self.tree(rows))
            if node is None:
                break
            path = node["path"]
            for k, value in self.round(node):
                here = self.at(self.tree(rows), path)
                if answers >= budget or here is None:
                    break
                child = self.split(here["rows"], k)[value]
                if not self.candidates(child):
                    continue
                row, score = self.pick(child)
                row["asked"] = True
                asked.append((row["number"], path, k, value, score))
                answer = oracle(row["number"])
                if answer is not None:
                    row["pl"] = self.combine(row["pl"], answer)
                    answers += 1
        return self.tree(rows), asked


def as_rows(codes: object, contours: object) -> list[dict]:
    return [
        {"number": i, "x": tuple(map(int, x)), "pl": tuple(map(float, pl)), "asked": False}
        for i, (x, pl) in enumerate(zip(codes, contours, strict=True))
    ]


def replace_or_multiply(known: tuple[float, ...], answer: tuple[float, ...]) -> tuple[float, ...]:
    """A certain answer replaces what is known, another is multiplied into it; in total conflict it wins."""
    product = [a * b for a, b in zip(known, answer, strict=True)]
    if sum(p > 0 for p in answer) == 1 or not any(product):
        product = list(answer)
    return tuple(p / max(product) for p in product)
