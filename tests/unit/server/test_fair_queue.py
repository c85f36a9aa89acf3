"""The order of leases: the labeller served longest ago comes first, and each leaves queries for those who wait."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from quercus.server.core.fair_queue import MAX_GROUP, FairQueue, QueuedRequest, fair_share

WAIT_S = 10.0
Line = FairQueue[int, int]
Serve = Callable[[str, Sequence[QueuedRequest[int, int]]], Any]


def run(work: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(WAIT_S):
            await work

    asyncio.run(bounded())


def giving(line: Line, order: list[str]) -> Serve:
    """Give each what it asks for, and remember who came when."""

    async def serve(model: str, turns: Sequence[QueuedRequest[int, int]]) -> None:
        for turn in turns:
            order.append(turn.labeller)
            line.record_served(model, turn.labeller)
            turn.outcome.set_result(turn.asked)

    return serve


def test_who_was_served_longest_ago_comes_first() -> None:
    async def work() -> None:
        line, order = Line(), []
        serve = giving(line, order)
        for _ in range(3):  # the same three wake again and again, in the order of the fastest
            names = ("ann", "ann", "bob", "cleo")
            turns = [line.join_line("m", name, place, serve) for place, name in enumerate(names)]
            assert await asyncio.gather(*(turn.outcome for turn in turns)) == [0, 1, 2, 3]
        # ann asks twice each time: her second call waits for the others
        assert order == [
            *("ann", "bob", "cleo", "ann"),
            *("bob", "cleo", "ann", "ann"),
            *("bob", "cleo", "ann", "ann"),
        ]

    run(work())


def test_all_who_wait_are_served_together_and_other_models_beside_them() -> None:
    async def work() -> None:
        line, groups, go = Line(), [], asyncio.Event()

        async def serve(model: str, turns: Sequence[QueuedRequest[int, int]]) -> None:
            groups.append([model, *((turn.labeller, turn.others) for turn in turns)])
            if model == "m":
                await go.wait()
            for turn in turns:
                turn.outcome.set_result(turn.asked)

        first = line.join_line("m", "ann", 1, serve)
        while not groups:
            await asyncio.sleep(0)
        later = [line.join_line("m", name, 1, serve) for name in ("bob", "cleo", "bob")]
        await line.join_line("n", "bob", 1, serve).outcome
        assert not first.outcome.done()
        go.set()
        await asyncio.gather(first.outcome, *(turn.outcome for turn in later))
        assert groups == [
            ["m", ("ann", 0)],
            ["n", ("bob", 0)],
            ["m", ("bob", 1), ("cleo", 1), ("bob", 0)],
        ]

    run(work())


def test_a_long_line_is_served_in_several_groups() -> None:
    async def work() -> None:
        line, sizes = Line(), []

        async def serve(_: str, turns: Sequence[QueuedRequest[int, int]]) -> None:
            sizes.append(len(turns))
            for turn in turns:
                turn.outcome.set_result(turn.asked)

        turns = [line.join_line("m", f"l{i}", i, serve) for i in range(MAX_GROUP + 5)]
        assert await asyncio.gather(*(turn.outcome for turn in turns)) == list(range(MAX_GROUP + 5))
        assert sizes == [MAX_GROUP, 5]

    run(work())


def test_who_gives_up_while_waiting_blocks_nobody() -> None:
    async def work() -> None:
        line, order = Line(), []
        serve = giving(line, order)
        line.join_line("m", "bob", 1, serve).outcome.cancel()
        assert await line.join_line("m", "cleo", 2, serve).outcome == 2
        assert order == ["cleo"]

    run(work())


def test_a_failure_is_reported_to_all_and_the_next_are_served() -> None:
    async def work() -> None:
        line, order = Line(), []

        async def fail(*_: object) -> None:
            raise KeyError("m")

        turns = [line.join_line("m", name, 1, fail) for name in ("ann", "bob")]
        for turn in turns:
            with pytest.raises(KeyError):
                await turn.outcome
        assert await line.join_line("m", "ann", 3, giving(line, order)).outcome == 3

    run(work())


@pytest.mark.parametrize(
    ("limit", "there", "others", "taken"),
    [(9, 10, 0, 9), (9, 10, 4, 2), (9, 1, 4, 1), (1, 100, 1, 1), (9, 7, 1, 4)],
)
def test_a_share_leaves_something(limit: int, there: int, others: int, taken: int) -> None:
    assert fair_share(limit, there, others) == taken


def test_a_queue_that_closes_waits_for_those_who_are_served() -> None:
    async def work() -> None:
        line, go = Line(), asyncio.Event()

        async def serve(_: str, turns: Sequence[QueuedRequest[int, int]]) -> None:
            await go.wait()
            for turn in turns:
                turn.outcome.set_result(turn.asked)

        turn = line.join_line("m", "ann", 1, serve)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        closing = asyncio.create_task(line.close())
        await asyncio.sleep(0)
        assert not closing.done()
        go.set()
        await closing
        assert turn.outcome.result() == 1

    run(work())
