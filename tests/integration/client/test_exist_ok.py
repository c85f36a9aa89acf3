"""A model that may be there already: of the same specification it is returned, of another one it is refused."""

import asyncio
from dataclasses import replace

import pytest

from quercus.client import AlreadyExists, Client, Nominal, Numeric, Specification, aio

GIVEN = Specification(
    [Nominal("c", ["u"]), Numeric("x", cuts=4)], ["p", "q"],
    budget=3, alpha=0.5, learner={"name": "forest", "trees": 2},
)  # fmt: skip


def test_the_same_specification(client: Client, name: str) -> None:
    made = client.create_model(name, GIVEN, exist_ok=True)
    client.push(name, [["learned", 1.0]])
    again = client.create_model(name, GIVEN, exist_ok=True)
    assert (again.name, again.created_at, again.instance_count) == (name, made.created_at, 1)
    assert client.create_model(name, replace(GIVEN, alpha=None), exist_ok=True).specification.alpha == 0.5
    with pytest.raises(AlreadyExists):
        client.create_model(name, GIVEN)

    async def also() -> int:
        async with aio.Client(client.address) as other:
            return (await other.create_model(name, GIVEN, exist_ok=True)).instance_count

    assert asyncio.run(also()) == 1


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (replace(GIVEN, budget=4), "budget 3, given 4"),
        (replace(GIVEN, classes=["q", "p"]), "classes p, q, given q, p"),
        (replace(GIVEN, learner={"name": "forest", "trees": 3}), "learner trees 2, given 3"),
        (replace(GIVEN, attributes=[Numeric("x")]), "attributes c, x, given x"),
        (replace(GIVEN, attributes=[Nominal("c", ["v"]), Numeric("x", cuts=4)]), "attribute c "),
        (replace(GIVEN, attributes=[Nominal("c", ["u"]), Numeric("x", cuts=5)]), "attribute x "),
    ],
)
def test_another_specification(client: Client, name: str, other: Specification, words: str) -> None:
    client.create_model(name, GIVEN)
    with pytest.raises(AlreadyExists) as caught:
        client.create_model(name, other, exist_ok=True)
    assert f"model '{name}' exists with another specification: " in str(caught.value)
    assert words in str(caught.value)
    assert ";" not in str(caught.value)
