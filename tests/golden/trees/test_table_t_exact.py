"""The exact column of theory §3.7, to six digits."""

from math import log2

import numpy as np
import pytest
from golden.trees.table_t import ARITIES, CODES, CONTOURS, VALUES, X, Y, numbers, oracle
from support.candidates import best_candidate

from quercus.trees.growth.abc45 import Induction, induce
from quercus.trees.growth.sample import ContourTable, Sample
from quercus.trees.tree.node import Stop

ENTROPIES = {  # T, then X = a, b, c, then Y = e, d
    0.5: "1.271206 1.584963  0 .712665  0 1.465389  .505547 1.305573  .356385 1.319925  .811012 1.430734",
    0.8: "1.402825 1.583857  0 .320855  0 .840554   .710898 1.110284  .528301 1.054932  .923635 1.218094",
    0.9: "1.449131 1.575549  0 .179095  0 .505867   .785749 1.034795  .599200 .937546   .957030 1.126609",
}
GAINS_AFTER = {
    0.8: ((0.40649, 0.81687), (-0.01731, 0.55706)),
    0.9: ((0.51625, 0.77791), (0.08069, 0.47016)),
}
ASKED = {0.5: [1, 8, 20, 15, 6], 0.8: [1, 8, 12, 20, 6], 0.9: [1, 8, 12, 20, 6]}


def sample() -> Sample:
    table = ContourTable(3)
    return Sample(CODES.astype(np.int16), ARITIES, table.intern(CONTOURS), np.ones(21, dtype=bool), table)


def induced(alpha: float, budget: int = 0) -> Induction:
    return induce(CODES, ARITIES, CONTOURS, alpha=alpha, budget=budget, oracle=oracle)


def gain_ratio(parent: list[float], children: list[tuple[int, list[float]]]) -> tuple[float, float]:
    """By hand: f = |T_h| / |T|, SI the entropy of the f."""
    share = [count / 21 for count, _ in children]
    si = -sum(f * log2(f) for f in share)
    low = parent[0] - sum(f * ends[1] for f, (_, ends) in zip(share, children, strict=True))
    high = parent[1] - sum(f * ends[0] for f, (_, ends) in zip(share, children, strict=True))
    return low / si, high / si


@pytest.mark.parametrize("alpha", ENTROPIES)
def test_entropies(alpha: float) -> None:
    rows = sample()
    parts = [np.arange(21), *(np.flatnonzero(CODES[:, X] == v) for v in range(3))]
    parts += [np.flatnonzero(CODES[:, Y] == v) for v in (1, 0)]
    lower, upper = rows.table.solver(alpha).intervals(np.array([rows.counts(part) for part in parts]))
    found = np.column_stack([lower, upper]).ravel()
    assert found == pytest.approx([float(number) for number in ENTROPIES[alpha].split()], abs=1e-6)


@pytest.mark.parametrize("alpha", ENTROPIES)
def test_gain_ratios_follow_from_the_entropies(alpha: float) -> None:
    t, a, b, c, e, d = np.array(ENTROPIES[alpha].split(), dtype=float).reshape(-1, 2).tolist()
    intervals = induced(alpha).tree.intervals
    assert intervals[X] == pytest.approx(gain_ratio(t, [(8, a), (5, b), (8, c)]), abs=4e-6)
    assert intervals[Y] == pytest.approx(gain_ratio(t, [(12, e), (9, d)]), abs=4e-6)


def test_gain_ratios_at_level_one() -> None:
    intervals = induced(1.0).tree.intervals
    assert intervals[X] == pytest.approx((0.7598, 0.7598), abs=0.5e-4)
    assert intervals[Y] == pytest.approx((0.6863, 0.6863), abs=0.5e-4)


@pytest.mark.parametrize("alpha", ASKED)
def test_queries_with_budget_five(alpha: float) -> None:
    queries = induced(alpha, 5).queries
    assert numbers(queries) == ASKED[alpha]
    assert all(query.path == () and query.node_count == 21 for query in queries)
    assert [(query.attribute, query.code) for query in queries] == [(X, 0), (X, 1), (X, 2), (Y, 0), (Y, 1)]


@pytest.mark.parametrize("alpha", GAINS_AFTER)
def test_gain_ratios_after_the_answers(alpha: float) -> None:
    intervals = induced(alpha, 5).tree.intervals
    assert intervals[X] == pytest.approx(GAINS_AFTER[alpha][0], abs=0.5e-5)
    assert intervals[Y] == pytest.approx(GAINS_AFTER[alpha][1], abs=0.5e-5)


def test_query_order_in_a_node() -> None:
    rows = sample()
    node = np.flatnonzero(CODES[:, X] == 0)
    left, order = rows.candidates(node), []
    while left.size:
        instance, _ = best_candidate(rows, rows.table.solver(0.9), node, left)
        order.append(instance + 1)
        left = left[left != instance]
    assert order == [1, 2, 4, 15, 13, 3]


def test_final_tree() -> None:
    tree = induced(0.9, 5).tree
    assert (tree.attribute, tree.undecided, tree.stop) == (X, False, None)
    a, b, c = tree.children.values()
    assert (a.klass, a.stop, a.count) == (2, Stop.PURE, 8)
    assert (b.klass, b.stop, b.count) == (1, Stop.PURE, 5)
    assert (c.attribute, c.count) == (Y, 8)
    assert {VALUES[Y][code]: leaf.klass for code, leaf in c.children.items()} == {"d": 0, "e": 1}


def test_the_first_round_starts_from_what_the_table_says() -> None:
    first = induced(0.9, 1).queries[0]
    assert (first.instance, first.attribute, first.code) == (0, X, 0)
    table = {attribute: (low, high) for attribute, low, high in first.rivals}
    assert table == induced(0.9).tree.intervals
