"""Two servers on one store: whoever pushes or labels may use either, and when one dies the other grows everything."""

import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest
from integration.client.serving import Serving
from integration.service.play import assert_same_queries, assert_same_tree, settle
from integration.service.problems import doubter, iris
from support.command_line import quercus
from support.published import published_model

from quercus.client import Client, Query, Specification

TTL_S = 1.0
WAIT_S = 60.0
MODELS = [f"m{number}" for number in range(12)]
SETTINGS = {"grower_ttl_s": TTL_S, "poll_ms": 25}


@pytest.fixture
def servers(postgres_url: str, tmp_path: Path) -> Iterator[tuple[Serving, Serving]]:
    first = Serving(tmp_path, store=postgres_url, **SETTINGS)
    second = Serving(tmp_path, store=postgres_url, **SETTINGS)
    yield first, second
    first.kill()
    second.kill()


def growers_settle(client: Client, count: int) -> dict[bool, int]:
    """Wait until so many growers share all the models; how many each has, by whether it is this server's."""
    deadline = time.monotonic() + WAIT_S
    while True:
        growers = client.status().growers
        shares = {each.own: each.models for each in growers}
        if len(shares) == count and min(shares.values()) > 0 and sum(shares.values()) == len(MODELS):
            return shares
        assert time.monotonic() < deadline, growers
        time.sleep(0.05)


@pytest.mark.release
@pytest.mark.timeout(240)
def test_two_servers_share_models_and_labellers(servers: tuple[Serving, Serving]) -> None:
    problem = iris()
    oracle = doubter(problem)
    with Client(servers[0].address) as one, Client(servers[1].address) as other:
        one.wait_ready(WAIT_S)
        other.wait_ready(WAIT_S)
        for name in MODELS:
            one.create_model(name, problem.specification if name == "m0" else _plain(problem.specification))
            other.push(name, problem.rows, problem.labels, problem.ids)
        for name in MODELS:
            one.wait_grown(name)
        growers_settle(one, 2)
        asked: list[Query] = []
        clients = cycle([(one, other), (other, one)])  # a query leased here is answered there
        while leased := (turn := next(clients))[0].lease("m0", "ann", wait_s=2).queries:
            settle(turn[1], leased[0], oracle)
            asked += leased
        offline = problem.induce(oracle)
        assert_same_queries(asked, offline.queries, problem)
        one.wait_grown("m0")
        assert_same_tree(one.tree("m0"), offline.tree, problem)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_when_one_dies_the_other_grows_everything(servers: tuple[Serving, Serving]) -> None:
    specification = _plain(iris().specification)
    rows = iris().rows
    with Client(servers[0].address) as one, Client(servers[1].address) as other:
        for name in MODELS:
            one.create_model(name, specification)
            one.push(name, rows[:20], ids=[f"{i}" for i in range(20)])
        for name in MODELS:
            other.wait_grown(name)
        growers_settle(other, 2)
        servers[0].kill()
        began = time.monotonic()
        for name in MODELS:
            other.push(name, rows[20:21], ids=["late"])
        for name in MODELS:
            other.wait_grown(name)
        print(f"all models are grown {time.monotonic() - began:.2f} s after the other server died")
        assert growers_settle(other, 1) == {True: len(MODELS)}
        for name in MODELS:
            assert other.tree(name).as_of == 21
    shown = quercus("status", server=servers[1].address).stdout
    assert "12 models (this server)" in shown
    assert servers[1].stop() == 0


def _plain(specification: Specification) -> Specification:
    return published_model(
        specification.attributes, specification.classes, alpha=specification.alpha, budget=0, warmup_rows=10
    )
