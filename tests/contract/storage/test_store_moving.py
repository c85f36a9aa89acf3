"""A store that moves to another database is the same store there: rows, keys, numbers, leases and what comes after."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import words
from support.killed import survives

from quercus.storage import AgendaEntry, FailedPrecondition, NewValue, Policy, Store, StoreBusy, file_url
from quercus.storage.admin import moving
from quercus.storage.admin.moving import MovedModel, move_store
from quercus.storage.admin.verify import verify_store
from quercus.storage.errors import CorruptStore
from quercus.storage.records import Push

HELD_S = 600.0
sqlite_only = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
"""Cases that are refused or begun anew by the same code, whichever way a store moves."""


@pytest.fixture
def other_url(request: pytest.FixtureRequest, backend: str, tmp_path: Path) -> str:
    """A new store in the other database."""
    if backend == "postgresql":
        return file_url(tmp_path / "other.db")
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def filled(store_url: str) -> Iterator[Callable[[], Store]]:
    """Three models with something in every table, one that is gone, tokens and an audit log."""
    opened: list[Store] = []

    def open_it() -> Store:
        opened.append(Store.open(store_url))
        return opened[-1]

    with open_it() as store:
        for name in ("a", "gone", "b", "empty"):
            store.create_model(name, b"spec", budget=9)
            if name == "empty":
                continue
            new = [NewValue(0, 0, "é\u20ac"), NewValue(0, 1, "x")]
            values = np.array([[1.5, np.nan], [-0.0, 1e300], [5e-324, np.inf]])
            shown = [b"picture", b"", b""]
            store.append_group(
                [
                    Push(
                        name,
                        ["r1", "r2", "r3"],
                        values,
                        [words.ANYTHING] * 3,
                        new,
                        displays=shown,
                    )
                ]
            )
            store.set_policy(name, Policy(max_held=7, tags=("one", "two")))
            agenda = [AgendaEntry(i, b"asked %d" % i, b"why") for i in (1, 2, 3)]
            store.publish(name, as_of=3, snapshot=b"tree\0", agenda=agenda)
            first, second = store.lease(name, "ann", 2, HELD_S).queries
            words.answer(store, name, first.number, first.token, words.A, 0.9, comment="c")
            store.release(name, second.number, second.token)
            store.lease(name, "bob", 1, HELD_S)
        store.delete_model("gone")
        while store.remove_deleted():
            pass
        store.access.create_token("t1", "robot", b"digest", roles=frozenset({"labeller"}), duration_s=60.0)
        store.access.record("ann", "did", "that", "OK")
    yield open_it
    for each in opened:
        each.close()


def contents(store: Store) -> dict[str, Any]:
    names = [record.name for record in store.list_models()]
    return {
        "models": [replace(record, lag_s=0.0) for record in store.list_models()],
        "events": [store.read_events(name) for name in names],
        "queries": [
            [(q.number, q.state, q.labeller, q.token, q.asked) for q in store.list_queries(name)]
            for name in names
        ],
        "history": [store.query_history(name) for name in names],
        "words": [store.vocabulary(name) for name in names],
        "policies": [store.policy(name) for name in names],
        "displays": [store.displays(name, [1, 2, 3]) for name in names],
        "trees": [store.snapshot(name) for name in names if name != "empty"],
        "tokens": store.access.tokens(),
        "audit": store.access.audit(),
        "number": store.newest_change(),
    }


def test_there_and_back_it_is_the_same(
    filled: Callable[[], Store], store_url: str, other_url: str, tmp_path: Path
) -> None:
    with filled() as store:
        before = contents(store)
        left_s = store.next_change_s()
    told: list[MovedModel] = []
    moved = move_store(store_url, other_url, told.append)
    assert [(each.name, each.was_there) for each in moved] == [("a", False), ("b", False), ("empty", False)]
    assert told == moved
    back = file_url(tmp_path / "back.db")
    move_store(other_url, back)
    for url in (other_url, back):
        with Store.open(url) as store:
            after = contents(store)
            assert after == before
            assert left_s is not None
            left = store.next_change_s()
            assert left is not None
            assert 0 < left_s - left < HELD_S / 2  # the clock went on, and did not jump
        assert verify_store(url) == []


def test_what_comes_after_goes_on_from_there(
    filled: Callable[[], Store], store_url: str, other_url: str
) -> None:
    with filled() as store:
        (held,) = store.lease("a", "eve", 1, HELD_S).queries
        last = max(step.id for step in store.query_history("b"))
        keys = {record.key for record in store.list_models()}
        number = store.newest_change()
    move_store(store_url, other_url)
    with Store.open(other_url) as store:
        words.answer(store, "a", held.number, held.token, words.A, 1.0)
        assert store.newest_change() == number + 1
        assert min(step.id for step in store.query_history("a", after=last)) > last
        made = store.create_model("later", b"", budget=0)
        assert made.key > max(keys)
        assert store.append_instances("a", ["r4"], np.zeros((1, 2)), [words.ANYTHING]).committed_sequence == 6
        store.access.record("ann", "did", "more", "OK")
        assert [entry.number for entry in store.access.audit()] == [1, 2]
    assert verify_store(other_url) == []


@sqlite_only
def test_whoever_is_interrupted_begins_again(
    filled: Callable[[], Store], store_url: str, other_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(moved: MovedModel) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move_store(store_url, other_url, stop)
    copied: list[str] = []
    copy = moving._copy_rows

    def note(reading: Any, writing: Any, table: Any, wanted: Any) -> Any:
        copied.append(table.name)
        if copied.count("log") == 1 and table.name == "query":
            raise KeyboardInterrupt  # in the middle of a model
        return copy(reading, writing, table, wanted)

    monkeypatch.setattr(moving, "_copy_rows", note)
    with pytest.raises(KeyboardInterrupt):
        move_store(store_url, other_url)
    monkeypatch.undo()
    with Store.open(other_url) as store:
        assert [record.name for record in store.list_models()] == ["a"]
    moved = move_store(store_url, other_url)
    assert [(each.name, each.was_there) for each in moved] == [("a", True), ("b", False), ("empty", False)]
    assert [each.was_there for each in move_store(store_url, other_url)] == [True] * 3


@sqlite_only
def test_a_target_that_has_something_else_is_refused(
    filled: Callable[[], Store], store_url: str, other_url: str
) -> None:
    with Store.open(other_url) as store:
        store.create_model("mine", b"", budget=0)
    with pytest.raises(FailedPrecondition, match="the target has model mine, which the source does not have"):
        move_store(store_url, other_url)
    with pytest.raises(FailedPrecondition, match="both URLs name the same store"):
        move_store(store_url, store_url)


@sqlite_only
@pytest.mark.parametrize("what", ["access tokens", "entries in the audit log"])
def test_what_belongs_to_no_model_is_not_deleted_in_the_target(
    filled: Callable[[], Store], store_url: str, other_url: str, what: str
) -> None:
    """Neither in a store without models, nor in one to which an earlier move brought the rows of the source."""
    with Store.open(other_url) as store:
        add_own(store, what)
        kept = store.access.tokens(), store.access.audit()
    with pytest.raises(FailedPrecondition, match=f"the target has {what}, which the source does not have"):
        move_store(store_url, other_url)
    with Store.open(other_url) as store:
        assert (store.access.tokens(), store.access.audit()) == kept
        assert store.list_models() == []


@sqlite_only
def test_tokens_made_after_a_move_are_not_deleted_by_the_next(
    filled: Callable[[], Store], store_url: str, other_url: str
) -> None:
    move_store(store_url, other_url)
    with Store.open(other_url) as store:
        add_own(store, "access tokens")
    with pytest.raises(FailedPrecondition, match="the target has access tokens"):
        move_store(store_url, other_url)
    with Store.open(other_url) as store:
        assert {token.name for token in store.access.tokens()} == {"robot", "mine"}


def add_own(store: Store, what: str) -> None:
    if what == "access tokens":
        store.access.create_token("t0", "mine", b"own", roles=frozenset({"labeller"}), duration_s=60.0)
    else:
        store.access.record("eve", "did", "this", "OK")


@sqlite_only
def test_a_target_that_went_on_is_refused(
    filled: Callable[[], Store], store_url: str, other_url: str
) -> None:
    move_store(store_url, other_url)
    with Store.open(other_url) as store:
        store.append_instances("b", ["r4"], np.zeros((1, 2)), [words.ANYTHING])
    with pytest.raises(FailedPrecondition, match="model b of the target is not that of the source any more"):
        move_store(store_url, other_url)


def test_a_source_in_use_is_refused(
    filled: Callable[[], Store], backend: str, store_url: str, other_url: str
) -> None:
    with filled() as store:
        if backend == "sqlite":
            store.claim("another server")
        else:
            store.renew_grower("x", "web-1, process 7", 60.0)
        with pytest.raises(StoreBusy, match=r"another server already|is used by web-1, process 7"):
            move_store(store_url, other_url)
        store.leave_growers("x")
    with filled() as store:

        def write(moved: MovedModel) -> None:
            store.set_policy("a", Policy(max_held=3))

        with pytest.raises(StoreBusy, match="was written while it was moved"):
            move_store(store_url, other_url, write)


@sqlite_only
def test_rows_that_come_back_as_others_are_not_kept(
    filled: Callable[[], Store], store_url: str, other_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = moving._copy_rows

    def lose(reading: Any, writing: Any, table: Any, wanted: Any) -> Any:
        done = copy(reading, writing, table, wanted)
        if table.name == "log":
            writing.execute(table.update().where(table.c.sequence == 2).values(label=b"other"))
        return done

    monkeypatch.setattr(moving, "_copy_rows", lose)
    with pytest.raises(CorruptStore, match="model a: rows of table log came back as others than they went"):
        move_store(store_url, other_url)
    with Store.open(other_url) as store:
        assert store.list_models() == []


@pytest.mark.slow
def test_killed_at_any_statement_it_goes_on_and_the_old_store_is_as_it_was(
    filled: Callable[[], Store], store_url: str, other_url: str
) -> None:
    with filled() as store:
        before = contents(store)
    kills = 0
    for statement in count(step=13):  # each of them goes on where the one before was killed
        if survives(lambda: move_store(store_url, other_url), statement):
            break
        kills += 1
        with Store.open(store_url) as store:
            assert contents(store) == before
    assert kills > 10, kills
    with Store.open(other_url) as store:
        after = contents(store)
    assert after == before
    assert verify_store(other_url) == []
