"""Models of other learners than ABC4.5 ask too: what an active tree beside them, over the same evidence, would ask."""

from typing import Any

import numpy as np
import pytest
from support.published import published_tree

from quercus.belief.frame import Frame
from quercus.client import Client, Nominal, Specification
from quercus.specification import learners
from quercus.specification.attributes import Nominal as DomainNominal
from quercus.trees import C45, E2m, Forest
from quercus.trees.growth.stream import Answered, GrowthState, Observed, grow
from quercus.trees.learners.learner import fit
from quercus.trees.learners.table import Table

CLASSES = ("o", "s", "x")
VALUES = ("a", "b", "c")
ROWS, BUDGET = 40, 6
DOMAIN = tuple(DomainNominal(f"x{k}", VALUES) for k in range(3))
LEARNERS: dict[str, tuple[Any, learners.SpecifiedLearner]] = {
    "forest": (
        {"name": "forest", "trees": 4, "base": {"name": "e2m", "informed_only": True}},
        Forest(E2m(informed_only=True), 4),
    ),
    "informed": ({"name": "e2m", "informed_only": True}, E2m(informed_only=True)),
    "c45": ("c45", C45()),
    "e2m": ("e2m", E2m()),
}


def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes, contours of which nothing is known, truth."""
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 3, (ROWS, 3))
    truth = (codes[:, 0] + (codes[:, 1] == 1)) % 3
    return codes, np.ones((ROWS, 3)), truth


@pytest.mark.parametrize(
    "strategy", ["published", pytest.param("covering-committee", marks=pytest.mark.release)]
)
@pytest.mark.parametrize(
    "which",
    [pytest.param("forest", marks=pytest.mark.release), *(each for each in LEARNERS if each != "forest")],
)
def test_it_asks_what_an_active_tree_would(client: Client, name: str, which: str, strategy: str) -> None:
    wire, domain = LEARNERS[which]
    codes, contours, truth = rows()
    attributes = [Nominal(attribute.name, VALUES) for attribute in DOMAIN]
    client.create_model(
        name, Specification(attributes, CLASSES, learner=wire, strategy=strategy, split_significance=0.0)
    )
    ids = [str(i) for i in range(ROWS)]
    client.push(name, [[VALUES[v] for v in row] for row in codes.tolist()], ids=ids)
    client.wait_grown(name)
    assert client.lease(name, "ann", wait_s=0).idle == "budget_spent"
    client.update_model(name, budget=BUDGET)  # the tree beside it has followed the log all the time

    specification = published_tree(DOMAIN, Frame(CLASSES), budget=BUDGET, strategy=strategy)
    state = grow(GrowthState.initial(specification), [Observed(codes.astype(float), contours)])
    while queries := state.agenda(1):
        (due,) = queries
        client.wait_grown(name)
        (query,) = client.lease(name, "ann", wait_s=30.0).queries
        assert query.instance == ids[due.instance]
        assert [attribute for attribute, _ in query.reason.path] == [f"x{split}" for split, _ in due.path]
        assert query.reason.attribute == ("" if due.attribute is None else f"x{due.attribute}")
        client.answer(query, CLASSES[truth[due.instance]])
        state = grow(state, [Answered(due.instance, np.eye(3)[truth[due.instance]], 1.0, due.asked)])
    assert state.answers > 1
    client.wait_grown(name)

    known = np.array([state.contour(row) for row in range(ROWS)])
    expected = fit(domain, Table.of_contours(codes.astype(float), DOMAIN, known)).predict(codes.astype(float))
    served = client.classify(name, [[VALUES[v] for v in row] for row in codes.tolist()])
    if which != "e2m":  # which follows the log row by row, so its estimates differ in the last digits
        assert served.theta.tolist() == expected.theta.tolist()
    assert served.indices.tolist() == expected.klass.tolist()
    client.delete_model(name)
