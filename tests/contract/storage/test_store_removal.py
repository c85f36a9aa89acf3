"""A deleted model is gone at once, and its rows go in parts: as if all went at once, whoever ends in between."""

import json
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import words

from quercus.storage import NotFound, Policy, Store, file_url
from quercus.storage.admin.backup import back_up, restore_backup
from quercus.storage.admin.verify import verify_store
from quercus.storage.dialect import dialect_for
from quercus.storage.records import NewValue
from quercus.storage.schema import model

NAMES = ("gone", "kept", "other")
TABLES = ("model", "log", "vocabulary", "snapshot", "query", "query_history", "policy")
CHUNKS = (1, 2, 1000)


@pytest.fixture
def full(store: Store, helper: Any) -> Store:
    """Three models with something in every table."""
    for name in NAMES:
        helper.create(name=name)
        new = [NewValue(attribute, place, f"v{place}") for attribute in (0, 1) for place in (0, 1)]
        store.append_instances(name, ["x", "y"], np.ones((2, 2)), [words.ANYTHING] * 2, new)
        helper.push(*"abcde", name=name)
        store.set_policy(name, Policy(max_held=7))
        helper.publish(1, 2, 3, 4, name=name)
        first, second, third = store.lease(name, "ann", 3, 60.0).queries
        words.answer(store, name, first.number, first.token, words.A, 1.0)
        words.refuse(store, name, second.number, second.token)
        store.release(name, third.number, third.token)
        helper.publish(3, 5, name=name)
        store.lease(name, "bob", 1, 60.0)
    return store


sqlite_only = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)  # copies are files


def rows(url: str) -> dict[str, list[tuple[Any, ...]]]:
    engine = dialect_for(url, 5.0).create_engine()
    with engine.connect() as raw:
        found = {table: raw.exec_driver_sql(f"SELECT * FROM {table}").all() for table in TABLES}  # noqa: S608
    engine.dispose()
    return {table: sorted((tuple(row) for row in of), key=repr) for table, of in found.items()}


def steps(store: Store, rows: int) -> Iterator[None]:
    """Delete a model part by part, the mark included; yield after each part."""
    store.delete_model("gone")
    yield
    while store.remove_deleted(rows):
        yield


@sqlite_only
@pytest.mark.parametrize("chunk", CHUNKS)
def test_in_parts_as_at_once(full: Store, store_url: str, tmp_path: Path, chunk: int) -> None:
    back_up(store_url, tmp_path / "once.db")
    with closing(sqlite3.connect(tmp_path / "once.db", isolation_level=None)) as raw:
        raw.execute("PRAGMA foreign_keys = ON")
        raw.execute("DELETE FROM model WHERE name = 'gone'")
    count = sum(1 for _ in steps(full, chunk))
    assert count > {1: 30, 2: 15, 1000: 6}[chunk]
    assert rows(store_url) == rows(file_url(tmp_path / "once.db"))
    assert all(rows(file_url(tmp_path / "once.db")).values())


def test_nobody_sees_it_while_its_rows_are_removed(full: Store, store_url: str) -> None:
    key, newest = full.get_model("gone").key, full.newest_change()
    kept = [full.get_model(name) for name in NAMES[1:]]
    for number, _ in enumerate(steps(full, 3)):
        if number == 1:  # the name is free, in the middle
            full.create_model("gone", b"another", budget=1)
            kept.insert(0, full.get_model("gone"))
        assert sorted(full.list_models(), key=lambda each: each.name) == kept
        assert len(full.list_models()) == len(kept)
        assert full.models_of([key]) == []
        assert key not in {each.key for each in full.models_with_queries()}
        for name in (f"deleted/{key}", *(["gone"] if number == 0 else [])):
            with pytest.raises(NotFound):
                full.get_model(name)
            with pytest.raises(NotFound):
                full.read_events(name)
            with pytest.raises(NotFound):
                full.lease(name, "ann", 1, 60.0)
            assert not full.has_queries(name)
        assert [each.tree_version for each in full.changes(newest) if each.key == key] == [None]
        assert verify_store(store_url) == []
    assert full.read_events("gone") == []


def test_the_end_of_a_model_is_reported_once(full: Store) -> None:
    seen = full.newest_change()
    told = []
    for _ in steps(full, 3):
        told += [(each.name, each.tree_version) for each in full.changes(seen)]
        seen = full.newest_change()
    assert told == [("gone", None)]


def test_a_store_looks_again_for_what_another_process_deleted(
    full: Store, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    while full.remove_deleted():
        pass
    with Store.open(store_url) as other:
        other.delete_model("gone")
    assert not full.removes
    monkeypatch.setattr("quercus.storage.store.LOOK_FOR_REMOVALS_S", 0.0)
    assert full.removes
    while full.remove_deleted():
        pass
    monkeypatch.undo()
    assert not full.removes
    assert verify_store(store_url) == []


def test_what_a_revoked_token_held_of_it_is_of_no_account(full: Store) -> None:
    full.access.create_token("t1", "robot", b"digest", roles=frozenset({"labeller"}))
    assert full.lease("gone", "robot", 1, 60.0, credential="t1").queries
    full.access.revoke_token("t1")
    assert full.has_revoked_leases()
    full.delete_model("gone")
    assert not full.has_revoked_leases()
    assert full.evict_revoked() == 0


@sqlite_only
def test_a_copy_made_in_the_middle_can_be_restored_and_goes_on(
    full: Store, store_url: str, tmp_path: Path
) -> None:
    part = steps(full, 3)
    for _ in range(4):
        next(part)
    back_up(store_url, tmp_path / "copy.db")
    restore_backup(tmp_path / "copy.db", f"sqlite:///{tmp_path / 'new.db'}")
    for _ in part:
        pass
    with Store.open(f"sqlite:///{tmp_path / 'new.db'}") as other:
        assert other.removes
        while other.remove_deleted():
            pass
        assert not other.removes
    assert rows(file_url(tmp_path / "new.db")) == rows(store_url)


def test_a_kill_in_the_middle(full: Store, store_url: str, start: Any) -> None:
    kept = [full.get_model(name) for name in NAMES[1:]]
    worker = start("remove", store_url, "gone")
    for _ in range(7):
        json.loads(worker.stdout.readline())
    worker.send_signal(signal.SIGKILL)
    assert worker.wait() == -signal.SIGKILL
    place = [column.name for column in model.columns].index("deleted")
    assert [each[place] for each in rows(store_url)["model"]] == [1, 0, 0]
    assert verify_store(store_url) == []
    assert full.list_models() == kept
    while full.remove_deleted(3):
        pass
    left = rows(store_url)
    keys = {each.key for each in kept}
    assert {each[0] for each in left["model"]} == keys
    assert {each[0] for table in TABLES[1:5] for each in left[table]} == keys
