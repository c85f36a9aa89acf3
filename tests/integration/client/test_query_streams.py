"""Queries that come, and answers that go, on one stream."""

import asyncio
import time
from pathlib import Path

import pytest
from integration.client.serving import Serving

from quercus.client import Client, FailedPrecondition, InvalidArgument, Model, Nominal, Specification, aio
from quercus.client.query_calls import LONGEST_POLL_S

ROWS = [["a", 0.5], ["a", 1.5], ["b", 0.5], ["b", 2.5]]
SPECIFICATION = Specification([Nominal("X", "ab"), Nominal("Y", "cd")], ["o", "s"], budget=6, alpha=0.9)
TWICE = [[x, y] for x in "ab" for y in "cd"] * 4


def truth(x: object) -> str:
    return "o" if x == "a" else "s"


def answered(client: Client, name: str) -> list[str]:
    return [query.name for query in client.list_queries(name, ["answered"])]


def leased(client: Client, name: str) -> set[str]:
    return {query.name for query in client.list_queries(name, ["leased"])}


def test_queries_are_answered_until_the_budget_is_spent(client: Client, model: Model) -> None:
    client.push(model.name, ROWS * 5)
    told = {}
    with client.stream_queries(model.name, "ann", prefetch=2, idle_s=None) as stream:
        for query in stream:
            report = stream.answer(query, truth(query.values["X"]), comment="seen")
            told[query.name] = report.committed_sequence
    assert sorted(told) == sorted(answered(client, model.name))
    assert len(set(told.values())) == 3
    assert client.get_model(model.name).queries_leased == 0


def test_what_is_not_answered_goes_back(client: Client, model: Model) -> None:
    client.push(model.name, ROWS * 5)
    with client.stream_queries(model.name, "ann", prefetch=2, lease_s=600) as stream:
        left = next(stream)
        other = next(stream)
        assert left.name != other.name
        stream.skip(other)
        stream.release(next(stream))
        stream.postpone(next(stream), 600)
        refused = next(stream)
        stream.refuse(refused, comment="a blot")
        next(stream)
    states = {query.name: query.state for query in client.list_queries(model.name)}
    assert states[refused.name] == "refused"
    with Client(client.address) as late:
        late.lease(
            model.name, "bob", wait_s=LONGEST_POLL_S
        )  # all was given back: bob need not wait for a lease to end
    kinds = [step.kind for step in client.query_history(model.name)]
    assert kinds.count("skipped") == kinds.count("postponed") == kinds.count("refused") == 1
    assert "expired" not in kinds


def test_one_bad_answer_is_one_bad_answer(client: Client, model: Model) -> None:
    client.push(model.name, ROWS * 5)
    with client.stream_queries(model.name, "ann", prefetch=1) as stream:
        first = next(stream)
        with pytest.raises(InvalidArgument, match="reliability") as caught:
            stream.answer(first, "o", reliability=2.0)
        assert [violation.field for violation in caught.value.violations] == ["reliability"]
        assert stream.answer(first, "o") == stream.answer(first, "o")
        with pytest.raises(FailedPrecondition, match="answered"):
            stream.answer(first, "s")
        second = next(stream)
        stream.answer(second, {"o", "s"})
    assert set(answered(client, model.name)) == {first.name, second.name}


def test_leases_live_while_the_labeller_thinks(client: Client, model: Model) -> None:
    client.update_model(model.name, budget=2)
    client.push(model.name, ROWS * 3)
    with client.stream_queries(model.name, "ann", prefetch=2, lease_s=2.0) as stream:
        query = next(stream)
        with Client(client.address) as other:
            assert not other.lease(model.name, "bob", wait_s=4.0).queries
        stream.answer(query, "o")
    assert "expired" not in [step.kind for step in client.query_history(model.name)]


def test_the_time_that_a_labeller_takes_is_not_idle(client: Client, model: Model) -> None:
    client.push(model.name, ROWS)
    client.wait_grown(model.name)
    since = None
    with client.stream_queries(model.name, "ann", prefetch=1, idle_s=0.6) as stream:
        for query in stream:
            stream.skip(query)
            time.sleep(0.6)  # what is tested is that time passes
            since = time.monotonic()
    assert since is not None
    assert time.monotonic() - since > 0.3  # it waited for more to ask


def test_one_answered_elsewhere_frees_its_credit(client: Client, model: Model) -> None:
    client.push(model.name, ROWS * 5)
    with client.stream_queries(model.name, "ann", prefetch=1, lease_s=1.0, idle_s=None) as stream:
        names = []
        for query in stream:
            client.answer(query, truth(query.values["X"]))
            names.append(query.name)
    assert sorted(names) == sorted(answered(client, model.name))


@pytest.mark.slow
def test_a_stream_goes_on_after_the_server_was_killed(tmp_path: Path) -> None:
    serving = Serving(tmp_path)
    try:
        with Client(serving.address, outage_s=60) as client:
            client.create_model("m", SPECIFICATION)
            client.push("m", TWICE)
            client.wait_grown("m")
            said = []
            with client.stream_queries("m", "ann", prefetch=2, lease_s=5, idle_s=None) as stream:
                for number, query in enumerate(stream):
                    if number == 1:
                        port = serving.port
                        serving.kill()
                        serving = Serving(tmp_path, port)
                    said.append(
                        (query.name, stream.answer(query, truth(query.values["X"])).committed_sequence)
                    )
            assert len(said) == 6
            assert sorted(name for name, _ in said) == sorted(answered(client, "m"))
            assert len({sequence for _, sequence in said}) == 6
    finally:
        serving.stop()


@pytest.mark.slow
def test_asyncio_too(tmp_path: Path) -> None:
    serving = Serving(tmp_path)

    async def work() -> None:
        nonlocal serving
        async with aio.Client(serving.address, outage_s=60) as client:
            await client.create_model("m", SPECIFICATION)
            await client.push("m", TWICE)
            await client.wait_grown("m")
            said, skipped = [], ""
            async with client.stream_queries("m", "ann", prefetch=2, lease_s=5, idle_s=60.0) as stream:
                async for query in stream:
                    if not skipped:
                        await stream.skip(query)
                        skipped = query.instance
                        continue
                    assert query.instance != skipped
                    if len(said) == 1:
                        port = serving.port
                        serving.kill()
                        serving = await asyncio.to_thread(Serving, tmp_path, port)
                    with pytest.raises(InvalidArgument, match="reliability"):
                        await stream.answer(query, "o", reliability=2.0)
                    report = await stream.answer(query, truth(query.values["X"]))
                    said.append((query.name, report.committed_sequence))
                    if (
                        len(said) == 3
                    ):  # before the outage, in it, after it; what was skipped may leave no 6 to ask
                        break
            assert len({sequence for _, sequence in said}) == 3
            done = [query.name async for query in client.list_queries("m", ["answered"])]
            assert sorted(done) == sorted(name for name, _ in said)

    try:
        asyncio.run(work())
    finally:
        serving.stop()
