"""The demo, end to end: what it prints and leaves behind, and that nothing is left running, however it ends."""

import csv
import os
import re
import select
import signal
import struct
import subprocess
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from integration.client.serving import QUERCUS

END_S = 100.0
SVG = "{http://www.w3.org/2000/svg}"
BUDGET, HELD_OUT = 31, 54

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are found in /proc"),
]


def processes(folder: Path) -> list[int]:
    """Those that have a path in the demo's folder among their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdecimal() else []
        except (FileNotFoundError, ProcessLookupError):
            continue
        if any(str(folder).encode() in argument for argument in arguments):
            found.append(int(entry.name))
    return found


def await_end(pids: list[int]) -> None:
    """Wait until processes that are not our children have ended."""
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            assert select.select([handle], [], [], END_S)[0], f"process {pid} is still there"
        finally:
            os.close(handle)


class Demo:
    """A demo under way."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.printed: list[str] = []
        self.process = subprocess.Popen(
            [QUERCUS, "demo", "--output", str(folder), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"NO_COLOR": "1", "PYTHONUNBUFFERED": "1"},
        )

    def read_until(self, words: str) -> str:
        """Read lines up to one that holds some words."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.printed.append(line)
            if words in line:
                return line
        raise AssertionError(
            f"{words!r} was not printed: {''.join(self.printed)}{self.process.communicate()[1]}"
        )

    def end(self) -> tuple[int, str]:
        """Exit code, and what was said on standard error."""
        rest, errors = self.process.communicate(timeout=END_S)
        self.printed.append(rest)
        return self.process.returncode, errors


@contextmanager
def demo(folder: Path, *options: str) -> Iterator[Demo]:
    running = Demo(folder, *options)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.communicate()
        await_end(processes(folder))


@dataclass(frozen=True)
class Finished:
    code: int
    printed: str
    errors: str
    folder: Path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("demo") / "out put"
    with demo(folder, "--quick", "--seed", "2") as running:
        code, errors = running.end()
        assert not processes(folder)
    return Finished(code, "".join(running.printed), errors, folder)


def curve(folder: Path) -> list[dict[str, float]]:
    with (folder / "learning_curve.csv").open() as stream:
        return [{name: float(cell) for name, cell in row.items()} for row in csv.DictReader(stream)]


@pytest.mark.timeout(150)
def test_ends_well(finished: Finished) -> None:
    assert (finished.code, finished.errors) == (0, "")
    assert "\x1b" not in finished.printed  # no terminal, so plain lines
    assert "124 rows pushed, 31 answers" in finished.printed
    assert str(finished.folder) in finished.printed


def test_learns(finished: Finished) -> None:
    rows = curve(finished.folder)
    assert rows[-1]["answers"] == BUDGET
    assert [row["answers"] for row in rows] == sorted({row["answers"] for row in rows})
    assert rows[-1]["asked"] > 0.85 > 22 / HELD_OUT  # the most frequent class alone gives the latter
    for row in rows:
        assert abs(row["asked"] * HELD_OUT - round(row["asked"] * HELD_OUT)) < 1e-6
        assert row["random_lowest"] <= row["random_mean"] <= row["random_highest"]


def test_says_honestly_how_it_compares(finished: Finished) -> None:
    last = curve(finished.folder)[-1]
    said = re.search(
        r"After 31 answers the queries gave ([\d.]+); 31 labels at random give ([\d.]+)", finished.printed
    )
    assert said is not None
    assert float(said[1]) == pytest.approx(last["asked"], abs=6e-4)
    assert float(said[2]) == pytest.approx(last["random_mean"], abs=6e-4)
    difference = last["asked"] - last["random_mean"]
    if not last["random_lowest"] <= last["asked"] <= last["random_highest"]:
        words = f"{'better' if difference > 0 else 'worse'} than every random order"
    elif abs(difference) <= 0.02:
        words = "about the same as random"
    else:
        words = f"{'better' if difference > 0 else 'worse'} than random on average"
    assert words in finished.printed
    assert "On 3 other splits the queries gave" in finished.printed
    assert re.search(r"31 answers to queries gave [\d.]+; random labels need ", finished.printed)


def test_the_forest_follows_a_stream_that_changes(finished: Finished) -> None:
    right = {
        name: float(re.search(rf"  {name} +([\d.]+) % right of the last 1,000", finished.printed)[1])  # type: ignore[index]
        for name in ("active-forest", "abc45")
    }
    assert right["active-forest"] > right["abc45"] + 20


def test_leaves_a_tree(finished: Finished) -> None:
    text = (finished.folder / "tree.txt").read_text()
    assert text.strip() in finished.printed
    assert "n=124" in text.splitlines()[0]
    root = ET.fromstring((finished.folder / "tree.svg").read_text())  # noqa: S314 - we wrote it
    assert root.tag == f"{SVG}svg"
    words = " ".join("".join(each.itertext()) for each in root.iter(f"{SVG}text"))
    assert all(name in words for name in ("Barolo", "Grignolino", "Barbera"))


def test_leaves_a_picture(finished: Finished) -> None:
    """Every chunk of the PNG is whole, and it is large enough to read."""
    data = (finished.folder / "learning_curve.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length)[0] == zlib.crc32(kind + content)
        chunks[kind] = chunks.get(kind, b"") + content
        at += 12 + length
    width, height = struct.unpack_from(">II", chunks[b"IHDR"])
    assert (width, height) == (1200, 750)
    assert len(zlib.decompress(chunks[b"IDAT"])) > width * height
    assert b"IEND" in chunks


def test_leaves_a_store_that_can_be_served(finished: Finished) -> None:
    """The command that it names at the end works."""
    assert f"serve --store '{finished.folder / 'quercus.db'}'" in finished.printed
    command = [QUERCUS, "serve", "--store", str(finished.folder / "quercus.db"), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().removeprefix("listening on ").strip()
        command = [QUERCUS, "tree", "wine", "--server", address]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
        assert (finished.folder / "tree.txt").read_text().splitlines()[0] in shown
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)
    assert server.returncode == 0


@pytest.mark.timeout(150)
@pytest.mark.parametrize(
    ("number", "code", "words", "least"),
    [
        # itself, server, grower, two labellers, classifier
        pytest.param("SIGINT", 130, "ann at bottle-", 6, marks=pytest.mark.release),
        ("SIGTERM", 143, "server listens on", 3),
        pytest.param("SIGKILL", -9, "ann at bottle-", 6, marks=pytest.mark.release),
    ],
)
def test_nothing_is_left_when_it_is_stopped(
    number: str, code: int, words: str, least: int, tmp_path: Path
) -> None:
    with demo(tmp_path, "--labeller-delay-s", "60") as running:
        running.read_until(words)
        members = processes(tmp_path)
        assert len(members) >= least
        running.process.send_signal(getattr(signal, number))
        assert running.end()[0] == code
        if number == "SIGKILL":
            await_end(members)
        assert not processes(tmp_path)


def victim(folder: Path, words: bytes) -> int:
    (pid,) = [pid for pid in processes(folder) if words in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return pid


@pytest.mark.timeout(150)
@pytest.mark.parametrize(
    ("words", "name", "at"),
    [
        pytest.param(b"--labeller\0bob", "bob", "ann at bottle-", marks=pytest.mark.release),
        (b"parts\0serve", "server", "server listens on"),
    ],
)
def test_a_process_that_dies_is_named(words: bytes, name: str, at: str, tmp_path: Path) -> None:
    with demo(tmp_path, "--labeller-delay-s", "60") as running:
        running.read_until(at)
        members = processes(tmp_path)
        os.kill(victim(tmp_path, words), signal.SIGKILL)
        code, errors = running.end()
        assert code == 1
        assert f"{name} was killed by signal 9; its log, {tmp_path / name}.log, ends:" in errors
        if name == "server":  # its grower ends by itself, as soon as it has been loaded
            await_end(members)
        assert not processes(tmp_path)


@pytest.mark.release
@pytest.mark.timeout(150)
def test_the_time_for_all_is_the_only_time_there_is(tmp_path: Path) -> None:
    """A grower that is slow to start, here one that is stopped, is waited for as long as there is time."""
    with demo(tmp_path, "--timeout-s", "25") as running:
        running.read_until("server listens on")
        grower = victim(tmp_path, b"quercus.server.growth.grower")
        os.kill(grower, signal.SIGSTOP)
        code, errors = running.end()
        assert code == 1
        assert f"the demo ran out of time; the logs of its processes are in {tmp_path}" in errors
        assert not processes(tmp_path)


def test_output_must_be_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with demo(file) as running:
        code, errors = running.end()
    assert code == 2
    assert "--output" in errors
