"""The strategies of the forest that asks, on a live server: named, changed, refused."""

import numpy as np
import pytest

from quercus.client import Client, InvalidArgument, Numeric, Query, Specification
from quercus.specification.reasons import SIMILAR_ROWS
from quercus.specification.strategies import strategies
from quercus.trees.memory_forest.asking import choose_rows
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.memory_forest.worth import disagreement_worth, margin_worth

CLASSES = ("low", "high")
LEARNER = {"name": "active-forest", "trees": 12, "seed": 2}
TOLD = 240  # more than the shortest memory holds


def specification(strategy: str | None) -> Specification:
    return Specification([Numeric("x"), Numeric("y")], CLASSES, budget=30, strategy=strategy, learner=LEARNER)


def test_it_asks_by_the_strategy_that_it_names_and_by_another_one_from_then_on(
    client: Client, name: str
) -> None:
    """The labels change in the middle of the stream, so that memories disagree."""
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(TOLD + 60, 2))
    truth = np.where(np.arange(TOLD) < TOLD // 2, rows[:TOLD, 0] > 0, rows[:TOLD, 1] > 0).astype(int)
    labels = [CLASSES[c] for c in truth] + [None] * 60
    held = client.create_model(name, specification("memory-disagreement")).specification
    assert held.strategy == {"name": "memory-disagreement"}
    client.push(name, rows.tolist(), labels, ids=[str(i) for i in range(len(rows))])

    def asked() -> Query:
        client.wait_grown(name)
        (query,) = client.lease(name, "ann", wait_s=30.0).queries
        client.release(query)
        return query

    first = asked()
    kept = client.update_model(name, strategy="margin").specification
    assert kept.strategy == client.get_model(name).specification.strategy == {"name": "margin"}
    second = asked()
    assert [query.reason.strategy for query in (first, second)] == ["memory-disagreement", "margin"]
    offline = MemoryForest(np.array([False, False]), 2, trees=12, seed=2, level=0.75)
    offline.observe(rows, np.vstack([np.eye(2)[truth], np.ones((60, 2))]))
    for query in (first, second):
        worth = {"margin": margin_worth, "memory-disagreement": disagreement_worth}[query.reason.strategy]
        (choice,) = choose_rows(offline, np.arange(TOLD, TOLD + 60), 1, worth=worth)
        assert int(query.instance) == choice.row
        assert query.reason.score == pytest.approx(choice.scores.max())
        assert query.reason.fact(SIMILAR_ROWS) == choice.stands_for - 1


def test_a_strategy_that_is_not_of_the_forest_is_refused_with_those_that_are(
    client: Client, name: str
) -> None:
    known = ", ".join(strategies("forest"))
    for strategy in ("committee", "covering-committee"):
        with pytest.raises(InvalidArgument, match=f"'{strategy}', must be one of {known}; '"):
            client.create_model(name, specification(strategy))
    client.create_model(name, specification(None))
    with pytest.raises(InvalidArgument, match=f"'committee', must be one of {known}; '"):
        client.update_model(name, strategy="committee")
    with pytest.raises(
        InvalidArgument,
        match=r"'margin', must be one of covering-committee, .*; 'margin' is for models whose forest asks",
    ):
        client.create_model(
            f"{name}-t", Specification([Numeric("x")], CLASSES, strategy="margin", learner="abc45")
        )
