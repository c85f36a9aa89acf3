"""`quercus doctor` finds what is wrong, each with its fix; what is well it calls well."""

import datetime
import json
import shutil
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
import typer.testing

from quercus.cli import doctor as checks
from quercus.cli.main import app
from quercus.server.config import Config
from quercus.storage import Store


def doctor(*arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the findings by name."""
    found = typer.testing.CliRunner().invoke(app, ["doctor", "--json", *arguments])
    printed = json.loads(found.stdout)
    assert printed["well"] == (found.exit_code == 0)
    return found.exit_code, {each["name"]: each for each in printed["checks"]}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "quercus.db"
    Store.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def certificate(tmp_path: Path) -> Callable[[float], list[str]]:
    """Flags with a certificate that expires after so many days."""

    def made(days: float) -> list[str]:
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
        issued = trustme.CA().issue_cert("localhost", not_after=end)
        cert, key = tmp_path / f"{days}.pem", tmp_path / f"{days}.key"
        issued.private_key_pem.write_to_path(str(key))
        for pem in issued.cert_chain_pems:
            pem.write_to_path(str(cert), append=True)
        return ["--tls-cert", str(cert), "--tls-key", str(key)]

    return made


def test_a_machine_that_is_fit(store: Path, certificate: Callable[[float], list[str]]) -> None:
    code, found = doctor("--store", str(store), "--port", str(free_port()), *certificate(100))
    assert code == 0
    names = [
        "python",
        "packages",
        "plug-ins",
        "server",
        "kernels",
        "configuration",
        "store",
        "disk",
        "port",
        "http port",
        "workers",
        "certificate",
        "clock",
        "files",
    ]
    assert list(found) == names
    for name in ("python", "packages", "kernels", "configuration", "store", "disk", "port", "certificate"):
        assert (found[name]["state"], found[name]["fix"]) == ("ok", ""), found[name]
    assert "expires in 100 days" in found["certificate"]["found"]


def test_a_store_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("shopping list " * 100)
    code, found = doctor("--store", str(tmp_path / "notes.db"), "--port", "0")
    assert (code, found["store"]["state"]) == (1, "fault")
    assert "notes.db" in found["store"]["found"]
    assert "backup" in found["store"]["fix"]


def test_a_database_server_that_does_not_answer() -> None:
    url = f"postgresql://ann@127.0.0.1:{free_port()}/labels"
    code, found = doctor("--store", url, "--port", str(free_port()))
    assert (code, found["store"]["state"], found["disk"]["state"]) == (1, "fault", "ok")
    assert f"{url} cannot be reached" in found["store"]["found"]
    assert found["store"]["fix"].startswith("start the database server")


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    code, found = doctor("--store", str(tmp_path / "none" / "q.db"), "--port", "0")
    assert (code, found["store"]["state"], found["disk"]["state"]) == (1, "fault", "fault")
    assert found["disk"]["fix"] == f"mkdir -p {tmp_path / 'none'}"


def test_the_schema_of_another_version(store: Path) -> None:
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE quercus_revision SET version_num = '0022'")
    connection.close()
    code, found = doctor("--store", str(store), "--port", "0")
    assert (code, found["store"]["state"]) == (1, "fault")
    assert "schema revision 0022, which this version of quercus does not know" in found["store"]["found"]
    assert "quercus export" in found["store"]["fix"]


def test_the_check_writes_nothing(store: Path) -> None:
    before = sorted((each.name, each.stat().st_size) for each in store.parent.iterdir())
    doctor("--store", str(store), "--port", "0")
    assert sorted((each.name, each.stat().st_size) for each in store.parent.iterdir()) == before


def test_a_disk_without_room(monkeypatch: pytest.MonkeyPatch, store: Path) -> None:
    free = 0.5e9
    usage = shutil.disk_usage(store.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=int(free)))
    config = Config(store=str(store))
    assert checks.check_disk(config).state == "warning"
    free = 1e6
    assert checks.check_disk(config).state == "fault"


def test_a_port_that_is_taken(store: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        taken.settimeout(0.1)
        code, found = doctor("--store", str(store), "--port", str(taken.getsockname()[1]))
    assert (code, found["port"]["state"]) == (1, "fault")
    assert "stop that program" in found["port"]["fix"]


def test_a_port_for_http_that_is_taken(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setenv("QUERCUS_HTTP_PORT", str(taken.getsockname()[1]))
        code, found = doctor("--store", str(store), "--port", str(free_port()))
    assert (code, found["http port"]["state"]) == (1, "fault")
    assert found["http port"]["fix"] == "choose another --http-port or --http-host, or stop that program"


def test_a_port_that_a_server_has(shared_server: Any, store: Path) -> None:
    code, found = doctor("--store", str(store), "--port", str(shared_server.port))
    assert (code, found["port"]["state"]) == (0, "ok")
    assert "in use by a gRPC server" in found["port"]["found"]


def test_the_versions_of_client_and_server(
    shared_server: Any, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = ["--store", str(store), "--port", "0", "--server", f"127.0.0.1:{shared_server.port}"]
    code, found = doctor(*at)
    assert (code, found["server"]["state"]) == (0, "ok")
    assert found["server"]["found"].endswith(f"runs quercus {checks.__version__}, as this machine does")
    major, minor = map(int, checks.__version__.split(".")[:2])
    for ours, state, older in (
        (f"{major}.{minor}.99", "ok", ""),
        (f"{major}.{minor + 1}.0", "note", "upgrade the server"),
        (f"{major + 1}.{minor}.0", "warning", "upgrade the server"),
        ("0.0.1", "note" if major == 0 else "warning", "upgrade Quercus on this machine"),
    ):
        monkeypatch.setattr(checks, "__version__", ours)
        code, found = doctor(*at)
        assert (code, found["server"]["state"]) == (0, state), ours
        assert found["server"]["fix"].startswith(older)
        assert ours in found["server"]["found"] or state == "ok"


def test_a_server_that_does_not_answer(store: Path) -> None:
    at = ["--store", str(store), "--port", "0", "--server", f"127.0.0.1:{free_port()}"]
    code, found = doctor(*at)
    assert (code, found["server"]["state"]) == (0, "warning")
    assert "--server" in found["server"]["fix"]
    assert doctor("--store", str(store), "--port", "0")[1]["server"]["state"] == "ok"
    assert doctor(*at[:-1], "nowhere")[1]["server"]["found"].startswith(
        "nowhere does not report its version: server: "
    )


def test_certificates_that_end(store: Path, certificate: Callable[[float], list[str]]) -> None:
    at = ["--store", str(store), "--port", "0"]
    code, found = doctor(*at, *certificate(20))
    assert (code, found["certificate"]["state"]) == (0, "warning")
    assert "systemctl reload quercus" in found["certificate"]["fix"]
    code, found = doctor(*at, *certificate(-1))
    assert (code, found["certificate"]["state"]) == (1, "fault")
    assert "has expired" in found["certificate"]["found"]
    cert, key = certificate(40)[1], certificate(50)[3]
    code, found = doctor(*at, "--tls-cert", cert, "--tls-key", key)
    assert (code, found["certificate"]["state"]) == (1, "fault")


def test_a_wrong_configuration_is_reported_in_words() -> None:
    code, found = doctor("--tls-cert", "x.pem")
    assert (code, found["configuration"]["state"]) == (1, "fault")
    assert found["configuration"]["found"].startswith("tls_key: is missing")
    assert "store" not in found


def test_a_store_that_cannot_be_opened_here_leaves_the_other_checks() -> None:
    code, found = doctor("--store", "mysql://host/database", "--port", str(free_port()))
    assert (code, found["store"]["state"], found["port"]["state"]) == (1, "fault", "ok")
    assert "'mysql' is not supported" in found["store"]["found"]


def test_without_the_servers_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "has_server", lambda: False)
    _, found = doctor()
    assert list(found) == ["python", "packages", "plug-ins", "server", "clock", "files"]


def test_a_low_limit_of_open_files_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1024))
    assert checks.check_files().state == "warning"


def test_on_a_terminal_each_fix_has_its_arrow(store: Path) -> None:
    runner = typer.testing.CliRunner()
    arguments = ["doctor", "--store", str(store.parent / "none" / "q.db")]
    shown = runner.invoke(app, arguments, env={"COLUMNS": "80"}).stdout
    assert "→ mkdir -p" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_more_workers_than_cores(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    for given, state, text in (
        ("2", "ok", "2 on 2 cores"),
        ("3", "warning", "3 on 2 cores"),
        ("auto", "ok", "2 on 2 cores"),
    ):
        monkeypatch.setenv("QUERCUS_WORKERS", given)
        found = doctor("--store", str(store), "--port", "0")[1]["workers"]
        assert (found["state"], found["found"]) == (state, text)
    monkeypatch.setattr("quercus.server.machine.SHARES_PORTS", False)
    monkeypatch.setenv("QUERCUS_WORKERS", "3")
    assert doctor("--store", str(store), "--port", "0")[1]["workers"]["state"] == "fault"
