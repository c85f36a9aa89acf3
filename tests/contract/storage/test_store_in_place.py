"""A store whose files are taken away says so: what is acknowledged is found again."""

from pathlib import Path

import numpy as np
import pytest

from quercus.storage import Store, StoreError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def used(path):
    with Store.open(f"sqlite:///{path}") as store:
        store.create_model("m", b"", budget=0)
        yield store


def push(store, identifier):
    return store.append_instances("m", [identifier], np.zeros((1, 1)), [b"?"])


def files(folder: Path):
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_deleted_file_refuses_reads_and_writes(suffix, path, used):
    taken = path.with_name(path.name + suffix)
    kept = taken.rename(path.with_name("kept"))
    before = files(path.parent)
    for call in (
        lambda: push(used, "a"),
        lambda: used.get_model("m"),
        used.change_token,
        lambda: used.create_model("n", b"", budget=0),
    ):
        with pytest.raises(StoreError, match=rf"{taken} was deleted or replaced while it was in use"):
            call()
    assert files(path.parent) == before  # no new file in its place
    kept.rename(taken)
    assert push(used, "a").stored == 1


def test_another_store_in_its_place_is_not_written(path, used):
    with Store.open(f"sqlite:///{path.with_name('other.db')}") as other:
        other.create_model("m", b"", budget=0)
    path.with_name("other.db").rename(path)
    with pytest.raises(StoreError, match="deleted or replaced"):
        push(used, "a")


def test_a_file_taken_during_a_write_is_not_acknowledged(path, used):
    def taking() -> float:
        """The clock is read in the middle of the transaction."""
        if path.exists():
            path.rename(path.with_name("kept"))
        return 1.0

    with (
        Store.open(f"sqlite:///{path}", clock=taking) as store,
        pytest.raises(StoreError, match="deleted or replaced"),
    ):
        push(store, "a")


def test_other_processes_may_come_and_go(path, used):
    for i in range(3):
        with Store.open(f"sqlite:///{path}") as other:
            push(other, f"other-{i}")
        push(used, f"used-{i}")
    assert used.get_model("m").instance_count == 6


def test_a_program_that_makes_no_store_leaves_its_place_empty(path):
    with pytest.raises(StoreError, match="does not exist"):
        Store.open(f"sqlite:///{path}", create=False)
    assert not files(path.parent)
    path.touch()
    with pytest.raises(StoreError, match="has no tables"):
        Store.open(f"sqlite:///{path}", create=False)
