"""The files of an archive: who may read them, what is wrong with them, and disks without room for them.

SQLite only: the files do not depend on the database.
"""

import fcntl
import hashlib
import json
import os
import random
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from contract.storage.archives import CALLS, EVENTS, contents, folder_of, manifest_of, rebuilt
from pyarrow import parquet
from support.mounts import fill, small_disk

from quercus.belief.errors import InvalidInput
from quercus.storage import NotFound, Store, StoreBusy
from quercus.storage.archive import manifest as manifests
from quercus.storage.archive.writing import archive_model
from quercus.storage.errors import CorruptStore, StoreError
from quercus.storage.records import Push


@pytest.fixture
def backend() -> str:
    return "sqlite"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def reseal(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a manifest as somebody would who knows its digest."""
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    change(content)
    content["digest"] = manifests._manifest_digest(content)
    path.write_text(json.dumps(content))


def change_piece(folder: Path, number: int, **changes: object) -> None:
    reseal(folder, lambda content: content["pieces"][number].update(changes))


def accept(folder: Path, number: int, path: Path) -> None:
    """Let the manifest have size and SHA-256 of a changed file."""
    data = path.read_bytes()
    change_piece(folder, number, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def flip_in_place(path: Path, place: int) -> None:
    """Change a byte of a file that another has open."""
    with path.open("r+b", buffering=0) as stream:
        (byte,) = os.pread(stream.fileno(), 1, place)
        os.pwrite(stream.fileno(), bytes([byte ^ 1]), place)


def swap(folder: Path, pieces: list[Path]) -> None:
    shutil.copy(pieces[2], pieces[1])
    accept(folder, 1, pieces[1])


def move_and_link(folder: Path, pieces: list[Path]) -> None:
    outside = folder.parent.parent / "outside.parquet"
    pieces[1].rename(outside)
    pieces[1].symlink_to(outside)


def other_columns(folder: Path, pieces: list[Path]) -> None:
    parquet.write_table(pyarrow.table({"strange": [1]}), pieces[1])
    accept(folder, 1, pieces[1])


def pipe(_: Path, pieces: list[Path]) -> None:
    pieces[1].unlink()
    os.mkfifo(pieces[1])


def edit_manifest(folder: Path, old: str, new: str) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace(old, new))


Spoil = Callable[[Path, list[Path]], object]


def piece(**changes: object) -> Spoil:
    return lambda folder, _: change_piece(folder, 1, **changes)


def sealed(change: Callable[[dict[str, Any]], object]) -> Spoil:
    return lambda folder, _: reseal(folder, change)


SPOILT: dict[str, tuple[Spoil, type[Exception], str]] = {
    "a byte": (lambda _, pieces: flip(pieces[1], 200), CorruptStore, r"02\.parquet is damaged: its SHA-256"),
    "cut off": (lambda _, pieces: os.truncate(pieces[1], 300), CorruptStore, "has 300 bytes, must have"),
    "missing": (lambda _, pieces: pieces[1].unlink(), CorruptStore, r"02\.parquet is missing"),
    "a link": (move_and_link, StoreError, r"02\.parquet cannot be read"),
    "a pipe": (pipe, StoreError, r"02\.parquet is not a regular file"),
    "another range": (swap, InvalidInput, r"02\.parquet, row 1: is event 3, must be event 2"),
    "other columns": (
        other_columns,
        CorruptStore,
        "has the column 'strange' of type int64, a piece has sequence",
    ),
    "a gap": (
        sealed(lambda content: content["pieces"].pop(1)),
        InvalidInput,
        "has a gap: a piece begins at event 3, must begin at 2",
    ),
    "no end": (
        sealed(lambda content: content["pieces"].pop()),
        InvalidInput,
        "ends after event 6, its first line promises 10 events",
    ),
    "a byte of the manifest": (
        lambda folder, _: edit_manifest(folder, '"budget": 5', '"budget": 6'),
        CorruptStore,
        "manifest.json is damaged: its content does not match its digest",
    ),
    "half a manifest": (
        lambda folder, _: os.truncate(folder / "manifest.json", 400),
        CorruptStore,
        "is not JSON",
    ),
    "no format": (
        sealed(lambda content: content.update(format="x")),
        InvalidInput,
        "has no format 'quercus-ar",
    ),
    "a later version": (
        sealed(lambda content: content.update(version=2)),
        InvalidInput,
        "has version 2, this version of quercus reads 1",
    ),
    "another model": (
        sealed(lambda content: content.update(uid="x")),
        InvalidInput,
        "has uid 'x', must be the",
    ),
    "budget": (
        sealed(lambda content: content["head"].update(budget=-1)),
        InvalidInput,
        r"manifest.json: has budget -1, must lie in \[0, ",
    ),
    "a field": (piece(file="../../x"), InvalidInput, "must have first, last, bytes, sha256, digest"),
    "bytes": (piece(bytes=2**40), InvalidInput, "a piece with bytes 1099511627776, must lie in"),
    "last": (piece(last=1), InvalidInput, r"a piece with last 1, must lie in \[2, 1000001\]"),
    "true": (piece(first=True), InvalidInput, "a piece with first True, must be of type"),
    "sha256": (piece(sha256="x"), InvalidInput, "a piece with sha256 'x', must be 64 hexadecimal digits"),
    "digest": (
        piece(digest="0" * 64),
        CorruptStore,
        r"another digest than the manifest has for .*02\.parquet",
    ),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_wrong_file_is_named_and_no_model_is_made(varied: Store, target: Path, what: str) -> None:
    spoil, kind, said = SPOILT[what]
    archive_model(varied, "m", target, piece_events=1)
    folder = folder_of(target)
    spoil(folder, sorted(folder.glob("*.parquet")))
    with pytest.raises(kind, match=said):
        rebuilt(varied, target, only="m", new_name="copy")
    with pytest.raises(NotFound):
        varied.get_model("copy")


def test_mutated_pieces_are_errors_in_words(varied: Store, target: Path) -> None:
    """Also when size and SHA-256 are those of the mutated file."""
    archive_model(varied, "m", target)
    folder = folder_of(target)
    (path,) = folder.glob("*.parquet")
    whole, chance, refused = path.read_bytes(), np.random.default_rng(5), 0
    for turn in range(30):
        data = bytearray(whole)
        for place in chance.integers(0, len(data), 1 + turn % 4):
            data[place] = chance.integers(0, 256)
        path.write_bytes(data)
        accept(folder, 0, path)
        try:
            rebuilt(varied, target, only="m", new_name=f"m{turn}")
        except (CorruptStore, InvalidInput):
            refused += 1
        else:  # the mutated bytes have no meaning, such as those of a statistic
            assert contents(varied, f"m{turn}") == contents(varied, "m")
    assert refused > 10


def test_a_piece_of_an_earlier_version_may_lack_a_column(varied: Store, target: Path) -> None:
    archive_model(varied, "m", target, piece_events=4)
    folder = folder_of(target)
    path = sorted(folder.glob("*.parquet"))[0]  # its events have no comments
    parquet.write_table(parquet.read_table(path).drop_columns(["comment"]), path)
    accept(folder, 0, path)
    rebuilt(varied, target, only="m", new_name="copy")
    assert contents(varied, "copy") == contents(varied, "m")


def test_nothing_is_added_to_an_archive_whose_end_is_damaged(varied: Store, target: Path, helper) -> None:
    archive_model(varied, "m", target)
    helper.push("e")
    before = manifest_of(target)
    (path,) = folder_of(target).glob("*.parquet")
    os.truncate(path, 300)
    with pytest.raises(CorruptStore, match=r"01\.parquet cannot be read as Parquet"):
        archive_model(varied, "m", target)
    path.unlink()
    with pytest.raises(CorruptStore, match=r"01\.parquet is missing"):
        archive_model(varied, "m", target)
    assert manifest_of(target) == before


def test_only_the_owner_may_read_an_archive(varied: Store, target: Path) -> None:
    archive_model(varied, "m", target)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [target, *target.rglob("*")]}
    assert {mode for name, mode in modes.items() if "." in name} == {0o600}
    assert {mode for name, mode in modes.items() if "." not in name} == {0o700}


def test_nothing_is_written_through_a_link(varied: Store, target: Path, tmp_path: Path) -> None:
    folder, elsewhere = target / varied.get_model("m").uid, tmp_path / "elsewhere"
    elsewhere.mkdir()
    target.mkdir()
    folder.symlink_to(elsewhere)
    with pytest.raises(StoreError, match="cannot be opened as a folder"):
        archive_model(varied, "m", target)
    folder.unlink()
    folder.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    for name in ("0000000000000000001.parquet", "0000000000000000001.parquet.part"):
        (folder / name).symlink_to(victim)
    archive_model(varied, "m", target)
    assert victim.read_text() == "untouched"
    assert rebuilt(varied, target) == [("m", True)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"older_than_s": -1.0}, r"older-than: is -1 s, must lie in \[0, 1e\+10\]"),
        ({"older_than_s": float("nan")}, "older-than: is nan s"),
        ({"piece_events": 0}, r"piece_events: is 0, must lie in \[1, 1000000\]"),
    ],
)
def test_arguments_have_bounds(varied: Store, target: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        archive_model(varied, "m", target, **given)
    assert not target.exists()


def test_one_process_archives_a_model_at_a_time(varied: Store, target: Path) -> None:
    archive_model(varied, "m", target)
    descriptor = os.open(folder_of(target), os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(StoreBusy, match="another process archives"):
            archive_model(varied, "m", target)
    finally:
        os.close(descriptor)


def test_a_piece_that_is_read_back_differently_never_counts(varied: Store, target: Path) -> None:
    """Another process changes a byte of the file after it was written and before it is read back."""
    archive_model(varied, "m", target)
    picture = random.Random(1).randbytes(50_000)  # noqa: S311 - it stands in the file as it is
    varied.append_group([Push("m", ["e", "f"], np.zeros((2, 2)), [b"?", b"?"], displays=[picture, b""])])

    def spoil(done: int, total: int) -> None:
        (part,) = folder_of(target).glob("*.part")
        flip_in_place(part, part.read_bytes().index(picture[:100]) + 50)

    with pytest.raises(CorruptStore, match="2 events were written, but others were read back"):
        archive_model(varied, "m", target, progress=spoil)
    assert manifest_of(target).last_sequence == EVENTS
    assert len(list(folder_of(target).iterdir())) == 2
    assert archive_model(varied, "m", target).added == 2
    assert rebuilt(varied, target, only="m", new_name="copy") == [("copy", False)]
    assert contents(varied, "copy") == contents(varied, "m")


def test_without_pyarrow_the_error_says_what_to_install(
    varied: Store, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for work in (lambda: archive_model(varied, "m", target), lambda: rebuilt(varied, target)):
        with pytest.raises(StoreError, match=r"pip install 'quercus\[archive\]'"):
            work()
    assert not target.exists()


def test_a_killed_run_leaves_what_can_be_rebuilt_and_continued(
    varied: Store, store_url: str, target: Path, tmp_path: Path, start: Any
) -> None:
    """Killed while it writes the last piece; the next run makes what an uninterrupted one would."""
    worker = start("archive", store_url, "m", str(target))
    for number in range(1, CALLS + 1):
        done = EVENTS if number == CALLS else number
        assert json.loads(worker.stdout.readline()) == {"done": done, "total": EVENTS}
        if number < CALLS:
            worker.stdin.write("on\n")
            worker.stdin.flush()
    folder = folder_of(target)
    assert list(folder.glob("*.parquet.part"))
    worker.kill()
    worker.wait()
    assert len(manifest_of(target).pieces) == CALLS - 1
    rebuilt(varied, target, only="m", new_name="part")
    assert varied.get_model("part").sequence_committed == CALLS - 1
    archive_model(varied, "m", target, piece_events=1)
    uninterrupted = tmp_path / "uninterrupted"
    archive_model(varied, "m", uninterrupted, piece_events=1)
    assert {path.name for path in folder.iterdir()} == {
        path.name for path in folder_of(uninterrupted).iterdir()
    }
    assert manifest_of(target) == manifest_of(uninterrupted)


def test_a_full_disk_leaves_a_whole_archive(varied: Store, helper, tmp_path: Path) -> None:
    """However much is left on the disk: the run adds whole pieces or fails, and the next one continues."""
    with small_disk(tmp_path / "disk", megabytes=1) as disk:
        target = disk / "archive"
        archive_model(varied, "m", target, piece_events=4)
        failures = []
        for number in range(20):
            helper.push(f"e{number}")
        for left in range(0, 140_000, 20_000):
            filler, before = fill(disk, left), manifest_of(target)
            try:
                archive_model(varied, "m", target, piece_events=4)
            except StoreError as error:
                failures.append(str(error))
            pieces = manifest_of(target).pieces
            assert pieces[: len(before.pieces)] == before.pieces
            assert not list(target.rglob("*.part"))
            filler.unlink()
            assert rebuilt(varied, target, only="m", new_name=f"copy{left}")
        assert failures
        assert all("cannot be written: No space left on device" in each for each in failures)
        assert manifest_of(target).last_sequence == EVENTS + 20
    assert contents(varied, f"copy{left}") == contents(varied, "m")
