"""What several answers say together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quercus.belief import agreement
from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction


def test_bad_answers_are_named() -> None:
    with pytest.raises(InvalidInput, match="are none"):
        agreement.combine([])


def test_consensus_by_hand() -> None:
    """Reliabilities .8 and .5 of three classes are rates .875 and .5: κ = .875·.5; a: .875·.5, b: .125·.5, Ω: as b."""
    a, b = MassFunction(3, ((1, 1.0),)), MassFunction(3, ((2, 1.0),))
    found = agreement.combine([(a, 0.8), (b, 0.5)])
    assert found.conflict == pytest.approx(0.4375)
    assert dict(found.mass.focal) == pytest.approx({1: 7 / 9, 2: 1 / 9, 7: 1 / 9})
    assert found.ignorance == pytest.approx(1 / 9)


def weighed_set(mask: int, r: float) -> np.ndarray:
    """Contour of a set of three classes that holds the class with chance r."""
    inside = np.array([mask >> c & 1 for c in range(3)])
    k = inside.sum()
    if k == 3 or r == 0:
        return np.ones(3)
    ratio = (1 - r) / (3 - k) / (r / k)  # of the chance of a class outside to that of one inside
    return np.where(inside, 1.0, min(1.0, ratio))


@given(st.lists(st.tuples(st.integers(1, 7), st.floats(0, 1)), min_size=1, max_size=5))
def test_consensus_is_there_whatever_was_said(answers: list[tuple[int, float]]) -> None:
    found = agreement.combine([(MassFunction(3, ((mask, 1.0),)), r) for mask, r in answers])
    assert 0 <= found.conflict < 1
    assert 0 <= found.ignorance <= 1
    weighed = [(mask, min(r, 0.99) if len(answers) > 1 else r) for mask, r in answers]
    product = np.prod([weighed_set(mask, r) for mask, r in weighed], axis=0)
    assert found.mass.contour() * (1 - found.conflict) == pytest.approx(product, abs=1e-9)


def test_betting_on_the_same_class() -> None:
    a = np.array([[1.0, 0, 0], [1, 0, 0], [1, 1, 0]])
    b = np.array([[1.0, 0, 0], [0, 1, 0], [1, 0, 0]])
    assert agreement.same_class(a, b).tolist() == [1.0, 0.0, 0.5]
