"""A labeller who waits gets what comes back, although all counts of the model are as when there was nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import words

from quercus.belief.codec import encode_sets
from quercus.server.config import Config
from quercus.server.core.service_core import ServiceCore
from quercus.server.labelling.query_stream import QueryStream
from quercus.server.services.queries import QueryService
from quercus.server.wire.models import complete_specification
from quercus.storage import AgendaEntry, GroupCall, LeaseRequest, Policy
from quercus.storage.store import Store
from quercus.v1 import model_pb2, query_pb2

DEADLINE_S = 20
NOTHING: Callable[[], object] = lambda: None  # noqa: E731


class Quiet(Store):
    """A store whose changes are noticed when the test says so; something may happen right before and after a try."""

    told = 0
    tries = 0  # of bob, which brought nothing
    before = after = staticmethod(NOTHING)  # bob's next try

    def change_token(self) -> int:
        return self.told

    def run_group(self, calls: Sequence[GroupCall]) -> list[Any]:
        of_bob = [isinstance(call, LeaseRequest) and call.labeller == "bob" for call in calls]
        before, after = (self.before, self.after) if any(of_bob) else (NOTHING, NOTHING)
        if any(of_bob):
            self.before = self.after = NOTHING
        before()
        outcomes = super().run_group(calls)
        after()
        self.tries += sum(bob and not leased.queries for bob, leased in zip(of_bob, outcomes, strict=True))
        return outcomes


async def unary(core: ServiceCore, model: str) -> query_pb2.Query:
    request = query_pb2.LeaseQueriesRequest(model=f"models/{model}", labeller="bob")
    request.wait.FromSeconds(DEADLINE_S)
    (query,) = (await QueryService(core).LeaseQueries(request, None)).queries
    return query


async def stream(core: ServiceCore, model: str) -> query_pb2.Query:
    over = asyncio.Event()

    async def requests() -> AsyncIterator[query_pb2.StreamQueriesRequest]:
        yield query_pb2.StreamQueriesRequest(model=f"models/{model}", labeller="bob", credits=1)
        await over.wait()

    async for response in QueryStream(core).run_stream(requests()):
        if response.HasField("query"):
            over.set()
            query = response.query
    return query


@pytest.fixture
def store(tmp_path: Path) -> Quiet:
    opened = Quiet.open(f"sqlite:///{tmp_path / 'store.db'}")
    assert isinstance(opened, Quiet)
    specification = complete_specification(
        model_pb2.Specification(
            attributes=[model_pb2.Attribute(name="X", nominal=model_pb2.NominalAttribute(values=["a", "b"]))],
            classes=["p", "q"],
            budget=5,
        )
    )
    opened.create_model("m", specification.SerializeToString(), budget=5)
    opened.append_instances("m", ["a", "b"], np.zeros((2, 1)), encode_sets(np.array([3, 3], dtype=np.uint64)))
    opened.publish("m", as_of=2, snapshot=b"", agenda=[AgendaEntry(1, b"", b""), AgendaEntry(2, b"", b"")])
    return opened


def take(store: Store, labeller: str = "ann", limit: int = 1) -> list[tuple[int, str]]:
    return [(each.number, each.token) for each in store.lease("m", labeller, limit, 60.0).queries]


def wait(store: Quiet, way: Any, model: str) -> query_pb2.Query:
    """Return the query of bob, who first gets nothing."""

    async def run() -> query_pb2.Query:
        core = ServiceCore(store, Config(store="unused", poll_ms=1))
        core.start()
        try:
            async with asyncio.timeout(DEADLINE_S + 5):
                while not core.changes.change_count:  # what is there when a server starts is told too
                    await asyncio.sleep(0.001)
                bob = asyncio.create_task(way(core, model))
                while not store.tries:
                    await asyncio.sleep(0.001)
                store.told += 1
                found: query_pb2.Query = await bob
                return found
        finally:
            await core.close()

    return asyncio.run(run())


@pytest.fixture(params=[unary, stream], ids=lambda way: way.__name__)
def way(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=["m", "-"])
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_what_was_taken_between_look_and_try_comes_back(store: Quiet, way: Any, model: str) -> None:
    held: list[tuple[int, str]] = []
    store.before = lambda: held.extend(take(store, limit=2))
    store.after = lambda: [store.release("m", *each) for each in held]
    assert wait(store, way, model).name == "models/m/queries/1"


def test_another_query_is_open_than_was(store: Quiet, way: Any, model: str) -> None:
    """One is held and one is open, as before; bob skipped that which was open before."""
    (held,) = take(store)
    (other,) = take(store, "bob")
    store.skip("m", *other)

    def exchange() -> None:
        store.skip("m", *held)
        assert [number for number, _ in take(store)] == [other[0]]

    store.after = exchange
    assert wait(store, way, model).name == f"models/m/queries/{held[0]}"


def test_a_labeller_may_hold_more(store: Quiet, way: Any, model: str) -> None:
    store.set_policy("m", Policy(max_held=1))
    take(store, "bob")
    store.after = lambda: store.set_policy("m", Policy(max_held=2))
    assert wait(store, way, model).name == "models/m/queries/2"


def test_a_budget_that_was_lowered_for_a_moment(store: Quiet, way: Any, model: str) -> None:
    take(store)
    specification = store.get_model("m").specification
    store.before = lambda: store.respecify("m", specification, budget=1)
    store.after = lambda: store.respecify("m", specification, budget=5)
    assert wait(store, way, model).name == "models/m/queries/2"


def test_one_who_waits_for_the_tree_tries_again_when_it_has_grown(store: Quiet, way: Any) -> None:
    """Not when others take queries, which changes the model and not what the tree has seen."""
    unknown = encode_sets(np.full(4, 3, dtype=np.uint64))
    store.append_instances("m", ["c", "d", "e", "f"], np.zeros((4, 1)), unknown)
    store.publish("m", as_of=6, snapshot=b"", agenda=[AgendaEntry(k, b"", b"") for k in range(1, 7)])
    words.answer(store, "m", *take(store, "bob")[0])

    async def run() -> query_pb2.Query:
        core = ServiceCore(store, Config(store="unused", poll_ms=1))
        core.start()

        async def tell() -> None:
            changes = core.changes.change_count
            store.told += 1
            while core.changes.change_count == changes:
                await asyncio.sleep(0.001)

        try:
            async with asyncio.timeout(DEADLINE_S + 5):
                while not core.changes.change_count:
                    await asyncio.sleep(0.001)
                bob = asyncio.create_task(way(core, "m"))
                while not store.tries:
                    await asyncio.sleep(0.001)
                for _ in range(3):
                    take(store)
                    await tell()
                    await asyncio.sleep(0.05)  # nothing is to happen
                assert store.tries == 1
                assert not bob.done()
                sequence = store.get_model("m").sequence_committed
                store.publish("m", as_of=sequence, snapshot=b"", agenda=[AgendaEntry(5, b"", b"")])
                await tell()
                found: query_pb2.Query = await bob
                return found
        finally:
            await core.close()

    assert asyncio.run(run()).name == "models/m/queries/5"
