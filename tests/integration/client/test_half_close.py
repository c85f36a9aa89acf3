"""A stream whose work is done is closed, not cancelled: the server counts it as one that went well."""

import asyncio
import socket
import urllib.request
from collections.abc import Iterator

import pytest
from integration.client.serving import Serving

from quercus.client import Client, Nominal, Specification, aio

SPECIFICATION = Specification([Nominal("X", "ab")], ["o", "s"], budget=5)
ROWS = [["a"], ["b"]] * 50


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Serving, int]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    serving = Serving(
        tmp_path_factory.mktemp("half"),
        0,
        "--http-port",
        str(port),
        grower=False,
    )
    yield serving, port
    serving.stop()


def handled(port: int, method: str) -> dict[str, float]:
    """Return the number of calls of a method that ended with each status."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
        lines = response.read().decode().splitlines()
    found = [line for line in lines if line.startswith("grpc_server_handled_total") and f'"{method}"' in line]
    return {line.partition('grpc_code="')[2].partition('"')[0]: float(line.split()[-1]) for line in found}


def push(address: str, model: str) -> None:
    with Client(address) as client:
        client.create_model(model, SPECIFICATION)
        assert client.push(model, ROWS, batch_rows=10).rows == len(ROWS)


async def push_from_asyncio(address: str, model: str) -> None:
    async with aio.Client(address) as client:
        await client.create_model(model, SPECIFICATION)
        assert (await client.push(model, ROWS, batch_rows=10)).rows == len(ROWS)


def test_pushes_and_streams_of_queries_end_well(served: tuple[Serving, int]) -> None:
    serving, port = served
    for k in range(5):
        push(serving.address, f"m{k}")
        asyncio.run(push_from_asyncio(serving.address, f"n{k}"))
    assert handled(port, "PushInstances") == {"OK": 10}
    with Client(serving.address) as client:
        for _ in range(3):
            with client.stream_queries("m0", "ann"):
                pass
    assert handled(port, "StreamQueries") == {"OK": 3}


def test_an_outbox_ends_well(served: tuple[Serving, int]) -> None:
    serving, port = served
    with Client(serving.address) as client:
        client.create_model("box", SPECIFICATION)
        with client.outbox("box") as outbox:
            for _ in range(3):
                outbox.put(ROWS)
        assert client.get_model("box").instance_count == 3 * len(ROWS)
    assert set(handled(port, "PushInstances")) <= {"OK"}
