"""One growing server a store."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from quercus.server.errors import BadStart


def test_the_second_server_is_refused(start_child: Any, start_live: Any, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    first = start_child(path)
    words = f"is served by process {first.process.pid} .* already.*stop that one first"
    with pytest.raises(BadStart, match=words):
        start_live(path)
    (tmp_path / "link.db").symlink_to(path)
    with pytest.raises(BadStart, match=words):
        start_live(tmp_path / "link.db")
    start_live(path, grower=False).api.create("m")  # that one may share it
    assert first.api.get("m").name == "models/m"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_lock_ends_with_the_server(start_child: Any, tmp_path: Path, number: int) -> None:
    path = tmp_path / "store.db"
    first = start_child(path)
    first.api.create("m")
    first.finish(number)
    assert start_child(path).api.get("m").name == "models/m"


def test_the_command_says_so(start_child: Any, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    start_child(path)
    command = [Path(sys.executable).with_name("quercus"), "serve", "--store", str(path), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "already" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
