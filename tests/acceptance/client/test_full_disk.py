"""Commands whose file does not fit on the disk: they name it and the reason, and leave nothing half-written."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import quercus
from support.mounts import fill, small_disk

from quercus.client import Client, Numeric, Specification, Statement

pytestmark = pytest.mark.slow
ROWS = 6_000
LEFT_BYTES = 24_576


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with small_disk(tmp_path_factory.mktemp("small") / "disk", megabytes=8) as mounted:
        yield mounted


@pytest.fixture(scope="module")
def model(server: str) -> str:
    name = "full-disk"
    with Client(server) as client:
        client.create_model(name, Specification([Numeric("x")], ["o", "s"]))
        client.push(name, [[float(k % 4)] for k in range(ROWS)], ids=[str(k) for k in range(ROWS)])
        client.state(name, [Statement(str(k), "os"[k % 4 > 1], "ann") for k in range(1_000)])
        client.wait_grown(name, timeout_s=60)
    return name


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("rows") / "rows.csv"
    file.write_text("x\n" + "".join(f"{k % 4}\n" for k in range(ROWS)))
    return file


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (("answers", "MODEL", "--output", "DISK/answers.csv"), LEFT_BYTES),
        (("answers", "MODEL", "--output", "DISK/answers.parquet"), 0),
        (("classify", "MODEL", "ROWS", "-o", "DISK/classes.csv"), LEFT_BYTES),
        (("classify", "MODEL", "ROWS", "-o", "DISK/classes.csv"), 0),
        (("tree", "MODEL", "--svg", "DISK/tree.svg"), 0),
        (("tree", "MODEL", "--dot", "DISK/tree.dot"), 0),
    ],
    ids=lambda given: given[-1].removeprefix("DISK/") if isinstance(given, tuple) else given,
)
def test_a_full_disk_is_named_and_nothing_stays(
    server: str, model: str, rows: Path, disk: Path, arguments: tuple[str, ...], left: int
) -> None:
    places = {"MODEL": model, "ROWS": str(rows)}
    command = [places.get(each, each.replace("DISK", str(disk))) for each in arguments]
    target = Path(command[-1])
    filler = fill(disk, left)
    try:
        failed = quercus(*command, server=server)
    finally:
        filler.unlink()
    assert failed.returncode == 1
    assert failed.stderr.replace("\n", " ").endswith(
        f"error: cannot write {target}: No space left on device "
    )
    assert os.listdir(disk) == []
    assert quercus(*command, server=server).returncode == 0
    assert os.listdir(disk) == [target.name]
    target.unlink()


def test_refused_rows_that_find_no_room_end_a_push_that_can_be_repeated(
    server: str, model: str, disk: Path, tmp_path: Path
) -> None:
    file, target = tmp_path / "odd.csv", disk / "rejected.csv"
    file.write_text("x\n" + "".join(f"{k % 4}\n" if k % 2 else "none of these\n" for k in range(ROWS)))
    command = ("push", model, str(file), "--id-prefix", "odd-", "--rejected", str(target))
    filler = fill(disk, LEFT_BYTES)
    try:
        failed = quercus(*command, server=server)
    finally:
        filler.unlink()
    assert failed.returncode == 1
    assert f"{target}: cannot be written: No space left on device" in failed.stderr.replace("\n", " ")
    again = quercus(*command, server=server)
    assert f"{ROWS // 2:,} rows were refused: see {target} for" in again.stderr.replace("\n", " ")
    assert len(target.read_text().splitlines()) == 1 + ROWS // 2
    target.unlink()
