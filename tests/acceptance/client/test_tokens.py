"""Tokens on the command line: made for a store, shown by files and environment, revoked while the server runs."""

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest
from integration.client.serving import Serving
from support import command_line

from quercus.client import Client, Nominal, Specification
from quercus.storage.store import Store


@pytest.fixture
def store(tmp_path: Path) -> str:
    Store.open(f"sqlite:///{tmp_path / 'store.db'}").close()
    return str(tmp_path / "store.db")


def quercus(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return command_line.quercus(*arguments, environment=own | environment)


def made(store: str, *arguments: str) -> str:
    done = quercus("tokens", "create", *arguments, "--store", store)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() not in done.stderr
    return done.stdout.strip()


def test_tokens_are_made_listed_and_revoked_while_the_server_runs(tmp_path: Path) -> None:
    serving = Serving(tmp_path, 0, "--access", "tokens", grower=False)
    try:
        store = f"sqlite:///{tmp_path / 'quercus.db'}"
        server = {"QUERCUS_SERVER": serving.address}
        refused = quercus("models", "list", **server)
        assert refused.returncode == 1
        assert "this server asks for a token" in refused.stderr
        file = tmp_path / "ann.token"
        options = ("--role", "reader", "--role", "sensor", "--expires", "2h", "--output", str(file))
        done = quercus("tokens", "create", "ann", *options, "--store", store)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        token = file.read_text().strip()
        assert token not in done.stderr
        for way in ({"QUERCUS_TOKEN": token}, {"QUERCUS_TOKEN_FILE": str(file)}):
            assert quercus("models", "list", **server, **way).returncode == 0
        assert quercus("--token-file", str(file), "models", "list", **server).returncode == 0
        own = quercus("--token-file", str(file), "tokens", "whoami", **server)
        assert own.stdout == "ann: reader, sensor, for all models\n"
        denied = quercus("--token-file", str(file), "models", "delete", "m", "--yes", **server)
        assert denied.returncode == 1
        listed = json.loads(quercus("tokens", "list", "--store", store, "--json").stdout)
        assert [(each["name"], each["roles"], each["revoked_at"]) for each in listed] == [
            ("ann", ["reader", "sensor"], None)
        ]
        assert token not in str(listed)
        shown = quercus("tokens", "list", "--store", store)
        assert "ann" in shown.stdout
        assert quercus("tokens", "revoke", listed[0]["id"], "--store", store).returncode == 0
        ended = quercus("--token-file", str(file), "watch", "nothing", "--timeout-s", "20", **server)
        tries = 0
        while "was revoked" not in ended.stderr and tries < 20:  # it counts no more within a second
            ended = quercus("--token-file", str(file), "models", "list", **server)
            tries += 1
        assert "the token of ann was revoked" in ended.stderr
        assert "revoked" in quercus("tokens", "list", "--store", store).stdout
    finally:
        serving.stop()


def test_the_same_words_ask_a_server(tmp_path: Path) -> None:
    """The administrator reads from elsewhere what one at the store reads."""
    serving = Serving(tmp_path, 0, "--access", "tokens", grower=False)
    try:
        store = f"sqlite:///{tmp_path / 'quercus.db'}"
        olga = {"QUERCUS_TOKEN": made(store, "olga", "--role", "operator"), "NO_COLOR": "1"}
        there = ("--server", serving.address)
        file = tmp_path / "ann.token"
        options = ("--role", "labeller", "--model", "wine", "--expires", "2h")
        done = quercus("tokens", "create", "ann", *options, *there, "--output", str(file), **olga)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        own = quercus("--token-file", str(file), "tokens", "whoami", *there)
        assert own.stdout == "ann: labeller, for the models wine\n"
        for command in ("list", "audit"):
            asked = quercus("tokens", command, *there, "--json", **olga)
            assert json.loads(asked.stdout) == json.loads(
                quercus("tokens", command, "--store", store, "--json").stdout
            )
        (_, listed) = json.loads(quercus("tokens", "list", *there, "--json", **olga).stdout)
        denied = quercus("--token-file", str(file), "tokens", "list", *there)
        assert (denied.returncode, "needs operator" in denied.stderr) == (1, True)
        assert quercus("tokens", "revoke", listed["id"], *there, **olga).stdout == f"revoked {listed['id']}\n"
        nothing = quercus("tokens", "revoke", "0" * 12, *there, **olga)
        assert nothing.returncode == 1
        assert "token 000000000000 does not exist; list them with: quercus tokens list" in nothing.stderr
        both = quercus("tokens", "list", *there, "--store", store, **olga)
        assert (both.returncode, "mutually exclusive" in both.stderr) == (2, True)
        for bad in (
            ("ann smith", "--role", "reader"),
            ("ann", "--role", "king"),
            ("ann", "--role", "reader", "--model", "W"),
        ):
            wrong = [
                quercus("tokens", "create", *bad, *where, **olga) for where in (there, ("--store", store))
            ]
            assert [each.returncode for each in wrong] == [2, 2], [each.stderr for each in wrong]
            assert wrong[0].stderr == wrong[1].stderr
    finally:
        serving.stop()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ann", "--role", "king"), "must be some of reader, sensor, labeller, corrector, operator"),
        (("ann smith", "--role", "reader"), "'ann smith'"),
        (("ann", "--role", "reader", "--expires", "soon"), "as in 12h or 90d"),
        (("ann",), "--role"),
    ],
)
def test_arguments_that_make_no_token_are_reported(store: str, arguments: tuple[str, ...], said: str) -> None:
    done = quercus("tokens", "create", *arguments, "--store", store)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.slow
def test_a_token_that_is_not_there_cannot_be_revoked(store: str) -> None:
    made(store, "ann", "--role", "reader")
    done = quercus("tokens", "revoke", "000000000000", "--store", store)
    assert done.returncode == 1
    assert "list them with: quercus tokens list" in done.stderr


@pytest.mark.slow
def test_a_token_overwrites_nothing(store: str, tmp_path: Path) -> None:
    precious, link = tmp_path / "precious", tmp_path / "link"
    precious.write_text("precious")
    link.symlink_to(tmp_path / "elsewhere")
    for file in (precious, link):
        done = quercus("tokens", "create", "ann", "--role", "reader", "--output", str(file), "--store", store)
        assert (done.returncode, f"{file} exists" in done.stderr) == (1, True)
    bad = tmp_path / "bad"
    done = quercus("tokens", "create", "ann", "--role", "king", "--output", str(bad), "--store", store)
    assert (done.returncode, bad.exists()) == (2, False)
    assert precious.read_text() == "precious"
    assert json.loads(quercus("tokens", "list", "--store", store, "--json").stdout) == []


@pytest.mark.slow
def test_a_server_that_others_reach_is_not_started_without_tls(tmp_path: Path) -> None:
    new = str(tmp_path / "new.db")
    done = quercus("serve", "--store", new, "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 1
    assert "give tls_cert and tls_key, or set plaintext" in done.stderr
    assert not Path(new).exists()


def test_an_answer_is_given_and_taken_back_under_the_name_of_the_token(tmp_path: Path) -> None:
    """The name of whoever runs the command is another."""
    serving = Serving(tmp_path, 0, "--access", "tokens", grower=False)
    try:
        store = f"sqlite:///{tmp_path / 'quercus.db'}"
        tokens = {
            name: made(store, name, "--role", role)
            for name, role in (("olga", "operator"), ("ann-lee", "labeller"))
        }
        with Client(serving.address, token=tokens["olga"]) as olga:
            olga.create_model("m", Specification([Nominal("colour", "ab")], ["red", "white"], budget=0))
            olga.push("m", [["a"]], ids=["b1"])
        ways = {"QUERCUS_SERVER": serving.address, "QUERCUS_TOKEN": tokens["ann-lee"]}
        labels = tmp_path / "labels.csv"
        labels.write_text("item,answer\nb1,red\n")
        done = quercus("push", "m", str(labels), "--labels", **ways)
        assert done.returncode == 0, done.stderr
        with Client(serving.address, token=tokens["ann-lee"]) as ann:
            said = next(each for each in ann.answers("m") if each.kind == "stated")
        assert said.labeller == "ann-lee"
        done = quercus("answers", "m", "--undo", str(said.number), **ways)
        assert done.returncode == 0, done.stderr
    finally:
        serving.stop()
