"""Every store keeps this contract, whatever its database."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from support import words

from quercus.storage import (
    AgendaEntry,
    AppendedBatch,
    NewValue,
    Policy,
    Push,
    Statement,
    StatementBatch,
    Store,
)

WORKERS = Path(__file__).with_name("workers.py")


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["postgresql", "sqlite"])
def backend(request: pytest.FixtureRequest) -> str:
    """Name of the database."""
    return str(request.param)


@pytest.fixture
def store_url(request: pytest.FixtureRequest, backend: str, tmp_path: Path) -> str:
    """URL of a store: a new one in SQLite, an empty one in PostgreSQL."""
    if backend == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(store_url: str, clock: Clock) -> Iterator[Store]:
    with Store.open(store_url, clock=clock, steady=clock) as opened:
        yield opened


class Helper:
    """Short words for what the tests do all the time, on one model."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def create(self, budget: int = 10, name: str = "m") -> None:
        self.store.create_model(name, b"specification", budget=budget)

    def push(
        self, *ids: str, value: float = 1.0, label: bytes = words.ANYTHING, name: str = "m"
    ) -> AppendedBatch:
        return self.store.append_instances(name, ids, np.full((len(ids), 2), value), [label] * len(ids))

    def publish(self, *instances: int, as_of: int | None = None, name: str = "m") -> int:
        agenda = [AgendaEntry(i, b"asked %d" % i, b"reason %d" % i) for i in instances]
        end = self.store.get_model(name).sequence_committed if as_of is None else as_of
        return self.store.publish(name, as_of=end, snapshot=b"tree", agenda=agenda)


@pytest.fixture
def helper(store: Store) -> Helper:
    return Helper(store)


@pytest.fixture
def varied(store: Store, helper: Helper, clock: Clock) -> Store:
    """A model with 10 events: 4 rows, an answer, a refusal, and 2 statements in one call with their combined labels."""
    helper.create(budget=5)
    values = [NewValue(0, 0, "red"), NewValue(1, 0, "é\u20ac"), NewValue(0, 1, "blue")]
    numbers = np.array([[1.5, np.nan], [-0.0, 1e300], [5e-324, np.inf], [0.0, 1.0]])
    rows = ["a", "b", "ü\n1", "d"]
    labels, displays = [words.B, b"", words.ANYTHING, words.C], [b"", b"picture", b"", b""]
    assert not isinstance(
        store.append_group([Push("m", rows, numbers, labels, values, displays=displays)])[0], Exception
    )
    helper.publish(1, 2, 3)
    first, second = store.lease("m", "ann", 2, 60).queries
    words.answer(store, "m", first.number, first.token, comment="zwölf")
    clock.now += 1.0  # each call has its time
    words.refuse(store, "m", second.number, second.token)
    clock.now += 1.0
    said = [Statement("a", "bob", words.A, 1.0), Statement("d", "bob", words.B, 1.0)]
    store.state("m", StatementBatch("request", said), words.KNOWN)
    store.set_policy("m", Policy(max_held=7, tags=("one", "two")))
    assert store.get_model("m").sequence_committed == 10
    return store


@pytest.fixture
def start() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Start a worker; none outlives the test."""
    running: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(WORKERS), *arguments]
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        running.append(worker)
        return worker

    yield run
    for worker in running:
        worker.kill()
        worker.wait()
        for pipe in (worker.stdin, worker.stdout):
            if pipe is not None:
                pipe.close()
