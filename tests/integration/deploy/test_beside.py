"""Quercus can be installed beside what its users have: the resolver finds the same release of it as without Quercus.

These tests ask PyPI, by way of uv. Without a network they skip, except in continuous integration, where a skipped test
is a failure.
"""

import os
import re
import socket
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

import pytest
from support.checkout import ROOT

PYTHON = "3.12"
"""The Python that is asked for; some of the neighbours have no wheels for newer ones."""

NEIGHBOURS = ("apache-beam", "flwr", "kserve", "mlserver", "sktime[all_extras]", "tritonclient[all]", "vllm")
"""Packages that pin or cap what Quercus needs too: protobuf, grpcio, typer, starlette."""


@cache
def pypi_answers() -> bool:
    try:
        socket.create_connection(("pypi.org", 443), timeout=5).close()
    except OSError:
        return False
    return True


def resolved(folder: Path, more: list[str], neighbour: str) -> str:
    """Return the release of a package that an environment gets which has further packages; if there is none, why."""
    requirements = folder / f"{neighbour}-{len(more)}.txt"
    requirements.write_text("\n".join([neighbour, *more]), encoding="utf-8")
    compiled = [str(Path(sys.executable).with_name("uv")), "pip", "compile", "--quiet", "--no-header"]
    compiled += ["--no-annotate", "--python-version", PYTHON, str(requirements)]
    done = subprocess.run(compiled, capture_output=True, text=True, check=False, timeout=500)
    release = re.search(rf"^{neighbour.split('[', maxsplit=1)[0]}==(\S+)", done.stdout, re.MULTILINE)
    return done.stderr if release is None else release[1]


@pytest.mark.release
@pytest.mark.timeout(600)  # seconds of work, and thousands of questions to PyPI
def test_quercus_changes_no_release_of_its_neighbours(tmp_path: Path) -> None:
    if not pypi_answers():
        assert os.environ.get("CI") != "true", "pypi.org does not answer"
        pytest.skip(
            "pypi.org does not answer, so nobody knows whether Quercus can be installed beside others"
        )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    quercus = [*project["dependencies"], *extras["server"], *extras["console"]]
    with ThreadPoolExecutor(2 * len(NEIGHBOURS)) as pool:
        alone = pool.map(partial(resolved, tmp_path, []), NEIGHBOURS)
        beside = pool.map(partial(resolved, tmp_path, quercus), NEIGHBOURS)
        assert dict(zip(NEIGHBOURS, beside, strict=True)) == dict(zip(NEIGHBOURS, alone, strict=True))
