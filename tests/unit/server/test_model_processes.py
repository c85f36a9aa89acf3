"""Large models grow in processes of their own: the same trees, in turns, and only as far as their memory allows."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quercus.belief.codec import encode_sets
from quercus.client.plugins import to_proto
from quercus.server.growth import grower, model_processes
from quercus.server.growth.grower import Grower
from quercus.server.growth.model_processes import ModelProcesses
from quercus.server.growth.regrowing import regrow_model
from quercus.server.growth.sharing import GrowerShare
from quercus.server.wire.models import complete_specification
from quercus.server.wire.reports import stopped_above
from quercus.storage.store import Store
from quercus.v1 import model_pb2

WAIT_S = 90.0
FEW, MANY = 60, 240
NO_BOUND = 2**40


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'a store.db'}") as opened:
        yield opened


@pytest.fixture
def growing(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Grower]]:
    """Make a grower for which models of `MANY` rows are large; what it does is ended in the end."""
    monkeypatch.setattr(grower, "LARGE_MODEL", 4 * 2 * (FEW + 1))
    made: list[tuple[Grower, ModelProcesses]] = []

    def make(most_bytes: int = NO_BOUND, most: int = 4, **options: Any) -> Grower:
        command = [sys.executable, "-m", "quercus.server.growth.grower", store.url]
        apart = ModelProcesses(command, most_bytes, most=most)
        made.append((Grower(store, apart=apart, **options), apart))
        return made[-1][0]

    yield make
    for each, apart in made:
        pids = list(apart.pids.values())
        each.close()
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


FOREST = to_proto({"name": "active-forest", "trees": 6})


def create(store: Store, model: str, learner: model_pb2.Plugin = FOREST) -> None:
    attributes = [model_pb2.Attribute(name=f"x{k}", numeric=model_pb2.NumericAttribute()) for k in range(4)]
    message = model_pb2.Specification(attributes=attributes, classes=["p", "q"], learner=learner)
    store.create_model(model, complete_specification(message).SerializeToString(deterministic=True), budget=0)


def push(store: Store, model: str, rows: int) -> None:
    first = store.get_model(model).instance_count
    values = np.random.default_rng(first).normal(size=(rows, 4))
    labels = encode_sets((1 << (values[:, 0] > 0)).astype(np.uint64))
    store.append_instances(model, [f"{first + i}" for i in range(rows)], values, labels)


def rounds_until(each: Grower, done: Callable[[], Any]) -> Any:
    end = time.monotonic() + WAIT_S
    while not (found := done()):
        assert time.monotonic() < end, "it did not come true"
        each.run_round()
        time.sleep(0.005)
    return found


def is_grown(store: Store, model: str) -> bool:
    record = store.get_model(model)
    return record.sequence_grown == record.sequence_committed


def pids(each: Grower) -> dict[str, int]:
    assert each._apart is not None
    return each._apart.pids


def test_a_model_goes_on_in_a_process_of_its_own_to_the_same_tree(
    store: Store, growing: Callable[..., Grower]
) -> None:
    stepped: list[str] = []
    each = growing(notify=stepped.append)
    create(store, "grows")
    push(store, "grows", FEW)
    rounds_until(each, lambda: is_grown(store, "grows"))
    assert (set(stepped), pids(each)) == ({"grows", ""}, {})
    stepped.clear()
    push(store, "grows", MANY)
    rounds_until(each, lambda: is_grown(store, "grows"))
    assert (stepped, list(pids(each))) == ([], ["grows"])
    push(store, "grows", FEW)
    rounds_until(each, lambda: is_grown(store, "grows"))
    newest = store.snapshot("grows")
    assert newest.data == regrow_model(store, "grows", newest.as_of)


@pytest.mark.slow
def test_a_process_that_is_killed_is_started_again(store: Store, growing: Callable[..., Grower]) -> None:
    each = growing()
    create(store, "large")
    push(store, "large", MANY)
    first = rounds_until(each, lambda: is_grown(store, "large") and pids(each))["large"]
    os.kill(first, signal.SIGKILL)
    push(store, "large", FEW)
    rounds_until(each, lambda: is_grown(store, "large"))
    assert pids(each)["large"] != first


def test_a_process_ends_with_its_model_and_leaves_nothing(
    store: Store, growing: Callable[..., Grower]
) -> None:
    each = growing()
    create(store, "large")
    push(store, "large", MANY)
    pid = rounds_until(each, lambda: is_grown(store, "large") and pids(each))["large"]
    store.delete_model("large")
    rounds_until(each, lambda: not pids(each))
    assert not Path(f"/proc/{pid}").exists()
    beside = store.beside("-growth")
    assert beside is None or not beside.is_dir() or not list(beside.iterdir())


@pytest.mark.release
def test_more_large_models_than_processes_take_turns(
    store: Store, growing: Callable[..., Grower], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_processes, "TURN_S", 0.0)
    each = growing(most=1)
    names = ("one", "other")
    for name in names:
        create(store, name)
        push(store, name, MANY)
    rounds_until(each, lambda: all(is_grown(store, name) for name in names))
    push(store, "one", FEW)  # it has left, or is asked to: it comes back
    push(store, "other", FEW)
    rounds_until(each, lambda: all(is_grown(store, name) for name in names))
    assert len(pids(each)) <= 1


def test_one_that_takes_too_much_memory_is_grown_no_further(
    store: Store, growing: Callable[..., Grower], caplog: pytest.LogCaptureFixture
) -> None:
    each = growing(most_bytes=(limit := 20_000_000))  # less than Python and its libraries take
    create(store, "grows")
    push(store, "grows", FEW)
    rounds_until(each, lambda: is_grown(store, "grows"))
    push(store, "grows", MANY)
    rounds_until(each, lambda: stopped_above(store.get_model("grows").report))
    record = store.get_model("grows")
    assert (stopped_above(record.report), record.tree_version, record.sequence_grown) == (limit, 1, FEW)
    assert "model grows takes" in caplog.text
    assert "max_model_memory_bytes=40000000" in caplog.text
    push(store, "grows", FEW)
    create(store, "small")
    push(store, "small", FEW)
    rounds_until(each, lambda: is_grown(store, "small"))
    assert (pids(each), store.get_model("grows").sequence_grown) == ({}, FEW)

    again = growing(most_bytes=limit)  # no second try by the same limit
    for _ in range(3):
        again.run_round()
    assert pids(again) == {}
    higher = growing(most_bytes=NO_BOUND)
    rounds_until(higher, lambda: is_grown(store, "grows"))
    assert stopped_above(store.get_model("grows").report) == 0


def test_a_model_whose_steps_are_long_leaves_the_others(
    store: Store, growing: Callable[..., Grower], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grower, "LONG_STEP_S", 0.0)  # every step is
    each = growing()
    create(store, "small")
    for _ in range(grower.LONG_STEPS):
        push(store, "small", 1)
        rounds_until(each, lambda: is_grown(store, "small"))
    push(store, "small", 1)
    rounds_until(each, lambda: is_grown(store, "small") and pids(each))
    assert list(pids(each)) == ["small"]


def test_small_models_come_before_one_that_took_long(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although it has the lowest number; and where a round has time for one step alone, it is a small one's."""
    stepped: list[str] = []
    each = Grower(store, notify=stepped.append, interval_s=0.0)
    names = ("a-large", "b-small", "c-small")
    for name in names:
        create(store, name)
        push(store, name, 3_000 if name == "a-large" else 3)
    rounds_until(each, lambda: all(is_grown(store, name) for name in names))
    for round_s in (grower.ROUND_S, 0.0):
        monkeypatch.setattr(grower, "ROUND_S", round_s)
        for name in names:
            push(store, name, 2_000 if name == "a-large" else 3)
        stepped.clear()
        rounds_until(each, lambda: is_grown(store, "a-large"))
        before = stepped[: stepped.index("a-large")]
        assert {*before} == {"b-small", "c-small", ""}
    each.close()


@pytest.mark.slow
def test_a_large_model_moves_to_another_member(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process publishes for the member that started it, and is gone before another member has the model."""
    monkeypatch.setattr(grower, "LARGE_MODEL", 1)
    with Store.open(postgres_url) as store:
        shares = {name: GrowerShare(store, name, "here", 300.0) for name in ("ada", "bob")}
        growers = {}
        for name, share in shares.items():
            command = [sys.executable, "-m", "quercus.server.growth.grower", store.url, "--member", name]
            growers[name] = Grower(store, share=share, apart=ModelProcesses(command, NO_BOUND))
        shares["ada"].start()
        try:
            create(store, "large")
            push(store, "large", MANY)
            key = store.get_model("large").key
            rounds_until(growers["ada"], lambda: is_grown(store, "large"))
            old = pids(growers["ada"])["large"]

            shares["ada"].close()  # ada sees no more who is there, and the store gives its models away
            shares["bob"].start()
            assert shares["bob"].is_responsible(key)
            push(store, "large", FEW)
            rounds_until(growers["bob"], lambda: is_grown(store, "large") and pids(growers["bob"]))
            grown = store.get_model("large").tree_version
            push(store, "large", FEW)
            rounds_until(growers["bob"], lambda: is_grown(store, "large"))
            assert store.get_model("large").tree_version > grown
            shares["ada"].members = ("bob",)
            growers["ada"].run_round()
            assert not Path(f"/proc/{old}").exists()
        finally:
            for each in growers.values():
                each.close()
            shares["bob"].close()


@pytest.mark.release
def test_a_large_model_of_a_learner_learns_there_as_well(
    store: Store, growing: Callable[..., Grower]
) -> None:
    each = growing()
    create(store, "learns", to_proto("c45"))
    push(store, "learns", MANY)
    rounds_until(each, lambda: is_grown(store, "learns"))
    newest = store.snapshot("learns")
    assert (list(pids(each)), newest.as_of) == (["learns"], MANY)
    assert newest.data == regrow_model(store, "learns", MANY)
