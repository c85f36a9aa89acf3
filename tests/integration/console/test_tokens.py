"""A server that asks for tokens: each page is for who may see it, and a token stands nowhere."""

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from integration.client.serving import Serving
from support.command_line import quercus
from support.consoles import ConsoleProcess, Visitor

from quercus.client import Client, Nominal, Specification
from quercus.client.keys import UNSEEN_S

ROLES = ("reader", "labeller", "operator")


class Guarded:
    """A server with tokens, a console, and a token for each role."""

    def __init__(self, folder: Path) -> None:
        self.serving = Serving(folder, 0, "--access", "tokens")
        self.store = f"sqlite:///{folder / 'quercus.db'}"
        self.tokens = {role: self.made(role) for role in ROLES}
        self.console = ConsoleProcess(self.serving.address)

    def made(self, role: str) -> str:
        done = quercus("tokens", "create", f"the-{role}", "--role", role, "--store", self.store)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def visitor(self, role: str) -> Visitor:
        found = Visitor(self.console.port)
        assert found.sign_in(token=self.tokens[role]).status == 303
        return found


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    made = Guarded(tmp_path_factory.mktemp("guarded"))
    with Client(made.serving.address, token=made.tokens["operator"]) as client:
        client.create_model("m", Specification([Nominal("X", "abc")], ["yes", "no"], budget=9))
        client.push("m", [{"X": x} for x in "abcabc"])
        client.wait_grown("m")
    yield made
    said = made.console.stop()
    made.serving.stop()
    assert not any(token in said for token in made.tokens.values())


def test_pages_are_offered_by_role_and_refused_by_the_server(guarded: Guarded) -> None:
    offered = {
        "reader": {"tree": 200, "": 200, "classify": 200, "label": 403},
        "labeller": {"tree": 403, "": 200, "classify": 403, "label": 200},
        "operator": {"tree": 200, "": 200, "classify": 200, "label": 200},
    }
    for role, pages in offered.items():
        visitor = guarded.visitor(role)
        shown = visitor.get("/m/m").text
        for path, status in pages.items():
            address = f"/m/m/{path}".rstrip("/")
            assert (f'href="{address}"' in shown) == (status == 200), (role, path)
            assert visitor.get(address).status == status, (role, path)
        assert visitor.get("/create").status == (200 if role == "operator" else 403)
        assert ('href="/create"' in visitor.get("/").text) == (role == "operator")
        assert ("<h2>Labellers</h2>" in shown) == (role != "labeller")


def test_a_labeller_answers_under_the_name_of_the_token(guarded: Guarded) -> None:
    visitor = guarded.visitor("labeller")
    page = visitor.get("/m/m/label").text
    time.sleep(UNSEEN_S)
    lease = {
        name: page.partition(f'name="{name}" value="')[2].partition('"')[0]
        for name in ("query", "lease_token")
    }
    stolen = guarded.visitor("operator")
    assert visitor.form("/m/m/label/answer", lease | {"class": "yes"}).status == 303
    assert "You said yes." in visitor.get("/m/m/label/history").text
    assert "You said yes." not in stolen.get("/m/m/label/history").text
    with Client(guarded.serving.address, token=guarded.tokens["operator"]) as client:
        assert [each.labeller for each in client.answers("m")] == ["the-labeller"]


def test_a_token_stands_in_no_cookie_address_or_page(guarded: Guarded) -> None:
    visitor = Visitor(guarded.console.port)
    answer = visitor.sign_in(token=guarded.tokens["labeller"])
    everything = [str(answer.headers), answer.text, str(visitor.cookies)]
    everything += [
        visitor.get(path).text for path in ("/", "/m/m", "/m/m/label", "/m/m/label/history", "/m/none")
    ]
    assert guarded.tokens["labeller"].rpartition("_")[2] not in "".join(everything)


def test_wrong_tokens_are_refused_and_throttled(guarded: Guarded) -> None:
    console = ConsoleProcess(guarded.serving.address)
    try:
        visitor = Visitor(console.port)
        for token in ("", "x", "quercus_" + "0" * 12 + "_" + "a" * 43, "t" * 201, "a\nb", "ä", *["no"] * 4):
            answer = visitor.sign_in(token=token)
            assert answer.status == 403, token
            assert token == "" or f'value="{token}"' not in answer.text
        answer = visitor.sign_in(token=guarded.tokens["reader"])
        assert answer.status == 429
        assert "Try again in 5 min" in answer.text
    finally:
        console.stop()


def test_failures_behind_a_proxy_count_for_the_browser(guarded: Guarded) -> None:
    console = ConsoleProcess(guarded.serving.address, 0, "--trusted-proxy", "127.0.0.0/30")
    own = {"Host": f"127.0.0.1:{console.port}", "Sec-Fetch-Site": "same-origin"}
    own["Content-Type"] = "application/x-www-form-urlencoded"

    def status(proxy: str, browser: str) -> int:
        with closing(http.client.HTTPConnection("127.0.0.1", console.port, 30, (proxy, 0))) as connection:
            connection.request("POST", "/sign-in", "token=no", own | {"X-Forwarded-For": browser})
            return connection.getresponse().status

    try:
        assert [status("127.0.0.2", "10.0.0.8") for _ in range(11)] == [403] * 10 + [429]
        assert status("127.0.0.2", "10.0.0.9") == 403
        assert [status("127.0.0.9", f"10.0.1.{k}") for k in range(11)] == [403] * 10 + [429]  # not trusted
    finally:
        console.stop()


def test_a_revoked_token_ends_the_session(guarded: Guarded) -> None:
    guarded.tokens["gone"] = quercus(
        "tokens", "create", "gone", "--role", "reader", "--store", guarded.store
    ).stdout.strip()
    visitor = guarded.visitor("gone")
    assert visitor.get("/m/m").status == 200
    listed = json.loads(quercus("tokens", "list", "--json", "--store", guarded.store).stdout)
    number = next(each["id"] for each in listed if each["name"] == "gone")
    assert quercus("tokens", "revoke", number, "--store", guarded.store).returncode == 0
    for _ in range(100):  # half a second by the server's promise
        answer = visitor.get("/m/m")
        if answer.status == 303:
            break
    assert answer.headers["location"] == "/sign-in?next=/m/m"
    assert visitor.get("/").status == 303
