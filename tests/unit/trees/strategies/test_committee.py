"""The loops of a committee beside plain computations of the same."""

from dataclasses import replace

import numpy as np
import pytest
from support.published import published_tree

from quercus.belief.frame import Frame
from quercus.kernels.forest import (
    DISTANCE_UNIT,
    LITTLE,
    covering_gains,
    distances,
    estimate_shares,
    grow_member,
    mean_probabilities,
    nearest_distances,
)
from quercus.specification.attributes import Nominal
from quercus.specification.reasons import SIMILAR_ROWS, Fact, Shares
from quercus.trees.ask.strategies.row_sample import sample_rows
from quercus.trees.growth.stream import GrowthState, Observed, grow
from quercus.trees.likelihood import maximiser

ORDERED = np.array([4, 0, 3])
ARITIES = np.array([5, 3, 3])  # the first has a branch of missing values


def codes(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(ARITIES, size=(count, 3)).astype(np.int16)


def apart(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for k, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        in_order = max(x, y) < ORDERED[k]
        total += abs(x - y) / (ORDERED[k] - 1) if in_order else float(x != y)
    return total


def test_distances_and_what_they_cover() -> None:
    rows, others = codes(9), codes(7, 1)
    slow = np.array([[apart(a, b) for b in others] for a in rows])
    far = distances(rows, others, ORDERED)
    np.testing.assert_allclose(far / DISTANCE_UNIT, slow)
    near = nearest_distances(others, codes(2, 2), ORDERED)
    np.testing.assert_allclose(near / DISTANCE_UNIT, [min(apart(b, c) for c in codes(2, 2)) for b in others])
    np.testing.assert_allclose(
        covering_gains(far, near) / DISTANCE_UNIT,
        np.maximum(near / DISTANCE_UNIT - slow, 0).sum(axis=1),
    )
    assert (nearest_distances(rows, codes(0), ORDERED) == 3 * DISTANCE_UNIT).all()


def test_shares_are_those_of_the_likeliest_classes() -> None:
    rng = np.random.default_rng(3)
    labels, weights = rng.uniform(0.05, 1, (30, 3)), rng.integers(1, 4, 30).astype(float)
    share = np.empty((30, 3))
    theta = estimate_shares(np.arange(30), weights, labels, share)
    assert np.abs(theta - maximiser.estimate(labels, weights).theta).max() < 1e-3
    np.testing.assert_allclose(share.sum(axis=1), weights)


@pytest.mark.slow
def test_a_member_fits_rows_that_differ() -> None:
    rows = np.unique(codes(60), axis=0)
    classes = (rows[:, 0] + rows[:, 1]) % 3
    labels = np.eye(3)[classes]
    chances = mean_probabilities(
        rows, labels, np.ones((1, len(rows))), ORDERED, ARITIES, 3, rows, np.ones((len(rows), 3))
    )
    assert (chances.argmax(axis=1) == classes).all()


def ends(tree: tuple[np.ndarray, ...], rows: np.ndarray) -> list[int]:
    """Return the leaf where each row ends, one test at a time."""
    attribute, code, first, _ = (part.tolist() for part in tree)
    found = []
    for row in rows.tolist():
        at = 0
        while attribute[at] >= 0:
            value = row[attribute[at]]
            inside = value <= code[at] if ORDERED[attribute[at]] else value == code[at]
            at = first[at] + (not inside)
        found.append(at)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_an_opinion_is_the_mean_of_what_the_leaves_say(seed: int) -> None:
    """Beside: each leaf's probabilities from the rows that end in it, by the general solver of theory §2."""
    rng = np.random.default_rng(seed)
    rows, pool = codes(40, seed), codes(9, seed + 7)
    labels = (rng.random((40, 3)) < 0.5).astype(float)
    labels[np.arange(40), rng.integers(0, 3, 40)] = 1.0
    weights = rng.multinomial(40, np.full(40, 1 / 40), size=4).astype(float)
    known = np.where(rng.random((9, 3)) < 0.3, 0.4, 1.0)
    found = mean_probabilities(rows, labels, weights, ORDERED, ARITIES, 2, pool, known)
    mean = np.zeros((9, 3))
    for number, drawn in enumerate(weights):
        tree = grow_member(rows, labels, drawn, ORDERED, ARITIES, 2, number)
        at = np.array(ends(tree, rows))
        for i, leaf in enumerate(ends(tree, pool)):
            here = (at == leaf) & (drawn > 0)
            estimate = maximiser.estimate(labels[here], drawn[here])
            theta = estimate.theta if estimate.unique else tree[3][leaf]
            share = (theta + LITTLE) * known[i]
            mean[i] += share / share.sum() / 4
    np.testing.assert_allclose(found, mean, atol=2e-3)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_a_region_known_to_be_of_two_classes_is_not_unanimous() -> None:
    """Half of the rows are known to be a or b and no more, half to be c: the doubt is where a and b are."""
    rows = codes(40)
    rows[:, 1] = np.arange(40) % 2
    labels = np.where(rows[:, 1:2] == 0, [1.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    pool = codes(10, 5)
    pool[:, 1] = np.arange(10) % 2
    chances = mean_probabilities(rows, labels, np.ones((7, 40)), ORDERED, ARITIES, 3, pool, np.ones((10, 3)))
    expected = np.where(pool[:, 1:2] == 0, [0.5, 0.5, 0.0], [0.0, 0.0, 1.0])
    np.testing.assert_allclose(chances, expected, atol=1e-5)


def test_a_committee_asks_where_only_two_classes_are_known() -> None:
    attributes = (Nominal("place", ("here", "there")), Nominal("noise", ("u", "v")))
    values = np.column_stack([np.arange(40) % 2, np.arange(40) // 2 % 2]).astype(float)
    contours = np.where(values[:, :1] == 0, [1.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    contours[20:] = 1.0  # may be asked about, and nothing else is known of them
    spec = published_tree(attributes, Frame(("a", "b", "c")), budget=20, strategy="committee")
    agenda = grow(GrowthState(spec), [Observed(values, contours)]).agenda(10)
    assert len(agenda) == 10
    assert all(values[query.instance, 0] == 0 for query in agenda)


def test_nobody_thinks_of_what_a_row_cannot_be() -> None:
    rows = codes(40)
    labels = np.eye(3)[rows[:, 1]]
    known = np.ones((40, 3))
    known[np.arange(40), rows[:, 1]] = 0.0
    chances = mean_probabilities(rows, labels, np.ones((5, 40)), ORDERED, ARITIES, 2, rows, known)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert not chances[np.arange(40), rows[:, 1]].any()


def test_a_sketch_changes_little_when_rows_do() -> None:
    before, after = sample_rows(np.arange(10_000), 100), sample_rows(np.delete(np.arange(10_000), 77), 100)
    assert before.size == after.size == 100
    assert np.setdiff1d(before, after).size <= 1
    assert (np.diff(before) > 0).all()


def test_a_query_tells_what_the_committee_thinks() -> None:
    """The estimate, its doubt, and the rows that the row stands for; one query in six goes by those alone."""
    values = np.random.default_rng(5).integers(0, 3, (60, 3)).astype(float)
    contours = np.ones((60, 2))
    contours[:12] = np.eye(2)[(values[:12, 0] > 1).astype(int)]
    attributes = tuple(Nominal(f"a{k}", ("x", "y", "z")) for k in range(3))
    spec = published_tree(attributes, Frame(("p", "q")), budget=60, strategy="covering-committee")
    agenda = grow(GrowthState(spec), [Observed(values, contours)]).agenda(7)
    by_cover = 0
    for query in agenda:
        facts = {fact.name: fact.value for fact in query.reason.facts}
        shares, doubt, similar = facts["estimate"], facts["doubt"], facts[SIMILAR_ROWS]
        assert isinstance(shares, Shares)
        assert isinstance(doubt, float)
        assert isinstance(similar, int)
        theta = np.array(shares.theta)
        assert theta.sum() == pytest.approx(1)
        assert doubt == pytest.approx(-(theta * np.log2(np.maximum(theta, 1e-300))).sum())
        assert 0 <= similar < 48
        covers = query.reason.sentence.startswith("It is unlike the rows that are known. ")
        assert shares.who == ("" if covers else "The committee of trees")
        assert query.score >= (0 if covers else doubt)
        by_cover += covers
    assert by_cover >= 1
    empty = grow(GrowthState(spec), [Observed(values, np.ones((60, 2)))]).agenda(1)[0]
    alike = (values == values[empty.instance]).any(axis=1)  # nothing is known: nearer than as far as can be
    assert empty.reason.facts == (Fact(SIMILAR_ROWS, alike.sum() - 1),)
    one = replace(spec, strategy="committee")
    (first,) = grow(GrowthState(one), [Observed(values, np.ones((60, 2)))]).agenda(1)
    assert (first.reason.sentence, first.reason.facts) == (
        "No row is known yet, so the first ones are chosen at random.",
        (),
    )
