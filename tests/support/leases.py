"""Many labellers on one server, with random delays, deaths, evictions, late answers and a wall clock that jumps.

    python tests/support/leases.py 2000

The server runs with a wall clock that jumps by hours, forth and back, several times a second, and every query wants
several answers. Queries come from this trial, which asks about all unsettled instances, and in another run from the
server's grower, with the default forest. Each labeller now and then thinks longer than its lease, dies with leased
queries (its connection breaks, or it falls silent), skips, postpones or gives back, refuses, corrects or takes back.
Others state labels without a query. An operator ends leases and revokes tokens. At the end every instance must be
settled; that no query was held by two labellers is checked twice: in the history of the queries, and by the labellers'
own records. The evidence of each instance must equal that of a slow reading of the log; the store, a backup and its
restored copy must pass their checks.
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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from quercus.belief.codec import encode_sets
from quercus.labelling.history import known_contour
from quercus.server.gate import rpcs
from quercus.server.wire.models import complete_specification
from quercus.storage import AgendaEntry, Event, Policy, QueryState, Step, Store
from quercus.storage.admin.backup import back_up, restore_backup
from quercus.storage.admin.verify import verify_store
from quercus.v1 import model_pb2
from support.histories import check_history
from support.holdings import Cut, Holding, doubles
from support.labellers import (
    CLASSES,
    MODEL,
    OPERATOR,
    Deck,
    Labeller,
    Operator,
    Orphan,
    Person,
    Stater,
)
from support.ledger import Ledgers

STATERS: Final = 4
RUNS: Final = ((2, False), (3, False), (2, True))
"""Answers a query, and whether the grower of the server asks, or this trial in its place."""

MOST_ANSWERS: Final = 20
"""More labels, with those taken back, than any instance has."""

STIRRED: Final = 0.9
"""Share of the instances that are settled when people stop stating labels and taking them back."""

PLAUSIBILITY: Final = 1e-9
SERVER: Final = """
import random, sys, time
real, clock = time.time, time.monotonic
def jumping():
    return real() + random.Random(int(4 * clock())).choice((0, 3600, -3600, 86400 * 365, -86400 * 365))
time.time = jumping  # before any import of quercus
from quercus.server.app import serve
from quercus.server.config import Config
config = Config(store=sys.argv[1], port=0, grower=sys.argv[2] == "True", log_level="error", access="tokens")
serve(config, lambda address: print(address, flush=True))
"""


@dataclass
class Trial:
    """A server, its labellers, and their actions.

    Parameters
    ----------
    folder : of the store.
    count : queries.
    answers : that each query wants.
    grows : whether the server's grower asks, with the default forest.
    labellers : how many.
    seed : of their actions.
    """

    folder: Path
    count: int
    answers: int = 2
    grows: bool = False
    labellers: int = 32
    seed: int = 0
    did: Counter[str] = field(default_factory=Counter)
    holdings: list[Holding] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    orphans: list[Orphan] = field(default_factory=list)
    acknowledged: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Labeller and (of answers) event of the log, by comment."""

    people: list[Person] = field(default_factory=list)
    store: Store = field(init=False)
    address: str = ""
    stirs: bool = True
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.callers = Deck(f"{self.seed} callers")
        self.streamers = Deck(f"{self.seed} streamers")
        self.url = f"sqlite:///{self.folder / 'store.db'}"
        self._comments = count()
        self._stirring = 0
        self._over = threading.Event()

    def comment(self) -> str:
        """Return a unique text."""
        return f"no. {next(self._comments)}"

    @contextmanager
    def stirring(self) -> Iterator[None]:
        """A labeller that has just checked `stirs` may take a label back: the trial cannot end meanwhile."""
        self._stirring += 1
        try:
            yield
        finally:
            self._stirring -= 1

    def run(self, deadline_s: float) -> None:
        """Label until every instance is settled; raises ``TimeoutError`` when one is stuck."""
        with Store.open(self.url) as self.store:
            self._create()
            server = subprocess.Popen(
                [sys.executable, "-c", SERVER, self.url, str(self.grows)], stdout=subprocess.PIPE, text=True
            )
            stop = threading.Event()
            grower = threading.Thread(target=self._grow, args=(stop,))
            try:
                assert server.stdout is not None
                self.address = server.stdout.readline().strip()
                grower.start()
                asyncio.run(self._label(deadline_s))
            finally:
                stop.set()
                grower.join()
                server.terminate()
                assert server.wait(timeout=30) == 0
                server.stdout.close()

    def check(self) -> Counter[str]:
        """Check all that must hold, and return how many steps of each kind there were."""
        with Store.open(self.url) as store:
            steps = self._check_history(store)
            events = store.read_events(MODEL, limit=10**9)
            self._check_log(events)
            self._check_evidence(store, events)
            self._check_holdings(store)
        self._check_copies()
        return steps

    def _check_history(self, store: Store) -> Counter[str]:
        rows, after = [], 0
        while page := store.query_history(MODEL, after=after):
            rows, after = rows + page, page[-1].id
        steps = Counter(check_history(rows))  # raises where two hold the same, or an order is wrong
        model = store.get_model(MODEL)
        assert model.queries_answered == steps["ANSWERED"]
        assert not store.list_queries(MODEL, [QueryState.OPEN, QueryState.LEASED]), "a query is left"
        whys = Counter(row.why.partition(":")[0] for row in rows if row.step is Step.EVICTED)
        asked = self.did["evicted"] + self.did["evicted by quercus labellers evict"]
        assert whys.pop(f"by {OPERATOR}", 0) == asked
        assert all("was revoked" in why for why in whys), whys
        steps["EVICTED with a token"] = whys.total()
        return steps

    def _check_log(self, events: list[Event]) -> None:
        """Check that every acknowledged event is stored once, and no event twice."""
        said: dict[str, list[Event]] = {}
        for event in events:
            if event.comment:
                said.setdefault(event.comment, []).append(event)
        for comment, (author, sequence) in self.acknowledged.items():
            (event,) = said[comment]
            assert event.author == author
            assert sequence in {0, event.sequence, event.sequence + 1}  # consequences of a correction
        assert all(len(found) == 1 for found in said.values()), "something is said twice"

    def _check_evidence(self, store: Store, events: list[Event]) -> None:
        """Check that each instance is settled, which queries count, and the combination of its labels."""
        ledgers = Ledgers(len(CLASSES))
        ledgers.read(events)
        assert len(ledgers.of) == self.count
        queries = {query.number: query for query in store.list_queries(MODEL, limit=10**9)}
        for first in range(1, self.count + 1, 1000):
            some = list(range(first, min(first + 1000, self.count + 1)))
            for instance, history in store.history(MODEL, some).items():
                ledger = ledgers.of[instance]
                assert ledger.is_settled, f"instance {instance} is not settled"
                known = known_contour(history, len(CLASSES)).tolist()
                assert np.allclose(known, ledger.contour([1.0] * len(CLASSES)), atol=PLAUSIBILITY), instance
                for number, said in ledger.queries.items():
                    state = QueryState.REFUSED if said.refused else QueryState.ANSWERED
                    state = state if said.refused or said.settled else QueryState.WITHDRAWN
                    query = queries.pop(number)
                    assert (query.state, query.answers) == (state, len(said.answers)), query
        assert {query.state for query in queries.values()} <= {QueryState.WITHDRAWN}, "settled without a word"

    def _check_holdings(self, store: Store) -> None:
        double = next(doubles(self.holdings, self.cuts), ())
        assert not double, self._told(store, *double)

    def _told(self, store: Store, *held: Holding) -> str:
        """Return a report on holdings that overlap, with the server's steps of the query and the cuts of leases."""
        query = held[0].query
        steps = store.query_history(MODEL, int(query.rpartition("/")[2]), limit=10**6)
        cuts = [cut for cut in self.cuts if any(cut.is_of(each) for each in held)]
        return "\n".join([f"two held {query}:", *map(str, [*held, *cuts, *steps])])

    def _check_copies(self) -> None:
        copy, restored = self.folder / "copy.db", f"sqlite:///{self.folder / 'restored.db'}"
        back_up(self.url, copy)
        restore_backup(copy, restored)
        for url in (self.url, f"sqlite:///{copy}", restored):
            assert [str(fault) for fault in verify_store(url)] == []
        with Store.open(self.url) as store, Store.open(restored) as again:
            assert list(store.dump(MODEL)) == list(again.dump(MODEL))
            assert store.query_history(MODEL) == again.query_history(MODEL)

    def _create(self) -> None:
        attribute = model_pb2.Attribute(name="X", nominal=model_pb2.NominalAttribute(values=["a", "b"]))
        budget = MOST_ANSWERS * self.count
        specification = complete_specification(
            model_pb2.Specification(attributes=[attribute], classes=CLASSES, budget=budget)
        )
        self.store.create_model(MODEL, specification.SerializeToString(), budget=budget)
        self.store.set_policy(MODEL, Policy(answers_per_query=self.answers))
        labels = encode_sets(np.full(self.count, 3, dtype=np.uint64))
        ids = [f"i{k}" for k in range(self.count)]
        values = np.random.default_rng(self.seed).integers(0, 2, (self.count, 1)).astype(float)
        self.store.append_instances(MODEL, ids, values, labels)

    def _grow(self, stop: threading.Event) -> None:
        """Publish an agenda of the unsettled instances, unless the grower does; notice when all is done."""
        ledgers, seen, wanted = Ledgers(len(CLASSES)), 0, [0]
        while not stop.wait(0.02):
            is_calm = not self.stirs and not self._stirring  # before their actions are read
            news = self.store.read_events(MODEL, seen, 10_000)
            if not news:
                if is_calm and not wanted and not self._live():
                    self._over.set()
                continue
            ledgers.read(news)
            seen = news[-1].sequence
            wanted = [instance for instance, ledger in ledgers.of.items() if not ledger.is_settled]
            self.stirs &= len(wanted) > (1 - STIRRED) * self.count
            if not self.grows:
                agenda = [AgendaEntry(instance, b"[[],0,0,[0]]", b"") for instance in wanted[:100]]
                self.store.publish(MODEL, as_of=seen, snapshot=b"", agenda=agenda, keep=1)

    def _live(self) -> bool:
        """Return whether a query waits for an answer, also if it has some and its instance is settled otherwise."""
        return bool(self.store.list_queries(MODEL, [QueryState.OPEN, QueryState.LEASED], limit=1))

    async def _label(self, deadline_s: float) -> None:
        operator = Operator(self, OPERATOR, rpcs.OPERATOR)
        self.people += [Labeller(self, f"labeller-{k}") for k in range(self.labellers)]
        self.people += [Stater(self, f"stater-{k}") for k in range(STATERS)]
        async with asyncio.timeout(deadline_s):
            tasks = [asyncio.create_task(person.run()) for person in [operator, *self.people]]
            while not self._over.is_set():
                await asyncio.sleep(0.1)
                for task in tasks:
                    if task.done():
                        task.result()
            self.done.set()
            await asyncio.gather(*tasks)


def main() -> None:
    """Run as many queries as the first argument says, and print the result."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    for answers, grows in RUNS:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            seed = random.randrange(2**32)  # noqa: S311
            trial = Trial(Path(folder), number // len(RUNS), answers, grows, seed=seed)
            trial.run(60.0 + 5 * number)
            steps = trial.check()
        seconds = time.monotonic() - started
        asks = "the forest asks" if grows else "all is asked about"
        print(
            f"{trial.count:,} instances, {answers} answers a query, {asks}, {trial.labellers} labellers, "
            f"{STATERS} who state, {seconds:.0f} s, seed {trial.seed}"
        )
        print(f"0 double holdings among {steps['holdings']:,} leases, every instance settled, none stuck")
        print("people:  " + ", ".join(f"{name} {times:,}" for name, times in trial.did.most_common()))
        print("history: " + ", ".join(f"{name} {times:,}" for name, times in steps.most_common()), flush=True)


if __name__ == "__main__":
    main()
