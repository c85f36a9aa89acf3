"""One live server for all tests of the client; each test has a model of its own."""

import itertools
from collections.abc import Iterator

import pytest
from integration.client.serving import Serving
from support.published import published_model

from quercus.client import Client, Model, Nominal, Numeric

_numbers = itertools.count()


@pytest.fixture(scope="session")
def serving(shared_server: Serving) -> Serving:
    return shared_server


@pytest.fixture
def client(serving: Serving) -> Iterator[Client]:
    with Client(serving.address) as connected:
        yield connected


@pytest.fixture
def name() -> str:
    return f"model-{next(_numbers)}"


@pytest.fixture
def model(client: Client, name: str) -> Model:
    """X in {a, b}, y a number cut at 1 and 2; classes o and s; a budget of 3."""
    attributes = [Nominal("X", ["a", "b"]), Numeric("y", edges=[1.0, 2.0])]
    return client.create_model(name, published_model(attributes, ["o", "s"], budget=3, strategy="published"))
