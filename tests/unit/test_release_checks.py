"""The trials of a release: all of them run, whatever fails; and a disk that loses what was not flushed."""

import random
import re
from pathlib import Path

import pytest
from support import release_checks
from support.power_cuts import CUT, FLUSH, SECTOR, WRITE, Disk, Record

MAKEFILE = (release_checks.ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize("trial", release_checks.TRIALS)
def test_a_trial_is_a_target_whose_size_is_n(trial: str) -> None:
    found = re.search(rf"^{trial}:.*\n((?:\t.*\n)*)", MAKEFILE, re.MULTILINE)
    assert found is not None
    assert ("$(or $(N)," in found[1]) == (release_checks.TRIALS[trial] is not None)


def test_one_that_fails_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(release_checks, "LOGS", tmp_path)
    monkeypatch.setattr(release_checks, "TRIALS", {"no-such-target": None, "help": None})
    assert release_checks.main([]) == 1
    *_, failed, passed, total = capsys.readouterr().out.splitlines()
    assert re.match(r"no-such-target +FAILED +\d+ s", failed)
    assert re.match(r"help +passed +\d+ s  make", passed)
    assert total.startswith("1 passed, 1 failed in ")
    assert "make test" in (tmp_path / "help.txt").read_text()
    assert release_checks.main(["soak"]) == 2


def test_a_disk_has_what_was_flushed_and_any_sectors_of_what_was_written_since() -> None:
    disk = Disk()
    disk.take(Record(WRITE, 0, 0, b"a" * SECTOR, 1000))
    disk.take(Record(WRITE, 0, SECTOR, b"b" * 2 * SECTOR, 2000))
    disk.take(Record(FLUSH, 0, 1000, b"", 2024))  # began before the second write was recorded
    chance = random.Random(0)  # noqa: S311
    left = {disk.after_a_cut(chance) for _ in range(200)}
    assert {each[:SECTOR] for each in left} == {b"a" * SECTOR}
    assert {each[SECTOR:].replace(b"b" * SECTOR, b"B").replace(bytes(SECTOR), b"0") for each in left} == {
        b"", b"B", b"0B", b"BB",
    }  # fmt: skip
    disk.take(Record(CUT, 0, SECTOR, b"", 3000))
    disk.take(Record(FLUSH, 0, 3000, b"", 3024))
    assert {disk.after_a_cut(chance) for _ in range(20)} == {b"a" * SECTOR}
