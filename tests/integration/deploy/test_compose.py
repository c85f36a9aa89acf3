"""The compose file: valid, of parts that are there, with variables with which the programs run."""

import os
import re
import shutil
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from compose_spec.compose_spec import PyOptions
from integration.client.serving import QUERCUS
from support.checkout import ROOT
from support.http_calls import free_port
from support.postgres import Cluster

from quercus.client import Client
from quercus.specification.environment import check_environment

FILE = ROOT / "deploy" / "compose.yml"
OWN = ("server", "console")
GIVEN = {"POSTGRES_PASSWORD": "sesame", "QUERCUS_NAME": "quercus.example.org"}
"""Values of the variables that users set in deploy/.env."""


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    reader = PyOptions()
    reader.apply_merge = True
    read = reader.from_yaml(FILE.read_text(encoding="utf-8"))
    read.validate()
    found: dict[str, Any] = read.to_dict()["services"]
    return found


def environment_of(service: dict[str, Any]) -> dict[str, str]:
    """The variables of a service, with those of deploy/.env put in."""
    pairs = service.get("environment", {}).items()
    return {key: re.sub(r"\$\{(\w+):\?[^}]*\}", lambda m: GIVEN[m[1]], value) for key, value in pairs}


def test_what_it_names_is_there(services: dict[str, Any]) -> None:
    assert set(services) == {"postgres", "server", "console", "prometheus"}
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
        for each in service["volumes"]:
            source = each.split(":")[0]
            if source.startswith("./tls"):
                assert Path(source).name in {"tls", "ca.pem"}  # of whoever runs it
            elif source.startswith("."):
                assert (FILE.parent / source).is_file(), source
    for name in OWN:
        assert (
            FILE.parent / services[name]["build"]["context"] / services[name]["build"]["dockerfile"]
        ).is_file()
        check_environment(environment_of(services[name]))
    assert (
        environment_of(services["server"])["PGPASSWORD"]
        == environment_of(services["postgres"])["POSTGRES_PASSWORD"]
    )


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool: apt-get install prometheus")
def test_prometheus_takes_its_configuration(services: dict[str, Any], tmp_path: Path) -> None:
    for each in services["prometheus"]["volumes"]:
        source, target = each.split(":")[:2]
        if source.startswith("./prometheus/"):
            shutil.copy(FILE.parent / source, tmp_path / Path(target).name)
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    done = subprocess.run(
        ["promtool", "check", "config", "prometheus.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "prometheus.yml").read_text(encoding="utf-8")
    assert re.findall(r"targets: \[\"(.*)\"\]", text) == ["server:9464"]


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """The folder ``tls``."""
    folder = tmp_path / "tls"
    folder.mkdir()
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    issued = authority.issue_cert("server", "localhost")
    issued.private_key_pem.write_to_path(str(folder / "server.key"))
    issued.cert_chain_pems[0].write_to_path(str(folder / "server.pem"))
    return folder


@pytest.fixture
def running(
    services: dict[str, Any], certificates: Path, postgres: Cluster, tmp_path: Path
) -> Iterator[dict[str, str]]:
    """Return what server and console print with the variables of the file, with paths and addresses of this machine."""
    image = dict(
        re.findall(
            r"^ENV (QUERCUS_\w+)=(\S+)$", (ROOT / "deploy" / "Containerfile").read_text(), re.MULTILINE
        )
    )
    database = postgres.create()
    ports = {"50051": str(free_port()), "9464": str(free_port()), "8080": str(free_port())}
    here = {
        "postgresql://quercus@postgres/quercus": postgres.url(database),
        "tls://server:50051": f"tls://localhost:{ports['50051']}",
        "9464": ports["9464"],
        "0.0.0.0": "127.0.0.1",
    }
    plain = {key: value for key, value in os.environ.items() if not key.startswith("QUERCUS_")}
    own = {
        "QUERCUS_PORT": ports["50051"],
        "QUERCUS_CONSOLE_PORT": ports["8080"],
        "QUERCUS_GROWER": "false",
        "QUERCUS_ACCESS": "tokens",
    }
    processes: list[subprocess.Popen[str]] = []
    said: dict[str, str] = {"store": postgres.url(database), "http": ports["9464"]}
    try:
        for name in OWN:
            given = image | environment_of(services[name])
            moved = {
                key: here.get(value, value).replace("/tls/", f"{certificates}/")
                for key, value in given.items()
            }
            with (tmp_path / name).open("w") as log:
                processes.append(
                    subprocess.Popen(
                        [QUERCUS, *services[name].get("command", ["serve"])],
                        env=plain | moved | own,
                        stdout=subprocess.PIPE,
                        stderr=log,
                        text=True,
                    )
                )
            stdout = processes[-1].stdout
            assert stdout is not None
            said[name] = stdout.readline().strip()
            assert said[name], (tmp_path / name).read_text()
        yield said
    finally:
        for each in processes:
            each.terminate()
        for each in processes:
            each.communicate(timeout=30)
        postgres.drop(database)
    assert [each.returncode for each in processes] == [0, 0]


@pytest.mark.timeout(400)
def test_server_and_console_run_with_its_variables(running: dict[str, str], certificates: Path) -> None:
    address = running["server"].removeprefix("listening on ")
    token = subprocess.run(
        [QUERCUS, "tokens", "create", "you", "--role", "operator", "--store", running["store"]],
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    ).stdout.strip()
    port = address.rpartition(":")[2]
    with Client(f"tls://localhost:{port}", token=token, ca=str(certificates / "ca.pem")) as client:
        assert list(client.models()) == []
    trusting = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
    console = running["console"].removeprefix("console at ").replace(GIVEN["QUERCUS_NAME"], "localhost")
    for url, sign in (
        (console, "Quercus"),
        (f"https://localhost:{running['http']}/metrics", "quercus_build_info"),
    ):
        with urllib.request.urlopen(url, timeout=30, context=trusting) as page:  # noqa: S310 - made above
            assert sign in page.read().decode()
