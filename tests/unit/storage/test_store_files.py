"""Bad files, locked files, and what the user reads then."""

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from support import words
from support.mounts import fill, small_disk

from quercus.belief.errors import InvalidInput
from quercus.storage import (
    AlreadyExists,
    CorruptStore,
    FailedPrecondition,
    NoSpace,
    NotFound,
    ReadOnlyStore,
    Store,
    StoreBusy,
    StoreError,
    UnknownSchema,
    engine,
    file_url,
)
from quercus.storage.admin.verify import verify_store
from quercus.storage.sqlite import dialect, disk_space

NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder of somebody whom file permissions bind (root may write everywhere)."""
    is_root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        if is_root:
            os.chown(name, NOBODY, -1)
            os.seteuid(NOBODY)
        try:
            yield Path(name)
        finally:
            Path(name).chmod(0o700)
            if is_root:
                os.seteuid(0)


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.mark.parametrize(
    "content", [b"attribute,class\n1,2\n" * 100, b"SQLite format 3\x00" + b"\xff" * 5000]
)
def test_a_file_that_is_no_database(path, content):
    path.write_bytes(content)
    with pytest.raises(CorruptStore, match=r"store.db is (not a store of quercus|damaged)"):
        Store.open(url_of(path))
    assert path.read_bytes() == content


def test_a_database_of_something_else_is_left_alone(path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE invoices (number)")
    other.close()
    with pytest.raises(
        CorruptStore, match=r"is a database, but not a store of quercus \(it has a table 'invoices'\)"
    ):
        Store.open(url_of(path))
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("invoices",)]
    other.close()


def test_an_empty_file_becomes_a_store(path):
    path.touch()
    with Store.open(url_of(path)) as store:
        assert store.list_models() == []


@pytest.mark.parametrize("name", ["", ".", "..", "/"])
def test_a_folder_is_no_store(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CorruptStore, match="is a folder, not a store"):
        Store.open(f"sqlite:///{name or tmp_path}")


def test_a_missing_folder_is_named(tmp_path):
    missing = tmp_path / "no" / "store.db"
    with pytest.raises(
        StoreError, match=f"cannot create {missing}: the folder {missing.parent} does not exist"
    ):
        Store.open(url_of(missing))
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="file is not a folder"):
        Store.open(url_of(tmp_path / "file" / "store.db"))


def test_a_read_only_file(unprivileged):
    path = unprivileged / "store.db"
    Store.open(url_of(path)).close()
    path.chmod(0o400)
    with pytest.raises(ReadOnlyStore, match=r"store.db may not be read and written by this user"):
        Store.open(url_of(path))


def test_a_read_only_folder(unprivileged):
    path = unprivileged / "store.db"
    Store.open(url_of(path)).close()
    unprivileged.chmod(0o500)
    for name in ("store.db", "new.db"):
        with pytest.raises(ReadOnlyStore, match=f"the folder {unprivileged} may not be written by this user"):
            Store.open(url_of(unprivileged / name))


def filled(path: Path) -> None:
    with Store.open(url_of(path)) as store:
        store.create_model("m", b"specification", budget=1)
        store.append_instances("m", ["i"], np.zeros((1, 2)), [b"?"])


def test_a_store_that_may_not_be_written_is_read(unprivileged):
    path = unprivileged / "store.db"
    filled(path)
    path.chmod(0o400)
    unprivileged.chmod(0o500)
    with Store.open(url_of(path), check_s=1.0, read_only=True) as store:
        assert store.is_read_only
        assert store.get_model("m").instance_count == 1
        assert [event.id for event in store.read_events("m", 0, 9)] == ["i"]
        assert store.change_token() == store.change_token()
        for write in (
            lambda: store.create_model("n", b"", budget=0),
            lambda: store.lease("m", "ann", 1, 60.0),
        ):
            with pytest.raises(
                ReadOnlyStore, match=r"could not be written when it was opened, and is only read"
            ):
                write()
        assert "is only read" in store.write_trouble
        with pytest.raises(ReadOnlyStore):
            store.try_to_write()
    assert [file.name for file in unprivileged.iterdir()] == ["store.db"]


def test_commits_in_the_write_ahead_log_are_read_or_reported(unprivileged):
    """A writer that was killed leaves its last commits in the write-ahead log."""
    path, copy = unprivileged / "store.db", unprivileged / "copy" / "store.db"
    copy.parent.mkdir()
    with Store.open(url_of(path)) as store:
        store.create_model("m", b"specification", budget=1)
        for suffix in ("", "-wal", "-shm"):
            shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    for file in copy.parent.iterdir():
        file.chmod(0o400)
    copy.parent.chmod(0o500)
    with Store.open(url_of(copy), read_only=True) as store:
        assert store.get_model("m").budget == 1
    copy.parent.chmod(0o700)
    Path(f"{copy}-shm").unlink()
    copy.parent.chmod(0o500)
    with pytest.raises(ReadOnlyStore, match="has commits in its write-ahead log, which cannot be read"):
        Store.open(url_of(copy), read_only=True)
    copy.parent.chmod(0o700)


@pytest.mark.parametrize("place", ["path", "link"])
def test_who_reads_alone_notices_that_somebody_writes(place, request):
    store = request.getfixturevalue(place)
    filled(store)
    with Store.open(url_of(store), read_only=True) as reading, Store.open(url_of(store)) as writing:
        writing.create_model("n", b"specification", budget=1)
        with pytest.raises(StoreError, match="another process writes it now: start the server again"):
            reading.get_model("m")


@pytest.fixture
def link(tmp_path: Path) -> Path:
    """A link to a store on another disk, as it is made when the first disk is full."""
    (tmp_path / "disk").mkdir()
    linked = tmp_path / "link.db"
    linked.symlink_to(tmp_path / "disk" / "store.db")
    return linked


def test_a_store_is_read_whole_through_a_link(link):
    """SQLite keeps the last commits beside the file, not beside the link; without them old evidence was served."""
    filled(link)
    with Store.open(url_of(link)) as writing:
        writing.append_instances("m", ["j"], np.zeros((1, 2)), [b"?"])
        with Store.open(url_of(link), read_only=True) as reading:
            assert reading.get_model("m").instance_count == 2
            writing.append_instances("m", ["k"], np.zeros((1, 2)), [b"?"])
            assert reading.get_model("m").instance_count == 3


def test_what_lies_beside_a_store_lies_beside_the_file_not_beside_a_link(link):
    """Its log is watched there, and its reserve kept on the disk whose room it is; all is for its user alone."""
    with Store.open(url_of(link)) as store:
        store.keep_reserve()
        store.create_model("m", b"specification", budget=1)
        beside = {each.name: each.stat() for each in (link.parent / "disk").iterdir()}
        assert set(beside) == {"store.db", "store.db-wal", "store.db-shm", "store.db-reserve"}
        assert {found.st_mode & 0o777 for found in beside.values()} == {0o600}
        assert store.size_bytes() == sum(beside[f"store.db{end}"].st_size for end in ("", "-wal", "-shm"))
        (link.parent / "disk" / "store.db-wal").unlink()
        with pytest.raises(StoreError, match=r"store.db-wal was deleted or replaced while it was in use"):
            store.create_model("n", b"specification", budget=1)
    assert sorted(each.name for each in link.parent.iterdir()) == ["disk", "link.db"]


def test_what_is_not_there_cannot_be_read(path):
    with pytest.raises(ReadOnlyStore, match="does not exist, and its folder may not be written"):
        Store.open(url_of(path), read_only=True)
    path.touch()
    with pytest.raises(ReadOnlyStore, match="has no tables, and cannot be written"):
        Store.open(url_of(path), read_only=True)


@pytest.mark.parametrize(
    "url",
    [
        "store.db",
        "sqlite://",
        "sqlite:///:memory:",
        "mysql://localhost/x",
        "",
        "sqlite:///a.db?mode=ro&uri=true",
    ],
)
def test_a_url_that_names_no_file(url):
    with pytest.raises(InvalidInput, match="sqlite:///path") as caught:
        Store.open(url)
    assert caught.value.field == "store"


def test_a_lock_held_too_long(path):
    with Store.open(url_of(path), busy_timeout_s=0.05) as store:
        store.create_model("m", b"", budget=0)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            StoreBusy, match="locked by another process for longer than the busy timeout: try again"
        ):
            store.create_model("n", b"", budget=0)
        assert store.get_model("m").name == "m", "readers never wait"
        with pytest.raises(StoreBusy):
            Store.open(url_of(path), busy_timeout_s=0.05)
        other.execute("ROLLBACK")
        other.close()
        store.create_model("n", b"", budget=0)


def test_a_writer_waits_for_a_lock_that_is_given_back(path):
    with Store.open(url_of(path), busy_timeout_s=30) as store:
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.1, other.execute, ["ROLLBACK"])
        timer.start()
        store.create_model("n", b"", budget=0)
        timer.join()
        other.close()
        assert store.get_model("n").name == "n"


def test_a_file_that_is_damaged_later(path):
    with Store.open(url_of(path)) as store:
        store.create_model("m", b"", budget=0)
        store.append_instances("m", [f"i{k}" for k in range(500)], np.ones((500, 9)), [b""] * 500)
    data = bytearray(path.read_bytes())
    data[8192:] = b"\xaa" * (len(data) - 8192)
    path.write_bytes(data)
    malformed = pytest.raises(
        CorruptStore, match=r"store.db is damaged: .* \(database disk image is malformed\)"
    )
    with malformed, Store.open(url_of(path)) as store:
        store.read_events("m")


def test_calls_of_a_closed_store_raise_an_error(path):
    store = Store.open(url_of(path))
    store.close()
    store.close()
    for call in (store.list_models, store.change_token, lambda: store.create_model("m", b"", budget=0)):
        with pytest.raises(StoreError, match=r"store.db is closed"):
            call()


def test_numbers_and_texts_that_no_database_holds(path):
    huge = 2**63
    with Store.open(url_of(path)) as store:
        store.create_model("m", b"", budget=0)
        for call in (
            lambda: store.get_query("m", huge),
            lambda: store.read_events("m", after=huge),
            lambda: store.create_model("n", b"", budget=huge),
        ):
            with pytest.raises(InvalidInput, match="number: an integer does not fit into 64 bits"):
                call()
        with pytest.raises(NotFound, match=f"query m/{huge} does not exist"):
            words.answer(store, "m", huge, "token")
        with pytest.raises(NotFound, match=f"instance m/sequence {huge} does not exist"):
            store.history("m", [huge])
        with pytest.raises(InvalidInput, match="not valid Unicode text"):
            store.get_model("\ud800")
        assert [model.name for model in store.list_models()] == ["m"]


def test_errors_survive_the_way_between_processes():
    import pickle

    for error in (
        NotFound("model", "m"),
        AlreadyExists("instance", "a", "with another label"),
        FailedPrecondition("why"),
        UnknownSchema("store.db", "9", "1"),
        StoreBusy("locked"),
    ):
        again = pickle.loads(pickle.dumps(error))  # noqa: S301
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_a_path_with_odd_characters(tmp_path):
    folder = tmp_path / "a b%20ä#&'\"@:"
    folder.mkdir()
    with Store.open(file_url(folder / "store.db")) as store:
        store.create_model("m", b"", budget=0)
    assert (folder / "store.db").stat().st_size > 0


@pytest.mark.parametrize("there", [True, False], ids=["current", "new"])
def test_opening_a_store_does_not_load_alembic(path, there):
    if there:
        Store.open(url_of(path)).close()
    code = f"import sys; from quercus.storage import Store; Store.open({url_of(path)!r}).close(); "
    code += "sys.exit('alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_damaged_page_is_found_at_the_start(path):
    with Store.open(url_of(path)) as store:
        store.create_model("m", b"specification", budget=0)
        store.append_instances(
            "m", [f"i{n}" for n in range(2000)], np.random.default_rng(0).random((2000, 4)), [b"?"] * 2000
        )
    whole = path.read_bytes()
    Store.open(url_of(path), check_s=5.0).close()
    for start in range(20 * 4096, len(whole), 4096):
        path.write_bytes(whole[:start] + b"\x5a" * 4096 + whole[start + 4096 :])
        words = (
            rf"is damaged: see quercus check --store {path}, and quercus restore FILE --store {path} --force"
        )
        with pytest.raises(CorruptStore, match=words):
            Store.open(url_of(path), check_s=5.0)
    path.write_bytes(whole)
    with Store.open(url_of(path), check_s=5.0) as store:
        assert store.get_model("m").instance_count == 2000


def damage_page_of(path, content):
    """Overwrite the page of the file in which some bytes stand first."""
    data = bytearray(path.read_bytes())
    start = data.find(content) // 4096 * 4096
    assert start > 0
    data[start : start + 4096] = b"\x5a" * 4096
    path.write_bytes(data)


def test_the_look_at_the_start_ends_in_time(path, monkeypatch):
    with Store.open(url_of(path)) as store:
        store.create_model("m", b"specification", budget=0)
        store.append_instances("m", [f"i{n}" for n in range(5000)], np.zeros((5000, 4)), [b"?"] * 5000)
    damage_page_of(path, b"i2500")  # not where the newest row lies, which every start reads
    with pytest.raises(CorruptStore):
        Store.open(url_of(path), check_s=60.0)
    monkeypatch.setattr(dialect, "CHECK_STEPS", 1)
    Store.open(url_of(path), check_s=1e-9).close()  # not far enough to find it


def test_a_damaged_store_is_read_only(path):
    with Store.open(url_of(path)) as store:
        store.create_model("m", b"specification", budget=0)
        store.create_model("other", b"specification", budget=0)
        values = np.random.default_rng(0).random((2000, 4))
        store.append_instances("m", [f"i{n}" for n in range(2000)], values, [b"?"] * 2000)
    damage_page_of(path, values[1000].tobytes())  # of the log, in no index
    with Store.open(url_of(path)) as store:
        store.append_instances("other", ["a"], np.zeros((1, 2)), [b"?"])
        assert store.write_trouble == ""
        with pytest.raises(CorruptStore, match="is damaged: see quercus check"):
            store.read_events("m", limit=10_000)
        with pytest.raises(ReadOnlyStore, match=r"is damaged.*nothing is written to it any more"):
            store.append_instances("other", ["b"], np.zeros((1, 2)), [b"?"])
        assert "is damaged" in store.write_trouble
        assert store.get_model("other").instance_count == 1


def test_room_on_the_disk_comes_back(tmp_path):
    with (
        small_disk(tmp_path / "disk", megabytes=12) as folder,
        Store.open(url_of(folder / "store.db")) as store,
    ):
        store.create_model("m", b"specification", budget=0)
        store.check_room()
        filler = fill(folder)
        with pytest.raises(NoSpace, match=r"no space is left on the disk.*\(0 KiB are left\)"):
            store.check_room()
        assert "no space is left" in store.write_trouble
        with pytest.raises(NoSpace, match="no space is left on the disk"):
            store.append_instances("m", [f"i{n}" for n in range(2000)], np.zeros((2000, 9)), [b"?"] * 2000)
        assert store.get_model("m").instance_count == 0
        with pytest.raises(NoSpace):
            store.try_to_write()
        filler.unlink()
        store.try_to_write()
        assert store.write_trouble == ""
        store.append_instances("m", [f"i{n}" for n in range(2000)], np.zeros((2000, 9)), [b"?"] * 2000)


def test_a_model_larger_than_the_reserve_is_deleted_from_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_space, "RESERVE_BYTES", 6 * 2**20)

    def push(store, model, batches):
        for batch in range(batches):
            ids = [f"{model}{batch}-{n}" for n in range(1000)]
            store.append_instances(model, ids, np.zeros((1000, 20)), [b"?"] * 1000)

    with (
        small_disk(tmp_path / "disk", megabytes=32) as folder,
        Store.open(url_of(folder / "store.db")) as store,
    ):
        store.keep_reserve()
        reserve = folder / "store.db-reserve"
        assert reserve.stat().st_size == 6 * 2**20
        for model, batches in (("large", 60), ("kept", 2)):
            store.create_model(model, b"specification", budget=0)
            push(store, model, batches)
        fill(folder)
        with pytest.raises(NoSpace, match="no space is left on the disk"):
            push(store, "kept", 35)
        store.delete_model("large")
        while store.remove_deleted():
            pass
        store.try_to_write()
        assert store.write_trouble == ""
        store.create_model("large", b"specification", budget=0)
        push(store, "large", 30)
        assert store.get_model("kept").instance_count >= 2000
        assert verify_store(store.url) == []


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EACCES, ReadOnlyStore),
        (errno.EROFS, ReadOnlyStore),
        (errno.EDQUOT, NoSpace),
        (errno.EMFILE, StoreError),
    ],
)
def test_a_reserve_that_cannot_be_made_is_reported_and_ends_nothing(tmp_path, monkeypatch, number, kind):
    monkeypatch.setattr(disk_space, "RESERVE_BYTES", 2**20)

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    with Store.open(url_of(tmp_path / "store.db")) as store:
        store.keep_reserve()
        reserve = tmp_path / "store.db-reserve"
        reserve.unlink()
        with monkeypatch.context() as refusing:
            refusing.setattr(disk_space.os, "open", refuse)
            with pytest.raises(kind, match=rf"store.db-reserve cannot be made \({os.strerror(number)}\)"):
                store.check_room()
            assert "cannot be made" in store.write_trouble
        store.try_to_write()
        assert store.write_trouble == ""
        assert reserve.stat().st_size == 2**20


def test_a_reserve_that_a_killed_server_left_short_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_space, "RESERVE_BYTES", 2**20)
    reserve = tmp_path / "store.db-reserve"
    reserve.touch()
    with Store.open(url_of(tmp_path / "store.db")) as store:
        store.keep_reserve()
        assert reserve.stat().st_size == 2**20


def test_what_was_deleted_with_the_reserve_stays_so_though_the_reserve_cannot_be_made(tmp_path, monkeypatch):
    def refuse(*_):
        raise NoSpace("none")

    def write_when_full(database, change, *smaller):
        return real(database, refuse, *(smaller or (change,)))

    real = engine.Database.write_when_full
    with Store.open(url_of(tmp_path / "store.db")) as store:
        store.keep_reserve()
        store.create_model("m", b"specification", budget=0)
        while store.remove_deleted():
            pass
        assert not store.removes
        monkeypatch.setattr(engine.Database, "write_when_full", write_when_full)
        monkeypatch.setattr(disk_space.DiskSpace, "keep_reserve", refuse)
        store.delete_model("m")
        assert store.list_models() == []
        assert store.removes


def test_a_disk_too_full_to_delete_is_reported(tmp_path):
    with (
        small_disk(tmp_path / "disk", megabytes=12) as folder,
        Store.open(url_of(folder / "store.db")) as store,
    ):
        store.create_model("m", b"specification", budget=0)
        with closing(sqlite3.connect(folder / "store.db", isolation_level=None)) as reader:
            reader.execute("BEGIN")  # its place in the log keeps that from being emptied
            reader.execute("SELECT * FROM model").fetchall()
            store.append_instances("m", ["a"], np.zeros((1, 9)), [b"?"])
            filler = fill(folder)
            with pytest.raises(NoSpace, match=r"no space is left.*free some MiB on the disk"):
                store.delete_model("m")
            assert store.get_model("m").instance_count == 1
        filler.unlink()
        store.delete_model("m")
        assert store.list_models() == []


def test_a_file_system_that_is_read_only(tmp_path):
    with small_disk(tmp_path / "disk", megabytes=12) as folder:
        Store.open(url_of(folder / "store.db")).close()
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        with pytest.raises(ReadOnlyStore, match="its file system is mounted read-only"):
            Store.open(url_of(folder / "store.db"))


def test_a_new_store_is_for_its_user_alone_and_an_old_one_stays_as_it_is(path):
    with Store.open(file_url(path)) as store:
        store.create_model("m", b"specification", budget=1)
        for suffix in ("", "-wal", "-shm"):
            assert path.with_name(path.name + suffix).stat().st_mode & 0o777 == 0o600
    path.chmod(0o660)
    with Store.open(file_url(path)):
        assert path.stat().st_mode & 0o777 == 0o660


def open_files(path: Path) -> list[str]:
    """Return the files of a store that this process has open."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(os.readlink(each))
    return [name for name in found if name.startswith(str(path))]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="/proc/self/fd is of Linux")
def test_the_connection_that_writes_is_kept_until_a_write_fails_or_the_store_is_closed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "q.db"
    store = Store.open(f"sqlite:///{path}")
    database = store._database

    def driver() -> object:
        with database.write() as connection:
            return connection.connection.driver_connection

    def break_off() -> None:
        with database.write() as connection:
            connection.exec_driver_sql("DELETE FROM lease_clock")
            raise ValueError("broken")

    assert driver() is driver()
    kept = database._write_connection
    with pytest.raises(ValueError, match="broken"):
        break_off()
    assert kept is not None
    assert kept.closed
    with database.write() as connection:  # what was broken off is undone
        assert connection.exec_driver_sql("SELECT count(*) FROM lease_clock").scalar_one() == 1
    assert open_files(path)
    store.close()
    assert not open_files(path)


def test_a_commit_sets_nothing_that_the_one_before_has_set(path):
    """A pragma takes SQLite 40 µs. Who reads with the connection of a broken write waits for locks as readers do."""
    statements: list[str] = []
    with Store.open(url_of(path)) as store:
        store.create_model("m", b"specification", budget=0)
        database = store._database
        with database.write() as connection:
            connection.connection.driver_connection.set_trace_callback(statements.append)
        statements.clear()
        store.append_instances("m", ["a"], np.ones((1, 2)), [b"?"])
        assert statements[0] == "BEGIN IMMEDIATE"
        assert not [each for each in statements if "PRAGMA" in each]
        with suppress(ValueError), database.write() as connection:
            raise ValueError("broken")
        with database.read() as connection:
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() == 10_000


def test_a_store_that_is_closed_during_a_write_is_closed_after_it(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'q.db'}")
    with ThreadPoolExecutor(1) as closing_thread:
        with store._database.write() as connection:
            closed = closing_thread.submit(store.close)
            with pytest.raises(TimeoutError):
                closed.result(timeout=0.2)  # it waits for the write
            assert connection.exec_driver_sql("SELECT count(*) FROM lease_clock").scalar_one() == 1
        closed.result(timeout=30.0)
    assert connection.closed
    assert not open_files(tmp_path / "q.db")
