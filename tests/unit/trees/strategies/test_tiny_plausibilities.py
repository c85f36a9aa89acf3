"""A constant factor of a contour means nothing (theory §1.3): also the least one that a number can have."""

import numpy as np
import pytest

from quercus.belief.frame import Frame
from quercus.specification.attributes import Nominal
from quercus.specification.model import Specification
from quercus.specification.strategies import strategies
from quercus.trees import Abc45
from quercus.trees.growth.stream import GrowthState, Observed, grow
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver

LEAST = 5e-324
ROWS = 36


def asked(strategy: str, factor: float) -> list[tuple[int, float]]:
    """The first queries, with their scores; a plausibility is a multiple of 1/4."""
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.integers(0, 2, ROWS), rng.integers(0, 3, ROWS)]).astype(np.float64)
    contours = np.full((ROWS, 2), 4.0)
    other = 1 - values[::2, 0].astype(np.int64)
    contours[np.arange(0, ROWS, 2), other] = np.where(np.arange(ROWS // 2) % 3, 1.0, 0.0)
    attributes = (Nominal("X", ("a", "b")), Nominal("Y", ("a", "b", "c")))
    specification = Specification(
        attributes=attributes, frame=Frame(("p", "q")), budget=50, learner=Abc45(), strategy=strategy
    )
    state = grow(GrowthState.initial(specification), [Observed(values, contours * factor)])
    return [(query.instance, query.score) for query in state.agenda(6)]


@pytest.mark.parametrize("strategy", list(strategies("tree")))
def test_queries_are_the_same(strategy: str) -> None:
    tiny, usual = asked(strategy, LEAST), asked(strategy, 0.25)
    assert [row for row, _ in tiny] == [row for row, _ in usual]
    assert [score for _, score in tiny] == pytest.approx([score for _, score in usual], abs=1e-9)


def test_the_greatest_likelihood_is_the_same() -> None:
    contours = np.random.default_rng(0).integers(0, 9, (12, 3)).astype(np.float64)
    contours[:, 1] = np.maximum(contours[:, 1], 1.0)
    cells = Cells.of_dense(np.random.default_rng(1).integers(0, 4, (9, 12)))
    tiny, usual = (IntervalSolver(contours * factor, 0.8).maximise_cells(cells) for factor in (LEAST, 1 / 16))
    for name in ("reached", "bound", "classes", "weight"):
        np.testing.assert_allclose(getattr(tiny, name), getattr(usual, name), atol=1e-12, err_msg=name)
