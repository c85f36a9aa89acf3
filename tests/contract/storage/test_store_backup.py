"""Backups of a store in use, putting them back, and finding what is wrong with a store."""

import itertools
import shutil
import sqlite3
import threading
from pathlib import Path

import numpy as np
import pytest
from support.killed import survives_steps

from quercus.belief.errors import InvalidInput
from quercus.storage import CorruptStore, InconsistentHistory, Store, StoreBusy, StoreError, file_url
from quercus.storage.admin import backup
from quercus.storage.admin.backup import back_up, restore_backup
from quercus.storage.admin.verify import verify_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with three models."""
    file = tmp_path / "store.db"
    with Store.open(file_url(file)) as store:
        for name in "abc":
            store.create_model(name, b"specification", budget=3)
            ids = [str(i) for i in range(100)]
            store.append_instances(name, ids, np.ones((100, 2)), [b"?"] * 100)
    return file


def counts(file: Path) -> list[tuple[str, int]]:
    with Store.open(file_url(file)) as store:
        return [(model.name, model.instance_count) for model in store.list_models()]


def test_a_backup_is_a_store_of_one_moment(path: Path, tmp_path: Path) -> None:
    target, seen = tmp_path / "copy.db", []
    size = back_up(file_url(path), target, progress=lambda done, whole: seen.append((done, whole)))
    assert size == target.stat().st_size
    assert seen[-1][0] == seen[-1][1] > 0
    assert verify_store(file_url(target)) == []
    assert sorted(file.name for file in tmp_path.glob("copy*")) == ["copy.db"]
    assert counts(target) == counts(path) == [("a", 100), ("b", 100), ("c", 100)]


def test_a_backup_while_rows_arrive_holds_together(path: Path, tmp_path: Path) -> None:
    """Two tables change in every push: a copy of two moments would not add up."""
    stop = threading.Event()
    pushed = 0

    def push() -> None:
        nonlocal pushed
        with Store.open(file_url(path)) as store:
            while not stop.is_set():
                store.append_instances("a", [f"new{pushed}"], np.ones((1, 2)), [b"?"])
                pushed += 1

    thread = threading.Thread(target=push)
    thread.start()
    try:
        for i in range(5):
            back_up(file_url(path), tmp_path / f"copy{i}.db")
            assert verify_store(file_url(tmp_path / f"copy{i}.db")) == []
    finally:
        stop.set()
        thread.join()
    found = [counts(tmp_path / f"copy{i}.db")[0][1] for i in range(5)]
    assert found == sorted(found)
    assert counts(path)[0][1] == 100 + pushed > 100


def test_a_check_while_rows_arrive_reads_one_state(path: Path) -> None:
    """The counts of a model and its log are read one after the other: of two moments they would not agree."""
    stop = threading.Event()

    def push() -> None:
        with Store.open(file_url(path)) as store:
            for number in itertools.count():
                if stop.is_set():
                    return
                store.append_instances("a", [f"new{number}"], np.ones((1, 2)), [b"?"])

    thread = threading.Thread(target=push)
    thread.start()
    try:
        assert [verify_store(file_url(path)) for _ in range(8)] == [[]] * 8
    finally:
        stop.set()
        thread.join()


def test_a_backup_ends_however_often_the_store_is_written(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite begins anew after a commit between two steps, unless its reader holds the state that it reads."""
    monkeypatch.setattr(backup, "PAGES", 5)
    seen: list[int] = []
    with Store.open(file_url(path)) as store:

        def push(done: int, _: int) -> None:
            seen.append(done)
            assert seen == sorted(set(seen)), "it began anew"
            store.append_instances("a", [f"new{done}"], np.ones((1, 2)), [b"?"])

        back_up(file_url(path), tmp_path / "copy.db", progress=push)
    assert len(seen) > 3
    assert counts(tmp_path / "copy.db") == [("a", 100), ("b", 100), ("c", 100)]


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_the_log_of_a_store_that_was_removed_does_not_get_into_the_next_one(
    path: Path, tmp_path: Path, suffix: str
) -> None:
    """A server is killed, its store is removed, and its log stays: SQLite would play it into what comes there next."""
    folder = tmp_path / "killed"
    folder.mkdir()
    place, left = folder / "store.db", folder / f"store.db{suffix}"
    with Store.open(file_url(tmp_path / "old.db")) as store:
        store.create_model("old", b"specification", budget=3)
        log = (tmp_path / "old.db-wal").read_bytes()
    for put in (
        lambda force: restore_backup(path, file_url(place), force=force),
        lambda force: back_up(file_url(path), place, force=force),
    ):
        left.write_bytes(log)
        with pytest.raises(InvalidInput, match=f"store.db does not exist, but .*{suffix} of an earlier"):
            put(False)
        assert (left.read_bytes(), place.exists()) == (log, False)
        put(True)
        assert verify_store(file_url(place)) == []
        assert counts(place) == [("a", 100), ("b", 100), ("c", 100)]
        place.unlink()


STEPS = {"os.rename", "os.remove", "sqlite3.connect"}
"""Calls before which a restore is killed."""


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [False, pytest.param(True, marks=pytest.mark.release)])
def test_a_restore_that_is_killed_leaves_the_old_store_or_the_new_one(
    path: Path, tmp_path: Path, damaged: bool
) -> None:
    """Also where the old one was killed, and its last commits stand in its write-ahead log alone."""
    backup, killed = tmp_path / "backup.db", tmp_path / "killed"
    with Store.open(file_url(backup)) as store:
        store.create_model("x", b"another specification", budget=3)
        store.append_instances("x", [str(i) for i in range(2000)], np.zeros((2000, 9)), [b"!"] * 2000)
    killed.mkdir()
    with Store.open(file_url(path)) as store:
        store.create_model("d", b"specification", budget=3)
        store.append_instances("d", [str(i) for i in range(500)], np.ones((500, 2)), [b"?"] * 500)
        for suffix in ("", "-wal", "-shm"):
            shutil.copy(f"{path}{suffix}", killed / f"store.db{suffix}")
    if damaged:
        (killed / "store.db").write_bytes(b"?" * 8192)
    old, new = [("a", 100), ("b", 100), ("c", 100), ("d", 500)], [("x", 2000)]
    ends: list[object] = []
    for step in range(30):
        folder = tmp_path / str(step)
        shutil.copytree(killed, folder)
        url = file_url(folder / "store.db")
        done = survives_steps(lambda url=url: restore_backup(backup, url, force=True), step, STEPS)
        if damaged and (folder / "store.db").read_bytes()[:9] == b"?????????":
            ends.append(old)
        else:
            assert verify_store(url) == []
            ends.append(counts(folder / "store.db"))
            assert ends[-1] in (old, new)
        if done:
            break
    assert (ends[0], ends[-1]) == (old, new)
    assert len(ends) >= 4


def test_nothing_is_replaced_unasked(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("precious")
    with pytest.raises(InvalidInput, match="exists; give --force"):
        back_up(file_url(path), target)
    assert target.read_text() == "precious"
    back_up(file_url(path), target, force=True)
    assert verify_store(file_url(target)) == []
    for wrong, said in (
        (path, "the store itself"),
        (tmp_path, "is a folder"),
        (tmp_path / "x/y", "does not exist"),
    ):
        with pytest.raises(InvalidInput, match=said):
            back_up(file_url(path), wrong, force=True)
    with pytest.raises(StoreError, match="does not exist"):
        back_up(file_url(tmp_path / "nowhere.db"), target, force=True)


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal", "-server", "-reserve"])
def test_no_backup_takes_the_place_of_what_belongs_to_a_store(
    path: Path, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whatever name; the server of the store goes on, and nothing of it is lost."""
    owned = path.with_name(path.name + suffix)
    (tmp_path / "folder").symlink_to(tmp_path)
    links = [tmp_path / "folder" / owned.name]
    with Store.open(file_url(path)) as store:
        store.claim("a server")
        store.append_instances("a", ["more"], np.ones((1, 2)), [b"?"])
        if owned.exists():
            links += [tmp_path / "soft.db", tmp_path / "hard.db"]
            links[1].symlink_to(owned)
            links[2].hardlink_to(owned)
        monkeypatch.chdir(tmp_path)
        for target in (owned, Path(owned.name), *links):
            with pytest.raises(InvalidInput, match=rf"^target: {target} belongs to "):
                back_up(file_url(path), target, force=True)
            with pytest.raises(InvalidInput, match="belongs to"):
                restore_backup(path, file_url(target), force=True)
        store.append_instances("a", ["last"], np.ones((1, 2)), [b"?"])
        with pytest.raises(StoreBusy, match="is served by a server already"):
            Store.open(file_url(path)).claim("another")
    assert counts(path)[0] == ("a", 102)
    assert verify_store(file_url(path)) == []


def test_no_backup_takes_the_place_of_another_store_that_is_in_use(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with Store.open(file_url(other)) as store:
        store.create_model("x", b"specification", budget=3)
        with pytest.raises(StoreBusy, match="in use"):
            back_up(file_url(path), other, force=True)
        with pytest.raises(InvalidInput, match="belongs to"):
            back_up(file_url(path), tmp_path / "other.db-wal", force=True)
        store.create_model("y", b"specification", budget=3)
    assert [name for name, _ in counts(other)] == ["x", "y"]
    path.rename(tmp_path / "copy.db.part")  # the name that is written on the way
    with pytest.raises(InvalidInput, match=r"copy.db.part is the store itself"):
        back_up(file_url(tmp_path / "copy.db.part"), tmp_path / "copy.db")
    assert counts(tmp_path / "copy.db.part")[0] == ("a", 100)


def test_damage_differs_from_remarks_and_only_remarks_may_be_overridden(path: Path, tmp_path: Path) -> None:
    copy, url = tmp_path / "copy.db", file_url(tmp_path / "new.db")
    back_up(file_url(path), copy)
    with sqlite3.connect(copy) as raw:
        raw.execute("UPDATE model SET queries_answered = 4 WHERE name = 'c'")
    raw.close()
    assert [(fault.is_damage, "budget" in fault.text) for fault in verify_store(file_url(copy))] == [
        (False, True)
    ]
    with pytest.raises(
        InconsistentHistory, match=r"not damaged.*1 remark.*its budget is 3; say --despite-remarks"
    ):
        restore_backup(copy, url, force=True)
    assert not (tmp_path / "new.db").exists()
    restore_backup(copy, url, despite_remarks=True)
    assert counts(tmp_path / "new.db") == counts(path)
    with sqlite3.connect(copy) as raw:
        raw.execute("DELETE FROM log WHERE model_id = 1 AND sequence = 50")
    raw.close()
    with pytest.raises(CorruptStore, match=r"is damaged: model a: its log has 99 events"):
        restore_backup(copy, url, force=True, despite_remarks=True)


def test_a_store_comes_back_as_it_was(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    back_up(file_url(path), copy)
    with Store.open(file_url(path)) as store:
        store.delete_model("b")
        with pytest.raises(InvalidInput, match="exists; give --force"):
            restore_backup(copy, file_url(path))
        with pytest.raises(StoreBusy, match="in use: stop the server first"):
            restore_backup(copy, file_url(path), force=True)
        assert [model.name for model in store.list_models()] == ["a", "c"]
    restore_backup(copy, file_url(path), force=True)
    assert [name for name, _ in counts(path)] == ["a", "b", "c"]
    restore_backup(copy, file_url(tmp_path / "new.db"))
    assert counts(tmp_path / "new.db") == counts(path)


def test_a_store_that_is_damaged_can_be_replaced_and_a_damaged_backup_replaces_nothing(
    path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    back_up(file_url(path), copy)
    whole = copy.read_bytes()
    spoil(path)
    restore_backup(copy, file_url(path), force=True)
    assert path.read_bytes()[:16] == whole[:16]
    spoil(copy)
    with pytest.raises(CorruptStore, match=r"cannot be restored|is damaged"):
        restore_backup(copy, file_url(path), force=True)
    assert verify_store(file_url(path)) == []
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at" * 50)
    with pytest.raises(CorruptStore, match="is not a store"):
        restore_backup(tmp_path / "text.db", file_url(path), force=True)


def spoil(file: Path) -> None:
    """Overwrite the middle of the file."""
    for companion in file.parent.glob(f"{file.name}-*"):
        companion.unlink()
    data = bytearray(file.read_bytes())
    data[4096 : len(data) // 2] = b"\x5a" * (len(data) // 2 - 4096)
    file.write_bytes(data)


def test_what_does_not_add_up_is_found(path: Path) -> None:
    assert verify_store(file_url(path)) == []
    changes = {
        "DELETE FROM log WHERE model_id = 1 AND sequence = 50": ["are missing", "counts 100 instances"],
        "UPDATE model SET sequence_committed = 120 WHERE name = 'b'": ["counts 120 events"],
        "UPDATE model SET sequence_grown = 101 WHERE name = 'c'": ["its tree knows 101 events"],
        "UPDATE model SET queries_answered = 4 WHERE name = 'c'": ["4 queries are answered or leased"],
        "DELETE FROM model WHERE name = 'a'": ["refers to a row of model that is not there"],
    }
    for statement, expected in changes.items():
        with sqlite3.connect(path) as raw:  # foreign keys are off here
            raw.execute(statement)
        raw.close()
        faults = "\n".join(map(str, verify_store(file_url(path))))
        assert all(words in faults for words in expected), (statement, faults)
    with pytest.raises(StoreError, match="does not exist"):
        verify_store(file_url(path.with_name("nowhere.db")))


def test_a_backup_is_for_its_user_alone_and_follows_no_link(path: Path, tmp_path: Path) -> None:
    target, victim = tmp_path / "copy.db", tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "copy.db.part").symlink_to(victim)
    back_up(file_url(path), target)
    assert target.stat().st_mode & 0o777 == 0o600
    assert not target.is_symlink()
    assert victim.read_text() == "precious"
