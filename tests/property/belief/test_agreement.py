"""Reliability from agreement: EM climbs, and finds what the answers were made with."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quercus.belief import agreement
from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction


def simulated(
    rng: np.random.Generator, reliability: list[float], n: int, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Every oracle answers for every instance: with its reliability the class, else any."""
    truth = rng.integers(size, size=n)
    m = len(reliability)
    instances, oracles = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
    reliable = rng.random(n * m) < np.array(reliability)[oracles]
    named = np.where(reliable, truth[instances], rng.integers(size, size=n * m))
    return instances, oracles, np.eye(size)[named], truth


def test_the_reliabilities_that_made_the_answers_are_found() -> None:
    made = [0.95, 0.8, 0.6, 0.3]
    instances, oracles, contours, truth = simulated(np.random.default_rng(1), made, 3000, 4)
    found = agreement.estimate(instances, oracles, contours)
    assert found.reliability == pytest.approx(made, abs=0.04)
    assert (found.classes.argmax(axis=1) == truth).mean() > 0.95
    assert np.allclose(found.classes.sum(axis=1), 1.0)


def test_the_fixed_point_solves_the_equations_of_the_page() -> None:
    """One more round of the formulas, written as loops, moves nothing."""
    instances, oracles, contours, _ = simulated(np.random.default_rng(2), [0.9, 0.7, 0.4], 60, 3)
    found = agreement.estimate(instances, oracles, contours)
    r = found.reliability
    total, count = (
        np.full(3, agreement.PRIOR_RIGHT),
        np.full(3, agreement.PRIOR_RIGHT + agreement.PRIOR_WRONG),
    )
    for i, j, said in zip(instances, oracles, contours, strict=True):
        chances = r[j] * said + (1 - r[j]) * said.mean()
        total[j] += sum(found.classes[i, c] * r[j] * said[c] / chances[c] for c in range(3))
        count[j] += 1
    assert total / count == pytest.approx(r, abs=1e-4)


@given(st.integers(2, 5), st.integers(1, 5), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_the_posterior_never_falls(size: int, m: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 40))
    instances, oracles = np.sort(rng.integers(n, size=k)), rng.integers(m, size=k)
    contours = rng.random((k, size)) ** 3
    contours[np.arange(k), rng.integers(size, size=k)] = 1.0
    found = agreement.estimate(
        np.unique(instances, return_inverse=True)[1], np.unique(oracles, return_inverse=True)[1], contours
    )
    assert (np.diff(found.log_posterior) > -1e-7).all()
    assert ((found.reliability > 0) & (found.reliability < 1)).all()


def test_who_shares_no_instance_keeps_the_prior() -> None:
    vacuous = np.ones((1, 3))
    found = agreement.estimate(np.array([0]), np.array([0]), vacuous)
    assert found.reliability == pytest.approx([0.8])


def test_bad_answers_are_named() -> None:
    one = np.array([0])
    with pytest.raises(InvalidInput, match="are 2, must be one for each of 1"):
        agreement.estimate(one, one, np.ones((2, 3)))
    with pytest.raises(InvalidInput, match="excludes every class"):
        agreement.estimate(one, one, np.zeros((1, 3)))
    with pytest.raises(InvalidInput, match="are none"):
        agreement.combine([])


def test_consensus_by_hand() -> None:
    """Reliabilities .8 and .5: κ = .8·.5; a: .8·.5, b: .2·.5, Ω: .2·.5, each over 1 - κ."""
    a, b = MassFunction(3, ((1, 1.0),)), MassFunction(3, ((2, 1.0),))
    found = agreement.combine([(a, 0.8), (b, 0.5)])
    assert found.conflict == pytest.approx(0.4)
    assert dict(found.mass.focal) == pytest.approx({1: 0.4 / 0.6, 2: 0.1 / 0.6, 7: 0.1 / 0.6})
    assert found.ignorance == pytest.approx(0.1 / 0.6)


@given(st.lists(st.tuples(st.integers(1, 7), st.floats(0, 1)), min_size=1, max_size=5))
def test_consensus_is_there_whatever_was_said(answers: list[tuple[int, float]]) -> None:
    found = agreement.combine([(MassFunction(3, ((mask, 1.0),)), r) for mask, r in answers])
    assert 0 <= found.conflict < 1
    assert 0 <= found.ignorance <= 1
    weighed = [(mask, min(r, 0.99) if len(answers) > 1 else r) for mask, r in answers]
    product = np.prod(
        [r * np.array([mask >> c & 1 for c in range(3)]) + 1 - r for mask, r in weighed], axis=0
    )
    assert found.mass.contour() * (1 - found.conflict) == pytest.approx(product, abs=1e-9)


def test_betting_on_the_same_class() -> None:
    a = np.array([[1.0, 0, 0], [1, 0, 0], [1, 1, 0]])
    b = np.array([[1.0, 0, 0], [0, 1, 0], [1, 0, 0]])
    assert agreement.same_class(a, b).tolist() == [1.0, 0.0, 0.5]
