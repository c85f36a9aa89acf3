"""A server that cannot start says why in one line, and its exit code is not 0."""

import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from integration.client.serving import QUERCUS, Serving
from support import command_line
from support.mounts import small_disk
from support.published import published_model

from quercus.client import Client, FailedPrecondition, Nominal

# Root may write everywhere; without this one capability file permissions bind it too.
BOUND = """
import ctypes, os, sys
assert ctypes.CDLL(None).prctl(24, 1, 0, 0, 0) == 0  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE
os.execv(sys.argv[1], sys.argv[1:])
"""

BEFORE = [sys.executable, "-c", BOUND] if os.geteuid() == 0 else []
SPECIFICATION = published_model([Nominal("X", ["a", "b"])], ["p", "q"], budget=1, strategy="published")


def serve(store: Path, *options: str, bound: bool = False) -> str:
    """Start a server that must fail; its one line of complaint."""
    command = ["serve", "--store", str(store), "--port", "0", *options]
    if bound:
        command = [*BEFORE, QUERCUS, *command]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    else:
        result = command_line.quercus(*command)
    assert (result.returncode, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    return line


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    """A store that a server made."""
    assert Serving(tmp_path, grower=False).stop() == 0
    path = tmp_path / "quercus.db"
    yield path
    tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    "form", ["ann:hidden@127.0.0.1:1/quercus", "127.0.0.1:1/quercus?password=hidden&sslpassword=hidden"]
)
def test_the_password_of_a_store_is_never_printed(form: str) -> None:
    """Others may read the journal, where the lines of a server go."""
    done = command_line.quercus("serve", "--store", f"postgresql://{form}", "--port", "0")
    assert (done.returncode, done.stdout) == (1, "")
    assert "127.0.0.1" in done.stderr
    assert "hidden" not in done.stderr


@pytest.mark.parametrize("url", ["postgresql:/ann:hidden@h/db", "postgresql://ann:hid@hidden@127.0.0.1/db"])
def test_the_password_of_a_wrong_url_is_never_printed(url: str) -> None:
    done = command_line.quercus("serve", "--store", url, "--port", "0")
    assert done.returncode == 1
    assert "store: 'postgresql://…'" in done.stderr
    assert "hid" not in done.stderr


@pytest.mark.slow
def test_store_of_another_version(store: Path) -> None:
    with sqlite3.connect(store) as raw:
        raw.execute("UPDATE quercus_revision SET version_num = '0042'")
    raw.close()
    before = store.read_bytes()
    line = serve(store)
    for words in (str(store), "0042", "quercus export"):
        assert words in line
    assert store.read_bytes() == before


def check_is_only_read(folder: Path, log: Path) -> None:
    """A server of this folder shows what is there, takes nothing, and says so."""
    with log.open("w") as stderr:
        serving = Serving(folder, stderr=stderr, before=BEFORE)
    try:
        with Client(serving.address) as client:
            assert [model.name for model in client.models()] == ["m"]
            assert client.classify("m", [["a"]])[0].label == "p"
            assert client.tree("m").nodes[0].count == 2
            for refused in (
                lambda: client.push("m", [["b"]], ["q"]),
                lambda: client.create_model("n", SPECIFICATION),
                lambda: client.lease("m", "ann"),
            ):
                with pytest.raises(FailedPrecondition, match="could not be written when it was opened"):
                    refused()
        with grpc.insecure_channel(serving.address) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            for service, well in (("", True), ("quercus.v1.Writes", False)):
                status = health.Check(health_pb2.HealthCheckRequest(service=service)).status
                assert (status == health_pb2.HealthCheckResponse.SERVING) == well, service
    finally:
        assert serving.stop() == 0
    assert "it is only read: rows and answers are refused, and no tree grows" in log.read_text()


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store that has a model and its tree; tests use copies of it."""
    folder = tmp_path_factory.mktemp("lesson")
    serving = Serving(folder)
    with Client(serving.address) as client:
        client.create_model("m", SPECIFICATION)
        client.push("m", [["a"], ["a"]], ["p", "p"])
        client.wait_grown("m")
    assert serving.stop() == 0
    return folder


@pytest.fixture
def taught(lesson: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(lesson, tmp_path / "taught"))


@pytest.mark.slow
def test_read_only_store(taught: Path, tmp_path: Path) -> None:
    (taught / "quercus.db").chmod(0o400)
    check_is_only_read(taught, tmp_path / "log")


@pytest.mark.slow
def test_store_in_a_read_only_folder(taught: Path, tmp_path: Path) -> None:
    taught.chmod(0o500)
    check_is_only_read(taught, tmp_path / "log")
    taught.chmod(0o700)


@pytest.mark.slow
def test_store_on_a_read_only_file_system(lesson: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", megabytes=16) as folder:
        shutil.copytree(lesson, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*-reserve"))
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        check_is_only_read(folder, tmp_path / "log")


@pytest.mark.slow
def test_nothing_to_be_read_in_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    line = serve(tmp_path / "quercus.db", bound=True)
    tmp_path.chmod(0o700)
    assert "quercus.db does not exist, and its folder may not be written by this user" in line


def test_port_held_by_something_else(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = serve(tmp_path / "quercus.db", "--port", str(port))
    assert f"127.0.0.1:{port}" in line
    assert "in use" in line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "words"),
    [("192.0.2.1", "not one of this machine"), ("no.such.host.invalid", "not known")],  # TEST-NET, RFC 2606
)
def test_host_that_is_not_ours(host: str, words: str, tmp_path: Path) -> None:
    line = serve(tmp_path / "quercus.db", "--host", host, "--plaintext")
    assert f"cannot listen on {host}:0" in line
    assert words in line


def test_configuration_that_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "quercus.toml"
    file.write_text("[server]\npoll_ms = 0\n")
    line = serve(tmp_path / "quercus.db", "--config", str(file))
    for words in ("poll_ms", "0", str(file)):
        assert words in line
