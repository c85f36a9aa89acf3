"""Confusion matrices of a crowd: against a slow computation with plain loops, and what must hold whatever was said."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma

from quercus.belief.errors import InvalidInput
from quercus.labelling.crowds import PRIOR_RELIABILITY, CrowdAnswers, CrowdEstimate, estimate_crowd
from quercus.labelling.crowds.coin import CELL, LEAST, MOST, likeliest_coins, prior_cells
from quercus.labelling.crowds.confusion import ACCURACY, ROUNDS

FEW = 4
"""Rounds: where answers are as good for one class as for another, many of them would turn rounding into a choice."""

Answers = list[tuple[int, int, tuple[float, ...]]]  # instance, labeller, plausibilities


@st.composite
def crowds(draw: st.DrawFn) -> tuple[Answers, int]:
    """Up to 16 answers of up to 4 labellers about up to 6 instances: classes, sets, plausibilities, or nothing."""
    size = draw(st.integers(2, 4))
    value = st.sampled_from([0.0, 0.0, 0.3, 1.0])
    contour = st.tuples(*[value] * size).filter(lambda given: max(given) == 1.0)
    answer = st.tuples(st.integers(0, 5), st.integers(0, 3), contour)
    return draw(st.lists(answer, min_size=1, max_size=16, unique_by=lambda each: each[:2])), size


def estimated(said: Answers, rounds: int = ROUNDS) -> CrowdEstimate:
    instances, labellers, contours = zip(*said, strict=True)
    return estimate_crowd(
        CrowdAnswers.of(np.array(instances), np.array(labellers), np.array(contours)), rounds
    )


def slow(said: Answers, size: int, rounds: int) -> tuple[list[list[float]], list[list[list[float]]]]:
    """Return the classes of instances and the cells of labellers after so many rounds, by the page's formulas."""
    n, m = max(i for i, _, _ in said) + 1, max(j for _, j, _ in said) + 1
    classes, names = range(size), range(m)
    voices: dict[int, set[int]] = {i: set() for i in range(n)}
    for i, j, pl in said:
        if min(pl) < 1.0:
            voices[i].add(j)
    shared = [(i, j, pl) for i, j, pl in said if min(pl) < 1.0 and len(voices[i]) > 1]
    told = sorted({i for i, _, _ in shared})

    def prior(r: list[float]) -> list[list[list[float]]]:
        total = CELL * size
        return [
            [[total * (r[j] if c == a else (1 - r[j]) / (size - 1)) for a in classes] for c in classes]
            for j in names
        ]

    def logs_of(row: list[float]) -> list[float]:
        return [float(digamma(x) - digamma(sum(row))) for x in row]

    def likelihood(j: int, c: int, pl: tuple[float, ...]) -> float:
        return sum(math.exp(logs[j][c][a]) * pl[a] for a in classes)

    def posterior(answers: Answers, i: int) -> list[float]:
        joint = [
            math.exp(shares[c]) * math.prod(likelihood(j, c, pl) for k, j, pl in answers if k == i)
            for c in classes
        ]
        return [each / sum(joint) for each in joint]

    cells = before = prior([PRIOR_RELIABILITY] * m)
    logs = [[logs_of(row) for row in matrix] for matrix in cells]
    shares = [-math.log(size)] * size
    q = {}
    for i in told:
        votes = [sum(pl[c] / sum(pl) for k, _, pl in shared if k == i) + 1 / size for c in classes]
        q[i] = [vote / sum(votes) for vote in votes]
    for _ in range(rounds if told else 0):
        cells = [[list(row) for row in matrix] for matrix in before]
        for i, j, pl in shared:
            for c in classes:
                for a in classes:
                    cells[j][c][a] += q[i][c] * math.exp(logs[j][c][a]) * pl[a] / likelihood(j, c, pl)
        logs = [[logs_of(row) for row in matrix] for matrix in cells]
        shares = logs_of([1 + sum(q[i][c] for i in told) for c in classes])
        before = prior([likeliest_coin(logs[j], size) for j in names])
        q = {i: posterior(shared, i) for i in told}
    informative = [(i, j, pl) for i, j, pl in said if min(pl) < 1]
    return [posterior(informative, i) for i in range(n)], cells


def likeliest_coin(logs: list[list[float]], size: int) -> float:
    """Return the coin of one labeller by golden section on the logarithm of its density."""

    def density(r: float) -> float:
        found = 4 * math.log(r) + math.log(1 - r)
        for c in range(size):
            for a in range(size):
                cell = CELL * size * (r if a == c else (1 - r) / (size - 1))
                found += cell * logs[c][a] - math.lgamma(cell)
        return found

    low, high, part = LEAST, MOST, (math.sqrt(5) - 1) / 2
    for _ in range(60):
        a, b = high - part * (high - low), low + part * (high - low)
        low, high = (a, high) if density(a) < density(b) else (low, b)
    return (low + high) / 2


@given(crowds())
@settings(max_examples=12, deadline=None)
def test_it_is_what_plain_loops_compute(crowd: tuple[Answers, int]) -> None:
    said, size = crowd
    found = estimated(said, FEW)
    classes, cells = slow(said, size, len(found.bound))
    assert found.classes == pytest.approx(np.array(classes), abs=1e-5)
    assert found.cells == pytest.approx(np.array(cells), abs=1e-5)


@given(crowds(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_names_and_order_do_not_matter(crowd: tuple[Answers, int], random: object) -> None:
    """Answers in another order give the same to the bit; other numbers of classes and labellers permute the result."""
    said, _ = crowd
    found = estimated(said, FEW)
    shuffled = list(said)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    again = estimated(shuffled, FEW)
    assert np.array_equal(again.classes, found.classes)
    assert np.array_equal(again.cells, found.cells)
    turned = estimated([(i, j, (*pl[1:], pl[0])) for i, j, pl in said], FEW)  # class c is now c - 1
    assert np.roll(turned.classes, 1, axis=1) == pytest.approx(found.classes, abs=1e-6)
    assert np.roll(turned.matrices, 1, axis=(1, 2)) == pytest.approx(found.matrices, abs=1e-6)
    mirrored = estimated([(i, 3 - j, pl) for i, j, pl in said], FEW)
    for _, j, _ in said:
        assert mirrored.reliability[3 - j] == pytest.approx(found.reliability[j], abs=1e-6)


@given(crowds())
@settings(max_examples=40, deadline=None)
def test_what_holds_whatever_was_said(crowd: tuple[Answers, int]) -> None:
    said, size = crowd
    found = estimated(said)
    assert (np.diff(found.bound) > -1e-7).all()
    assert found.classes.sum(axis=1) == pytest.approx(1.0)
    assert found.matrices.sum(axis=2) == pytest.approx(1.0)
    assert ((found.reliability > 0) & (found.reliability < 1) & (found.deviation > 0)).all()
    nothing = estimated([*said, (0, 4, (1.0,) * size)])  # somebody who says nothing
    assert nothing.classes == pytest.approx(found.classes, abs=ACCURACY)
    assert nothing.reliability[4] == pytest.approx(PRIOR_RELIABILITY)


def test_an_answer_that_says_nothing_changes_no_class() -> None:
    """The crowd says "yes" more often, so its matrices have rows of their own: expected logarithms differ by class."""
    yes, no, nothing = (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)
    said = [(i, j, no if i == 0 else yes) for i in range(6) for j in range(2)]
    silent = estimated([*said, (6, 0, nothing), (6, 1, nothing), (0, 2, nothing)])
    found = estimated([*said, (6, 0, yes)])  # a row more, about which something is said
    assert silent.classes[:6] == pytest.approx(found.classes[:6], abs=ACCURACY)
    share = digamma(1 + silent.classes[:6].sum(axis=0))
    assert silent.classes[6] == pytest.approx(np.exp(share) / np.exp(share).sum(), abs=1e-3)


def generated(seed: int) -> tuple[Answers, int]:
    """Return answers of a crowd like those of the crowd files: few or all of its labellers about each row, some biased.

    One seed in three has answers that name two classes.
    """
    rng = np.random.default_rng(seed)
    size, labellers = int(rng.integers(2, 5)), int(rng.choice([5, 8, 12]))
    rows, voices = (20, labellers) if seed % 2 else (50, 4)
    right = rng.uniform(0.6, 0.95, labellers)
    lean = np.where(rng.random(labellers) < 0.5, 0.4, 0.0)
    truth = rng.integers(size, size=rows)
    said: Answers = []
    for i in range(rows):
        for j in rng.choice(labellers, voices, replace=False).tolist():
            named = int(truth[i] if rng.random() < right[j] else rng.integers(size))
            if rng.random() < lean[j]:
                named = j % size
            contour = np.eye(size)[named]
            if seed % 3 == 0 and rng.random() < 0.3:
                contour[rng.integers(size)] = 1.0
            said.append((i, j, tuple(contour.tolist())))
    return said, size


def fixed_point(said: Answers, size: int, rounds: int = 3_000) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes and mean matrices by plain rounds of the page, until none moves a matrix by 1e-12."""
    says = [(i, j, pl) for i, j, pl in said if min(pl) < 1.0]
    i, j, pl = (np.array(column) for column in zip(*says, strict=True))
    told = np.array([len(set(j[i == row])) > 1 for row in range(i.max() + 1)])
    bets = pl / pl.sum(axis=1, keepdims=True)
    q = np.array([bets[i == row].sum(axis=0) + 1 / size for row in range(len(told))])
    q /= q.sum(axis=1, keepdims=True)
    counted = told[i]

    def priors(coins: np.ndarray) -> np.ndarray:
        return np.array(
            [
                CELL * size * np.where(np.eye(size) > 0, r, (1 - r) / (size - 1))
                for r in coins
            ]
        )  # fmt: skip

    prior = priors(np.full(j.max() + 1, PRIOR_RELIABILITY))
    chance = np.exp(digamma(prior) - digamma(prior.sum(axis=2, keepdims=True)))
    mean = prior / prior.sum(axis=2, keepdims=True)
    for _ in range(rounds):
        meant = chance[j] * pl[:, np.newaxis, :]
        meant *= (q[i] / meant.sum(axis=2))[:, :, np.newaxis] * counted[:, np.newaxis, np.newaxis]
        cells = prior.copy()
        np.add.at(cells, j, meant)
        shares = 1.0 + q[told].sum(axis=0)
        logs = digamma(cells) - digamma(cells.sum(axis=2, keepdims=True))
        chance, prior = np.exp(logs), priors(likeliest_coins(logs))
        joint = np.tile(digamma(shares), (len(told), 1))
        np.add.at(joint, i[counted], np.log((chance[j] * pl[:, np.newaxis, :]).sum(axis=2))[counted])
        q = np.exp(joint - joint.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        before, mean = mean, cells / cells.sum(axis=2, keepdims=True)
        if np.abs(mean - before).max() <= 1e-12:
            break
    else:
        raise AssertionError("the slow rounds do not converge")
    return q, mean


@pytest.mark.parametrize("seed", range(6))
def test_it_ends_at_the_fixed_point_in_classes_and_matrices(seed: int) -> None:
    """Rounds of which the classes alone hardly move left matrices .01 to .1 away."""
    said, size = generated(seed)
    found = estimated(said, ROUNDS)
    classes, matrices = fixed_point(said, size)
    assert np.abs(found.classes - classes).max() <= ACCURACY
    assert np.abs(found.matrices - matrices).max() <= ACCURACY
    assert len(found.bound) < ROUNDS
    assert (np.diff(found.bound) > -1e-9).all()


@given(st.lists(st.integers(0, 2), min_size=1, max_size=12))
@settings(max_examples=20, deadline=None)
def test_one_labeller_is_what_it_answers(answers: list[int]) -> None:
    found = estimated([(i, 0, tuple(np.eye(3)[c].tolist())) for i, c in enumerate(answers)])
    assert found.classes.argmax(axis=1).tolist() == answers
    assert found.reliability == pytest.approx([PRIOR_RELIABILITY])
    assert found.answer_evidence(0, np.eye(3)[0]) == pytest.approx([1.0, 0.125, 0.125])


def test_the_matrices_that_made_the_answers_are_found() -> None:
    """One is right nine times in ten, one takes the second class for the first, one always says the third."""
    rng = np.random.default_rng(5)
    made = np.array(
        [
            [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]],
            [[0.95, 0.03, 0.02], [0.6, 0.3, 0.1], [0.05, 0.05, 0.9]],
            [[0.02, 0.02, 0.96], [0.02, 0.02, 0.96], [0.02, 0.02, 0.96]],
            [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]],
        ]
    )
    truth = rng.integers(3, size=3000)
    instances, labellers = np.repeat(np.arange(3000), 4), np.tile(np.arange(4), 3000)
    drawn = (rng.random((12000, 1)) > made[labellers, truth[instances]].cumsum(axis=1)).sum(axis=1)
    found = estimate_crowd(CrowdAnswers.of(instances, labellers, np.eye(3)[drawn]))
    assert np.abs(found.matrices - made).max() < 0.05
    within = np.abs(found.reliability - np.einsum("jcc->jc", made).mean(axis=1)) / found.deviation
    assert within.max() < 4.0
    assert found.deviation.max() < 0.02
    assert (found.classes.argmax(axis=1) == truth).mean() > 0.9


def test_a_crowd_by_hand() -> None:
    """Ann and bob agree on eight rows, carl says "yes" throughout: his "yes" says next to nothing, his "no" much."""
    yes, no = (0.0, 1.0), (1.0, 0.0)
    words = {0: [no, yes] * 4, 1: [no, yes] * 4, 2: [yes, yes] * 4}
    found = estimated([(i, j, answer) for j, answers in words.items() for i, answer in enumerate(answers)])
    assert found.classes.argmax(axis=1).tolist() == [0, 1] * 4
    assert found.reliability.round(3).tolist() == [0.986, 0.986, 0.523]
    assert found.deviation.round(3).tolist() == [0.035, 0.035, 0.069]
    assert found.answer_evidence(2, np.array(yes)).round(3).tolist() == [0.951, 1.0]
    assert found.answer_evidence(2, np.array(no)).round(3).tolist() == [1.0, 0.406]


@given(st.integers(2, 5), st.lists(st.floats(LEAST + 0.01, MOST - 0.01), min_size=1, max_size=4))
@settings(max_examples=20, deadline=None)
def test_the_coin_of_a_labeller_is_the_likeliest(size: int, coins: list[float]) -> None:
    """Found by halving a slope, and by comparing values; with no answers it leans to four right ones of five."""
    cells = prior_cells(np.array(coins), size) + np.eye(size) * 3
    logs = digamma(cells) - digamma(cells.sum(axis=2, keepdims=True))
    found = likeliest_coins(logs)
    assert found == pytest.approx([likeliest_coin(each.tolist(), size) for each in logs], abs=1e-5)
    alone = prior_cells(np.array([PRIOR_RELIABILITY]), size)
    at_rest = likeliest_coins(digamma(alone) - digamma(alone.sum(axis=2, keepdims=True)))
    assert at_rest == pytest.approx([PRIOR_RELIABILITY], abs=1e-6)


def test_bad_answers_are_named() -> None:
    one = np.array([0])
    with pytest.raises(InvalidInput, match="are 2, must be one for each of 1"):
        CrowdAnswers.of(one, one, np.ones((2, 3)))
    with pytest.raises(InvalidInput, match="excludes every class"):
        CrowdAnswers.of(one, one, np.zeros((1, 3)))
    found = estimate_crowd(CrowdAnswers.of(one, one, np.ones((1, 3))))
    with pytest.raises(InvalidInput, match="labeller: is 1, must be 0 to 0"):
        found.answer_evidence(1, np.ones(3))


def test_rounding_chooses_no_class() -> None:
    """Two classes are as good for a row; many rounds would make of a rounding error that one is certain."""
    said = [
        (3, 1, (0.0, 0.0, 0.0, 1.0)), (3, 2, (1.0, 1.0, 0.3, 0.0)), (5, 1, (0.3, 0.3, 1.0, 0.0)),
        (5, 3, (0.0, 0.0, 0.0, 1.0)), (0, 2, (1.0, 0.0, 0.0, 0.3)),
    ]  # fmt: skip
    found = estimated(said)
    turned = estimated([(i, j, (*pl[1:], pl[0])) for i, j, pl in said])
    assert np.roll(turned.classes, 1, axis=1) == pytest.approx(found.classes, abs=ACCURACY)
    assert found.classes[3, 0] == pytest.approx(found.classes[3, 1], abs=ACCURACY)
