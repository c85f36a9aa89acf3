"""Fairness between labellers: the labeller whose last query is oldest comes first, and leaves some for the others.

All who wait for a model wake at the same commit. Each then takes its turn here, so that the quickest does not take all,
again and again. Turns are of one server; between servers on one store chance decides.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Final

MAX_REMEMBERED: Final = 10_000
"""Labellers whose last turn is remembered."""


class FairQueue:
    """Who may lease next. Made and used in one event loop."""

    def __init__(self) -> None:
        self._served: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._waiting: dict[str, list[tuple[int, str, asyncio.Future[int]]]] = {}
        self._busy: set[str] = set()
        self._numbers = count(1)

    @asynccontextmanager
    async def turn(self, model: str, labeller: str) -> AsyncIterator[int]:
        """Wait for a turn at a model; inside, nobody else leases of it.

        Yields
        ------
        int : other labellers who wait for theirs; leave something for them.
        """
        loop = asyncio.get_running_loop()
        mine: asyncio.Future[int] = loop.create_future()
        self._waiting.setdefault(model, []).append((next(self._numbers), labeller, mine))
        loop.call_soon(
            self._next, model
        )  # not at once: who wakes in this moment too gets into the line first
        try:
            others = await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._end(model)
            raise
        try:
            yield others
        finally:
            self._end(model)

    def served(self, model: str, labeller: str) -> None:
        """Remember that a labeller was given something."""
        self._served[model, labeller] = next(self._numbers)
        self._served.move_to_end((model, labeller))
        if len(self._served) > MAX_REMEMBERED:
            self._served.popitem(last=False)

    def _next(self, model: str) -> None:
        line = self._waiting.get(model, [])
        line[:] = [entry for entry in line if not entry[2].done()]
        if model in self._busy:
            return
        if not line:
            self._waiting.pop(model, None)
            return
        first = min(line, key=lambda entry: (self._served.get((model, entry[1]), 0), entry[0]))
        line.remove(first)
        self._busy.add(model)
        first[2].set_result(len({entry[1] for entry in line} - {first[1]}))

    def _end(self, model: str) -> None:
        self._busy.discard(model)
        self._next(model)


def fair_share(limit: int, there: int, others: int) -> int:
    """Of queries that are `there`, how many one of `others` + 1 labellers may take who asks for `limit`; 1 at least."""
    return max(1, min(limit, -(-there // (others + 1))))
