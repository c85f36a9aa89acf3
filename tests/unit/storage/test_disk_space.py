"""A disk that is full: what can be done nevertheless, and what comes back once there is room."""

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from support.mounts import fill, small_disk

from quercus.storage import NoSpace, Store, file_url
from quercus.storage.admin.verify import verify_store
from quercus.storage.sqlite import disk_space

MEGABYTE = 2**20
ROWS = 200


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", megabytes=48) as folder:
        yield folder


def left(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize


def push(store: Store, model: str, number: int) -> None:
    ids = [f"{number}-{each}-{'long' * 30}" for each in range(ROWS)]
    store.append_instances(model, ids, np.zeros((ROWS, 2)), [b"?"] * ROWS)


def look(store: Store) -> bool:
    """Look as a server does every second; whether the store takes writes."""
    with suppress(NoSpace):
        store.try_to_write() if store.write_trouble else store.check_room()
    return not store.write_trouble


def push_until_full(store: Store, model: str) -> int:
    """Push until a look says that the disk is full; how many pushes were taken."""
    taken = 0
    for number in range(2000):
        try:
            push(store, model, number)
            taken += 1
        except NoSpace:
            if not look(store):
                return taken
    raise AssertionError("the disk was never full")


def remove_all(store: Store) -> None:
    while store.remove_deleted():
        pass


@pytest.mark.slow
def test_a_disk_that_is_full_again_and_again(disk):
    """The reserve for deletions is kept each time, and space that a deletion freed is written to."""
    with Store.open(file_url(disk / "store.db")) as store:
        store.keep_reserve()
        fill(disk, left_bytes=14 * MEGABYTE)
        taken = []
        for _ in range(6):
            store.create_model("m", b"specification", budget=0)
            taken.append(push_until_full(store, "m"))
            store.delete_model("m")
            remove_all(store)
            assert look(store)
            assert (disk / "store.db-reserve").stat().st_size == disk_space.RESERVE_BYTES
        assert min(taken) >= 0.9 * taken[0] > 20
    assert verify_store(file_url(disk / "store.db")) == []


@pytest.mark.parametrize("boot", ["the same", "another"])
def test_a_store_is_opened_on_a_full_disk_and_a_model_deleted(disk, boot):
    with Store.open(file_url(disk / "store.db"), boot="the same") as store:
        store.keep_reserve()
        for name in ("m", "kept"):
            store.create_model(name, b"specification", budget=0)
        for number in range(100):
            push(store, "m", number)
    fill(disk)
    with Store.open(file_url(disk / "store.db"), boot=boot) as store:
        store.keep_reserve()
        assert not look(store)
        assert store.get_model("m").instance_count == 100 * ROWS
        store.delete_model("m")
        remove_all(store)
        assert look(store)
        for number in range(50):
            push(store, "kept", number)
    assert verify_store(file_url(disk / "store.db")) == []


def test_a_disk_that_the_log_of_a_long_read_filled_is_well_when_that_ends(disk):
    with (
        Store.open(file_url(disk / "store.db")) as store,
        closing(sqlite3.connect(disk / "store.db", isolation_level=None)) as reader,
    ):
        store.keep_reserve()
        store.create_model("m", b"specification", budget=0)
        reader.execute("BEGIN")  # a backup, say: its place in the log keeps that from being emptied
        reader.execute("SELECT * FROM model").fetchall()
        fill(disk, left_bytes=12 * MEGABYTE)
        taken = push_until_full(store, "m")
        fill(disk)
        assert (disk / "store.db-wal").stat().st_size > disk_space.LOG_BYTES
        reader.execute("COMMIT")
        assert look(store)
        push(store, "m", taken)
        assert (disk / "store.db-reserve").stat().st_size > disk_space.RESERVE_BYTES / 2


def test_a_disk_that_is_made_larger_is_well(disk):
    with Store.open(file_url(disk / "store.db")) as store:
        store.keep_reserve()
        store.create_model("m", b"specification", budget=0)
        fill(disk, left_bytes=10 * MEGABYTE)
        taken = push_until_full(store, "m")
        subprocess.run(["mount", "-o", "remount,size=128m", str(disk)], check=True)
        assert look(store)
        for number in range(taken, taken + 100):  # more than there was room for
            push(store, "m", number)
        assert store.get_model("m").instance_count == (taken + 100) * ROWS


def test_a_token_is_revoked_on_a_full_disk(disk):
    with Store.open(file_url(disk / "store.db")) as store:
        store.keep_reserve()
        store.access.create_token("t", "somebody", b"digest", roles=frozenset({"labeller"}))
        fill(disk)
        with pytest.raises(NoSpace):
            store.create_model("m", b"specification" * 100_000, budget=0)
        store.access.revoke_token("t")
        (token,) = store.access.tokens()
        assert token.revoked_at is not None


@pytest.mark.slow
def test_little_that_is_kept_deletes_a_few_rows_at_a_time(disk, monkeypatch):
    """Rows whose ids lie anywhere change a page of each index; where 256 do not fit into what is kept, fewer do."""
    monkeypatch.setattr(disk_space, "RESERVE_BYTES", 400_000)
    random = np.random.default_rng(1)
    with Store.open(file_url(disk / "store.db")) as store:
        store.keep_reserve()
        store.create_model("m", b"specification", budget=0)
        for _ in range(10):
            ids = [random.bytes(50).hex() for _ in range(1000)]
            store.append_instances("m", ids, np.zeros((1000, 2)), [b"?"] * 1000)
        with closing(sqlite3.connect(disk / "store.db")) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        fill(disk)
        store.delete_model("m")
        remove_all(store)
        assert store.list_models() == []
        assert not store.removes
