"""The output for programs of commands that change something."""

import json
from pathlib import Path
from typing import Any

from support.command_line import quercus

from quercus.storage import Store


def said(*arguments: str, code: int = 0, server: str = "") -> Any:
    done = quercus(*arguments, "--json", server=server)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_a_store(tmp_path: Path) -> None:
    store = str(tmp_path / "q.db")
    Store.open(f"sqlite:///{store}").close()
    made = said("tokens", "create", "ann", "--role", "labeller", "--store", store)
    assert said("tokens", "revoke", made["id"], "--store", store) == {"revoked": made["id"]}
    copy = str(tmp_path / "copy.db")
    written = said("backup", copy, "--store", store)
    assert written == {"file": copy, "bytes": Path(copy).stat().st_size}
    assert said("check", "--store", copy) == {"well": True, "damage": 0, "faults": []}
    restored = said("restore", copy, "--store", store, "--force")
    assert restored["bytes"] == written["bytes"]
    Path(copy).write_bytes(Path(copy).read_bytes()[:4096] + b"\0" * 4096)
    done = quercus("check", "--store", copy, "--json")
    assert done.returncode == 1
    assert '"well": false' in done.stdout or '"error"' in done.stderr


def test_a_model(server: str, name: str, table_t: Path, tmp_path: Path) -> None:
    said("models", "create", name, str(table_t), "--class", "class", "--budget", "3", server=server)
    said("push", name, str(table_t), server=server)
    assert said("labellers", "evict", "ann", "--model", name, server=server) == {
        "labeller": "ann",
        "ended": 0,
    }
    assert quercus("answers", name, "--json", server=server).stdout == ""
    file = str(tmp_path / "answers.csv")
    assert said("answers", name, "-o", file, server=server) == {"file": file, "answers": 0}
    done = quercus("models", "delete", name, "--json", server=server)
    assert done.returncode == 2
    assert "for confirmation: give --yes" in json.loads(done.stderr)["error"]["message"]
    assert said("models", "delete", name, "--yes", server=server) == {"deleted": name}
