"""Bounds on callers without a token: requests of probes, calls at a time, unknown tokens."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from quercus.belief.errors import InvalidInput
from quercus.server.gate import throttle
from quercus.server.gate.access import MAX_LOOKUPS, TokenAuthority
from quercus.server.gate.throttle import MAX_PROBE_BYTES, MAX_READINGS, CallsAtOnce, ProbeReadings
from quercus.server.wire.errors import ResourceExhausted, Unauthenticated
from quercus.storage import TokenRecord


async def one(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def never() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


def test_the_oldest_request_that_does_not_arrive_gives_way() -> None:
    async def read() -> None:
        probes = ProbeReadings()
        held = [asyncio.create_task(probes.read_request(never())) for _ in range(MAX_READINGS)]
        await asyncio.sleep(0)
        for k in range(3):
            assert await probes.read_request(one(b"grower")) == b"grower"
            with pytest.raises(ResourceExhausted, match="did not arrive in time"):
                await held[k]
            held.append(asyncio.create_task(probes.read_request(never())))
            await asyncio.sleep(0)
        left = [each for each in held if not each.done()]
        assert len(left) == MAX_READINGS
        for each in left:
            each.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        assert not probes._under_way

    asyncio.run(read())


def test_a_request_has_little_time_and_little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "READING_S", 0.01)

    async def read() -> None:
        probes = ProbeReadings()
        with pytest.raises(ResourceExhausted, match="did not arrive in time"):
            await probes.read_request(never())
        with pytest.raises(InvalidInput, match="has 4,097 bytes, a probe has at most 4,096"):
            await probes.read_request(one(bytes(MAX_PROBE_BYTES + 1)))
        assert not probes._under_way

    asyncio.run(read())


def test_a_call_counts_until_its_task_ends() -> None:
    calls = CallsAtOnce(2, " of strangers")

    async def call(over: asyncio.Event) -> None:
        calls.count_call()
        await over.wait()

    async def make() -> None:
        over = asyncio.Event()
        tasks = [asyncio.create_task(call(over)) for _ in range(3)]
        with pytest.raises(ResourceExhausted, match="max_calls: 2 calls of strangers are under way"):
            await tasks[2]
        over.set()
        await asyncio.gather(*tasks[:2])
        await asyncio.create_task(call(over))

    asyncio.run(make())


def test_few_unknown_tokens_are_looked_up_at_a_time() -> None:
    """Those beyond them may be good ones, made a moment ago: they are told to call again."""
    loaded = asyncio.Event()

    async def load() -> list[TokenRecord]:
        await loaded.wait()
        return []

    async def identify() -> None:
        authority = TokenAuthority(load)
        tokens = [f"Bearer quercus_{k:012x}_{'A' * 43}" for k in range(MAX_LOOKUPS + 1)]
        calls = [asyncio.create_task(authority.identify_caller(token)) for token in tokens]
        with pytest.raises(ResourceExhausted, match="too many unknown tokens"):
            await calls[-1]
        loaded.set()
        for each in await asyncio.gather(*calls[:-1], return_exceptions=True):
            assert isinstance(each, Unauthenticated)
        with pytest.raises(Unauthenticated):
            await authority.identify_caller(tokens[0])

    asyncio.run(identify())
