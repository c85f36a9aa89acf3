"""One server for the tests that do not stop it, and a client of it."""

import itertools
from collections.abc import Iterator

import pytest
from integration.client.serving import Serving

from quercus.client import Client

_numbers = itertools.count()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    serving = Serving(tmp_path_factory.mktemp("service"))
    yield serving.address
    assert serving.stop() == 0


@pytest.fixture
def client(service: str) -> Iterator[Client]:
    with Client(service) as client:
        yield client


@pytest.fixture
def model() -> str:
    return f"service-{next(_numbers)}"
