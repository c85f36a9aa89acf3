"""Many threads and processes write to one store at once; what they did is verified, and a store without locks fails."""

import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Connection, event
from support import words

from quercus.labelling.leasing import InstanceFilter
from quercus.storage import (
    AgendaEntry,
    AlreadyExists,
    AnswerRequest,
    EventKind,
    FailedPrecondition,
    GroupCall,
    Idle,
    LeaseClaim,
    LeaseRequest,
    NotFound,
    Policy,
    Push,
    StorageError,
    Store,
    Words,
    rows,
)
from quercus.storage.admin.verify import verify_store
from quercus.storage.prepared import Prepared
from quercus.storage.sqlite.texts import driver_of

THREADS, PROCESSES, TURNS = 12, 4, 2
WAIT_S = 30.0
MODELS = ("a", "b")


class Busy:
    """One of many who use a store: leases, answers, releases, undoes, pushes, publishes, changes and deletes models.

    Parameters
    ----------
    store : shared, or of its own.
    name : of the labeller.
    """

    def __init__(self, store: Store, name: str) -> None:
        self.store, self.name = store, name
        self.chance = random.Random(name)  # noqa: S311
        self.did: Counter[str] = Counter()

    def run(self, turns: int = TURNS) -> None:
        """Take so many turns; what loses against others is not a fault, an error of the store is."""
        steps: list[Callable[[str], None]] = [
            self.label,
            self.label,
            self.label,
            self.push,
            self.grow,
            self.change,
        ]
        for _ in range(turns):
            for step in (*self.chance.sample(steps, len(steps)), self.come_and_go):
                try:
                    step(self.chance.choice(MODELS))
                    self.did[step.__name__] += 1
                except (FailedPrecondition, NotFound, AlreadyExists):
                    self.did["lost"] += 1

    def label(self, model: str) -> None:
        for query in self.store.lease(model, self.name, 2, 60.0).queries:
            if self.chance.random() < 0.3:
                self.store.release(model, query.number, query.token)
                continue
            words.answer(self.store, model, query.number, query.token, words.A, 1.0)
            if self.chance.random() < 0.2:
                words.amend(self.store, model, query.number, self.name, None)

    def push(self, model: str) -> None:
        ids = [f"{self.name}-{self.chance.random()}" for _ in range(2)]
        others = [Push(each, ids, np.ones((2, 1)), [words.ANYTHING] * 2, ()) for each in (model, *MODELS)]
        for outcome in self.store.append_group(others):
            if isinstance(outcome, Exception):
                raise outcome

    def grow(self, model: str) -> None:
        record = self.store.get_model(model)
        events = self.store.read_events(model, limit=10**6)
        settled = {e.instance for e in events if e.kind in (EventKind.ANSWER, EventKind.REFUSAL)}
        asked = [e.sequence for e in events if e.kind is EventKind.INSTANCE and e.sequence not in settled]
        agenda = [AgendaEntry(instance, b"", b"") for instance in asked[:10]]
        self.store.publish(model, as_of=len(events), snapshot=b"", agenda=agenda, key=record.key, keep=2)

    def change(self, model: str) -> None:
        self.store.respecify(model, self.name.encode(), budget=10**6)

    def come_and_go(self, _: str) -> None:
        """Create a model that all others create as well, and delete it."""
        try:
            self.store.create_model("shared", b"", budget=3)
        finally:
            if self.chance.random() < 0.5:
                self.store.delete_model("shared")


def begin(store: Store) -> None:
    for model in MODELS:
        store.create_model(model, b"", budget=10**6)
        store.append_instances(model, [f"i{k}" for k in range(20)], np.ones((20, 1)), [words.ANYTHING] * 20)
        agenda = [AgendaEntry(instance, b"", b"") for instance in range(1, 11)]
        store.publish(model, as_of=20, snapshot=b"", agenda=agenda)


def crowd(store: Store, turns: int = TURNS) -> list[str]:
    """Let all threads work at once; what was wrong, in words."""
    faults: list[str] = []
    together = threading.Barrier(THREADS)

    def work(number: int) -> None:
        together.wait()
        try:
            Busy(store, f"thread-{number}").run(turns)
        except StorageError as error:
            faults.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return faults


@pytest.mark.slow
def test_threads_and_processes_at_once(store_url: str) -> None:
    with Store.open(store_url) as store:
        begin(store)
        command = [sys.executable, __file__, store_url]
        env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}  # where `support` is
        others = [
            subprocess.Popen([*command, f"process-{k}"], stderr=subprocess.PIPE, env=env)
            for k in range(PROCESSES)
        ]
        faults = crowd(store)
        for other in others:
            _, said = other.communicate(timeout=120)
            faults += [said.decode()] if other.returncode else []
        assert faults == []
        assert [str(fault) for fault in verify_store(store_url)] == []
        assert {row.labeller.partition("-")[0] for row in store.query_history("a", limit=10**6)} >= {
            "thread",
            "process",
        }


def _wait_for_locks(connection: Connection, *, writes: bool) -> None:
    """Begin nothing; a statement waits for those of others."""
    driver_of(connection).execute("PRAGMA busy_timeout = 5000")


@contextmanager
def unlocked(store: Store) -> Iterator[None]:
    """Take the locks of the store away, so that writers pass one another.

    In SQLite every statement is then a transaction of its own; in PostgreSQL no row is locked before it is changed.
    """
    database = store._database
    if not database.dialect.one_writer:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rows, "_HELD", Prepared(rows._BY_NAME))
            yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database.dialect, "begin", _wait_for_locks)
        patch.setattr(database, "_writer", nullcontext())
        yield


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # whatever the driver thinks of commits without a transaction
def test_without_locks_it_fails(store_url: str) -> None:
    """The control: what the test above looks for does happen, and is seen."""
    with Store.open(store_url) as store:
        begin(store)
        with unlocked(store):
            faults = crowd(store)
        assert faults or verify_store(store_url)


def test_of_several_who_create_a_model_at_once_one_does(store_url: str) -> None:
    """Also where the database lets all of them look before any of them writes."""
    outcomes: list[str] = []
    with Store.open(store_url) as store:
        together = threading.Barrier(4)

        def create(name: str) -> None:
            together.wait()
            try:
                store.create_model(name, b"", budget=0)
                outcomes.append("made")
            except StorageError as error:
                outcomes.append(type(error).__name__)

        with unlocked(store):
            for turn in range(20):
                threads = [threading.Thread(target=create, args=(f"m{turn}",)) for _ in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
    assert Counter(outcomes) == {"made": 20, "AlreadyExists": 60}


def holds(statement: str) -> bool:
    """Return whether a statement locks a model's row, as `rows.lock_model` does."""
    mine = statement.startswith("SELECT model.") and "WHERE model.name = " in statement
    return mine and ("WHERE model.name = ? AND" in statement or "FOR UPDATE" in statement)


def test_the_clock_is_asked_when_the_model_is_held(store_url: str) -> None:
    """Else who waits for a model writes, behind what the one before it did, that it was earlier."""
    from support.statements import statements_noted  # the processes above run this file without it

    order: list[str] = []

    def steady() -> float:
        order.append("clock")
        return 1000.0

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        order.extend(["held"] if holds(statement) else [])

    with Store.open(store_url, clock=steady, steady=steady) as store:
        begin(store)
        writes: list[Callable[[], Any]] = [
            lambda: store.append_instances("a", ["new"], np.ones((1, 1)), [words.ANYTHING]),
            lambda: store.publish("a", as_of=21, snapshot=b"", agenda=[AgendaEntry(1, b"", b"")]),
            lambda: store.publish_agenda("a", as_of=21, agenda=[AgendaEntry(1, b"", b"")], key=1),
            lambda: taken.append(store.lease("a", "ann", 1, 60.0).queries[0]),
            lambda: store.extend("a", 1, taken[0].token, 60.0),
            lambda: store.release("a", 1, taken[0].token),
            lambda: taken.append(store.lease("a", "ann", 1, 60.0).queries[0]),
            lambda: words.answer(store, "a", 1, taken[1].token, words.A, 1.0),
            lambda: words.amend(store, "a", 1, "ann", None),
            lambda: store.respecify("a", b"", budget=9),
        ]
        taken: list[Any] = []
        with statements_noted(note):
            for number, write in enumerate(writes):
                order.clear()
                write()
                assert order[0] == "held", f"write {number}: {order}"
                assert "clock" in order


def in_one_group(store: Store, works: dict[str, GroupCall]) -> tuple[dict[str, Any], int]:
    """Run calls in a group: the outcome of each, and the number of transactions that it took."""
    commits: list[object] = []

    def note(connection: object) -> None:
        commits.append(connection)

    event.listen(store._database._engine, "commit", note)
    try:
        outcomes = store.run_group(list(works.values()))
    finally:
        event.remove(store._database._engine, "commit", note)
    return dict(zip(works, outcomes, strict=True)), len(commits)


def leasing(labeller: str, limit: int = 1, only: InstanceFilter | None = None) -> GroupCall:
    return LeaseRequest("a", labeller, limit, 60.0, 0, only)


def answering(number: int, token: str, label: bytes | None = words.A) -> GroupCall:
    return AnswerRequest(LeaseClaim("a", number, token), Words(label, 1.0), words.KNOWN)


def test_calls_of_a_group_share_a_transaction(store_url: str) -> None:
    with Store.open(store_url) as store:
        begin(store)
        (mine,) = store.lease("a", "mia", 1, 60.0).queries
        works = {
            "ann": leasing("ann"),
            "mia": answering(mine.number, mine.token),
            "refused": answering(mine.number, "made up"),
            "bob": leasing("bob", 2),
        }
        outcomes, transactions = in_one_group(store, works)
        assert transactions == 1
        assert isinstance(outcomes["refused"], FailedPrecondition)
        numbers = [query.number for name in ("ann", "bob") for query in outcomes[name].queries]
        assert len({mine.number, *numbers}) == 4
        assert store.get_query("a", mine.number).sequence == outcomes["mia"].sequence
        assert {store.get_query("a", number).labeller for number in numbers} == {"ann", "bob"}
    assert verify_store(store_url) == []


def test_those_who_share_a_transaction_keep_every_rule(store_url: str) -> None:
    """Budget, what one labeller may hold, what it skipped, and that an answer counts once."""
    with Store.open(store_url) as store:
        begin(store)
        store.respecify("a", b"", budget=6)
        store.set_policy("a", Policy(max_held=1))
        (ann,), (bob,), (kim,) = (store.lease("a", who, 1, 60.0).queries for who in ("ann", "bob", "kim"))
        store.skip("a", kim.number, kim.token)
        works = {
            "first": leasing("z"),
            "answer": answering(ann.number, ann.token),
            "again": answering(ann.number, ann.token),
            "refusal": answering(bob.number, bob.token, None),
            "kim": leasing("kim"),
            "more": leasing("kim"),
            **{who: leasing(who) for who in ("eve", "joe", "lea", "moe")},
        }
        outcomes, transactions = in_one_group(store, works)
        assert transactions == 1
        assert outcomes["again"].repeated
        assert outcomes["again"].sequence == outcomes["answer"].sequence
        assert outcomes["refusal"].sequence == outcomes["answer"].sequence + 1
        assert outcomes["more"].idle is Idle.HANDS_FULL
        assert outcomes["moe"].idle is Idle.ALL_LEASED
        names = ("first", "kim", "eve", "joe", "lea")
        leased = [query.number for name in names for query in outcomes[name].queries]
        assert len(set(leased)) == len(leased) == 5
        assert outcomes["kim"].queries[0].number != kim.number
        record = store.get_model("a")
        assert (record.queries_answered, record.queries_refused, record.queries_leased) == (1, 1, 5)
        assert [outcomes[name].budget_left for name in names[1:]] == [3, 2, 1, 0]
        said = [event.kind for event in store.read_events("a", after=21)]
        assert said == [EventKind.ANSWER, EventKind.REFUSAL]
    assert verify_store(store_url) == []


def test_a_call_that_breaks_leaves_those_beside_it_alone(store_url: str) -> None:
    with Store.open(store_url) as store:
        begin(store)
        works = {
            "ann": leasing("ann"),
            "broken": leasing("eve", only=InstanceFilter(((99, 1),), (True,) * 8)),
            "bob": leasing("bob"),
        }
        outcomes, _ = in_one_group(store, works)
        assert isinstance(outcomes["broken"], IndexError)
        (ann,), (bob,) = outcomes["ann"].queries, outcomes["bob"].queries
        assert ann.number != bob.number
        assert store.get_model("a").queries_leased == 2  # each once
    assert verify_store(store_url) == []


def test_models_are_held_in_one_order(store_url: str) -> None:
    """Two who push to both, each beginning with another, would wait for each other for ever."""
    from support.statements import statements_noted

    held: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if holds(statement):
            held.extend(parameters.values() if isinstance(parameters, dict) else parameters)

    with Store.open(store_url) as store, statements_noted(note):
        begin(store)
        for ids, order in (("xyz", ["a", "b"]), ("uvu", ["a", "b", "a", "b"])):
            held.clear()
            pushes = [
                Push(model, [each], np.ones((1, 1)), [words.ANYTHING], ())
                for model, each in zip("bab", ids, strict=True)
            ]
            store.append_group(pushes)
            assert held == order  # an id that comes twice: all of it once more, with a look at the ids


if __name__ == "__main__":
    with Store.open(sys.argv[1]) as opened:
        Busy(opened, sys.argv[2]).run()
