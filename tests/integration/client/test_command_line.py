"""Commands of the command line that need a server, run in this process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from integration.client.serving import QUERCUS, Serving

from quercus.cli import label, main, watch
from quercus.client import Client, Model


def run(monkeypatch: pytest.MonkeyPatch, serving: Serving, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["quercus", *arguments])
    monkeypatch.setenv("QUERCUS_SERVER", serving.address)
    with pytest.raises(SystemExit) as ended:
        main.main()
    return int(ended.value.code or 0)


def test_classify_never_loses_a_file(
    serving: Serving,
    client: Client,
    model: Model,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Neither the one it reads nor the one it replaces, and what it writes appears when it is whole."""
    client.push(model.name, [["a", 0.5]], ["o"])
    client.wait_grown(model.name)
    rows = tmp_path / "rows.csv"
    rows.write_text("X,y\na,0.5\nb,2.5\n")
    (tmp_path / "link.csv").symlink_to(rows)
    for own in ("rows.csv", "link.csv"):
        assert (
            run(monkeypatch, serving, "classify", model.name, str(rows), "-o", str(tmp_path / own), "--force")
            == 2
        )
        assert "which is read: name another" in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert rows.read_text() == "X,y\na,0.5\nb,2.5\n"
    found = tmp_path / "found.csv"
    arguments = ("classify", model.name, str(rows), "-o", str(found))
    assert run(monkeypatch, serving, *arguments) == 0
    written = found.read_text()
    assert len(written.splitlines()) == 3
    assert run(monkeypatch, serving, *arguments) == 2
    found.chmod(0o600)  # it stays private
    rows.write_text("X,y\na,0.5\nb\n")
    assert run(monkeypatch, serving, *arguments, "--force") == 1
    assert found.read_text() == written
    rows.write_text("X,y\na,0.5\n")
    assert run(monkeypatch, serving, *arguments, "--force") == 0
    assert len(found.read_text().splitlines()) == 2
    assert found.stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == ["found.csv", "link.csv", "rows.csv"]


def interrupted(*_: object) -> None:
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_has_the_exit_code_of_the_table(
    serving: Serving, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "truth.csv").write_text("class\no\n")
    monkeypatch.setattr(label, "answer_from_file", interrupted)
    assert run(monkeypatch, serving, "label", model.name, "--truth", str(tmp_path / "truth.csv")) == 130
    monkeypatch.setattr(watch._View, "show_update", interrupted)
    assert run(monkeypatch, serving, "watch", model.name, "--timeout-s", "30") == 130


def test_a_reader_that_is_gone_before_the_first_line_is_no_trouble(serving: Serving) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [QUERCUS, "models", "list", "--json", "--server", serving.address],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")
