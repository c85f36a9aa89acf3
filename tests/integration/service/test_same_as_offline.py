"""The service is the algorithm: the same queries in the same order, the same tree, however the rows came."""

from itertools import product

import pytest
from integration.service.play import PUSHES, answered, assert_same_queries, assert_same_tree
from integration.service.problems import ORACLES, PROBLEMS, doubter, t

from quercus.client import Client

CASES = [
    *product(["table T"], PUSHES, ORACLES),
    ("iris", "batches", "doubter"),
    ("iris", "one piece", "expert"),
    ("wine", "one by one", "expert"),
]
"""All pairs of the smallest problem; each way to push, and each oracle, of the larger ones."""


@pytest.mark.parametrize(("problem", "push", "oracle"), CASES)
def test_service_is_the_algorithm(client: Client, model: str, problem: str, push: str, oracle: str) -> None:
    given = PROBLEMS[problem]()
    answer = ORACLES[oracle](given)
    client.create_model(model, given.specification)
    PUSHES[push](client, model, given)
    asked = list(answered(client, model, answer))
    offline = given.induce(answer)
    assert_same_queries(asked, offline.queries, given)
    grown = client.wait_grown(model)
    assert_same_tree(client.tree(model), offline.tree, given)
    answers = sum(answer(query.instance) is not None for query in offline.queries)
    assert grown.queries_answered == answers <= grown.budget
    assert grown.queries_refused == len(offline.queries) - answers


def test_every_row_may_be_refused(client: Client, model: str) -> None:
    """Refusals cost nothing: the algorithm goes on until no candidate is left, and so does the service."""
    given = t()
    client.create_model(model, given.specification)
    PUSHES["one piece"](client, model, given)
    asked = list(answered(client, model, lambda _: None))
    assert_same_queries(asked, given.induce(lambda _: None).queries, given)
    assert len(asked) > (given.specification.budget or 0)


def test_a_budget_raised_later_goes_on_where_it_stopped(client: Client, model: str) -> None:
    given = t()
    answer = doubter(given)
    small = {"budget": 2}
    client.create_model(model, given.specification)
    client.update_model(model, **small)
    PUSHES["batches"](client, model, given)
    asked = list(answered(client, model, answer))
    assert client.get_model(model).queries_answered == 2
    client.update_model(model, budget=given.specification.budget)
    client.wait_grown(model)
    asked += answered(client, model, answer)
    offline = given.induce(answer)
    assert_same_queries(asked, offline.queries, given)
    client.wait_grown(model)
    assert_same_tree(client.tree(model), offline.tree, given)
