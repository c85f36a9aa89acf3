"""An archive has the log as the store has it, whatever the database and whoever is killed."""

import json
from pathlib import Path
from typing import Any

import pytest
from contract.storage.archives import CALLS, EVENTS, contents, folder_of, manifest_of, rebuilt
from sqlalchemy import update
from support import words

from quercus.belief.errors import InvalidInput
from quercus.storage import (
    AlreadyExists,
    EventKind,
    FailedPrecondition,
    NotFound,
    Policy,
    Store,
)
from quercus.storage.admin.verify import verify_store
from quercus.storage.archive.writing import ArchivedModel, archive_model
from quercus.storage.errors import StoreError
from quercus.storage.schema import log

DAY_S = 86_400.0
sqlite_only = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
"""Cases that are decided by the manifest of the archive, whatever the database."""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.mark.parametrize(("piece_events", "pieces"), [(1, CALLS), (4, 2), (1000, 1)])
def test_a_rebuilt_model_has_the_same_log(
    varied: Store, target: Path, tmp_path: Path, piece_events: int, pieces: int
) -> None:
    told: list[tuple[int, int]] = []
    done = archive_model(
        varied, "m", target, progress=lambda *each: told.append(each), piece_events=piece_events
    )
    assert done == ArchivedModel("m", folder_of(target).name, EVENTS, pieces, EVENTS)
    assert told[-1] == (EVENTS, EVENTS)
    assert rebuilt(varied, target, only="m", new_name="copy") == [("copy", False)]
    assert contents(varied, "copy") == contents(varied, "m")
    with Store.open(f"sqlite:///{tmp_path / 'other.db'}") as other:
        assert rebuilt(other, target) == [("m", False)]
        assert contents(other, "m") == contents(varied, "m")
        assert archive_model(other, "m", tmp_path / "second", piece_events=piece_events).added == EVENTS
        first, second = manifest_of(target), manifest_of(tmp_path / "second")
        assert [piece.digest for piece in first.pieces] == [piece.digest for piece in second.pieces]
    assert verify_store(f"sqlite:///{tmp_path / 'other.db'}") == []


@sqlite_only
def test_the_next_run_adds_what_is_new(varied: Store, target: Path, helper) -> None:
    archive_model(varied, "m", target)
    before = manifest_of(target)
    assert archive_model(varied, "m", target).added == 0
    assert manifest_of(target) == before
    helper.push("e", "f")
    varied.set_policy("m", Policy(max_held=3))
    assert archive_model(varied, "m", target).added == 2
    assert manifest_of(target).pieces[:1] == before.pieces
    rebuilt(varied, target, only="m", new_name="copy")
    assert contents(varied, "copy") == contents(varied, "m")


@sqlite_only
def test_a_policy_without_new_events_is_archived(varied: Store, target: Path) -> None:
    archive_model(varied, "m", target)
    varied.set_policy("m", Policy(max_held=2))
    archive_model(varied, "m", target)
    rebuilt(varied, target, only="m", new_name="copy")
    assert varied.policy("copy") == Policy(max_held=2)


@sqlite_only
def test_a_model_without_events_is_archived(store: Store, target: Path, helper) -> None:
    helper.create(budget=3)
    assert archive_model(store, "m", target).pieces == 0
    assert rebuilt(store, target, only="m", new_name="copy") == [("copy", False)]
    assert contents(store, "copy") == contents(store, "m")


def test_no_piece_ends_within_a_call(varied: Store, target: Path, helper, clock) -> None:
    """Two answers to one query: the second one and the combined answer are events of one call."""
    varied.set_policy("m", Policy(answers_per_query=2))
    helper.publish(3)
    for labeller in ("ann", "bob"):
        clock.now += 1.0
        (query,) = varied.lease("m", labeller, 1, 60).queries
        words.answer(varied, "m", query.number, query.token)
    kinds = [event.kind for event in varied.read_events("m", EVENTS, 10)]
    assert kinds == [EventKind.OPINION, EventKind.OPINION, EventKind.ANSWER]
    archive_model(varied, "m", target, piece_events=1)
    ranges = [(piece.first, piece.last) for piece in manifest_of(target).pieces]
    assert ranges == [*((k, k) for k in range(1, 7)), (7, 10), (11, 11), (12, 13)]


@sqlite_only
def test_old_events_are_archived(varied: Store, target: Path, helper, clock) -> None:
    clock.now += 10 * DAY_S
    helper.push("young")
    old = 5 * DAY_S
    assert archive_model(varied, "m", target, older_than_s=old).last == EVENTS
    assert archive_model(varied, "m", target, older_than_s=old).added == 0
    clock.now += 5 * DAY_S
    helper.push("younger")
    assert archive_model(varied, "m", target, older_than_s=old).added == 1
    assert archive_model(varied, "m", target).added == 1


@sqlite_only
def test_names(varied: Store, target: Path, helper) -> None:
    with pytest.raises(NotFound, match="model nothing"):
        archive_model(varied, "nothing", target)
    with pytest.raises(StoreError, match="cannot be read"):
        rebuilt(varied, target)
    archive_model(varied, "m", target)
    assert rebuilt(varied, target) == [("m", True)]  # it is there
    with pytest.raises(InvalidInput, match="model: is 'other', the archive has m"):
        rebuilt(varied, target, only="other")
    with pytest.raises(InvalidInput, match="1 to 63 characters"):
        rebuilt(varied, target, only="m", new_name="../m")
    helper.push("later")
    with pytest.raises(AlreadyExists, match="model m already exists with other events"):
        rebuilt(varied, target)


@sqlite_only
def test_two_models_of_one_name_are_chosen_by_uid(varied: Store, target: Path, helper) -> None:
    first = archive_model(varied, "m", target).uid
    varied.delete_model("m")
    while varied.remove_deleted():
        pass
    helper.create()
    helper.push("z")
    second = archive_model(varied, "m", target).uid
    with pytest.raises(InvalidInput, match="the name of two models"):
        rebuilt(varied, target)
    assert rebuilt(varied, target, only=first, new_name="first") == [("first", False)]
    assert rebuilt(varied, target, only=second) == [("m", True)]
    assert varied.get_model("first").sequence_committed == EVENTS


@sqlite_only
def test_a_store_with_another_history_adds_nothing(varied: Store, target: Path, helper) -> None:
    archive_model(varied, "m", target)
    helper.push("e")
    with varied._database.write() as connection:
        connection.execute(update(log).where(log.c.sequence == 5).values(comment="changed"))
    before = manifest_of(target)
    with pytest.raises(FailedPrecondition, match=r"other events 1 to 10 of model m .* a backup was restored"):
        archive_model(varied, "m", target)
    assert manifest_of(target) == before


def test_a_killed_rebuild_leaves_no_model(varied: Store, store_url: str, target: Path, start: Any) -> None:
    archive_model(varied, "m", target, piece_events=1)
    worker = start("rebuild", store_url, "m", str(target))
    for done in range(1, 5):
        assert json.loads(worker.stdout.readline()) == {"done": done, "total": EVENTS}
        if done < 4:
            worker.stdin.write("on\n")
            worker.stdin.flush()
    worker.kill()  # within the transaction
    worker.wait()
    with pytest.raises(NotFound):
        varied.get_model("copy")
    assert rebuilt(varied, target, only="m", new_name="copy") == [("copy", False)]
    assert contents(varied, "copy") == contents(varied, "m")
