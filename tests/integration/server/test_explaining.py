"""Explanations of a row: replayed from the log, beside a model grown from scratch at every event."""

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import psutil
import pytest

from quercus.client import (
    Between,
    Client,
    FailedPrecondition,
    InvalidArgument,
    Nominal,
    NotFound,
    Numeric,
    PermissionDenied,
    RowExplanation,
    Specification,
    Statement,
)
from quercus.labelling.history import stored_cells
from quercus.server.gate import access
from quercus.server.growth import replaying, replays
from quercus.server.growth.engines import learns_again, tree_engine
from quercus.server.growth.relearning import RelearningEngine
from quercus.server.wire.errors import ResourceExhausted
from quercus.server.wire.models import first_specification
from quercus.server.wire.trees import TreeClassifier
from quercus.storage import EventKind, Snapshot, Store
from quercus.storage import FailedPrecondition as StoragePrecondition
from quercus.trees import UncertainValues

CLASSES = ["no", "yes"]
ATTRIBUTES = [Numeric("x", edges=[0.25, 0.5, 0.75]), Nominal("wind", ["weak", "strong"])]
ROWS = 24
Said = tuple[str, tuple[tuple[str, str], ...]]


@pytest.fixture(scope="module")
def live(start_for_all: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    return start_for_all(tmp_path_factory.mktemp("why") / "store.db", access="tokens", grower=False)


@pytest.fixture(scope="module")
def operator(live: Any) -> Iterator[Client]:
    token = access.issue_token(live.server.core.store.access, "the-operator", ["operator"])[0]
    with Client(live.server.address, token=token) as client:
        yield client


def fill(client: Client, model: str, learner: Any) -> None:
    """Push rows, some with labels, between statements, some of which are taken back."""
    client.create_model(model, Specification(ATTRIBUTES, CLASSES, learner=learner, budget=0))
    rng = np.random.default_rng(7)
    cells: list[list[Any]] = [
        [float(x), "weak" if w else "strong"]
        for x, w in zip(rng.random(ROWS), rng.random(ROWS) < 0.5, strict=True)
    ]
    labels: list[str | None] = ["yes" if x > 0.5 or wind == "weak" else "no" for x, wind in cells]
    cells[10] = [Between(0.2, 0.6), frozenset({"weak", "strong"})]
    for k in range(0, ROWS, 6):
        ids = [f"r{row}" for row in range(k, k + 6)]
        given = [label if row % 3 == 0 else None for row, label in enumerate(labels[k : k + 6], k)]
        client.push(model, cells[k : k + 6], given, ids=ids)
        stated = [row for row in range(k, k + 6) if row % 3]
        client.state(model, [Statement(f"r{row}", labels[row], "ann") for row in stated[:3]])
        wrong = "no" if labels[stated[0]] == "yes" else "yes"
        client.state(model, [Statement(f"r{stated[0]}", wrong, "ann", comment="on second thoughts")])


def said_from_scratch(store: Store, model: str, sequence: int, row: str) -> Said:
    """Return class and path of a row by a model grown from the first events of the log, at once."""
    record = store.get_model(model)
    specification, attributes = first_specification(record)
    again = learns_again(specification)
    engine: Any = RelearningEngine(specification) if again else tree_engine(specification, attributes)
    engine.fold_events(store.read_log(model, 0, rows=sequence).parts)
    data = engine.grown_trees(store.vocabulary(model)).encode()
    classifier = TreeClassifier.of(record.key, Snapshot(1, sequence, data, 0.0), specification)
    values, ranges = stored_cells(store.get_instance(model, row)[0])
    cells = UncertainValues(values[None], {(0, k): each for k, each in ranges.items()})
    found = classifier.classify(cells, classifier.names is not None)
    path = tuple((step.attribute, step.value) for each in found.paths for step in each.steps)
    low, high = sorted(found.theta)
    return CLASSES[found.class_indices[0]] if high > low + 1e-9 else "", path


def replayed(store: Store, model: str, row: str, then: int) -> RowExplanation:
    """Return what a replay finds, in this process."""
    record = store.get_model(model)
    place = store.places(model, [row])[row]
    task = replaying.ReplayTask(model, record.key, place, then, record.sequence_committed)
    return RowExplanation.from_message(replaying.explain_row(store, task), CLASSES)


def told(explanation: RowExplanation) -> dict[int, Said]:
    return {
        each.as_of: (each.class_name, tuple((step.attribute, step.value) for step in each.path))
        for each in (explanation.then, explanation.now, *(change.after for change in explanation.changes))
    }


@pytest.mark.parametrize("learner", ["abc45", {"name": "active-forest", "trees": 3}, "e2m"])
def test_changes_are_those_of_models_grown_from_scratch_at_every_event(
    live: Any, operator: Client, learner: Any
) -> None:
    store, name = (
        live.server.core.store,
        f"of-{learner if isinstance(learner, str) else learner['name']}",
    )
    fill(operator, name, learner)
    last = operator.get_model(name).sequence_committed
    slow = {at: said_from_scratch(store, name, at, "r4") for at in range(1, last + 1)}
    changed = [at for at in range(2, last + 1) if slow[at] != slow[at - 1]]
    assert len(changed) > 2

    found = replayed(store, name, "r4", 1)
    assert found.complete
    assert found.beside == (name == "of-active-forest")
    assert (found.then.as_of, found.now.as_of) == (1, last)
    assert all(slow[at] == said for at, said in told(found).items())
    kinds = {event.sequence: event.kind for event in store.read_events(name)}
    rows = {EventKind.INSTANCE, EventKind.STATEMENT}
    # each change by an answer is found at its event; of rows that came together, what they changed in all
    assert [each.sequence for each in found.changes if each.answer] == [
        at for at in changed if kinds[at] not in rows
    ]
    for each in found.changes:
        assert slow[each.sequence] != slow[each.first_sequence - 1]
        if each.answer is None:
            assert all(kinds[at] in rows for at in range(each.first_sequence, each.sequence + 1))
    assert found.change_count == len(found.changes)
    uncertain = told(replayed(store, name, "r10", last // 2))
    assert uncertain == {at: said_from_scratch(store, name, at, "r10") for at in uncertain}
    # the one who said it, and what the model said just before
    mine = [(each.answer.labeller, each.answer.text) for each in found.answers]
    assert mine
    for each in found.answers:
        assert each.before is not None
        assert each.before.class_name == slow[each.answer.number - 1][0]


def test_a_learner_that_learns_again_is_searched_by_bisection(live: Any, operator: Client) -> None:
    store = live.server.core.store
    fill(operator, "again", "c45")
    last = operator.get_model("again").sequence_committed
    slow = {at: said_from_scratch(store, "again", at, "r4") for at in range(1, last + 1)}
    found = replayed(store, "again", "r4", 1)
    assert not found.complete
    assert all(slow[at] == said for at, said in told(found).items())
    assert found.changes
    # what is between two changes says the same at both ends, from then to now
    ends = [1, *(each.sequence for each in found.changes)]
    begins = [*(each.first_sequence - 1 for each in found.changes), last]
    assert [slow[at] for at in ends] == [slow[at] for at in begins]
    for each in found.changes:
        assert slow[each.sequence] != slow[each.first_sequence - 1]
    for said in found.answers:
        assert said.before is not None
        assert said.before.class_name == slow[said.answer.number - 1][0]


def test_then_is_when_the_row_came_or_another_time(operator: Client) -> None:
    operator.create_model("timed", Specification(ATTRIBUTES, CLASSES))
    operator.push("timed", [[0.1, "weak"]], ["no"], ids=["a"])
    time.sleep(0.01)
    between = datetime.now(UTC)
    time.sleep(0.01)
    operator.push("timed", [[0.9, "weak"]], ["yes"], ids=["b"])
    assert operator.explain_row("timed", "a", between).then.as_of == 1
    assert operator.explain_row("timed", "b").then.as_of == 2
    with pytest.raises(FailedPrecondition, match="the log of timed begins after this time"):
        operator.explain_row("timed", "a", between - timedelta(days=1))


def test_what_is_not_there_or_too_much_is_refused(
    live: Any, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.create_model("small", Specification(ATTRIBUTES, CLASSES))
    operator.push("small", [[0.1, "weak"]] * 3, ["no"] * 3, ids=["a", "b", "c"])
    with pytest.raises(NotFound, match="instance small/d does not exist"):
        operator.explain_row("small", "d")
    with pytest.raises(NotFound, match="model none does not exist"):
        operator.explain_row("none", "d")
    with pytest.raises(InvalidArgument, match="sequence: is 0, must be at least 1, the first event"):
        operator.explain_row("small", "a", 0)
    with pytest.raises(FailedPrecondition, match="4"):
        operator.explain_row("small", "a", 4)
    monkeypatch.setattr(replaying, "MAX_EVENTS", 2)
    with pytest.raises(
        FailedPrecondition, match="the log of small has 3 events, a replay with 2 attributes reads at most 2"
    ):
        operator.explain_row("small", "a")
    for role in ("sensor", "labeller", "corrector"):
        token = access.issue_token(live.server.core.store.access, f"only-{role}", [role])[0]
        with Client(live.server.address, token=token) as caller, pytest.raises(PermissionDenied):
            caller.explain_row("small", "a")


def test_replays_are_few_at_once_and_end_with_their_call(live: Any, operator: Client) -> None:
    fill(operator, "held", "abc45")
    store: Store = live.server.core.store
    record = store.get_model("held")
    task = replaying.ReplayTask("held", record.key, 1, 1, record.sequence_committed)
    assert asyncio.run(_replays_in_turn(store, task)) == record.sequence_committed


async def _replays_in_turn(store: Store, task: replaying.ReplayTask) -> int:
    held = replays.Replays(store.url, most=2)
    first, second = (asyncio.create_task(held.explain_row(task)) for _ in range(2))
    while len(children := _replay_children()) < 2:
        await asyncio.sleep(0.005)
    with pytest.raises(ResourceExhausted, match="2 replays are running, as many as this server allows"):
        await held.explain_row(task)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    assert len(_replay_children()) == len(children) - 1
    quick = replays.Replays(store.url, most=1, longest_s=0.01)
    for _ in range(2):
        with pytest.raises(StoragePrecondition, match=r"took longer than 0\.01 s"):
            await quick.explain_row(task)
    answer = await first
    alone = replays.Replays(store.url, most=1)
    twice = asyncio.create_task(alone.explain_row(task))
    while not _replay_children():
        await asyncio.sleep(0.005)
    twice.cancel()
    await asyncio.sleep(0)  # its process is being ended
    twice.cancel()
    with pytest.raises(asyncio.CancelledError):
        await twice
    assert (await alone.explain_row(task)).now == answer.now
    return answer.now.as_of


def test_the_password_of_the_store_is_on_no_command_line() -> None:
    asyncio.run(_replay_of_a_store_with_a_password())


async def _replay_of_a_store_with_a_password() -> None:
    held = replays.Replays("postgresql://ann:a-secret@127.0.0.1:1/db")
    call = asyncio.create_task(held.explain_row(replaying.ReplayTask("m", 1, 1, 1, 1)))
    while not (children := _replay_children()):
        await asyncio.sleep(0.005)
    assert not any("a-secret" in part for part in children[0].cmdline())
    assert children[0].environ()["PGPASSWORD"] == "a-secret"
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


def _replay_children() -> list[psutil.Process]:
    """Return the replays of this process that are there."""
    return [
        child
        for child in psutil.Process().children()
        if any("replay_process" in part for part in child.cmdline())
    ]
