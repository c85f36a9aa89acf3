"""Variables of the environment: those that something reads are known, and no others are taken."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import quercus
from quercus.belief.errors import InvalidInput
from quercus.cli.main import app
from quercus.server.config import BadConfiguration, Config
from quercus.specification import server
from quercus.specification.environment import VARIABLES, check_environment

MADE = {
    "QUERCUS_CONSOLE_NAME",
    "QUERCUS_COMPLETE",
}  # a pattern in a docstring; the shell's, which begins with _


def test_every_variable_that_the_code_reads_is_known() -> None:
    root = Path(quercus.__file__).parent
    folders = ("cli", "client", "console", "server", "storage")
    files = [file for folder in folders for file in (root / folder).resolve().rglob("*.py")]
    read = {name for file in files for name in re.findall(r"\bQUERCUS_[A-Z_]*[A-Z]\b", file.read_text())}
    assert read - MADE - {"QUERCUS_CONSOLE"} <= VARIABLES
    assert {f"QUERCUS_{name.upper()}" for name in server.PARAMETERS} <= VARIABLES


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("QUERCUS_SERVRE", "QUERCUS_SERVER"),
        ("QUERCUS_MAX_CALL", "QUERCUS_MAX_CALLS"),
        ("quercus_tokn", "QUERCUS_TOKEN"),
        ("QUERCUS_CONSOLE_NAMES", "QUERCUS_CONSOLE_NAME"),
    ],
)
def test_a_misspelt_variable_is_refused_with_what_was_meant(
    monkeypatch, tmp_path: Path, name: str, near: str
) -> None:
    with pytest.raises(InvalidInput, match=f"did you mean {near}\\?"):
        check_environment({name: "1"})
    with pytest.raises(BadConfiguration, match=f"{name}: is not a variable .* did you mean {near}"):
        Config.load({"store": str(tmp_path / "s.db")}, environ={name: "1"})
    monkeypatch.setenv(name, "1")
    run = CliRunner().invoke(app, ["check", "--store", str(tmp_path / "s.db")])
    assert run.exit_code != 0
    assert near in str(run.exception)


def test_what_kubernetes_sets_is_no_mistake() -> None:
    check_environment(
        {
            "QUERCUS_SERVICE_HOST": "10.0.0.1",
            "QUERCUS_SERVICE_PORT_GRPC": "50051",
            "QUERCUS_PORT_50051_TCP_ADDR": "10.0.0.1",
            "QUERCUS_SERVER_PORT": "tcp://10.0.0.1:50051",
            "QUERCUS_SERVER_SERVICE_PORT": "50051",
        }
    )
    with pytest.raises(InvalidInput):
        check_environment({"QUERCUS_SERVER_PORT": "50051"})
