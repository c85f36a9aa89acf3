"""The grower goes on whatever happens to one model, and says so once a try."""

import logging
import math
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import delete, update
from support.published import published_message
from support.said import said

from quercus.belief.codec import encode
from quercus.belief.label import ClassSet
from quercus.server.growth import grower
from quercus.server.growth.folding import LogFolder
from quercus.server.growth.grower import Grower
from quercus.server.growth.heartbeat import HeartbeatWriter
from quercus.server.growth.learner_pool import LearnerPool
from quercus.server.wire.models import complete_specification
from quercus.storage.errors import StoreError
from quercus.storage.records import LogSegment, ModelRecord
from quercus.storage.schema import change_counter, log, model, model_change
from quercus.storage.store import Store
from quercus.v1 import model_pb2

POISON = b"\xff\xff\xff"


def specification(width: int = 1) -> bytes:
    attributes = [
        model_pb2.Attribute(name=f"A{k}", nominal=model_pb2.NominalAttribute(values=["a", "b"]))
        for k in range(width)
    ]
    message = published_message(attributes=attributes, classes=["p", "q"])
    return complete_specification(message).SerializeToString(deterministic=True)


def push(store: Store, model: str, count: int, width: int = 1) -> None:
    label = encode(ClassSet(1))
    store.append_instances(model, [f"i{i}" for i in range(count)], np.zeros((count, width)), [label] * count)


class Unlucky(Store):
    """A store that something happens to: `after_reading` runs between the models that are due and their steps."""

    after_reading: Any = None
    publishes_that_fail = 0
    is_strange = False
    records_read = 0
    reads: tuple[tuple[int, LogSegment], ...] = ()

    def models_of(self, keys: Sequence[int]) -> list[ModelRecord]:
        found = super().models_of(keys)
        self.records_read += len(found)
        then, self.after_reading = self.after_reading, None
        if then is not None:
            then()
        return found

    def read_log(self, model: str, after: int = 0, **bounds: int) -> LogSegment:
        if self.is_strange:
            raise RuntimeError("nobody expected this")
        found = super().read_log(model, after, **bounds)
        self.reads = (*self.reads, (after, found))
        return found

    def publish(self, model: str, **fields: Any) -> int:
        if self.publishes_that_fail:
            self.publishes_that_fail -= 1
            raise StoreError("no space is left on the disk")
        return super().publish(model, **fields)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Unlucky.open(f"sqlite:///{tmp_path / 'store.db'}") as opened:
        yield opened


def messages(caplog: pytest.LogCaptureFixture) -> Sequence[str]:
    return said(caplog, "quercus.server.growth.grower", logging.WARNING)


def rounds(running: Grower) -> None:
    while running.run_round():
        pass


def until_published(running: Grower) -> None:
    """As `grower.run_grower` does until nothing is left to do."""
    while True:
        rounds(running)
        if running.wake_at == math.inf:
            return
        time.sleep(max(0.0, running.wake_at - time.monotonic()))


def test_a_damaged_model_is_logged_and_reported_once(
    store: Unlucky, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, told = [0.0], list[tuple[str, str]]()
    monkeypatch.setattr(grower.time, "monotonic", lambda: now[0])
    store.create_model("poisoned", POISON, budget=0)
    store.create_model("sound", specification(), budget=0)
    running = Grower(store, notify_damage=lambda *damage: told.append(damage))
    damage = "specification: is not a serialised quercus.v1.Specification"
    for _ in range(2):
        for _ in range(10):
            rounds(running)
        assert messages(caplog) == [f"model poisoned cannot be grown: {damage}; see quercus check"]
        assert set(told) == {("poisoned", damage)}
        assert (store.get_model("sound").tree_version, running.wake_at) == (1, now[0] + grower.LAST_RETRY_S)
        now[0] += grower.LAST_RETRY_S
    store.delete_model("poisoned")
    rounds(running)
    assert running.wake_at == math.inf  # nothing is left that would wake it up
    assert told[-1] == ("poisoned", "")


def test_a_model_that_fails_for_no_known_reason_is_logged_once_a_try(
    store: Unlucky, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(grower.time, "monotonic", lambda: now[0])
    store.create_model("m", specification(), budget=0)
    push(store, "m", 1)
    store.is_strange = True
    running = Grower(store)
    for delay in (0.5, 1.0):
        for _ in range(10):
            rounds(running)
        assert messages(caplog)[-1:] == [f"model m cannot be grown; trying again in {delay} s"]
        now[0] += delay
    assert len(messages(caplog)) == 2
    store.is_strange = False
    rounds(running)
    assert store.get_model("m").tree_version == 1


def test_a_model_that_is_deleted_meanwhile_is_no_failure(
    store: Unlucky, caplog: pytest.LogCaptureFixture
) -> None:
    store.create_model("m", specification(), budget=0)
    running = Grower(store)
    store.after_reading = lambda: store.delete_model("m")
    rounds(running)
    assert (messages(caplog), running.wake_at) == ([], math.inf)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_model_that_is_replaced_meanwhile_is_no_failure(
    count: int, store: Unlucky, caplog: pytest.LogCaptureFixture
) -> None:
    def replace() -> None:
        store.delete_model("m")
        store.create_model("m", specification(width=3), budget=0)
        if count:
            push(store, "m", count, width=3)

    store.create_model("m", specification(width=2), budget=0)
    push(store, "m", 2, width=2)
    running = Grower(store)
    store.after_reading = replace
    rounds(running)
    rounds(running)  # the store changed since the round began, so there is another
    assert (messages(caplog), running.wake_at) == ([], math.inf)
    model = store.get_model("m")
    assert (model.sequence_grown, model.tree_version) == (count, 1)


def test_a_store_that_fails_does_not_cost_what_is_folded(
    store: Unlucky, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(grower.time, "monotonic", lambda: now[0])
    store.create_model("m", specification(), budget=0)
    push(store, "m", 5)
    running = Grower(store)
    store.publishes_that_fail = 2
    for _ in range(3):
        rounds(running)
        now[0] += 60.0
    assert messages(caplog) == [
        "model m cannot be grown: no space is left on the disk; trying again in 0.5 s",
        "model m cannot be grown: no space is left on the disk; trying again in 1.0 s",
    ]
    assert [after for after, _ in store.reads] == [0]
    assert store.get_model("m").sequence_grown == 5


def test_old_trees_are_removed(store: Unlucky) -> None:
    store.create_model("m", specification(), budget=0)
    running = Grower(store, keep=2, interval_s=0.0)
    for i in range(4):
        store.append_instances("m", [f"{i}"], np.zeros((1, 1)), [encode(ClassSet(1))])
        until_published(running)
    assert store.snapshot("m").version == 4
    with pytest.raises(Exception, match="3 to 4 are kept"):
        store.snapshot("m", 2)


class Unlisted(dict[int, LogFolder]):
    """Models of which nobody makes a list."""

    def keys(self) -> Any:
        raise AssertionError("a round goes through all models")

    __iter__ = items = values = keys  # type: ignore[assignment]


def test_a_commit_costs_the_models_that_it_changed(store: Unlucky) -> None:
    for number in range(40):
        store.create_model(f"m{number}", specification(), budget=0)
    running = Grower(store, interval_s=0.0)
    until_published(running)
    store.records_read = 0
    assert not running.run_round()
    assert store.records_read == 0
    push(store, "m7", 3)
    until_published(running)
    assert (store.get_model("m7").sequence_grown, store.records_read < 10) == (3, True)
    running._models = Unlisted(running._models)
    push(store, "m8", 2)
    while running.run_round():
        pass
    store.delete_model("m7")
    store.records_read = 0
    until_published(running)
    assert store.records_read == 0


def test_a_log_that_lost_its_end_is_folded_anew(store: Unlucky, caplog: pytest.LogCaptureFixture) -> None:
    """As after a standby took over without the last commits: the grower went on with rows that nobody has."""
    store.create_model("m", specification(), budget=0)
    push(store, "m", 4)
    running = Grower(store)
    until_published(running)
    with store._database.write() as connection:
        lost = {"sequence_committed": 2, "instance_count": 2, "sequence_grown": 2, "tree_version": 1}
        connection.execute(update(model).values(**lost))
        connection.execute(delete(log).where(log.c.sequence > 2))
        connection.execute(update(change_counter).values(number=1))
        connection.execute(update(model_change).values(number=1))
    store.append_instances("m", ["other"], np.zeros((1, 1)), [encode(ClassSet(2))])
    store.reads = ()
    until_published(running)
    assert [after for after, _ in store.reads] == [0]
    assert store.get_model("m").sequence_grown == 3
    assert messages(caplog) == ["model m: the log ends before event 4, which was folded; it is read anew"]


def test_a_grower_that_waits_looks_at_the_store_when_it_is_told(store: Unlucky) -> None:
    learners, is_over = LearnerPool(store.url), threading.Event()
    running = Grower(store, learners=learners)
    store.create_model("m", specification(), budget=0)
    with Path(os.devnull).open("wb") as nobody:
        pulse = HeartbeatWriter(nobody.fileno())
        waits = threading.Thread(
            target=lambda: grower.run_grower(store, 60.0, running, learners, pulse, is_over.is_set)
        )
        waits.start()
        for count in range(1, 4):
            push(store, "m", count)
            until = time.monotonic() + 20.0
            while store.get_model("m").sequence_grown < store.get_model("m").sequence_committed:
                learners.end_wait()
                assert time.monotonic() < until
                time.sleep(0.005)
        is_over.set()
        learners.end_wait()
        waits.join(30.0)
    assert not waits.is_alive()
