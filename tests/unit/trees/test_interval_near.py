"""Levels near 1 against arithmetic with 50 digits: the interval encloses, its gap is true, and it is found at once."""

from collections.abc import Iterator
from decimal import Decimal, localcontext

import numpy as np
import pytest

from quercus.kernels.likelihood import FEW_BOXES, SEARCH, maximise, rescale_rows, search_counts, sure_excess
from quercus.trees.likelihood.interval import SETTLED_END, entropy_interval
from quercus.trees.likelihood.maximiser import estimate
from quercus.trees.likelihood.solver import stages

Digits = list[Decimal]
FACE = 1e-7  # a class with less probability is at 0
LEVELS = [1.0 - 10.0**-k for k in range(3, 16)]


@pytest.fixture(autouse=True)
def fifty_digits() -> Iterator[None]:
    with localcontext() as context:
        context.prec = 50
        yield


def dot(a: Digits, b: Digits) -> Decimal:
    return sum((x * y for x, y in zip(a, b, strict=True)), Decimal(0))


def solved(rows: list[Digits], right: Digits) -> Digits:
    """Gauss and Jordan."""
    table = [[*row, value] for row, value in zip(rows, right, strict=True)]
    for i in range(len(table)):
        pivot = max(range(i, len(table)), key=lambda r: abs(table[r][i]))
        table[i], table[pivot] = table[pivot], table[i]
        for r in range(len(table)):
            factor = table[r][i] / table[i][i]
            if r != i and factor:
                table[r] = [x - factor * y for x, y in zip(table[r], table[i], strict=True)]
    return [row[-1] / row[i] for i, row in enumerate(table)]


def bits(theta: Digits) -> Decimal:
    return -sum((t * t.ln() for t in theta if t > 0), Decimal(0)) / Decimal(2).ln()


class Exact:
    """The maximiser, and members of the cut on its boundary, all on the face of the simplex that holds it."""

    def __init__(self, P: np.ndarray, w: np.ndarray) -> None:
        start = estimate(P, w).theta
        face = np.flatnonzero(start > FACE)
        self.P = [[Decimal(x) for x in row] for row in P[:, face].tolist()]
        self.w = [Decimal(x) for x in w.tolist()]
        self.inside = len(face) == P.shape[1]
        theta, total = [Decimal(x) for x in start[face].tolist()], sum(self.w)
        for _ in range(6):  # of Newton's
            self.v = [dot(row, theta) for row in self.P]
            gradient = [self.slope(column) - total for column in zip(*self.P, strict=True)]
            theta = [t + d for t, d in zip(theta, solved(self.hessian(), gradient), strict=True)]
        self.theta = theta
        self.v = [dot(row, theta) for row in self.P]
        # it is the maximiser: Kuhn and Tucker
        assert min(theta) > 0
        assert abs(sum(theta) - 1) < Decimal("1e-40")
        for j in range(P.shape[1]):
            push = self.slope([Decimal(x) for x in P[:, j].tolist()]) - total
            assert abs(push) < Decimal("1e-30") * total if j in face else push <= 0

    def slope(self, column: Digits) -> Decimal:
        return sum((a * p / x for a, p, x in zip(self.w, column, self.v, strict=True)), Decimal(0))

    def hessian(self) -> list[Digits]:
        scaled = [[p / x for p in row] for row, x in zip(self.P, self.v, strict=True)]
        columns = list(zip(*scaled, strict=True))
        weighted = [[a * p for a, p in zip(self.w, column, strict=True)] for column in columns]
        return [[dot(one, list(other)) for other in columns] for one in weighted]

    def extremes(self, alpha: float) -> tuple[Decimal, Decimal]:
        """Entropies of two members of the cut: nearly its ends, where it is small and within the simplex."""
        l = len(self.theta)
        if l == 1:
            return bits(self.theta), bits(self.theta)
        rows = [[*row, Decimal(1)] for row in self.hessian()] + [[Decimal(1)] * l + [Decimal(0)]]
        steep = [-(t.ln() + 1) for t in self.theta]
        direction = solved(rows, [*steep, Decimal(0)])[:l]
        most = -Decimal(alpha).ln()
        length = (2 * most / dot(steep, direction)).sqrt()
        rates = [dot(row, direction) / x for row, x in zip(self.P, self.v, strict=True)]
        ends = [self.end(rates, direction, sign * length, most) for sign in (-1, 1)]
        return min(ends), max(ends)

    def end(self, rates: Digits, direction: Digits, length: Decimal, most: Decimal) -> Decimal:
        """Entropy of the last member on a ray, or one before it."""
        room = min((-t / (length * d) for t, d in zip(self.theta, direction, strict=True) if length * d < 0))
        low, high, step = Decimal(0), room, min(Decimal(1), room * Decimal("0.9"))
        for _ in range(8):  # Newton's method on a convex function, bisection where it leaves the ray
            ratios = [1 + step * length * r for r in rates]
            if min(ratios) > 0:
                loss = -sum((a * x.ln() for a, x in zip(self.w, ratios, strict=True)), Decimal(0))
                rate = -sum(
                    (a * length * r / x for a, r, x in zip(self.w, rates, ratios, strict=True)), Decimal(0)
                )
                low, high = (step, high) if loss <= most else (low, step)
                new = step + (most * (1 - Decimal("1e-13")) - loss) / rate
            else:
                high = new = step
            step = new if low < new < high else (low + high) / 2
        return bits([t + low * length * d for t, d in zip(self.theta, direction, strict=True)])


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """2 to 7 classes; labels that are vague, that say their class, or that rule some out; weights of any size."""
    rng = np.random.default_rng(seed)
    l, n = 2 + seed % 6, (5, 12, 50, 30)[seed % 4]
    P = rng.random((n, l))
    if seed % 3 == 0:
        P = np.maximum(0.5 * P, np.eye(l)[rng.permutation(np.arange(n) % l)])
    elif seed % 3 == 1:
        P = np.where(rng.random((n, l)) < 0.5, 0.0, P)
        P[np.arange(n), rng.integers(l, size=n)] = 1.0
    return P, (np.ones(n), rng.random(n) * 1e6, rng.random(n) * 1e-3, rng.integers(1, 10, n) / 3)[
        seed // 3 % 4
    ]


def check(P: np.ndarray, w: np.ndarray, levels: list[float]) -> None:
    exact = Exact(P, w)
    for alpha in levels:
        found = entropy_interval(P, w, alpha)
        least, greatest = exact.extremes(alpha)
        doubt = Decimal(SETTLED_END)
        assert Decimal(found.lower) <= least + doubt, alpha
        assert Decimal(found.upper) >= greatest - doubt, alpha
        assert found.gap <= (1e-6 if -np.log(alpha) > 1e-10 * w.sum() else 1e-5), alpha
        if exact.inside and -np.log(alpha) <= 1e-6 * w.sum():  # the members are the ends, all but
            doubt += (greatest - least) / 100 + Decimal(found.gap)
            assert least - Decimal(found.lower) <= doubt, alpha
            assert Decimal(found.upper) - greatest <= doubt, alpha


@pytest.mark.parametrize("seed", range(12))
def test_near_level_one_the_interval_encloses_and_its_gap_is_true(seed: int) -> None:
    check(*drawn(seed), LEVELS)


def test_near_level_one_with_many_rows() -> None:
    rng = np.random.default_rng(4)
    check(rng.random((500, 6)), rng.random(500), LEVELS[4::3])


@pytest.mark.parametrize("rows", [5, 500])
def test_the_excess_of_an_estimate_is_never_understated(rows: int) -> None:
    rng = np.random.default_rng(rows)
    for l in range(2, 8):
        P, w = rng.random((rows, l)), rng.random(rows)
        theta, worst = maximise(P, w)
        exact_P, exact_w = [[Decimal(x) for x in row] for row in P.tolist()], [Decimal(x) for x in w.tolist()]
        v = [dot(row, [Decimal(x) for x in theta.tolist()]) for row in exact_P]
        total = sum(exact_w)
        slopes = [
            sum(a * p / x for a, p, x in zip(exact_w, column, v, strict=True)) / total - 1
            for column in zip(*exact_P, strict=True)
        ]
        scaled = rescale_rows(P, theta)
        for level in (-1e-15, -0.2):
            sure = sure_excess(scaled, w, theta, worst, level)
            assert max(slopes) <= Decimal(sure) <= max(slopes) + Decimal(5e-15 if rows == 5 else 1e-13)
        near_one = sure_excess(scaled, w, theta, worst, -1e-15)
        assert Decimal(near_one) <= max(0, *slopes) + Decimal("4e-15")


@pytest.mark.parametrize(
    ("seed", "rows", "classes"), [(0, 500, 7), (1, 500, 7), (145, 200, 5), (151, 50, 6), (159, 500, 7)]
)
def test_near_level_one_a_hundred_boxes_are_enough(seed: int, rows: int, classes: int) -> None:
    """40,000 fought rounding, for seconds, and proved no more."""
    P = np.random.default_rng(seed).random((rows, classes))
    P /= P.max(axis=1, keepdims=True)
    cells = np.array([0, rows]), np.arange(rows, dtype=np.int32), np.ones(rows)
    wanted = np.array([0])
    estimates = stages.estimate(P, cells, wanted)
    for alpha in LEVELS[3:]:
        found = stages.enclose(P, cells, wanted, estimates, alpha, tight=True)
        if found[0, 4] == SEARCH:
            ends = np.ascontiguousarray(found[:, :4])
            boxes = search_counts(P, *cells, wanted, estimates, alpha, stages.EFFORT, ends)
            assert boxes <= 2 * FEW_BOXES, alpha
