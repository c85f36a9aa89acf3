"""The examples in other languages do what their comments say, against a live server."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from integration.client.serving import Serving
from support.checkout import ROOT

from quercus.client import Client
from quercus.client.retrying import service_config

EXAMPLES = ROOT / "examples"


def test_the_published_retry_policy_is_that_of_the_client() -> None:
    assert json.loads((EXAMPLES / "service_config.json").read_text(encoding="utf-8")) == service_config()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The examples beside the protocol, where they look for it."""
    shutil.copytree(ROOT / "proto", tmp_path / "proto")
    ignored = shutil.ignore_patterns("node_modules", "build", "generated")
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=ignored)
    return tmp_path / "examples"


def check_clients(work: Path, commands: dict[str, list[str]]) -> None:
    """Run sensor (twice), labeller and classifier, in a folder of the examples."""
    serving = Serving(work)

    def run(program: str, address: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            commands[program],
            cwd=work,
            env={**os.environ, "QUERCUS_SERVER": address},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def printed(program: str) -> list[str]:
        done = run(program, serving.address)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert printed("sensor") == ["20 rows stored, 0 were there already"]
    assert printed("sensor") == ["0 rows stored, 20 were there already"]
    answers = printed("labeller")
    assert len(answers) == 3
    with Client(serving.address) as client:
        assert client.get_model("wine").queries_answered == 3
    said = printed("classifier")
    assert said[0] == "models/wine (active-forest): red, white"
    assert said[1].startswith(("red, by tree version", "white, by tree version"))
    assert [line.split(":")[0] for line in said[2:]] == ["red", "white"]
    assert serving.stop() == 0
    away = run("classifier", "127.0.0.1:1")  # nobody listens there
    assert (away.returncode, away.stdout, len(away.stderr.splitlines())) == (1, "", 1), away.stderr


PROGRAMS = ("sensor", "labeller", "classifier")


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm: apt-get install npm")
def test_the_clients_in_typescript_push_label_and_classify(folder: Path) -> None:
    """Packages come from npm's registry. Where it does not answer, nobody knows whether the example works."""
    work = folder / "typescript"
    npm = ["npm", "install", "--no-audit", "--no-fund", "--silent"]
    if subprocess.run(npm, cwd=work, check=False, timeout=200).returncode:
        pytest.skip("npm's registry does not answer, so the example in TypeScript is not tried")
    subprocess.run(["npm", "run", "--silent", "build"], cwd=work, check=True, timeout=100)
    check_clients(work, {each: ["node", f"build/js/{each}.js"] for each in PROGRAMS})


GO_SOURCES = Path("/usr/share/gocode")
"""The folder of the sources of Debian's packages of Go."""
GO_PACKAGES = {
    "golang-go": "go",
    "protoc-gen-go-1-5": "protoc-gen-go",
    "protoc-gen-go-grpc": "protoc-gen-go-grpc",
    "golang-google-grpc-dev": f"{GO_SOURCES}/src/google.golang.org/grpc/call.go",
    "golang-github-golang-protobuf-1-5-dev": f"{GO_SOURCES}/src/github.com/golang/protobuf/proto/buffer.go",
}
"""Debian's packages, and a program or a file of each; gRPC's would take an older protobuf, on which it does not run."""


@pytest.mark.timeout(400)
def test_the_clients_in_go_push_label_and_classify(folder: Path, tmp_path: Path) -> None:
    """Go builds from the sources of Debian's packages: it fetches nothing."""
    missing = [
        package
        for package, found in GO_PACKAGES.items()
        if shutil.which(found) is None and not Path(found).exists()
    ]
    if missing:
        text = f"the example in Go needs: apt-get install --no-install-recommends {' '.join(missing)}"
        assert os.environ.get("CI") != "true", text
        pytest.skip(text)
    work = folder / "go"
    subprocess.run([Path(sys.executable).with_name("buf"), "generate"], cwd=work, check=True, timeout=60)
    path = tmp_path / "gopath"
    (path / "src").mkdir(parents=True)
    (path / "src" / "quercus-examples").symlink_to(work)
    without_modules = os.environ | {"GO111MODULE": "off", "GOPATH": f"{path}:{GO_SOURCES}", "GOFLAGS": ""}
    packages = [f"./{each}" for each in PROGRAMS]
    for command in (["go", "vet", *packages, "./connection"], ["go", "build", "-o", "build/", *packages]):
        subprocess.run(
            command, cwd=path / "src" / "quercus-examples", env=without_modules, check=True, timeout=300
        )
    assert (
        subprocess.run(
            ["gofmt", "-l", *PROGRAMS, "connection"], cwd=work, capture_output=True, check=True
        ).stdout
        == b""
    )
    check_clients(work, {each: [f"build/{each}"] for each in PROGRAMS})
    check_late_server(work, tmp_path)


def check_late_server(work: Path, tmp_path: Path) -> None:
    """Run the sensor before its server has started: gRPC's policy alone does not repeat what found no connection."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "QUERCUS_SERVER": f"127.0.0.1:{port}"}
    with subprocess.Popen(
        ["build/sensor"], cwd=work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as sensor:
        time.sleep(0.5)
        assert sensor.poll() is None
        (tmp_path / "late").mkdir()
        serving = Serving(tmp_path / "late", port, grower=False)
        printed, errors = sensor.communicate(timeout=60)
    assert (printed, errors) == ("20 rows stored, 0 were there already\n", "")
    assert serving.stop() == 0
