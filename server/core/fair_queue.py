"""Fairness between labellers: whoever was served longest ago comes first, and leaves queries for the others.

All labellers who wait for a model wake at the same commit. They are served as a group in this order, so that the
fastest does not always take everything. The order holds within a server, not between servers that share a store.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Final, Generic, TypeAlias, TypeVar

A = TypeVar("A")
R = TypeVar("R")
MAX_REMEMBERED: Final = 10_000
"""Most labellers whose last turn is remembered."""
MAX_GROUP: Final = 64
"""Most turns of one model that are served together."""


@dataclass(eq=False)
class QueuedRequest(Generic[A, R]):
    """A request in the queue of a model.

    Attributes
    ----------
    labeller : str
    asked : request of the labeller.
    outcome : result of the request; cancelled if the labeller has gone.
    others : int
        Number of other labellers after this one, for whom something should be left.
    """

    labeller: str
    asked: A
    outcome: asyncio.Future[R]
    others: int = 0

    def fail(self, error: BaseException) -> None:
        """Fail the waiting caller with an error, unless it has gone."""
        if not self.outcome.done():
            self.outcome.set_exception(error)


Serve: TypeAlias = Callable[[str, Sequence[QueuedRequest[A, R]]], Coroutine[Any, Any, None]]
"""Serves the turns of a model, in order, and sets the outcome of each."""


class FairQueue(Generic[A, R]):
    """A queue of labellers' requests for leases, by model. Create and use it in one event loop."""

    def __init__(self) -> None:
        self._served: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._waiting: dict[str, list[QueuedRequest[A, R]]] = {}  # by model, in the order in which they came
        self._serving: dict[str, asyncio.Task[None]] = {}
        self._numbers = count(1)

    def join_line(self, model: str, labeller: str, asked: A, serve: Serve[A, R]) -> QueuedRequest[A, R]:
        """Join the queue of a model; `serve` is called with all who wait, for one such group at a time."""
        loop = asyncio.get_running_loop()
        turn: QueuedRequest[A, R] = QueuedRequest(labeller, asked, loop.create_future())
        self._waiting.setdefault(model, []).append(turn)
        # not at once, so that others who wake at this moment can join first
        loop.call_soon(self._serve_next, model, serve)
        return turn

    def record_served(self, model: str, labeller: str) -> None:
        """Remember that a labeller was given something."""
        self._served[model, labeller] = next(self._numbers)
        self._served.move_to_end((model, labeller))
        if len(self._served) > MAX_REMEMBERED:
            self._served.popitem(last=False)

    async def close(self) -> None:
        """Wait until the requests that are being served have their outcomes."""
        while self._serving:
            await asyncio.wait([*self._serving.values()])

    def _serve_next(self, model: str, serve: Serve[A, R]) -> None:
        if model in self._serving:
            return
        line = self._in_order(model)
        turns, left = line[:MAX_GROUP], line[MAX_GROUP:]
        if left:
            self._waiting[model] = left
        if turns:
            task = self._serving[model] = asyncio.create_task(serve(model, turns))
            task.add_done_callback(partial(self._finish_turns, model, serve, turns))

    def _in_order(self, model: str) -> list[QueuedRequest[A, R]]:
        """Take all waiting turns, in order; second turns of a labeller come after all first turns."""
        line = [turn for turn in self._waiting.pop(model, []) if not turn.outcome.done()]
        rounds: Counter[str] = Counter()
        first: dict[str, tuple[int, int]] = {}
        keys: dict[QueuedRequest[A, R], tuple[int, int, int]] = {}
        for place, turn in enumerate(line):
            key = first.setdefault(turn.labeller, (self._served.get((model, turn.labeller), 0), place))
            keys[turn] = (rounds[turn.labeller], *key)
            rounds[turn.labeller] += 1
        line.sort(key=keys.__getitem__)
        behind: set[str] = set()
        for turn in reversed(line):
            turn.others = len(behind - {turn.labeller})
            behind.add(turn.labeller)
        return line

    def _finish_turns(
        self, model: str, serve: Serve[A, R], turns: Sequence[QueuedRequest[A, R]], task: asyncio.Task[None]
    ) -> None:
        del self._serving[model]
        for turn in turns:  # served ones have an outcome already
            if task.cancelled():
                turn.outcome.cancel()
            else:
                turn.fail(task.exception() or RuntimeError("nobody served it"))
        self._serve_next(model, serve)


def fair_share(limit: int, there: int, others: int) -> int:
    """Return how many of `there` queries a labeller may take who asks for `limit`, with `others` after; at least 1."""
    return max(1, min(limit, -(-there // (others + 1))))
