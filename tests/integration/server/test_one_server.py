"""One growing server a store."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from quercus.server.app import open_store
from quercus.server.config import Config
from quercus.server.wire.errors import BadStart
from quercus.storage import Store, StoreBusy


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


@pytest.mark.slow
def test_the_lock_cannot_be_taken_away(start_child: Any, tools: Any, tmp_path: Path) -> None:
    """Deleting, replacing or locking the file beside the store changes nothing: two servers never both grow."""
    path = tmp_path / "store.db"
    first = start_child(path)
    words = tmp_path / "store.db-server"
    assert str(first.process.pid) in words.read_text()
    words.unlink()
    refuse = "import sys; from quercus.storage import Store; Store.open(sys.argv[1]).claim('another')"
    command = [sys.executable, "-c", refuse, f"sqlite:///{path}"]
    for holder in ("another process", "somebody"):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert f"is served by {holder} already" in done.stderr
        words.write_text("somebody")
    with pytest.raises(BadStart, match="is served by somebody already"):
        open_store(Config(store=str(path), port=0))
    first.api.create("m")
    first.api.push(tools.table_t("m"))
    assert first.api.grown("m", 21).as_of == 21  # and the first goes on growing
    assert first.finish(signal.SIGKILL)[0] == -signal.SIGKILL
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.release
def test_the_lock_outlives_other_users_of_the_store(tmp_path: Path) -> None:
    """SQLite's own locks are dropped when any descriptor of the file is closed; this one must not be, nor drop them."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    take = "import sys; from quercus.storage import Store; Store.open(sys.argv[1]).claim('another')"
    with Store.open(url) as first:
        first.create_model("m", b"", budget=0)
        for _ in range(2):
            with Store.open(url) as second:
                first.claim("a server")
                with pytest.raises(StoreBusy, match="is served by a server already"):
                    second.claim("another")
                second.get_model("m")
            first._database._claim.close()
        first.claim("a server")
        assert subprocess.run([sys.executable, "-c", take, url], capture_output=True, check=False).returncode
        # Had SQLite's locks been dropped, the last one out would have taken the log away under the first.
        assert (tmp_path / "store.db-wal").exists()
        first.create_model("n", b"", budget=0)
    with Store.open(url) as again:
        assert [model.name for model in again.list_models()] == ["m", "n"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.release)])
def test_the_lock_ends_with_the_server(start_child: Any, tmp_path: Path, number: int) -> None:
    path = tmp_path / "store.db"
    first = start_child(path)
    first.api.create("m")
    first.finish(number)
    assert start_child(path).api.get("m").name == "models/m"


@pytest.mark.slow
def test_the_command_says_so(start_child: Any, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    start_child(path)
    command = [Path(sys.executable).with_name("quercus"), "serve", "--store", str(path), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "already" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
