"""The units of systemd are sound, by systemd's own check; what they start exists, and takes the flags they give."""

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer.testing
from support.checkout import ROOT

from quercus.cli.main import app
from quercus.server.config import Config
from quercus.server.telemetry.metric_table import BACKUP

UNITS = ROOT / "deploy" / "systemd"
QUERCUS = str(Path(sys.executable).with_name("quercus"))
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze: apt-get install systemd"
)


@pytest.fixture
def units(tmp_path: Path) -> list[str]:
    """The units, with the path of this environment's program."""
    for unit in UNITS.glob("quercus*.[st]*"):
        text = unit.read_text().replace("/opt/quercus/bin/quercus", QUERCUS)
        (tmp_path / unit.name).write_text(text)
    return sorted(map(str, [*tmp_path.glob("*.service"), *tmp_path.glob("*.timer")]))


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *arguments], capture_output=True, text=True, check=False, timeout=60
    )


@needs_systemd
def test_systemd_accepts_the_units(units: list[str]) -> None:
    assert len(units) == 3
    result = analyze("verify", *units)
    assert (result.returncode, result.stderr) == (0, "")


@needs_systemd
def test_systemd_finds_what_is_wrong(units: list[str]) -> None:
    (broken,) = (Path(unit) for unit in units if unit.endswith("quercus.service"))
    broken.write_text(broken.read_text().replace(QUERCUS, "/nowhere/quercus"))
    result = analyze("verify", str(broken))
    assert result.returncode != 0
    assert "/nowhere/quercus" in result.stderr


@needs_systemd
def test_the_server_has_few_rights(units: list[str]) -> None:
    (server,) = (unit for unit in units if unit.endswith("quercus.service"))
    result = analyze(
        "security", "--offline=true", "--threshold=20", server
    )  # of 100, a hundred being none withheld
    assert result.returncode == 0, result.stdout


def test_the_commands_of_the_units_take_their_flags() -> None:
    commands = [
        words.split()
        for unit in UNITS.glob("*.service")
        for words in re.findall(r"/opt/quercus/bin/quercus ([^'\n]+)", unit.read_text())
    ]
    assert sorted(command[0] for command in commands) == ["backup", "check", "serve"]
    for command, *rest in commands:
        page = typer.testing.CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).stdout
        assert all(f" {word} " in page for word in rest if word.startswith("--"))


def test_the_servers_file_is_its_configuration(tmp_path: Path) -> None:
    config = Config.load(environ={}, file=ROOT / "deploy" / "quercus.toml")
    assert (config.needs_tokens, config.http_port) == (True, 9464)
    assert f"Environment=QUERCUS_STORE={config.store}\n" in (UNITS / "quercus-backup.service").read_text()


def test_the_moment_of_a_backup_is_written_for_prometheus(tmp_path: Path) -> None:
    unit = (UNITS / "quercus-backup.service").read_text()
    (command,) = re.findall(r"^ExecStartPost=-\+/bin/sh -c '(.*)'$", unit, re.MULTILINE)
    folder = "/var/lib/prometheus/node-exporter"
    assert folder in command
    for place in (tmp_path, tmp_path / "missing"):
        here = command.replace("%%", "%").replace(folder, str(place))
        subprocess.run(["sh", "-c", here], check=True)
    (written,) = tmp_path.iterdir()
    name, number = written.read_text().split()
    assert (written.name, name) == ("quercus.prom", BACKUP.sample_name)
    assert abs(int(number) - time.time()) < 60
    assert written.stat().st_mode & 0o777 == 0o644
