"""A grower that is stopped, killed or cut off has a successor, and what it publishes later changes nothing."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from support.namespaces import NETWORK, Namespace, NoNamespaceError
from support.postgres import Cluster
from support.publications import stale, watch
from support.waiting import until

from quercus.server.growth.grower import Grower
from quercus.server.growth.sharing import GrowerShare
from quercus.storage import AgendaEntry, Fence, Fenced, Store, StoreError
from quercus.storage.admin.verify import verify_store

TTL_S = 1.0
WAIT_S = 30.0
WORKER = Path(__file__).with_name("grower_worker.py")
TABLES = ("model", "snapshot", "query", "query_history", "log")
_numbers = count(1)


class Worker:
    """A grower in a process of its own."""

    def __init__(self, url: str, how: str = "fenced", before: tuple[str, ...] = ()) -> None:
        command = [*before, sys.executable, str(WORKER), url, f"old{next(_numbers)}", str(TTL_S), "m", how]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self.began = self.hear()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        said: dict[str, Any] = json.loads(self.process.stdout.readline())
        return said

    def publish(self, as_of: str = "") -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{as_of}\n")
        self.process.stdin.flush()
        return self.hear()

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    """A model with three rows, the first two of which a grower has seen."""
    with Store.open(postgres_url) as opened:
        with_rows(opened)
        yield opened


def with_rows(store: Store) -> None:
    store.create_model("m", b"", budget=9)
    store.append_instances("m", ["a", "b"], np.ones((2, 1)), [b"?"] * 2)


@pytest.fixture
def begin(postgres_url: str) -> Iterator[Callable[..., Worker]]:
    running: list[Worker] = []

    def start(how: str = "fenced", url: str = postgres_url, before: tuple[str, ...] = ()) -> Worker:
        running.append(Worker(url, how, before))
        return running[-1]

    yield start
    for worker in running:
        worker.end()


def succeed(store: Store) -> tuple[Fence, float]:
    """Become a member and take the model from a grower without a heartbeat; the time that took."""
    key, begun = store.get_model("m").key, time.monotonic()
    share = GrowerShare(store, f"new{next(_numbers)}", "the test", TTL_S)
    share.start()
    try:
        while time.monotonic() - begun < WAIT_S:
            with suppress(Fenced):
                if share.is_responsible(key) or len(share.members) == 1:
                    return share.get_fence(key, "m"), time.monotonic() - begun
            time.sleep(0.02)
        raise AssertionError("nobody succeeds the grower")
    finally:
        share._stopping.set()
        share._thread.join()


def contents(url: str) -> dict[str, list[Any]]:
    with psycopg.connect(url) as connection:
        return {
            table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()  # type: ignore[call-overload]  # noqa: S608
            for table in TABLES
        }


def published_stale(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return stale(connection)


def publish_as(store: Store, fence: Fence) -> None:
    store.append_instances("m", ["c"], np.ones((1, 1)), [b"?"])
    agenda = [AgendaEntry(3, b"fresh", b"")]
    assert store.publish("m", as_of=3, snapshot=b"fresh", agenda=agenda, fence=fence) == 1


@pytest.mark.parametrize("as_of", ["", "newest"])
def test_a_stopped_grower_changes_nothing_when_it_goes_on(
    store: Store, postgres_url: str, begin: Callable[..., Worker], as_of: str
) -> None:
    watch(postgres_url)
    old = begin(url=f"{postgres_url}&application_name=old")
    os.kill(old.process.pid, signal.SIGSTOP)
    fence, took_s = succeed(store)
    print(f"succeeded after {took_s:.2f} s")
    assert fence.epoch == old.began["epoch"] + 1
    publish_as(store, fence)
    before = contents(postgres_url)
    os.kill(old.process.pid, signal.SIGCONT)
    assert old.publish(as_of) == {"fenced": "model m is grown by another grower now"}
    assert contents(postgres_url) == before
    assert store.snapshot("m").data == b"fresh"
    assert published_stale(postgres_url) == []
    assert not any(fault.is_damage for fault in verify_store(postgres_url))  # it remarks the triggers


def test_without_a_fence_it_would(store: Store, postgres_url: str, begin: Callable[..., Worker]) -> None:
    """The control: an old tree becomes the newest one, and old queries are asked."""
    watch(postgres_url)
    old = begin("unfenced", f"{postgres_url}&application_name=old")
    os.kill(old.process.pid, signal.SIGSTOP)
    fence, _ = succeed(store)
    publish_as(store, fence)
    os.kill(old.process.pid, signal.SIGCONT)
    assert old.publish("newest") == {"version": 2}
    assert store.snapshot("m").data.startswith(b"old")
    assert [query.asked for query in store.lease("m", "ann", 9, 60.0).queries] == [b"stale"]
    key, epoch = store.get_model("m").key, fence.epoch
    assert published_stale(postgres_url) == [
        f"version 2 of model {key} was published by old, while quercus had the model (epoch {epoch})"
    ]


def test_a_killed_grower_is_succeeded(store: Store, begin: Callable[..., Worker]) -> None:
    old = begin()
    old.process.kill()
    assert old.process.wait() == -signal.SIGKILL
    fence, took_s = succeed(store)
    print(f"succeeded after {took_s:.2f} s")
    assert fence.epoch == old.began["epoch"] + 1
    publish_as(store, fence)


def test_a_live_grower_keeps_its_models(store: Store, begin: Callable[..., Worker]) -> None:
    old = begin()
    key = store.get_model("m").key
    store.renew_grower("other", "the test", 60.0)
    begun = time.monotonic()
    while time.monotonic() - begun < 2 * TTL_S:
        assert store.take_model(key, "other") is None
        time.sleep(0.1)
    assert old.publish("newest") == {"version": 1}
    assert {each.member: each.models for each in store.live_growers()} == {
        each.member: int(each.member != "other") for each in store.live_growers()
    }


def test_a_grower_that_is_started_again_gives_back_what_it_had(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the same member, and may not know of the models: another, whose they are now, could never take them."""
    key = store.get_model("m").key
    store.renew_grower("server", "before it was killed", 60.0)
    assert store.take_model(key, "server")
    share = GrowerShare(store, "server", "after it", 60.0)
    places, renew = [], store.renew_grower

    def renewed(*how: Any) -> None:
        places.extend(each.place for each in store.live_growers())
        renew(*how)

    monkeypatch.setattr(store, "renew_grower", renewed)
    share.start()
    try:
        assert places == ["before it was killed"]  # it is a member all the time
        assert [(each.place, each.models) for each in store.live_growers()] == [("after it", 0)]
        store.renew_grower("other", "the test", 60.0)
        assert store.take_model(key, "other")
    finally:
        share.close()


def test_a_model_that_was_perhaps_taken_is_given_back(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database took the power cut behind the commit: nobody was told that the model was taken."""
    key = store.get_model("m").key
    share = GrowerShare(store, "mine", "here", 60.0)
    share.start()
    try:
        take = store.take_model

        def cut(*taken: Any) -> None:
            take(*taken)
            raise StoreError("cannot be reached")

        monkeypatch.setattr(store, "take_model", cut)
        with pytest.raises(StoreError):
            share.get_fence(key, "m")
        monkeypatch.undo()
        monkeypatch.setattr(share, "is_responsible", lambda _: False)  # somebody came whose it is
        share.release_others()
        store.renew_grower("other", "the test", 60.0)
        assert store.take_model(key, "other")
    finally:
        share.close()


def test_a_model_that_was_forgotten_is_given_back(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The members may change between the look at them and the look at a model."""
    key = store.get_model("m").key
    share = GrowerShare(store, "mine", "here", 60.0)
    share.start()
    try:
        share.get_fence(key, "m")
        share.return_later(key)
        share.release_others()  # it is still its own
        store.renew_grower("other", "the test", 60.0)
        assert store.take_model(key, "other") is None
        monkeypatch.setattr(share, "is_responsible", lambda _: False)
        share.release_others()
        assert store.take_model(key, "other")
    finally:
        share.close()


def test_nothing_is_remembered_of_own_models_that_were_deleted(store: Store) -> None:
    share = GrowerShare(store, "mine", "here", 60.0)
    share.start()
    grower = Grower(store, share=share)
    try:
        for number in range(3):
            key = store.create_model(f"own{number}", b"", budget=0).key
            share.get_fence(key, f"own{number}")
            grower.run_round()
            store.delete_model(f"own{number}")
        grower.run_round()
        assert not share._fences
        assert not share._doubtful
    finally:
        grower.close()
        share.close()


def test_what_is_given_back_or_gone_can_be_taken_or_not(store: Store) -> None:
    key = store.get_model("m").key
    for member in ("a", "b"):
        store.renew_grower(member, "the test", 60.0)
    first = store.take_model(key, "a")
    assert first == Fence("a", 1)
    assert store.take_model(key, "b") is None
    assert store.take_model(key, "a") == Fence("a", 2)  # by another process of the same name
    store.release_models("a", [key])
    assert store.take_model(key, "b") == Fence("b", 3)
    store.leave_growers("b")
    assert [each.member for each in store.live_growers()] == ["a"]
    last = store.take_model(key, "a")
    assert last == Fence("a", 4)
    for late in (first, Fence("b", 3), Fence("b", 4)):
        with pytest.raises(Fenced):
            store.publish("m", as_of=2, snapshot=b"", agenda=None, fence=late)
        with pytest.raises(Fenced):
            store.publish_agenda("m", as_of=2, agenda=[], key=key, fence=late)
    store.delete_model("m")
    assert store.take_model(key, "a") is None
    assert store.publish("m", as_of=2, snapshot=b"", agenda=None, fence=last) == 0


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    try:
        made = Namespace()
    except NoNamespaceError as error:
        pytest.skip(f"NOT TESTED: a cut network takes root and the right to make namespaces: {error}")
    yield made
    made.remove()


@pytest.mark.parametrize("how", ["fenced", "unfenced"])
def test_a_grower_that_is_cut_off_changes_nothing_when_it_is_back(
    namespace: Namespace, postgres: Cluster, postgres_url: str, begin: Callable[..., Worker], how: str
) -> None:
    """And the control: without a fence it would."""
    (link,) = namespace.links
    with socket.socket() as free:
        free.bind((link.here, 0))
        port = free.getsockname()[1]
    postgres.stop()
    postgres.allow(NETWORK)
    postgres.start(listen_addresses=link.here, port=str(port))
    url = postgres.url_at(link.here, _database(postgres_url))
    try:
        assert namespace.reaches(link.here, port)
        with Store.open(url) as outside:
            with_rows(outside)
            old = begin(how, url, namespace.before)
            link.cut()
            assert not namespace.reaches(link.here, port)
            fence, took_s = succeed(outside)
            print(f"succeeded after {took_s:.2f} s")
            publish_as(outside, fence)
            assert outside.get_model("m").tree_version == 1
            link.heal()
            until(lambda: namespace.reaches(link.here, port))
            said = until(  # connections of the time before are lost
                lambda: "trouble" not in (answer := old.publish("newest")) and answer
            )
            if how == "fenced":
                assert said == {"fenced": "model m is grown by another grower now"}
                assert outside.get_model("m").tree_version == 1
                assert outside.snapshot("m").data == b"fresh"
            else:
                assert said == {"version": 2}
                assert outside.snapshot("m").data.startswith(b"old")
    finally:
        postgres.stop()
        postgres.start()


def _database(url: str) -> str:
    return url.rpartition("?")[0].rpartition("/")[2]
