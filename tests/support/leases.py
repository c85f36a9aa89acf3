"""Many labellers on one server, with random delays, deaths, late answers and a wall clock that jumps.

    python tests/support/leases.py 2000

The server runs with a wall clock that jumps by hours, forth and back, several times a second. Each labeller now and
then thinks longer than its lease, dies with queries in its hands (its connection is torn, or it falls silent), skips,
postpones or gives back. At the end every instance must be answered once; that nobody ever held what another held is
checked twice: in the history of the queries, and by what the labellers themselves thought they held.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import grpc
import numpy as np
from grpc import aio

from quercus.belief.codec import encode_sets
from quercus.proto.v1 import model_pb2, query_pb2, query_pb2_grpc
from quercus.server.convert_models import complete
from quercus.storage import AgendaEntry, EventKind, QueryState, Store
from support.histories import check_history

MODEL: Final = "m"
LEASE_S: Final = 1.0  # the shortest
SERVER: Final = """
import random, sys, time
real, clock = time.time, time.monotonic
def jumping():
    return real() + random.Random(int(4 * clock())).choice((0, 3600, -3600, 86400 * 365, -86400 * 365))
time.time = jumping  # before anything of quercus is imported
from quercus.server.app import serve
from quercus.server.config import Config
serve(Config(store=sys.argv[1], port=0, grower=False, log_level="error"))
"""
How = query_pb2.ReturnQueryRequest.How


CARDS: Final = 20
RARE: Final = ("die", "late", "give back")
"""One card of each; the others say to answer in time."""

IDLE_S: Final = 15.0
"""A stream on which nothing came for so long is given up."""


class Deck:
    """Shuffled cards, dealt to all labellers and shuffled anew: what is rare by the cards happens all the same.

    Parameters
    ----------
    seed : of the shuffling.
    """

    def __init__(self, seed: str) -> None:
        self._cards = [*RARE, *["answer"] * (CARDS - len(RARE))]
        self._chance = random.Random(seed)  # noqa: S311
        self._left: list[str] = []

    def deal(self) -> str:
        """Return the next card."""
        if not self._left:
            self._left = self._chance.sample(self._cards, CARDS)
        return self._left.pop()


@dataclass(frozen=True)
class Holding:
    """What a labeller thought it held, from when to when, by the clock that all of them share."""

    query: str
    token: str
    since: float
    until: float


@dataclass
class Trial:
    """A server, its labellers, and what they did.

    Parameters
    ----------
    folder : of the store.
    count : queries.
    labellers : how many.
    seed : of what they do.
    """

    folder: Path
    count: int
    labellers: int = 32
    seed: int = 0
    did: Counter[str] = field(default_factory=Counter)
    holdings: list[Holding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.callers = Deck(f"{self.seed} callers")
        self.streamers = Deck(f"{self.seed} streamers")

    def run(self, deadline_s: float) -> None:
        """Label until every instance is answered; raises ``TimeoutError`` when one is stuck."""
        url = f"sqlite:///{self.folder / 'store.db'}"
        with Store.open(url) as store:
            self._create(store)
            server = subprocess.Popen([sys.executable, "-c", SERVER, url], stdout=subprocess.PIPE, text=True)
            stop = threading.Event()
            grower = threading.Thread(target=self._grow, args=(store, stop))
            try:
                assert server.stdout is not None
                address = server.stdout.readline().removeprefix("listening on ").strip()
                grower.start()
                asyncio.run(self._label(address, store, deadline_s))
            finally:
                stop.set()
                grower.join()
                server.terminate()
                assert server.wait(timeout=30) == 0
                server.stdout.close()

    def check(self) -> Counter[str]:
        """Check all that must hold, and return how many steps of each kind there were."""
        with Store.open(f"sqlite:///{self.folder / 'store.db'}") as store:
            rows, after = [], 0
            while page := store.query_history(MODEL, after=after):
                rows, after = rows + page, page[-1].id
            steps = Counter(check_history(rows))  # raises where two hold the same, or an order is wrong
            events = store.read_events(MODEL, limit=10**9)
            answered = Counter(e.instance for e in events if e.kind is EventKind.ANSWER)
            assert sorted(answered) == list(range(1, self.count + 1)), "an instance is not answered"
            assert set(answered.values()) == {1}, "an instance is answered twice"
            model = store.get_model(MODEL)
            assert (model.queries_answered, model.queries_leased) == (self.count, 0)
            assert not store.list_queries(MODEL, [QueryState.LEASED])
        for query, mine in _by_query(self.holdings).items():
            for earlier, later in pairwise(mine):
                assert earlier.until <= later.since, f"two held {query}: {earlier} {later}"
        return steps

    def _create(self, store: Store) -> None:
        attribute = model_pb2.Attribute(name="X", nominal=model_pb2.NominalAttribute(values=["a", "b"]))
        specification = complete(
            model_pb2.Specification(attributes=[attribute], classes=["p", "q"], budget=self.count)
        )
        store.create_model(MODEL, specification.SerializeToString(), budget=self.count)
        labels = encode_sets(np.full(self.count, 3, dtype=np.uint64))
        ids = [f"i{k}" for k in range(self.count)]
        store.append_instances(MODEL, ids, np.zeros((self.count, 1)), labels)

    def _grow(self, store: Store, stop: threading.Event) -> None:
        """Publish an agenda of what is not answered, in the place of the grower, which would ask less."""
        seen, open_ = -1, list(range(1, self.count + 1))
        while not stop.wait(0.02):
            news = store.read_events(MODEL, max(seen, 0), 10_000)
            if not news and seen >= 0:
                continue
            settled = {event.instance for event in news if event.kind is EventKind.ANSWER}
            open_ = [instance for instance in open_ if instance not in settled]
            seen = news[-1].sequence
            agenda = [AgendaEntry(instance, b"[[],0,0,[0]]", b"") for instance in open_[:100]]
            store.publish(MODEL, as_of=seen, snapshot=b"", agenda=agenda, keep=1)

    async def _label(self, address: str, store: Store, deadline_s: float) -> None:
        done = asyncio.Event()
        async with asyncio.timeout(deadline_s):
            tasks = [
                asyncio.create_task(Labeller(self, address, f"labeller-{k}", done).run())
                for k in range(self.labellers)
            ]
            while store.get_model(MODEL).queries_answered < self.count:
                await asyncio.sleep(0.1)
                for task in tasks:
                    if task.done():
                        task.result()
            done.set()
            await asyncio.gather(*tasks)


class Labeller:
    """One labeller with several lives."""

    def __init__(self, trial: Trial, address: str, name: str, done: asyncio.Event) -> None:
        self._trial = trial
        self._address = address
        self._name = name
        self._done = done
        self._chance = random.Random(f"{trial.seed} {name}")  # noqa: S311

    async def run(self) -> None:
        """Label by calls or by streams, life after life."""
        by_stream = self._chance.random() < 0.5
        while not self._done.is_set():
            async with aio.insecure_channel(self._address) as channel:
                stub: Any = query_pb2_grpc.QueryServiceStub(channel)
                by_stream = not by_stream
                await (self._stream(stub) if by_stream else self._calls(stub))
            self._trial.did["lives"] += 1

    async def _calls(self, stub: Any) -> None:
        for _ in range(self._chance.randint(5, 40)):
            asked_at = time.monotonic()
            request = query_pb2.LeaseQueriesRequest(
                model=f"models/{MODEL}", labeller=self._name, max_queries=self._chance.randint(1, 4)
            )
            request.lease_duration.FromNanoseconds(round(LEASE_S * 1e9))
            request.wait.FromMilliseconds(500)
            queries = (await stub.LeaseQueries(request)).queries
            if self._done.is_set():
                return
            for query in queries:
                card = self._trial.callers.deal()
                if card == "die":  # with what is left in the hands; the leases run out
                    self._trial.did["deaths"] += 1
                    return
                await self._one(stub, query, card, asked_at, time.monotonic())

    async def _stream(self, stub: Any) -> None:
        """One query after another on a stream; its death takes the connection along."""
        outgoing: asyncio.Queue[query_pb2.StreamQueriesRequest | None] = asyncio.Queue()
        first = query_pb2.StreamQueriesRequest(model=f"models/{MODEL}", labeller=self._name, credits=2)
        first.lease_duration.FromNanoseconds(round(LEASE_S * 1e9))
        outgoing.put_nowait(first)

        async def requests() -> Any:
            while (request := await outgoing.get()) is not None:
                yield request

        call = stub.StreamQueries(requests())
        left = self._chance.randint(5, 40)
        try:
            while left and not self._done.is_set():
                response = await self._read(call)
                if response is None:  # nothing to do: another life
                    return
                if response.WhichOneof("event") != "query":
                    continue
                left -= 1
                card = self._trial.streamers.deal()
                if card == "die":
                    self._trial.did["torn"] += 1
                    return
                # the lease was given at some moment before the query came, so only its end is sure: from here on
                # the labeller counts on nothing
                await self._one(stub, response.query, card, None, time.monotonic())
        finally:
            call.cancel()

    async def _read(self, call: Any) -> query_pb2.StreamQueriesResponse | None:
        """Return what comes on a stream; None when it has ended, nothing comes for long, or all is done."""
        reading, done = asyncio.ensure_future(call.read()), asyncio.ensure_future(self._done.wait())
        try:
            await asyncio.wait({reading, done}, timeout=IDLE_S, return_when=asyncio.FIRST_COMPLETED)
            return None if not reading.done() or reading.result() is aio.EOF else reading.result()
        finally:
            reading.cancel()
            done.cancel()

    async def _one(
        self, stub: Any, query: query_pb2.Query, card: str, asked_at: float | None, got_at: float
    ) -> None:
        """Think, then answer or do something else; remember for how long it was surely held."""
        trial, late = self._trial, card == "late"
        await asyncio.sleep(
            LEASE_S * self._chance.uniform(1.0, 1.6) if late else self._chance.random() ** 3 * 0.05
        )
        over = time.monotonic() if asked_at is None else min(time.monotonic(), asked_at + LEASE_S)
        if asked_at is not None and over > got_at:
            trial.holdings.append(Holding(query.name, query.lease_token, got_at, over))
        named = {"name": query.name, "lease_token": query.lease_token}
        try:
            if card == "give back":
                how = self._chance.choice((How.HOW_UNSPECIFIED, How.HOW_SKIP, How.HOW_POSTPONE))
                back = query_pb2.ReturnQueryRequest(how=how, **named)
                if how == How.HOW_POSTPONE:
                    back.delay.FromSeconds(1)
                await stub.ReturnQuery(back)
                trial.did["given back"] += 1
                return
            request = query_pb2.AnswerQueryRequest(**named)
            request.label.class_name = self._chance.choice("pq")
            await stub.AnswerQuery(request)
            trial.did["late and taken" if late else "answered"] += 1
            if self._chance.random() < 0.05:
                await stub.AnswerQuery(request)  # a retry
        except aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                raise
            trial.did["refused: " + ("late" if late else "lost")] += 1


def _by_query(holdings: list[Holding]) -> dict[str, list[Holding]]:
    found: dict[str, list[Holding]] = {}
    for each in sorted(holdings, key=lambda each: each.since):
        found.setdefault(each.query, []).append(each)
    return found


def main() -> None:
    """Run as many queries as the first argument says, and say what was reached."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder), count, seed=random.randrange(2**32))  # noqa: S311
        trial.run(60.0 + count)
        steps = trial.check()
    print(
        f"{count:,} queries, {trial.labellers} labellers, {time.monotonic() - started:.0f} s, seed {trial.seed}"
    )
    print(f"0 double holdings among {steps['holdings']:,} leases, every instance answered once, none stuck")
    print("labellers: " + ", ".join(f"{name} {number:,}" for name, number in trial.did.most_common()))
    print("history:   " + ", ".join(f"{name} {number:,}" for name, number in steps.most_common()))


if __name__ == "__main__":
    main()
