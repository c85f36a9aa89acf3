"""Leases and answers of many labellers at one server share transactions, each with its own outcome; kills lose none."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import psycopg
import pytest
from integration.client.serving import Serving
from support.postgres import Cluster
from support.waiting import until

from quercus.belief.codec import encode_sets
from quercus.client import Client, Numeric, QuercusError, Query, Specification
from quercus.storage import AgendaEntry, EventKind, Store
from quercus.storage.admin.verify import verify_store

MODEL, LABELLERS, BUDGET = "m", 16, 200
WAIT_S = 60.0
BEFORE = ("env", "QUERCUS_GROWER=false")  # the test publishes what is asked


@pytest.fixture
def serving(postgres_url: str, tmp_path: Path) -> Iterator[Serving]:
    server = Serving(tmp_path, before=BEFORE, store=postgres_url)
    yield server
    server.kill()


@pytest.fixture
def store(serving: Serving, postgres_url: str) -> Iterator[Store]:
    """The server's store, with a model that has more open queries than labellers will answer."""
    with Client(serving.address) as client, Store.open(postgres_url) as opened:
        client.create_model(MODEL, Specification([Numeric("x")], ["a", "b"], budget=BUDGET))
        ids = [f"i{number}" for number in range(BUDGET)]
        opened.append_instances(MODEL, ids, np.zeros((BUDGET, 1)), encode_sets(np.full(BUDGET, 3, np.uint64)))
        entries = [AgendaEntry(number, b"", b"") for number in range(1, BUDGET + 1)]
        opened.publish(MODEL, as_of=BUDGET, snapshot=b"", agenda=entries)
        yield opened


def at_once(work: Callable[[int], object], count: int = LABELLERS) -> list[object]:
    """Return the outcomes of labellers who all begin together, including errors."""
    ready = threading.Barrier(count)

    def run(number: int) -> object:
        ready.wait(WAIT_S)
        try:
            return work(number)
        except QuercusError as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def leased(client: Client, labeller: str) -> Query:
    lease = client.lease(MODEL, labeller, lease_s=600)
    assert lease.queries, lease
    return lease.queries[0]


def test_who_waits_for_a_transaction_shares_the_next_one(
    serving: Serving, store: Store, postgres_url: str, postgres: Cluster
) -> None:
    """Answers to a model that somebody else holds: one waits in a transaction, and all others share the next."""
    database = postgres_url.partition("?")[0].rpartition("/")[2]
    locked = "SELECT datname FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with Client(serving.address) as client, closing(psycopg.connect(postgres_url)) as holder:
        queries = [leased(client, f"l{number}") for number in range(LABELLERS)]
        again = leased(client, "settled")
        client.answer(again, "a")
        began = store.newest_change()
        holder.execute("SELECT 1 FROM model FOR UPDATE")
        with ThreadPoolExecutor(LABELLERS + 1) as pool:
            first = pool.submit(client.answer, queries[0], "a")
            until(lambda: (database,) in postgres.execute(locked))
            others = [pool.submit(client.answer, query, "b") for query in queries[1:]]
            wrong = pool.submit(client.answer, again, "b")
            until(lambda: client.status().writes_waiting == LABELLERS)
            holder.rollback()
            sequences = {each.result(WAIT_S).committed_sequence for each in (first, *others)}
            with pytest.raises(QuercusError, match="already answered"):
                wrong.result(WAIT_S)
    assert store.newest_change() - began == 2
    assert sequences == set(range(BUDGET + 2, BUDGET + 2 + LABELLERS))
    assert verify_store(postgres_url) == []


def test_a_server_that_is_killed_amid_groups_keeps_what_it_acknowledged(
    serving: Serving, store: Store, postgres_url: str
) -> None:
    acknowledged: list[str] = []
    with (
        Client(serving.address, outage_s=1.0) as leasing,
        Client(serving.address, outage_s=1.0) as answering,
    ):

        def label(number: int) -> None:
            for turn in range(BUDGET):
                query = leased(leasing, f"l{number}-{turn}")
                answering.answer(query, "a")
                acknowledged.append(query.instance)
                if len(acknowledged) == LABELLERS:  # all are at work
                    serving.kill()

        outcomes = at_once(label)
    assert all(isinstance(outcome, QuercusError) for outcome in outcomes)
    said = [event for event in store.read_events(MODEL, after=BUDGET) if event.kind is EventKind.ANSWER]
    counts = Counter(event.id for event in said)
    assert max(counts.values()) == 1
    assert set(acknowledged) <= set(counts)
    assert verify_store(postgres_url) == []
