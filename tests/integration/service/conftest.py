"""One server for the tests that do not stop it, and a client of it."""

import itertools
from collections.abc import Iterator

import pytest
from integration.client.serving import Serving

from quercus.client import Client

_numbers = itertools.count()


@pytest.fixture(scope="session")
def service(shared_server: Serving) -> str:
    return shared_server.address


@pytest.fixture
def client(service: str) -> Iterator[Client]:
    with Client(service) as client:
        yield client


@pytest.fixture
def model() -> str:
    return f"service-{next(_numbers)}"
