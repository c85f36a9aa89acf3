"""The steps of the container file, executed in a scratch folder: no engine is needed to know that they work.

What a step writes to ``/opt/quercus``, ``/src`` and ``/data`` goes to folders of the test. The packages that Quercus
needs are those of this environment; the image downloads them.
"""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.checkout import ROOT, copy_checkout

import quercus
from quercus.client import Client

FILE = ROOT / "deploy" / "Containerfile"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@dataclass
class Image:
    """A scratch folder in which the steps are done, and what they say about the container."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)

    def here(self, text: str) -> str:
        """A text with the paths of the container moved into the folder."""
        return re.sub(r"(?<![\w.])/(opt/quercus|src|data)\b", rf"{self.root}/\1", text)

    def words(self, key: str) -> list[str]:
        """The words of ENTRYPOINT, CMD or HEALTHCHECK."""
        return [self.here(word) for word in eval(self.said[key])]  # noqa: S307 - a list of strings, of our own file

    def environment(self, **more: str) -> dict[str, str]:
        path = f"{self.root}/opt/quercus/bin:{os.environ['PATH']}"
        return {**{key: self.here(value) for key, value in self.env.items()}, "PATH": path, **more}

    def copy(self, source: str, target: str) -> None:
        if source == ".":
            copy_checkout(Path(self.here(target)))
        else:
            shutil.copy2(ROOT / source, self.here(target))

    def run(self, command: str) -> None:
        if "useradd" in command:  # the user is this one; the folder is made
            command = f"mkdir -p {self.root}/data"
        if "pip install" in command:  # what it needs is there already
            command += " --quiet --no-deps --no-build-isolation"
        # the setuptools of this environment, which the image downloads into one of its own
        here = (
            {"PYTHONPATH": sysconfig.get_path("purelib")} if "pip install" in command else {"PYTHONPATH": ""}
        )
        pythons = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # the image has a command `python`
        environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PATH": pythons} | here
        done = subprocess.run(
            ["sh", "-ec", self.here(command)],
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
            env=environment,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        if "venv" in command:
            (site,) = (self.root / "opt/quercus/lib").glob("python*/site-packages")
            (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    made = Image(tmp_path_factory.mktemp("image"))
    text = re.sub(r"^#.*\n", "", FILE.read_text(), flags=re.MULTILINE)
    for line in filter(None, text.splitlines()):
        step, _, rest = line.partition(" ")
        match step:
            case "RUN":
                made.run(rest)
            case "COPY" if not rest.startswith("--from"):
                made.copy(*rest.split())
            case "ENV":
                key, _, value = rest.partition("=")
                made.env[key] = value
            case "HEALTHCHECK":
                made.said[step] = rest.partition("CMD ")[2]
            case "ENTRYPOINT" | "CMD":
                made.said[step] = rest
            case "FROM" | "COPY" | "VOLUME" | "EXPOSE" | "USER":
                made.said[step] = rest
            case _:
                raise AssertionError(f"an unknown step: {line}")
    return made


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture(scope="module")
def running(image: Image) -> Iterator[dict[str, str]]:
    """The container's command, with the ports of this test; the variables that it runs with."""
    environment = image.environment(
        QUERCUS_PLAINTEXT="true",
        QUERCUS_PORT="0",
        QUERCUS_HTTP_PORT=free_port(),
        QUERCUS_HTTP_HOST="127.0.0.1",
        QUERCUS_HOST="127.0.0.1",
        QUERCUS_ACCESS="open",
        QUERCUS_GROWER="false",
        PYTHONDONTWRITEBYTECODE="1",
    )
    with (image.root / "log").open("w") as log:
        process = subprocess.Popen(
            [*image.words("ENTRYPOINT"), *image.words("CMD")],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("listening on "), (image.root / "log").read_text()
    yield environment | {"address": line.removeprefix("listening on ").strip()}
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 0


def test_the_server_is_that_of_the_image(image: Image, running: dict[str, str]) -> None:
    with Client(running["address"]) as client:
        assert client.status().version == quercus.__version__
    assert (image.root / "data" / "quercus.db").exists()
    where = subprocess.run(
        [
            f"{image.root}/opt/quercus/bin/python",
            "-c",
            "import quercus.server; print(quercus.server.__file__)",
        ],
        env=image.environment(),
        cwd=image.root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert where.stdout.startswith(f"{image.root}/opt/quercus/lib/")


def health(image: Image, environment: dict[str, str]) -> int:
    return subprocess.run(
        image.words("HEALTHCHECK"), env=environment, capture_output=True, check=False
    ).returncode


def test_the_health_check_tells_a_live_server_from_none(image: Image, running: dict[str, str]) -> None:
    assert health(image, running) == 0
    assert health(image, running | {"QUERCUS_HTTP_PORT": free_port()}) == 1


def test_without_a_certificate_it_says_what_it_needs(image: Image) -> None:
    done = subprocess.run(
        [*image.words("ENTRYPOINT"), *image.words("CMD")],
        env=image.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "give tls_cert and tls_key, or set plaintext" in done.stderr


def test_the_image_needs_no_root(image: Image) -> None:
    assert image.said["USER"] == "10001"
    assert image.said["VOLUME"] == "/data"
    assert shlex.split(image.said["EXPOSE"]) == ["50051", image.env["QUERCUS_HTTP_PORT"]]
