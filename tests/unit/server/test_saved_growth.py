"""Growth goes on from a file beside the store: the same tree, and no file that does not fit is used."""

import json
import logging
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import update
from support import words
from support.published import published_message
from support.waiting import until

from quercus.belief.codec import encode, encode_sets
from quercus.belief.label import ClassSet
from quercus.client.plugins import to_proto
from quercus.server.growth import saved_growth
from quercus.server.growth.engines import TreeEngine, tree_engine
from quercus.server.growth.folding import LogFolder
from quercus.server.growth.grower import Grower
from quercus.server.growth.saved_columns import UnreadableFileError, read_columns, write_columns
from quercus.server.wire.models import complete_specification, specification_of
from quercus.storage import Push, Store
from quercus.storage.schema import log
from quercus.trees.tree.encoding import Parts
from quercus.v1 import model_pb2

FIELDS = ("codes", "ids", "askable")


def specification(**fields: object) -> bytes:
    message = published_message(
        attributes=[
            model_pb2.Attribute(name="X", nominal=model_pb2.NominalAttribute(values=["a", "b", "c"])),
            model_pb2.Attribute(name="Y", numeric=model_pb2.NumericAttribute(bins=4)),
        ],
        classes=["p", "q"],
        **{"budget": 40, "warmup_rows": 12, "alpha": 0.9, "min_instances": 2} | fields,  # type: ignore[arg-type]
    )
    return complete_specification(message).SerializeToString(deterministic=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as opened:
        opened.create_model("m", specification(), budget=40)
        yield opened


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything folded is worth a file."""
    monkeypatch.setattr(saved_growth, "LEAST_S", 0.0)
    monkeypatch.setattr(saved_growth, "SHARE", 0)


def push_uncertain(store: Store, count: int) -> None:
    """Rows of which a third have an uncertain name, or an uncertain number."""
    numbers = np.arange(count) + store.get_model("m").instance_count
    values = np.column_stack([numbers % 3, np.sin(numbers) * 10])
    parts: Parts = {(row, 0): ((0.0, 0.0), (2.0, 2.0)) for row in range(0, count, 3)}
    parts |= {(row, 1): ((-2.0, 5.0),) for row in range(1, count, 6)}
    for cell in parts:
        values[cell] = np.nan
    masks = (1 << (numbers % 3 == 1).astype(np.uint64)).astype(np.uint64)
    store.append_group([Push("m", [f"i{n}" for n in numbers], values, encode_sets(masks), parts=parts)])


def push(store: Store, count: int) -> None:
    numbers = np.arange(count) + store.get_model("m").instance_count
    values = np.column_stack([numbers % 3, np.sin(numbers) * 10])
    masks = np.where(numbers % 2, 3, 1 << (numbers % 3 == 1).astype(np.uint64)).astype(np.uint64)
    store.append_instances("m", [f"i{n}" for n in numbers], values, encode_sets(masks))


def answer(store: Store, count: int) -> None:
    for query in store.lease("m", "ann", count, 60.0).queries:
        words.answer(store, "m", query.number, query.token, encode(ClassSet(1 + query.number % 2)), 0.75)


def grow(store: Store) -> Grower:
    grower = Grower(store)
    while grower.run_round():
        pass
    return grower


def file_of(store: Store) -> Path:
    folder = store.beside(saved_growth.SUFFIX)
    assert folder is not None
    return folder / f"{store.get_model('m').uid}{saved_growth.ENDING}"


def spoken(store: Store) -> None:
    """A log with rows, answers, a correction, one taken back, and another specification."""
    push(store, 30)
    grow(store)
    answer(store, 3)
    grow(store)
    words.amend(store, "m", 1, "ann", encode(ClassSet(2)), 0.5)
    words.amend(store, "m", 2, "ann", None)
    store.respecify("m", specification(alpha=0.5), budget=40)
    push(store, 5)
    grow(store)


def test_a_restart_reads_the_rest_of_the_log_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    spoken(store)
    end = store.get_model("m").sequence_committed
    push(store, 4)
    read: list[int] = []
    whole = Store.read_log

    def read_log(self: Store, model: str, after: int = 0, **bounds: int) -> object:
        read.append(after)
        return whole(self, model, after, **bounds)

    monkeypatch.setattr(Store, "read_log", read_log)
    grow(store)
    assert read == [end]
    saved, version = store.snapshot("m").data, store.get_model("m").tree_version
    file_of(store).unlink()
    push(store, 1)
    read.clear()
    assert read == []
    grow(store)
    assert read == [0]
    assert store.get_model("m").tree_version == version + 1
    assert saved != store.snapshot("m").data  # there is a row more


def test_growth_with_uncertain_values_is_saved_and_goes_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    push_uncertain(store, 8)
    grow(store)
    push_uncertain(store, 30)
    grow(store)
    end, read, whole = store.get_model("m").sequence_committed, list[int](), Store.read_log

    def read_log(self: Store, model: str, after: int = 0, **bounds: int) -> object:
        read.append(after)
        return whole(self, model, after, **bounds)

    monkeypatch.setattr(Store, "read_log", read_log)
    push_uncertain(store, 9)
    grow(store)
    assert read == [end]
    engine = tree_engine(specification_of(specification()))
    folded(store, engine, 0, store.get_model("m").sequence_committed)
    again = tree_engine(specification_of(specification()))
    saved_growth.SavedGrowth(store, store.get_model("m")).restore_engine(again)
    assert again.grown_trees({}).encode() == engine.grown_trees({}).encode()


def folded(store: Store, engine: TreeEngine, after: int, until: int) -> None:
    segment = store.read_log("m", after, rows=until - after)
    engine.fold_events(segment.parts)
    assert segment.last == until


@pytest.mark.parametrize("learner", ["abc45", "e2m"])
def test_the_tree_is_the_same_wherever_the_log_was_cut(store: Store, learner: str) -> None:
    spoken(store)
    push(store, 20)
    stored = specification()
    if learner == "e2m":
        message = model_pb2.Specification.FromString(stored)
        message.learner.name = "e2m"
        stored = message.SerializeToString()
    given_, end = specification_of(stored), store.get_model("m").sequence_committed
    whole = tree_engine(given_)
    folded(store, whole, 0, end)
    for cut in range(1, end):
        first, second = tree_engine(given_), tree_engine(given_)
        folded(store, first, 0, cut)
        saved = first.saved_state()
        assert saved is not None
        write_columns(file_of(store), {"engine": saved.head}, saved.columns) if cut % 7 == 0 else None
        second.restore_state(type(saved)(json.loads(json.dumps(saved.head)), dict(saved.columns)))
        folded(store, second, cut, end)
        assert second.grown_trees({}).encode() == whole.grown_trees({}).encode(), cut
        assert second.choose_queries(10) == whole.choose_queries(10), cut


def test_what_does_not_fit_is_not_used(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spoken(store)
    path, record = file_of(store), store.get_model("m")
    good = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600

    def position() -> int:
        return LogFolder(store, record, 2, 0.25, 0.5)._folded

    assert position() == record.sequence_committed
    for damaged in (b"", good[:20], good[:-1], b"x" + good[1:], good[:-3] + b"\x07" + good[-2:]):
        path.write_bytes(damaged)
        caplog.clear()
        assert position() == 0
        assert "saved growth is not used" in caplog.text
    path.unlink()
    caplog.clear()
    assert position() == 0
    assert caplog.text == ""  # that there is none is nothing to tell
    head, columns = read_after(path, good)
    for change in (
        {"sequence": head["sequence"] - 1},
        {"sequence": head["sequence"] + 9},
        {"fits": {}},
        {"heard": None},
    ):
        write_columns(path, head | change, columns)
        assert position() == 0, change
    for name in (name for name, column in columns.items() if column.size):
        write_columns(path, head, {**columns, name: columns[name][1:]})
        assert position() == 0, name
    path.write_bytes(good)
    monkeypatch.setattr(saved_growth, "__version__", "another")
    assert position() == 0


def read_after(path: Path, content: bytes) -> tuple[dict, dict]:  # type: ignore[type-arg]
    path.write_bytes(content)
    return read_columns(path)


def test_columns_that_were_read_may_be_written_to_and_the_file_stays(tmp_path: Path) -> None:
    """The kernels write into them, and the file is the last that was saved."""
    write_columns(path := tmp_path / "a.growth", {}, {"rows": np.arange(3)})
    _, columns = read_columns(path)
    columns["rows"][0] = 7
    assert columns["rows"].tolist() == [7, 1, 2]
    assert read_columns(path)[1]["rows"].tolist() == [0, 1, 2]


def test_a_growing_column_has_room_behind_its_rows(tmp_path: Path) -> None:
    values, names = np.arange(48.0).reshape(16, 3), np.arange(5, dtype=np.int16)
    write_columns(path := tmp_path / "a.growth", {}, {"values": values, "names": names}, {"values"})
    _, columns = read_columns(path)
    assert columns["values"].shape == (18, 3)
    np.testing.assert_array_equal(columns["values"][:16], values)
    np.testing.assert_array_equal(columns["names"], names)
    assert all(column.flags.writeable and column.flags.aligned for column in columns.values())


@pytest.mark.parametrize("growing", [(), ("rows",)])
def test_every_damaged_byte_is_found_out(tmp_path: Path, growing: tuple[str, ...]) -> None:
    """Those of the room behind a growing column do not count."""
    columns = {"numbers": np.arange(9, dtype=np.int32), "rows": np.arange(16.0).reshape(8, 2)}
    write_columns(path := tmp_path / "a.growth", {"sequence": 7}, columns, growing)
    good, (head, before) = path.read_bytes(), read_columns(path)
    for size in range(len(good)):
        path.write_bytes(good[:size])
        with pytest.raises(UnreadableFileError):
            read_columns(path)
    unread = 0
    for at in range(len(good)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x20]) + good[at + 1 :])
        try:
            found, after = read_columns(path)
        except UnreadableFileError:
            continue
        unread += 1
        assert found == head
        assert all(np.array_equal(after[name][: len(column)], column) for name, column in columns.items())
        assert {name: column.shape for name, column in after.items()} == {
            name: column.shape for name, column in before.items()
        }
    assert unread == 16 * len(growing)  # the room of one row in eight


def test_another_log_with_the_same_name_and_length_is_found_out(store: Store) -> None:
    """As after a backup was restored, and others wrote since."""
    spoken(store)
    folder = LogFolder(store, store.get_model("m"), 2, 0.25, 0.5)
    assert folder._folded > 0
    with store._database.write() as connection:
        connection.execute(update(log).values(created_at=log.c.created_at + 1))
    assert LogFolder(store, store.get_model("m"), 2, 0.25, 0.5)._folded == 0


def test_files_of_models_that_are_gone_are_removed(store: Store) -> None:
    push(store, 20)
    grower = grow(store)
    path = file_of(store)
    assert path.exists()
    stray = path.with_name("stray.growth")
    stray.touch()
    saved_growth.remove_orphaned_files(store)
    assert path.exists()
    assert not stray.exists()
    store.delete_model("m")
    while grower.run_round():
        pass
    assert not path.exists()


def test_what_cannot_be_removed_does_not_end_the_grower(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody made a folder there: whoever starts says so, and grows."""
    push(store, 20)
    grower = grow(store)
    path = file_of(store)
    (path.parent / "lost+found").mkdir()
    stray = path.with_name("stray.growth")
    stray.touch()
    saved_growth.remove_orphaned_files(store)
    assert not stray.exists()
    assert f"{path.parent / 'lost+found'} cannot be removed" in caplog.text
    path.unlink()
    path.mkdir()
    store.delete_model("m")
    while grower.run_round():
        pass
    assert f"{path} cannot be removed" in caplog.text


def test_the_file_of_a_model_that_goes_while_a_step_waits_is_removed(store: Store) -> None:
    """The round finds that the model is gone before it reads that it has changed."""
    push(store, 20)
    grower = grow(store)
    path, key = file_of(store), store.get_model("m").key
    assert path.exists()
    grower._follow_changes()
    grower._busy.add(key)
    store.delete_model("m")
    grower._follow_changes = lambda: None  # type: ignore[method-assign]  # it was read a moment ago
    grower.run_round()
    assert not path.exists()


def test_a_full_disk_is_reported_and_growth_continues(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Store, "free_bytes", lambda _: 10)
    caplog.set_level(logging.WARNING)
    push(store, 20)
    grow(store)
    assert "only 10 are free on the disk" in caplog.text
    assert not file_of(store).exists()
    assert store.get_model("m").sequence_grown == 20


WRITER = """
import sys, numpy as np
from pathlib import Path
from quercus.server.growth.saved_columns import write_columns
path, number = Path(sys.argv[1]), 0
while True:
    number += 1
    write_columns(path, {"number": number}, {"rows": np.full(200_000, number, np.int64)})
    if number == 1:
        print("begun", flush=True)
"""


def test_a_writer_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    for turn in range(5):
        path = tmp_path / f"{turn}.growth"
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"begun\n"
        for _ in range(turn * 3):  # somewhere else in the writing each time
            read_columns(path)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        head, columns = read_columns(path)
        assert (columns["rows"] == head["number"]).all()


GROWER = """
import sys
from quercus.server.growth import saved_growth
from quercus.server.growth.grower import Grower
from quercus.storage import Store
saved_growth.LEAST_S, saved_growth.SHARE = 0.0, 0
store = Store.open(sys.argv[1])
grower = Grower(store, interval_s=0.0)
while True:
    grower.run_round()
"""


@pytest.mark.slow
def test_a_forest_whose_grower_was_killed_goes_on_as_that_of_the_whole_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    message = model_pb2.Specification.FromString(specification(budget=40))
    message.ClearField("strategy")
    message.learner.CopyFrom(to_proto({"name": "active-forest", "trees": 7}))
    stored = complete_specification(message).SerializeToString(deterministic=True)
    url = f"sqlite:///{tmp_path / 'forest.db'}"
    with Store.open(url) as store:
        store.create_model("m", stored, budget=40)
        for turn in range(2):
            grower = subprocess.Popen([sys.executable, "-c", GROWER, url])
            try:
                for _ in range(3 + 2 * turn):  # somewhere else in growing and saving each time
                    push(store, 60)
                    until(lambda: store.get_model("m").sequence_grown >= store.get_model("m").instance_count)
                    answer(store, 2)
            finally:
                grower.kill()
                grower.wait()
            assert file_of(store).exists()
        push(store, 7)
        caplog.set_level(logging.INFO)
        grow(store)
        assert "growth goes on from event" in caplog.text
        whole = tree_engine(specification_of(stored))
        folded(store, whole, 0, store.get_model("m").sequence_committed)
        assert store.snapshot("m").data == whole.grown_trees({}).encode()
