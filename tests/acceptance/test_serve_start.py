"""A server that cannot start says why in one line, and its exit code is not 0."""

import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.client.serving import QUERCUS, Serving

# Root may write everywhere; without this one capability file permissions bind it too.
BOUND = """
import ctypes, os, sys
assert ctypes.CDLL(None).prctl(24, 1, 0, 0, 0) == 0  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE
os.execv(sys.argv[1], sys.argv[1:])
"""


def serve(store: Path, *options: str, bound: bool = False) -> str:
    """Start a server that must fail; its one line of complaint."""
    command = [QUERCUS, "serve", "--store", str(store), "--port", "0", *options]
    if bound and os.geteuid() == 0:
        command = [sys.executable, "-c", BOUND, *command]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    lines = [line for line in result.stderr.splitlines() if not line.startswith("store ")]
    assert len(lines) == 1, result.stderr
    return lines[0]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    """A store that a server made."""
    assert Serving(tmp_path).stop() == 0
    path = tmp_path / "quercus.db"
    yield path
    tmp_path.chmod(0o700)


def test_store_of_a_newer_version(store: Path) -> None:
    with sqlite3.connect(store) as raw:
        raw.execute("UPDATE quercus_revision SET version_num = '0042'")
    raw.close()
    before = store.read_bytes()
    line = serve(store)
    for words in (str(store), "0042", "upgrade quercus"):
        assert words in line
    assert store.read_bytes() == before


def test_read_only_store(store: Path) -> None:
    store.chmod(0o400)
    line = serve(store, bound=True)
    assert f"{store} may not be read and written by this user" in line


def test_store_in_a_read_only_folder(store: Path) -> None:
    store.parent.chmod(0o500)
    line = serve(store, bound=True)
    assert f"{store.parent} may not be written by this user" in line


def test_port_held_by_something_else(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = serve(tmp_path / "quercus.db", "--port", str(port))
    assert f"127.0.0.1:{port}" in line
    assert "in use" in line


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
