"""Rows with uncertain cells, sent down the branches of trees in the plainest way (theory §14).

A row is a list of cells: an index or a number, a set of indices, a pair ``(low, high)``, or None. Nothing is shared
with `quercus.trees.learners.sharing`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

Cell = Any
Row = tuple[Sequence[Cell], Sequence[float]]  # cells, share of each class
LEAST = Fraction(1, 1024)


@dataclass
class PlainNode:
    """A node: its test, if any, its children by branch, and the weight of each class."""

    sums: list[float]
    attribute: int | None
    threshold: float | None
    children: "dict[int, PlainNode]"


def allows(cell: Cell, value: float) -> bool:
    """Return whether an uncertain cell may have a value."""
    return cell[0] <= value <= cell[1] if isinstance(cell, tuple) else value in cell


def is_open(cell: Cell) -> bool:
    """Return whether a cell is uncertain."""
    return isinstance(cell, tuple | frozenset)


def divide(
    rows: Sequence[tuple[Row, Fraction]], k: int, threshold: float | None, arity: int
) -> dict[int, list[tuple[Row, Fraction]]]:
    """Return the parts of the rows by branch; missing values have the branch after the last."""

    def branch(value: float) -> int:
        return int(value) if threshold is None else int(value >= threshold)

    width = arity if threshold is None else 2
    known = [(row[0][k], part) for row, part in rows if row[0][k] is not None and not is_open(row[0][k])]
    found: dict[int, list[tuple[Row, Fraction]]] = {}
    for row, part in rows:
        cell = row[0][k]
        if cell is None:
            shares = {width: Fraction(1)}
        elif not is_open(cell):
            shares = {branch(cell): Fraction(1)}
        else:
            weights = dict.fromkeys(range(width), Fraction(0))
            for value, weight in known:
                if allows(cell, value):
                    weights[branch(value)] += weight
            if not any(weights.values()):
                if threshold is None:
                    weights = {code: Fraction(int(code in cell)) for code in range(width)}
                else:
                    low, high = cell if isinstance(cell, tuple) else (min(cell), max(cell))
                    weights = {0: Fraction(int(low < threshold)), 1: Fraction(int(high >= threshold))}
            total = sum(weights.values())
            shares = {code: weight / total for code, weight in weights.items()}
            if part < LEAST:
                best = max(range(width), key=lambda code: (shares[code], -code))
                shares = {best: Fraction(1)}
        for code, share in shares.items():
            if share:
                found.setdefault(code, []).append((row, part * share))
    return found


def sums_of(rows: Sequence[tuple[Row, Fraction]]) -> list[float]:
    """Return the weight of each class."""
    return [math.fsum(float(part) * row[1][c] for row, part in rows) for c in range(len(rows[0][0][1]))]


def entropy(sums: Sequence[float]) -> float:
    """Return the entropy of class weights in bits."""
    total = math.fsum(sums)
    return -sum(s / total * math.log2(s / total) for s in sums if s > 0)


def plain_tree(
    rows: Sequence[tuple[Row, Fraction]],
    arities: Sequence[int | None],
    left: Sequence[int],
    *,
    impurity: Callable[[Sequence[float]], float] = entropy,
) -> PlainNode:
    """Grow a tree of largest gain, of nominal attributes with an arity and of numbers without; no gain stops it."""
    sums = sums_of(rows)
    node = PlainNode(sums, None, None, {})
    total = math.fsum(float(part) for _, part in rows)
    if max(sums) >= math.fsum(sums) * (1 - 1e-9) or total < 2 - 1e-9:
        return node
    best: tuple[float, int, float | None] | None = None
    for k in left:
        values = sorted({row[0][k] for row, _ in rows if row[0][k] is not None and not is_open(row[0][k])})
        arity = arities[k]
        tests: list[float | None] = [None]
        if arity is None:
            tests = [(a + b) / 2 for a, b in pairwise(values)]
        gains = []
        for threshold in tests:
            parts = divide(rows, k, threshold, arity or 2)
            if len(parts) < 2:
                continue
            each = [
                (math.fsum(float(part) for _, part in some), impurity(sums_of(some)))
                for some in parts.values()
            ]
            below = math.fsum(float(part) for _, part in parts.get(0, []))
            gains.append((impurity(sums) - sum(w / total * h for w, h in each), threshold, below))
        if not gains:
            continue
        most = max(gain for gain, _, _ in gains)
        tied = [each for each in gains if each[0] >= most - 1e-9]
        gain, threshold = (most, tied[0][1]) if len(tied) == 1 else middle_of(tied)
        if best is None or gain > best[0] + 1e-9:
            best = gain, k, threshold
    if best is None:
        return node
    _, node.attribute, node.threshold = best
    k = best[1]
    for code, some in sorted(divide(rows, k, best[2], arities[k] or 2).items()):
        rest = [a for a in left if a != k or arities[k] is None]
        node.children[code] = plain_tree(some, arities, rest, impurity=impurity)
    return node


def middle_of(tied: Sequence[tuple[float, float | None, float]]) -> tuple[float, float | None]:
    """Return the one of tied cuts with the middle weight below."""
    middle = (tied[0][2] + tied[-1][2]) / 2
    best = min(range(len(tied)), key=lambda i: (abs(tied[i][2] - middle), i))
    return tied[best][0], tied[best][1]
