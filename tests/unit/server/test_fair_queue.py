"""Who leases next: whoever was served longest ago, and each leaves something for those who wait."""

import asyncio

import pytest

from quercus.server.core.fair_queue import FairQueue, fair_share


def test_who_was_served_longest_ago_comes_first() -> None:
    async def run() -> list[str]:
        fair_queue, order = FairQueue(), []

        async def take(labeller: str) -> None:
            async with fair_queue.turn("m", labeller):
                order.append(labeller)
                fair_queue.served("m", labeller)

        for _ in range(3):  # the same three wake again and again, in the order of the fastest
            await asyncio.gather(*(take(labeller) for labeller in ("ann", "ann", "bob", "cleo")))
        return order

    # ann asks twice each time: her second call waits for the others
    assert asyncio.run(run()) == [
        *("ann", "bob", "cleo", "ann"),
        *("bob", "cleo", "ann", "ann"),
        *("bob", "cleo", "ann", "ann"),
    ]


def test_one_at_a_time_of_a_model_and_others_beside_it() -> None:
    async def run() -> None:
        fair_queue = FairQueue()
        inside = asyncio.Event()
        leave = asyncio.Event()

        async def hold(model: str) -> int:
            async with fair_queue.turn(model, "ann") as others:
                inside.set()
                await leave.wait()
                return others

        first = asyncio.create_task(hold("m"))
        await inside.wait()
        waiting = asyncio.create_task(fair_queue.turn("m", "bob").__aenter__())
        async with fair_queue.turn("n", "bob") as others:
            assert others == 0
        assert not waiting.done()
        leave.set()
        assert await first == 0
        assert await waiting == 0

    asyncio.run(run())


def test_who_gives_up_while_waiting_blocks_nobody() -> None:
    async def run() -> None:
        fair_queue = FairQueue()
        async with fair_queue.turn("m", "ann"):
            gone = asyncio.create_task(fair_queue.turn("m", "bob").__aenter__())
            await asyncio.sleep(0)
            gone.cancel()
            await asyncio.wait([gone])
        async with asyncio.timeout(5), fair_queue.turn("m", "cleo") as others:
            assert others == 0

    asyncio.run(run())


@pytest.mark.parametrize(
    ("limit", "there", "others", "taken"),
    [(9, 10, 0, 9), (9, 10, 4, 2), (9, 1, 4, 1), (1, 100, 1, 1), (9, 7, 1, 4)],
)
def test_a_share_leaves_something(limit: int, there: int, others: int, taken: int) -> None:
    assert fair_share(limit, there, others) == taken
