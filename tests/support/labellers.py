"""The participants in `support.leases`: labellers with several lives, people who state labels unasked, an operator."""

from __future__ import annotations

import asyncio
import os
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import grpc
from grpc import aio
from integration.client.serving import QUERCUS

from quercus.server.gate import access, rpcs
from quercus.v1 import instance_pb2, instance_pb2_grpc, query_pb2, query_pb2_grpc
from support.holdings import Cut, Holding

if TYPE_CHECKING:
    from support.leases import Trial

MODEL: Final = "m"
CLASSES: Final = ("p", "q")
SHORT_S: Final = 1.0  # the shortest
LONG_S: Final = 3600.0
"""A lease too long to wait for: a labeller who dies with it is evicted."""

CARDS: Final = 20
RARE: Final = ("die", "late", "give back", "refuse", "correct", "undo")
"""One card of each; the others say to answer in time."""

IDLE_S: Final = 15.0
"""A stream is abandoned after so long without a message."""

MOST_STATED: Final = 0.04
"""Share of the instances whose label one stater states; the others are asked about."""

OPERATOR: Final = "olga"
How = query_pb2.ReturnQueryRequest.How
REVOKED: Final = grpc.StatusCode.UNAUTHENTICATED


class Deck:
    """Shuffled cards, dealt to all labellers and then reshuffled, so that rare actions are certain to happen.

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


@dataclass
class Orphan:
    """Leases that end in an hour, whose holder has died."""

    labeller: str
    token_id: str
    queries: list[str]


@dataclass
class Person:
    """A person with an access token, which is now and then revoked and replaced."""

    trial: Trial
    name: str
    role: str = rpcs.LABELLER
    token: str = ""
    token_id: str = ""
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.trial.seed} {self.name}")  # noqa: S311

    async def admit(self) -> None:
        """Get a token."""
        self.token, record = await asyncio.to_thread(
            access.issue_token, self.trial.store.access, self.name, [self.role]
        )
        self.token_id = record.id

    @property
    def metadata(self) -> list[tuple[str, str]]:
        """The metadata of every call."""
        return [("authorization", f"Bearer {self.token}")]

    def label(self) -> list[str]:
        """Some classes."""
        return self.chance.sample(CLASSES, self.chance.choice((1, 1, 1, 2)))


class Labeller(Person):
    """One labeller with several lives."""

    async def run(self) -> None:
        """Label by calls or by streams, life after life."""
        await self.admit()
        by_stream = self.chance.random() < 0.5
        while not self.trial.done.is_set():
            by_stream = not by_stream
            try:
                async with aio.insecure_channel(self.trial.address) as channel:
                    stub: Any = query_pb2_grpc.QueryServiceStub(channel)
                    await (self._stream(stub) if by_stream else self._calls(stub))
            except aio.AioRpcError as error:
                if error.code() is not REVOKED:
                    raise
                self.trial.did["lives ended by a revoked token"] += 1
                await self.admit()
            self.trial.did["lives"] += 1

    async def _calls(self, stub: Any) -> None:
        lease_s = self.chance.choice((SHORT_S, SHORT_S, LONG_S))
        for _ in range(self.chance.randint(5, 40)):
            asked_at = time.monotonic()
            request = query_pb2.LeaseQueriesRequest(
                model=f"models/{MODEL}", labeller=self.name, max_queries=self.chance.randint(1, 4)
            )
            request.lease_duration.FromNanoseconds(round(lease_s * 1e9))
            request.wait.FromMilliseconds(500)
            queries = list((await stub.LeaseQueries(request, metadata=self.metadata)).queries)
            if self.trial.done.is_set():
                return
            while queries:
                card = self.trial.callers.deal()
                if card == "die":  # with leased queries
                    self.trial.did["deaths"] += 1
                    if lease_s == LONG_S:
                        names = [query.name for query in queries]
                        self.trial.orphans.append(Orphan(self.name, self.token_id, names))
                    return
                await self._one(stub, queries.pop(0), card, asked_at, lease_s)

    async def _stream(self, stub: Any) -> None:
        """One query after another on a stream; its death takes the connection along."""
        outgoing: asyncio.Queue[query_pb2.StreamQueriesRequest | None] = asyncio.Queue()
        first = query_pb2.StreamQueriesRequest(model=f"models/{MODEL}", labeller=self.name, credits=2)
        first.lease_duration.FromNanoseconds(round(SHORT_S * 1e9))
        outgoing.put_nowait(first)

        async def requests() -> Any:
            while (request := await outgoing.get()) is not None:
                yield request

        call = stub.StreamQueries(requests(), metadata=self.metadata)
        left = self.chance.randint(5, 40)
        try:
            while left and not self.trial.done.is_set():
                response = await self._read(call)
                if response is None:  # no query came: begin another life
                    return
                if response.WhichOneof("event") != "query":
                    continue
                left -= 1
                card = self.trial.streamers.deal()
                if card == "die":
                    self.trial.did["torn"] += 1
                    return
                # the lease was given at some moment before the query came, so only its end is sure: from here on
                # the labeller counts on nothing
                await self._one(stub, response.query, card, None, SHORT_S)
        finally:
            outgoing.put_nowait(None)  # ends the requests, which wait for the next one
            call.cancel()

    async def _read(self, call: Any) -> query_pb2.StreamQueriesResponse | None:
        """Return the next message of a stream; None if it has ended, nothing comes for long, or all is done."""
        reading, done = asyncio.ensure_future(call.read()), asyncio.ensure_future(self.trial.done.wait())
        try:
            await asyncio.wait({reading, done}, timeout=IDLE_S, return_when=asyncio.FIRST_COMPLETED)
            return None if not reading.done() or reading.result() is aio.EOF else reading.result()
        finally:
            reading.cancel()
            done.cancel()

    async def _one(
        self, stub: Any, query: query_pb2.Query, card: str, asked_at: float | None, lease_s: float
    ) -> None:
        """Think, then answer or act otherwise; record the time for which the query was certainly held."""
        trial, late, got_at = self.trial, card == "late" and lease_s == SHORT_S, time.monotonic()
        pause_s = lease_s * self.chance.uniform(1.0, 1.6) if late else self.chance.random() ** 3 * 0.05
        await asyncio.sleep(pause_s)
        over = time.monotonic() if asked_at is None else min(time.monotonic(), asked_at + lease_s)
        if asked_at is not None and over > got_at:
            trial.holdings.append(Holding(query.name, self.name, self.token_id, asked_at, got_at, over))
        named = {"name": query.name, "lease_token": query.lease_token}
        try:
            if card == "give back":
                how = self.chance.choice((How.HOW_UNSPECIFIED, How.HOW_SKIP, How.HOW_POSTPONE))
                back = query_pb2.ReturnQueryRequest(how=how, **named)
                if how == How.HOW_POSTPONE:
                    back.delay.FromSeconds(1)
                await stub.ReturnQuery(back, metadata=self.metadata)
                trial.did["given back"] += 1
                return
            if card == "refuse":
                await stub.RefuseQuery(query_pb2.RefuseQueryRequest(**named), metadata=self.metadata)
                trial.did["could not tell"] += 1
                return
            request = query_pb2.AnswerQueryRequest(**named, comment=trial.comment())
            request.label.class_set.classes.extend(self.label())
            done = await stub.AnswerQuery(request, metadata=self.metadata)
        except aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                raise
            trial.did["refused: " + ("late" if late else "lost")] += 1
            return
        trial.acknowledged[request.comment] = self.name, done.committed_sequence
        trial.did["late and taken" if late else "answered"] += 1
        await self._afterwards(stub, request, card)

    async def _afterwards(self, stub: Any, request: query_pb2.AnswerQueryRequest, card: str) -> None:
        """Repeat the answer, change it, or take it back: it exists, whatever others did."""
        trial, of = self.trial, {"name": request.name, "labeller": self.name}
        if self.chance.random() < 0.05:
            await stub.AnswerQuery(request, metadata=self.metadata)  # a retry
        if card == "correct":
            other = query_pb2.CorrectAnswerRequest(**of, comment=trial.comment())
            other.label.class_set.classes.extend(self.label())
            other.reliability = self.chance.choice((0.6, 0.9))  # never quite the same again
            done = await stub.CorrectAnswer(other, metadata=self.metadata)
            trial.acknowledged[other.comment] = self.name, done.committed_sequence
            trial.did["corrected"] += 1
        elif card == "undo":
            with trial.stirring():
                if trial.stirs:
                    await stub.UndoAnswer(query_pb2.UndoAnswerRequest(**of), metadata=self.metadata)
                    trial.did["undone"] += 1


class Stater(Person):
    """States labels without a query, and takes some of them back."""

    async def run(self) -> None:
        """State until enough is settled."""
        await self.admit()
        with self.trial.stirring():
            await self._state()

    async def _state(self) -> None:
        said: list[str] = []
        async with aio.insecure_channel(self.trial.address) as channel:
            stub: Any = instance_pb2_grpc.InstanceServiceStub(channel)
            while self.trial.stirs and not self.trial.done.is_set():
                await asyncio.sleep(self.chance.random())
                is_enough = len(said) > MOST_STATED * self.trial.count
                if said and (is_enough or self.chance.random() < 0.3):
                    chosen = [said.pop(self.chance.randrange(len(said)))]
                    await self._send(stub, [self._retraction(name) for name in chosen])
                    self.trial.did["retracted"] += 1
                    continue
                chosen = [f"i{self.chance.randrange(self.trial.count)}" for _ in range(2)]
                await self._send(stub, [self._statement(name) for name in dict.fromkeys(chosen)])
                self.trial.did["stated"] += len(set(chosen))
                said = list(dict.fromkeys([*said, *chosen]))

    def _statement(self, instance: str) -> instance_pb2.Statement:
        statement = instance_pb2.Statement(instance_id=instance, comment=self.trial.comment())
        statement.label.class_set.classes.extend(self.label())
        # hardly ever in the same words, which would not be stored again
        statement.reliability = round(self.chance.uniform(0.5, 1.0), 9)
        return statement

    def _retraction(self, instance: str) -> instance_pb2.Statement:
        return instance_pb2.Statement(instance_id=instance, retract=True, comment=self.trial.comment())

    async def _send(self, stub: Any, statements: list[instance_pb2.Statement]) -> None:
        """State; after the token was revoked again under the same id, for which it may have come too late."""
        request = instance_pb2.StateEvidenceRequest(
            model=f"models/{MODEL}",
            labeller=self.name,
            statements=statements,
            request_id=self.trial.comment(),
        )
        while True:
            try:
                done = await stub.StateEvidence(request, metadata=self.metadata)
            except aio.AioRpcError as error:
                if error.code() is not REVOKED:
                    raise
                await self.admit()
                continue
            assert done.statements_stored + done.statements_known == len(statements)
            for each in statements:
                self.trial.acknowledged[each.comment] = self.name, 0
            return


class Operator(Person):
    """Ends leases of random labellers and of dead ones, and revokes tokens."""

    async def run(self) -> None:
        """Act now and then until all is done."""
        await self.admit()
        revokes = False
        async with aio.insecure_channel(self.trial.address) as channel:
            stub: Any = query_pb2_grpc.QueryServiceStub(channel)
            while not self.trial.done.is_set():
                await asyncio.sleep(self.chance.random() * 0.3)
                if self.trial.orphans:
                    await self._end_orphan(stub, self.trial.orphans.pop())
                elif held := await self._held(stub):
                    query, revokes = self.chance.choice(held), not revokes
                    if not revokes:
                        await self._release(stub, query.name, self.chance.choice(("", query.labeller)))
                    else:
                        (holder,) = (each for each in self.trial.people if each.name == query.labeller)
                        await self._revoke(holder.token_id)
                else:  # of any person, staters included
                    await self._revoke(self.chance.choice(self.trial.people).token_id)

    async def _end_orphan(self, stub: Any, orphan: Orphan) -> None:
        kind = self.chance.random()
        if kind < 0.4:
            await self._revoke(orphan.token_id)
        elif kind < 0.8:
            for query in orphan.queries:
                await self._release(stub, query, orphan.labeller)
        else:
            await self._evict(orphan.labeller)

    async def _held(self, stub: Any) -> list[query_pb2.Query]:
        states = [query_pb2.QUERY_STATE_LEASED]
        request = query_pb2.ListQueriesRequest(model=f"models/{MODEL}", states=states, page_size=100)
        return list((await stub.ListQueries(request, metadata=self.metadata)).queries)

    async def _release(self, stub: Any, query: str, labeller: str) -> None:
        started = time.monotonic()
        request = query_pb2.ReleaseLeaseRequest(name=query, labeller=labeller, comment="on a whim")
        try:
            await stub.ReleaseLease(request, metadata=self.metadata)
        except aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                raise
            self.trial.did["not evicted: answered or given back at this moment"] += 1
            return
        self.trial.cuts.append(Cut(started, time.monotonic(), query=query))
        self.trial.did["evicted"] += 1

    async def _revoke(self, token_id: str) -> None:
        if not token_id:  # the person has no token yet
            return
        self.trial.cuts.append(Cut(time.monotonic(), float("inf"), token_id=token_id))
        await asyncio.to_thread(self.trial.store.access.revoke_token, token_id)
        self.trial.did["tokens revoked"] += 1

    async def _evict(self, labeller: str) -> None:
        """End all leases of a labeller, as from a terminal."""
        started = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            QUERCUS, "labellers", "evict", labeller, "--server", self.trial.address,
            env=os.environ | {"QUERCUS_TOKEN": self.token}, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        said, _ = await process.communicate()
        assert process.returncode == 0, said
        self.trial.cuts.append(Cut(started, time.monotonic(), labeller=labeller))
        self.trial.did["evicted by quercus labellers evict"] += int(said.split()[1])
