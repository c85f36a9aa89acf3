"""The combination of several answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quercus.belief import agreement
from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction


def test_bad_answers_are_named() -> None:
    with pytest.raises(InvalidInput, match="answers: is empty"):
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


@pytest.mark.parametrize("order", [1, -1])
def test_many_labellers_leave_the_doubt_that_they_have(order: int) -> None:
    """The sum is that of 401 against 400, each with doubt .01: a hundred to one, whoever answered first."""
    red, green = (MassFunction(2, ((mask, 1.0),)) for mask in (1, 2))
    found = agreement.combine(([(red, 1.0)] * 401 + [(green, 0.99)] * 400)[::order])
    assert found.mass.contour() == pytest.approx([100 / 101, 1 / 101], abs=1e-9)
