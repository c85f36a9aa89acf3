"""The times of publications, the size of reads, reports of a lag, and restarts."""

import logging
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import words
from support.published import published_message
from support.said import said

from quercus.belief.codec import encode, encode_sets
from quercus.belief.label import ClassSet
from quercus.client.plugins import to_proto
from quercus.labelling.history import known_contour
from quercus.server.growth import folding
from quercus.server.growth.grower import Grower
from quercus.server.growth.learner_pool import LearnerPool, RunningTask
from quercus.server.growth.relearning import LearningTask
from quercus.server.wire import snapshots
from quercus.server.wire.limits import (
    AGENDA_SAVED_S,
    GROWTH_ROWS,
    LAG_NOTICE_S,
    LARGE_LAG_S,
    PUBLISH_SHARE,
    UNREAD_SHARE,
)
from quercus.server.wire.models import complete_specification
from quercus.specification.server import AGENDA_SHARE
from quercus.storage import KnownModel, NoSpace, Policy, QueryState
from quercus.storage.records import InstanceColumns, LogSegment, ModelRecord, Snapshot
from quercus.storage.store import Store
from quercus.v1 import model_pb2

INTERVAL_S = 0.25
COST_S = 2.0


class Clock:
    """Both clocks of a grower, which stand until they are moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Watched(Store):
    """A store that remembers what was read, and whose publications take a while."""

    stretches: tuple[LogSegment, ...] = ()
    looks = 0
    publishing: Callable[[], None] = staticmethod(lambda: None)

    def read_log(self, model: str, after: int = 0, **bounds: int) -> LogSegment:
        found = super().read_log(model, after, **bounds)
        self.stretches = (*self.stretches, found)
        return found

    def models_of(self, keys: Sequence[int]) -> list[ModelRecord]:
        self.looks += 1
        return super().models_of(keys)

    def publish(self, model: str, **fields: Any) -> int:
        self.publishing()
        return super().publish(model, **fields)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(folding.time, "monotonic", made)
    return made


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Watched]:
    with Watched.open(f"sqlite:///{tmp_path / 'store.db'}", clock=clock, steady=clock) as opened:
        specification = published_message(
            attributes=[
                model_pb2.Attribute(name=name, nominal=model_pb2.NominalAttribute(values=["a", "b"]))
                for name in ("X", "Y")
            ],
            classes=["p", "q"],
            budget=5,
        )
        opened.create_model(
            "m",
            complete_specification(specification).SerializeToString(deterministic=True),
            budget=specification.budget,
        )
        yield opened


@pytest.fixture
def grower(store: Watched) -> Grower:
    made = Grower(store, interval_s=INTERVAL_S)
    rounds(made)
    assert store.get_model("m").tree_version == 1
    return made


def rounds(running: Grower) -> None:
    while running.run_round():
        pass


def push(store: Store, count: int, model: str = "m") -> None:
    """Rows whose class is X where it is known; that of each fourth is not."""
    first = store.get_model(model).instance_count
    numbers = np.arange(first, first + count)
    values = np.column_stack([numbers % 2, numbers // 2 % 2]).astype(np.float64)
    masks = np.where(numbers % 4 == 3, 3, 1 << numbers % 2).astype(np.uint64)
    store.append_instances(model, [f"i{i}" for i in numbers], values, encode_sets(masks))


def grown(store: Store) -> tuple[int, int]:
    """Version of the newest tree, and up to where it is grown."""
    model = store.get_model("m")
    return model.tree_version, model.sequence_grown


def test_rows_are_published_once_an_interval(grower: Grower, store: Watched, clock: Clock) -> None:
    for _ in range(4):
        push(store, 3)
        clock.now += INTERVAL_S / 5
        rounds(grower)
    assert grown(store) == (1, 0)
    assert grower.wake_at == pytest.approx(1000.0 + INTERVAL_S)
    clock.now = grower.wake_at
    rounds(grower)
    assert grown(store) == (2, 12)
    assert grower.wake_at == math.inf


def test_a_few_rows_are_read_at_once_when_their_tree_is_due(
    grower: Grower, store: Watched, clock: Clock
) -> None:
    for _ in range(4):
        push(store, 3)
        rounds(grower)
    assert store.stretches == ()
    clock.now = grower.wake_at
    rounds(grower)
    assert [segment.last for segment in store.stretches] == [12]


def test_more_rows_of_a_model_whose_tree_is_not_due_cost_no_look_at_it(
    grower: Grower, store: Watched, clock: Clock
) -> None:
    push(store, 3)
    rounds(grower)
    store.looks = 0
    for _ in range(3):
        push(store, 3)
        assert not grower.run_round()
    assert store.looks == 0
    push(store, GROWTH_ROWS // UNREAD_SHARE)  # more than are left unread
    rounds(grower)
    assert store.looks > 0
    clock.now = grower.wake_at
    rounds(grower)
    assert grown(store) == (2, 12 + GROWTH_ROWS // UNREAD_SHARE)


def test_a_lease_costs_no_look_at_a_model_with_nothing_to_fold(
    grower: Grower, store: Watched, clock: Clock
) -> None:
    clock.now += INTERVAL_S
    push(store, 8)
    rounds(grower)
    (query,) = store.lease("m", "ann", 1, 60.0).queries
    store.looks = 0
    assert not grower.run_round()
    assert store.looks == 0
    words.answer(store, "m", query.number, query.token, encode(ClassSet(1)), 1.0)
    rounds(grower)
    assert store.looks > 0
    assert grown(store) == (3, 9)


def test_rows_are_read_with_what_a_labeller_says(grower: Grower, store: Watched, clock: Clock) -> None:
    clock.now += INTERVAL_S
    push(store, 8)
    rounds(grower)
    push(store, 3)
    rounds(grower)
    assert grown(store) == (2, 8)
    (query,) = store.lease("m", "ann", 1, 60.0).queries
    words.answer(store, "m", query.number, query.token, encode(ClassSet(1)), 1.0)
    rounds(grower)
    assert grown(store) == (3, 12)
    assert [segment.last for segment in store.stretches] == [8, 12]


def test_many_rows_are_read_before_their_tree_is_due(grower: Grower, store: Watched) -> None:
    push(store, GROWTH_ROWS // UNREAD_SHARE + 1)
    rounds(grower)
    assert grown(store) == (1, 0)
    assert [segment.last for segment in store.stretches] == [GROWTH_ROWS // UNREAD_SHARE + 1]


def test_rows_that_come_after_a_rest_are_published_at_once(
    grower: Grower, store: Watched, clock: Clock
) -> None:
    clock.now += 2 * INTERVAL_S
    push(store, 3)
    rounds(grower)
    assert grown(store) == (2, 3)


def test_the_answer_of_a_labeller_is_published_at_once(grower: Grower, store: Watched, clock: Clock) -> None:
    clock.now += INTERVAL_S
    push(store, 8)
    rounds(grower)
    assert grown(store) == (2, 8)
    (query,) = store.lease("m", "ann", 1, 60.0).queries
    words.answer(store, "m", query.number, query.token, encode(ClassSet(1)), 1.0)
    rounds(grower)
    assert grown(store) == (3, 9)
    (query,) = store.lease("m", "ann", 1, 60.0).queries
    words.refuse(store, "m", query.number, query.token)
    rounds(grower)
    assert grown(store) == (4, 10)
    push(store, 1)
    rounds(grower)
    assert grown(store) == (4, 10)  # that was a row again


def test_a_correction_takes_the_place_of_the_answer(grower: Grower, store: Watched, clock: Clock) -> None:
    """The tree is that of a log in which the corrected label was the answer; taken back, that of the rows alone."""
    clock.now += INTERVAL_S
    push(store, 8)
    rounds(grower)
    alone = store.snapshot("m").data
    (query,) = store.lease("m", "ann", 1, 60.0).queries
    words.answer(store, "m", query.number, query.token, encode(ClassSet(1)), 1.0)
    rounds(grower)
    first = store.snapshot("m").data
    wrong, right = encode(ClassSet(1)), encode(ClassSet(2))
    words.amend(store, "m", query.number, "ann", right)
    rounds(grower)
    second = store.snapshot("m").data
    words.amend(store, "m", query.number, "ann", wrong)
    rounds(grower)
    assert store.snapshot("m").data == first != second
    words.amend(store, "m", query.number, "ann", None)
    rounds(grower)
    assert store.snapshot("m").data == alone
    assert [q.instance for q in store.list_queries("m", [QueryState.OPEN])].count(query.instance) == 1
    history = store.history("m", [query.instance])[query.instance]
    assert known_contour(history, 2).tolist() == [1.0, 1.0]
    assert known_contour(history[:3], 2).tolist() == [0.0, 1.0]


def test_an_opinion_changes_no_tree(grower: Grower, store: Watched, clock: Clock) -> None:
    clock.now += INTERVAL_S
    push(store, 8)
    rounds(grower)
    (query,) = store.lease("m", "ann", 1, 60.0).queries
    before = store.snapshot("m").data
    store.set_policy("m", Policy(answers_per_query=2, max_conflict=1.0))
    words.answer(store, "m", query.number, query.token, encode(ClassSet(3)), known=KnownModel(2))
    rounds(grower)
    assert grown(store)[1] == 9
    assert store.snapshot("m").data == before
    (again,) = store.lease("m", "bob", 1, 60.0).queries
    assert again.number == query.number
    words.answer(store, "m", again.number, again.token, encode(ClassSet(2)), known=KnownModel(2))
    rounds(grower)
    assert store.snapshot("m").data != before
    history = store.history("m", [query.instance])[query.instance]
    np.testing.assert_allclose(
        known_contour(history, 2), [0.01, 1.0]
    )  # of several, each is .99 reliable at most


@pytest.fixture
def learners(store: Watched) -> Iterator[LearnerPool]:
    made = LearnerPool(store.url)
    yield made
    made.close()


def learns_again(**parameters: int) -> bytes:
    specification = published_message(
        attributes=[
            model_pb2.Attribute(name=name, nominal=model_pb2.NominalAttribute(values=["a", "b"]))
            for name in ("X", "Y")
        ],
        classes=["p", "q"],
        learner=to_proto({"name": "c45", **parameters}),
    )
    return complete_specification(specification).SerializeToString(deterministic=True)


@pytest.mark.slow
def test_a_model_that_learns_again_keeps_to_its_share_of_time(
    store: Watched, clock: Clock, learners: LearnerPool, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing else is to do, and yet rows that trickle in do not have it learn without a pause."""
    caplog.set_level(logging.DEBUG, "quercus.server.growth.folding")
    running = Grower(store, interval_s=0.01, learners=learners)  # its share of time is longer
    store.create_model("again", learns_again(), budget=0)
    push(store, 3, "again")

    def learned() -> tuple[int, int]:
        model = store.get_model("again")
        return model.tree_version, model.sequence_grown

    def learn() -> None:
        """As `grower.run_grower` does until the learning under way has ended."""
        rounds(running)
        assert learners.wait_for_news(60.0)
        rounds(running)

    learn()
    assert learned() == (1, 3)
    cost_s = float(re.findall(r"learned in (\d+) ms of CPU time", caplog.text)[-1]) / 1000
    push(store, 3, "again")
    rounds(running)
    assert learned() == (1, 3)
    assert running.wake_at - clock.now == pytest.approx(PUBLISH_SHARE * cost_s, abs=0.003)
    clock.now = running.wake_at
    push(store, 2, "again")
    learn()
    assert learned() == (2, 8)  # all at once
    respecified = learns_again(min_branch=1)
    store.respecify("again", respecified, budget=0)
    learn()
    assert learned() == (3, 9)  # somebody waits for that


def test_what_was_learned_is_kept_until_the_store_takes_it(
    store: Watched, clock: Clock, learners: LearnerPool
) -> None:
    """Learning may take hours: a store that takes nothing for a moment must not cost that again."""
    begun: list[int] = []
    begin = learners.queue_task

    def counted(task: LearningTask) -> RunningTask:
        begun.append(task.as_of)
        return begin(task)

    learners.queue_task = counted  # type: ignore[method-assign]
    running = Grower(store, interval_s=0.01, learners=learners)  # its share of time is longer
    store.create_model("again", learns_again(), budget=0)
    push(store, 3, "again")
    rounds(running)
    assert learners.wait_for_news(60.0)

    def refuse() -> None:
        raise NoSpace("no space is left")

    store.publishing = refuse
    for _ in range(3):
        rounds(running)
        assert store.get_model("again").tree_version == 0
        clock.now = running.wake_at
    store.publishing = lambda: None
    rounds(running)
    assert (store.get_model("again").tree_version, begun) == (1, [3])


def test_a_new_specification_is_published_at_once(grower: Grower, store: Watched) -> None:
    specification = model_pb2.Specification.FromString(store.get_model("m").specification)
    specification.alpha = 0.5
    store.respecify("m", specification.SerializeToString(deterministic=True), budget=5)
    rounds(grower)
    assert grown(store) == (2, 1)


def test_a_backlog_is_folded_in_bounded_pieces_between_publications(
    grower: Grower, store: Watched, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "GROWTH_ROWS", 10)
    push(store, 95)
    for step in range(1, 6):
        assert grower.run_round()
        assert grown(store) == (1, 0), step
    clock.now += INTERVAL_S
    assert grower.run_round()
    assert grown(store) == (2, 60)
    rounds(grower)
    assert grown(store) == (2, 60)
    clock.now = grower.wake_at
    rounds(grower)
    assert grown(store) == (3, 95)
    sizes = [
        [len(part.labels) for part in segment.parts if isinstance(part, InstanceColumns)]
        for segment in store.stretches
    ]
    assert sizes == [[10]] * 9 + [[5]]


def test_a_backlog_of_large_labels_is_folded_in_bounded_pieces(
    grower: Grower, store: Watched, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "GROWTH_BYTES", 20_000)
    push(store, 5000)  # 25 bytes each
    rounds(grower)
    clock.now = grower.wake_at
    rounds(grower)
    assert grown(store) == (2, 5000)
    assert all(len(part.labels) <= 1500 for segment in store.stretches for part in segment.parts)
    assert len(store.stretches) >= 4


@pytest.mark.parametrize("whose", ["m", "other"])
def test_publishing_leaves_time_for_folding(
    grower: Grower, store: Watched, clock: Clock, whose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    costly(store, clock)
    clock.now += INTERVAL_S
    push(store, 10)
    rounds(grower)
    assert grown(store) == (2, 10)
    monkeypatch.setattr(folding, "GROWTH_ROWS", 10)
    if whose == "other":
        store.create_model("other", store.get_model("m").specification, budget=0)
        push(store, 5)
    push(store, 1000, whose)
    finished = clock.now
    while clock.now < finished + PUBLISH_SHARE * COST_S:
        assert grower.run_round()
        assert grown(store)[0] == 2
        clock.now += COST_S / 4
    grower.run_round()
    assert grown(store)[0] == 3


def test_without_a_backlog_the_interval_is_all_that_counts(
    grower: Grower, store: Watched, clock: Clock
) -> None:
    costly(store, clock)
    for version in (2, 3, 4):
        clock.now += INTERVAL_S
        push(store, 5)
        rounds(grower)
        assert grown(store)[0] == version


class Working:
    """The clock of a thread that works all the time: each look at it is `step_s` after the last."""

    def __init__(self, step_s: float) -> None:
        self.now, self.step_s = 0.0, step_s

    def __call__(self) -> float:
        self.now += self.step_s
        return self.now


def asked(store: Store) -> list[int]:
    """Instances asked about, in order."""
    found = store.list_queries("m", [QueryState.OPEN])
    return [query.instance for query in sorted(found, key=lambda query: query.position)]


def answer(store: Store) -> int:
    (query,) = store.lease("m", "ann", 1, 60.0).queries
    words.answer(store, "m", query.number, query.token, encode(ClassSet(1)), 1.0)
    return query.instance


def agenda_of_the_log(store: Store, tmp_path: Path) -> list[int]:
    """Return the queries of a grower that has read the log at once."""
    with Store.open(f"sqlite:///{tmp_path / 'other.db'}") as other:
        other.load(store.dump("m"))
        rounds(Grower(other))
        return asked(other)


def test_an_agenda_that_costs_much_comes_after_its_tree(
    grower: Grower, store: Watched, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock.now += INTERVAL_S
    push(store, 60)
    rounds(grower)
    clock.now += 600.0  # what these first agendas took is saved up again
    cost_s = 0.8 * AGENDA_SAVED_S
    monkeypatch.setattr(folding.time, "thread_time", Working(cost_s))
    for _ in range(2):  # one is saved up, and the second is overdrawn
        answer(store)
        rounds(grower)
        assert grower.wake_at == math.inf
    before = asked(store)
    answered = answer(store)
    rounds(grower)
    assert grown(store) == (5, 63)  # the tree waits for nothing
    assert asked(store) == [instance for instance in before if instance != answered]
    debt_s = 2 * cost_s - AGENDA_SAVED_S
    assert grower.wake_at == pytest.approx(clock.now + debt_s / AGENDA_SHARE.default)
    clock.now = grower.wake_at
    rounds(grower)
    assert grown(store) == (5, 63)
    assert grower.wake_at == math.inf
    assert asked(store) == agenda_of_the_log(store, tmp_path)


def test_nobody_waits_for_an_agenda_where_nothing_else_is_left_to_ask(
    grower: Grower, store: Watched, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding.time, "thread_time", Working(10 * AGENDA_SAVED_S))
    clock.now += INTERVAL_S
    push(store, 8)
    rounds(grower)
    left = asked(store)
    for count in range(len(left), 0, -1):
        assert len(asked(store)) == count
        answer(store)
        rounds(grower)
    assert asked(store) == []
    clock.now += INTERVAL_S
    push(store, 8)
    rounds(grower)
    assert asked(store) != []


def test_an_agenda_that_is_due_when_the_grower_dies_comes_from_the_next(
    grower: Grower, store: Watched, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(folding.time, "thread_time", Working(10 * AGENDA_SAVED_S))
    clock.now += INTERVAL_S
    push(store, 60)
    rounds(grower)
    answer(store)
    rounds(grower)
    assert grower.wake_at < math.inf
    version = grown(store)[0]
    rounds(Grower(store, interval_s=INTERVAL_S))
    assert grown(store)[0] == version
    assert asked(store) == agenda_of_the_log(store, tmp_path)


def costly(store: Watched, clock: Clock) -> None:
    """From now on each publication takes `COST_S`."""

    def publishing() -> None:
        clock.now += COST_S

    store.publishing = publishing


def test_a_restart_in_the_middle_of_a_backlog(
    grower: Grower, store: Watched, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    push(store, 70)
    monkeypatch.setattr(folding, "GROWTH_ROWS", 20)
    clock.now += INTERVAL_S
    grower.run_round()
    assert grown(store) == (2, 20)
    grower.run_round()  # folded, not published: the next one does not know of it
    second = Grower(store, interval_s=INTERVAL_S)
    assert second.run_round()
    assert grown(store) == (2, 20)  # no tree older than, or the same as, what is there
    rounds(second)
    clock.now = max(clock.now, second.wake_at) if second.wake_at < math.inf else clock.now
    rounds(second)
    assert grown(store)[1] == 70

    third = Watched.open(f"sqlite:///{tmp_path / 'whole.db'}", clock=clock)
    with third:
        model = store.get_model("m")
        third.create_model("m", model.initial_specification, budget=5)
        monkeypatch.undo()
        push(third, 70)
        rounds(Grower(third))
        assert stored(third) == stored(store)


def stored(store: Store) -> bytes:
    data: bytes = store.snapshot("m").data
    return data


def test_a_restart_with_nothing_new_publishes_nothing(grower: Grower, store: Watched, clock: Clock) -> None:
    clock.now += INTERVAL_S
    push(store, 5)
    rounds(grower)
    second = Grower(store, interval_s=INTERVAL_S)
    rounds(second)
    clock.now += INTERVAL_S
    rounds(second)
    assert grown(store) == (2, 5)


def test_a_restart_writes_nothing_of_a_model_without_rows(grower: Grower, store: Watched) -> None:
    """With 10,000 models that wait for rows, it would be 10,000 commits."""
    newest = store.newest_change()
    rounds(Grower(store, interval_s=INTERVAL_S))
    assert store.newest_change() == newest


def test_a_tree_in_the_format_of_another_version_is_stored_anew(grower: Grower, store: Watched) -> None:
    push(store, 5)
    other = bytes([1]) + stored(store)[1:]
    store.publish("m", as_of=5, snapshot=other, agenda=[])
    assert store.snapshot("m") == Snapshot(2, 5, other, 1000.0)
    second = Grower(store, interval_s=INTERVAL_S)
    rounds(second)
    assert grown(store) == (3, 5)
    read = snapshots.read_snapshot(stored(store))
    assert (list(read.head.classes), read.columns["count"][0]) == (["p", "q"], 5)
    rounds(second)
    assert grown(store) == (3, 5)


def test_a_large_lag_is_logged_now_and_then(
    grower: Grower, store: Watched, clock: Clock, caplog: pytest.LogCaptureFixture, monkeypatch: Any
) -> None:
    def news() -> list[str]:
        found = said(caplog, folding.__name__)
        caplog.clear()
        return found

    caplog.set_level(logging.INFO)
    monkeypatch.setattr(folding, "GROWTH_ROWS", 10)
    monkeypatch.setattr(folding, "PUBLISH_SHARE", 10**9)
    store.publishing = lambda: setattr(clock, "now", clock.now + 0.001)
    clock.now += INTERVAL_S
    push(store, 10)
    rounds(grower)
    push(store, 45)
    clock.now += LARGE_LAG_S - 1
    grower.run_round()
    assert news() == []
    clock.now += 1.001  # the lease clock is a sum, which rounds
    grower.run_round()
    grower.run_round()
    assert news() == ["model m: the tree lags 45 events and 10.0 s behind"]
    clock.now += LAG_NOTICE_S
    grower.run_round()
    assert news() == ["model m: the tree lags 45 events and 70.0 s behind"]
    rounds(grower)
    grower.run_round()
    assert news() == ["model m: the tree has caught up"]
    grower.run_round()
    assert news() == []
