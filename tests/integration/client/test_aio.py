"""The asyncio client against the same server: the same calls, awaited."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing

import pytest
from integration.client.serving import Serving
from support.published import published_model

from quercus.client import (
    DeadlineExceeded,
    Model,
    Nominal,
    NotFound,
)
from quercus.client.aio import Client

ROWS = [["a", 0.5], ["b", 1.5], ["a", None], ["b", 2.5]]
Work = Callable[[Client], Awaitable[None]]


def run(serving: Serving, work: Work) -> None:
    async def connected() -> None:
        async with Client(serving.address) as client:
            await work(client)

    asyncio.run(connected())


def test_models(serving: Serving, name: str) -> None:
    async def work(client: Client) -> None:
        await client.wait_ready()
        await client.create_model(
            name, published_model([Nominal("X", "ab")], ["o", "s"], budget=3, strategy="published")
        )
        assert (await client.update_model(name, budget=4)).budget == 4
        assert name in [model.name async for model in client.models()]
        await client.delete_model(name)
        with pytest.raises(NotFound):
            await client.get_model(name)

    run(serving, work)


def test_pushing_sync_and_async_iterables(serving: Serving, model: Model) -> None:
    async def source() -> AsyncIterator[list[object]]:
        for i in range(250):
            await asyncio.sleep(0)
            yield [f"v{i // 100}", float(i)]

    async def work(client: Client) -> None:
        first = await client.push(model.name, ROWS, ["o", "s", None, {"o": 0.5, "s": 1.0}], ids=list("pqrt"))
        assert (first.stored, first.known) == (4, 0)
        assert (
            await client.push(model.name, ROWS, ["o", "s", None, {"o": 0.5, "s": 1.0}], ids=list("pqrt"))
        ).known == 4
        assert (await client.push(model.name, source(), batch_rows=20, window=2)).rows == 250
        assert (await client.get_model(model.name)).instance_count == 254
        assert (await client.get_instance(model.name, "t")).contour == (0.5, 1.0)
        ids = [each.id async for each in client.instances(model.name)]
        assert ids[:4] == list("pqrt")
        assert len(ids) == 254

    run(serving, work)


def test_queries_classification_and_trees(serving: Serving, model: Model) -> None:
    async def work(client: Client) -> None:
        await client.push(model.name, ROWS * 5)
        async for query in client.queries(model.name, "ann", idle_s=None):
            await client.answer(query, "o" if query.values["X"] == "a" else "s")
        answered = [query async for query in client.list_queries(model.name, ["answered"])]
        assert len(answered) == 3
        grown = await client.wait_grown(model.name)
        answers = await client.classify(model.name, ROWS)
        assert answers.version == grown.tree_version
        assert (await client.tree(model.name)).root.count == 20
        assert (await client.render(model.name, "dot")).startswith("digraph")

    run(serving, work)


def test_leases_are_extended_and_an_abandoned_one_goes_back(serving: Serving, model: Model) -> None:
    async def work(client: Client) -> None:
        await client.update_model(model.name, budget=1)
        await client.push(model.name, ROWS * 3)
        async with Client(serving.address) as other:
            async with aclosing(client.queries(model.name, "ann", lease_s=2.0)) as queries:
                held = await anext(queries)
                assert not (await other.lease(model.name, "bob", wait_s=4.0)).queries
            (query,) = (await other.lease(model.name, "bob", wait_s=30.0)).queries
            assert query.number == held.number
            await other.refuse(query)

    run(serving, work)


def test_watching_and_waiting(serving: Serving, model: Model) -> None:
    async def work(client: Client) -> None:
        async with aclosing(client.watch(model.name, timeout_s=60.0)) as updates:
            assert len((await anext(updates)).tree.nodes) == 1
            report = await client.push(model.name, ROWS * 10, ["o", "s"] * 20)
            async for update in updates:
                if update.tree.as_of >= report.committed_sequence:
                    break
            assert update.tree.root.attribute == "X"
        async with aclosing(client.watch_versions(model.name, timeout_s=60.0)) as versions:
            newest = await anext(versions)
        assert (newest.version, newest.as_of, newest.lag) == (update.tree.version, update.tree.as_of, 0)
        with pytest.raises(DeadlineExceeded, match=r"after 0\.5 s"):
            await client.wait_grown(model.name, 10_000, timeout_s=0.5)

    run(serving, work)
