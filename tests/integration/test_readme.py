"""The README's five minutes, as written: its script against a live server prints what the README says it prints."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.checkout import ROOT

README = (ROOT / "README.md").read_text()
BIN = Path(sys.executable).parent

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # on a new machine the kernels are compiled first


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("readme")
    command = [str(BIN / "quercus"), "serve", "--port", "0", "--store", str(folder / "quercus.db")]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line.startswith("listening on "), (folder / "server.log").read_text()
        address = line.removeprefix("listening on ").strip()
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        yield {**os.environ, "QUERCUS_SERVER": address, "PATH": path, "NO_COLOR": "1"}
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=30)
    assert server.returncode == 0


@pytest.fixture(scope="module")
def printed(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    script = tmp_path_factory.mktemp("tour") / "tour.py"
    script.write_text(block("python"))
    result = subprocess.run(
        [sys.executable, str(script)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_script_prints_what_the_readme_says(printed: str) -> None:
    assert [line.rstrip() for line in printed.strip().splitlines()] == block("text").strip().splitlines()


@pytest.mark.release
@pytest.mark.usefixtures("printed")
def test_the_script_runs_twice(environment: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "tour.py"
    script.write_text(block("python"))
    again = subprocess.run(
        [sys.executable, str(script)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert again.returncode == 0, again.stderr
    assert [line.rstrip() for line in again.stdout.strip().splitlines()] == block("text").strip().splitlines()


@pytest.mark.usefixtures("printed")
def test_the_shell_commands_work(environment: dict[str, str], tmp_path: Path) -> None:
    commands = [
        line.split("  #")[0].strip() for line in block("sh").splitlines() if line.startswith("quercus ")
    ]
    assert len(commands) >= 4
    for command in commands:
        # `label` talks to a person at a terminal (see the acceptance tests): here only that it exists.
        words = [*command.split(), "--help"] if command.split()[1] == "label" else command.split()
        result = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert result.returncode == 0, f"{command}: {result.stderr}"
    assert "<svg" in (tmp_path / "wine.svg").read_text()
