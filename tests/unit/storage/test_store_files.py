"""Bad files, locked files, and what the user reads then."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from quercus.belief.errors import InvalidInput
from quercus.storage import (
    AlreadyExists,
    CorruptStore,
    FailedPrecondition,
    NewerSchema,
    NotFound,
    ReadOnlyStore,
    Store,
    StoreBusy,
    StoreError,
    file_url,
)

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


def test_a_folder_is_no_store(tmp_path):
    with pytest.raises(CorruptStore, match="is a folder, not a store"):
        Store.open(url_of(tmp_path))


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


@pytest.mark.parametrize(
    "url",
    [
        "store.db",
        "sqlite://",
        "sqlite:///:memory:",
        "postgresql://localhost/x",
        "",
        "sqlite:///a.db?mode=ro&uri=true",
    ],
)
def test_a_url_that_names_no_file(url):
    with pytest.raises(InvalidInput, match="sqlite:///path") as caught:
        Store.open(url)
    assert caught.value.field == "store"


def test_a_store_of_a_newer_version_is_refused_and_untouched(path):
    Store.open(url_of(path)).close()
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE quercus_revision SET version_num = '0042'")
    raw.close()
    words = (
        "has schema revision 0042, and this version of quercus knows revisions up to 0003: upgrade quercus"
    )
    with pytest.raises(NewerSchema, match=words) as caught:
        Store.open(url_of(path))
    assert (caught.value.found, caught.value.known) == ("0042", "0003")
    with sqlite3.connect(path) as raw:
        assert raw.execute("SELECT version_num FROM quercus_revision").fetchall() == [("0042",)]
    raw.close()


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


def test_a_file_that_is_damaged_later(path):
    with Store.open(url_of(path)) as store:
        store.create_model("m", b"", budget=0)
        store.append_instances("m", [f"i{k}" for k in range(500)], np.ones((500, 9)), [b""] * 500)
    data = bytearray(path.read_bytes())
    data[8192:] = b"\xaa" * (len(data) - 8192)
    path.write_bytes(data)
    malformed = pytest.raises(CorruptStore, match=r"store.db is damaged \(database disk image is malformed\)")
    with malformed, Store.open(url_of(path)) as store:
        store.read_events("m")


def test_a_full_disk(path):
    with Store.open(url_of(path)) as store:
        store.create_model("m", b"", budget=0)
        with store._database.read() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        with store._database.write() as connection:
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="no space is left on the disk"):
            store.append_instances("m", ["a"], np.ones((1, 100_000)), [b""])
        assert store.read_events("m") == []


def test_a_closed_store_says_so(path):
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
            lambda: store.answer("m", huge, "token", b"", 1.0, False),
            lambda: store.read_events("m", after=huge),
            lambda: store.create_model("n", b"", budget=huge),
            lambda: store.history("m", [huge]),
        ):
            with pytest.raises(InvalidInput, match="number: an integer does not fit into 64 bits"):
                call()
        with pytest.raises(InvalidInput, match="not valid Unicode text"):
            store.get_model("\ud800")
        assert [model.name for model in store.list_models()] == ["m"]


def test_errors_survive_the_way_between_processes():
    import pickle

    for error in (
        NotFound("model", "m"),
        AlreadyExists("instance", "a", "with another label"),
        FailedPrecondition("why"),
        NewerSchema("store.db", "9", "1"),
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


def test_opening_a_current_store_does_not_load_alembic(path):
    Store.open(url_of(path)).close()
    code = f"import sys; from quercus.storage import Store; Store.open({url_of(path)!r}).close(); "
    code += "sys.exit('alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
