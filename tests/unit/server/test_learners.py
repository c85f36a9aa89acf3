"""Processes that learn: in turn, as many as allowed, ended at once when nobody wants what they learn."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from quercus.belief.codec import encode_sets
from quercus.client.plugins import to_proto
from quercus.server.growth import learner_pool
from quercus.server.growth.learner_pool import LearnerPool, LearningFailedError, RunningTask
from quercus.server.growth.relearning import LearningTask
from quercus.server.wire import snapshots
from quercus.server.wire.models import complete_specification
from quercus.storage.store import Store
from quercus.v1 import model_pb2

ROWS = 400
WAIT_S = 60.0
SLOW = to_proto({"name": "forest", "trees": 1000, "base": "total-uncertainty"})
QUICK = to_proto("c45")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'a store.db'}") as opened:
        yield opened


@pytest.fixture
def learners(store: Store) -> Iterator[LearnerPool]:
    made = LearnerPool(store.url, most=1)
    yield made
    made.close()
    assert not any(Path(f"/proc/{pid}").exists() for pid in made.pids)


def task(store: Store, model: str, learner: model_pb2.Plugin) -> LearningTask:
    """Make a model, with rows; the task to learn all but the last of them."""
    attributes = [model_pb2.Attribute(name=f"x{k}", numeric=model_pb2.NumericAttribute()) for k in range(3)]
    message = model_pb2.Specification(attributes=attributes, classes=["p", "q"], learner=learner)
    store.create_model(model, complete_specification(message).SerializeToString(deterministic=True), budget=0)
    values = np.random.default_rng(1).normal(size=(ROWS, 3))
    labels = encode_sets((1 << (values[:, 0] > 0)).astype(np.uint64))
    store.append_instances(model, [f"{i}" for i in range(ROWS)], values, labels)
    return LearningTask(model, store.get_model(model).key, ROWS - 1)


def end(learners: LearnerPool, learning: RunningTask) -> None:
    """Wait until a learning has ended."""
    while learning.outcome is None:
        assert learners.wait_for_news(WAIT_S)
        learners.collect_ended()


def test_what_is_learned_is_that_of_the_log_up_to_the_event(store: Store, learners: LearnerPool) -> None:
    quick = task(store, "quick", QUICK)
    learning = learners.queue_task(quick)
    end(learners, learning)
    learnt = learning.get_outcome()
    stored = snapshots.read_snapshot(learnt.snapshot)
    assert stored.columns["count"][0] == ROWS - 1
    assert len(stored.columns["count"]) == learnt.nodes == 3
    assert learnt.cost_s > 0


def test_one_that_is_killed_says_so_and_another_takes_its_place(store: Store, learners: LearnerPool) -> None:
    slow, quick = (task(store, name, each) for name, each in (("slow", SLOW), ("quick", QUICK)))
    killed, waiting = learners.queue_task(slow), learners.queue_task(quick)
    (pid,) = learners.pids  # one at a time
    os.kill(pid, signal.SIGKILL)
    end(learners, killed)
    with pytest.raises(LearningFailedError, match="the learner ended with code -9"):
        killed.get_outcome()
    end(learners, waiting)
    assert waiting.get_outcome().nodes == 3
    assert pid not in learners.pids


def test_one_that_nobody_wants_any_more_ends_at_once(store: Store, learners: LearnerPool) -> None:
    slow, quick = (task(store, name, each) for name, each in (("slow", SLOW), ("quick", QUICK)))
    learning, waiting = learners.queue_task(slow), learners.queue_task(quick)
    learners.cancel_task(learning)
    end(learners, waiting)
    assert waiting.get_outcome().nodes == 3
    assert learning.outcome is None


def test_one_that_waits_and_is_not_wanted_any_more_never_begins(store: Store, learners: LearnerPool) -> None:
    quick = task(store, "quick", QUICK)
    first, second, third = (learners.queue_task(quick) for _ in range(3))
    learners.cancel_task(second)
    end(learners, third)
    assert (first.outcome is None, second.outcome, third.get_outcome().nodes) == (False, None, 3)


def test_a_model_that_is_gone_or_replaced(store: Store, learners: LearnerPool) -> None:
    quick = task(store, "quick", QUICK)
    store.delete_model("quick")
    for replaced in (False, True):
        if replaced:
            task(store, "quick", QUICK)
        learning = learners.queue_task(quick)
        end(learners, learning)
        with pytest.raises(LearningFailedError, match="model quick is gone"):
            learning.get_outcome()


def test_data_that_cannot_be_learned_are_reported(
    store: Store, learners: LearnerPool, capfd: pytest.CaptureFixture[str]
) -> None:
    store.create_model("poisoned", b"\xff\xff\xff", budget=0)
    learning = learners.queue_task(LearningTask("poisoned", store.get_model("poisoned").key, 0))
    end(learners, learning)
    with pytest.raises(LearningFailedError, match="DecodeError"):
        learning.get_outcome()
    assert "model poisoned cannot be learned" in capfd.readouterr().err


@pytest.mark.parametrize("said", [b"", b'{"bytes": 9, "nodes"', b'{"bytes": 9, "nodes": 1}\nfew', b"what?\n"])
def test_an_answer_that_breaks_off_ends_the_learning(tmp_path: Path, said: bytes) -> None:
    """Else its model would wait for ever for a learner that is gone."""
    file = tmp_path / "said"
    file.write_bytes(said)
    news = threading.Event()
    learner = learner_pool._LearnerProcess(["cat", str(file)], news)
    learning = RunningTask(LearningTask("m", 1, 1))
    learner.learning = learning
    learner.join()
    if learning.outcome is None:  # it was over before there was anything to end
        learner.start_learning(learning)
    with pytest.raises(LearningFailedError, match="the learner"):
        learning.get_outcome()
    assert learner.has_ended
