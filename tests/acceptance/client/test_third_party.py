"""A package of somebody else's, installed beside Quercus, of which no file of Quercus knows."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.checkout import ROOT
from support.command_line import quercus

FILE = """\
id    size  colour  kind
r1    1.5   red     p
r2    2.5   blue    q
r3    ?     red     p
r4    4.0           q
"""


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment of a command that finds the package."""
    folder = tmp_path_factory.mktemp("installed")
    source = tmp_path_factory.mktemp("source") / "package"  # setuptools builds in it
    shutil.copytree(ROOT / "tests" / "third_party", source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    alone = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(folder), str(source)]
    done = subprocess.run([*pip, *alone], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {**os.environ, "PYTHONPATH": str(folder), "NO_COLOR": "1"}


def command(*arguments: str, server: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("quercus")), *arguments],
        env={**environment, "QUERCUS_SERVER": server},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_a_file_format_of_another_package(
    server: str, name: str, tmp_path: Path, beside: Mapping[str, str]
) -> None:
    file = tmp_path / "parts.fwf"
    file.write_text(FILE)
    create = ("models", "create", name, str(file), "--class", "kind", "--ignore", "id")
    done = command(*create, server=server, environment=beside)
    assert done.returncode == 0, done.stderr
    pushed = command(
        "push",
        name,
        str(file),
        "--labels",
        "--class",
        "kind",
        "--id-column",
        "id",
        server=server,
        environment=beside,
    )
    assert pushed.returncode == 0, pushed.stderr
    shown = json.loads(command("models", "show", name, "--json", server=server, environment=beside).stdout)
    assert shown["instance_count"] == 4
    assert [each["name"] for each in shown["specification"]["attributes"]] == ["size", "colour"]
    found = json.loads(command("doctor", "--json", server=server, environment=beside).stdout)
    (plugins,) = [each for each in found["checks"] if each["name"] == "plug-ins"]
    assert plugins["found"] == (
        "readers of .arff, .fwf (quercus_fixed_width:open_fwf of quercus-fixed-width 1.0), .parquet"
    )
    file.write_text("\n")
    bad = command("push", name, str(file), server=server, environment=beside)
    assert bad.returncode != 0
    assert "has no header: write the name of each column" in bad.stderr


def test_without_the_package_the_file_is_read_as_csv(server: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / "parts.fwf"
    file.write_text(FILE)
    done = quercus("models", "create", name, str(file), "--class", "kind", server=server)
    assert done.returncode != 0
    assert "kind" in done.stderr
