"""A server that asks for tokens: each page is for who may see it, and a token stands nowhere."""

import http.client
import json
import re
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
    assert guarded.tokens["labeller"].split("_", 2)[2] not in "".join(everything)


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


def test_an_administrator_makes_a_token_and_sees_it_once(guarded: Guarded) -> None:
    olga = guarded.visitor("operator")
    page = olga.get("/tokens")
    assert page.status == 200
    assert page.headers["cache-control"] == "no-store"
    assert not any(token in page.text for token in guarded.tokens.values())
    fields = {
        "caller": "ann",
        "role": ["labeller", "reader"],
        "lifetime": "7",
        "scope": "some",
        "model": ["m"],
    }
    made = olga.form("/tokens", fields)
    assert (made.status, made.headers["location"]) == (303, "/tokens")
    shown = re.findall(r'value="(quercus_[0-9a-f]{12}_[A-Za-z0-9_-]{43})"', olga.get("/tokens").text)
    assert len(shown) == 1
    assert shown[0] not in olga.get("/tokens").text  # neither after loading it again nor by going back
    ann = Visitor(guarded.console.port)
    assert ann.sign_in(token=shown[0]).status == 303
    with Client(guarded.serving.address, token=shown[0]) as client:
        assert (client.caller().roles, client.caller().models) == (("labeller", "reader"), ("m",))
    identity = shown[0].split("_")[1]
    gone = olga.form("/tokens/revoke", {"id": identity})
    assert gone.status == 303
    assert f"The token {identity} of ann is revoked" in olga.get("/tokens").text
    for _ in range(200):
        if ann.get("/").status == 303:  # its session ends with it
            break
    assert ann.get("/").headers["location"].startswith("/sign-in")


def test_nobody_else_sees_or_changes_tokens(guarded: Guarded) -> None:
    restricted = Visitor(guarded.console.port)
    made = quercus(
        "tokens", "create", "lead", "--role", "operator", "--model", "m", "--store", guarded.store
    ).stdout.strip()
    assert restricted.sign_in(token=made).status == 303
    before = quercus("tokens", "list", "--store", guarded.store, "--json").stdout
    identity = json.loads(before)[0]["id"]
    for visitor in (guarded.visitor("reader"), guarded.visitor("labeller"), restricted):
        assert "/tokens" not in visitor.get("/").text
        assert visitor.get("/tokens").status == 403
        fields = {"caller": "eve", "role": "operator", "lifetime": "never", "scope": "all"}
        assert visitor.form("/tokens", fields).status == 403
        assert visitor.form("/tokens/revoke", {"id": identity}).status == 403
    olga = guarded.visitor("operator")
    for path, sent in (("/tokens", fields), ("/tokens/revoke", {"id": identity})):
        assert olga.form(path, sent | {"form_token": "x" * 43}).status == 403
        assert olga.form(path, sent, sec_fetch_site="cross-site").status == 403
        assert Visitor(guarded.console.port).form(path, sent).headers["location"].startswith("/sign-in")
    assert quercus("tokens", "list", "--store", guarded.store, "--json").stdout == before


def test_a_form_that_makes_no_token_says_why_and_keeps_what_was_typed(guarded: Guarded) -> None:
    olga = guarded.visitor("operator")
    olga.get("/tokens")
    good = {"caller": "ann", "role": "reader", "lifetime": "7", "scope": "some", "models": "m later"}
    for changes, said in (
        ({"caller": "<img src=x>"}, "caller: is &#39;&lt;img src=x&gt;&#39;, must be 1 to 63"),
        ({"role": []}, "roles: are none"),
        ({"models": ""}, "models: choose at least one, or all models"),
        ({"models": "Wine"}, "models: &#39;Wine&#39; is not 1 to 63 characters"),
    ):
        answer = olga.form("/tokens", good | changes)
        assert answer.status == 400
        assert said in answer.text
        assert "<img" not in answer.text
        kept = str((good | changes)["models"])
        assert f'name="models" type="text" value="{kept}"' in answer.text
    assert olga.form("/tokens", good | {"lifetime": "9999"}).status == 400
    assert olga.form("/tokens", good | {"scope": ""}).status == 400
    own = json.loads(quercus("tokens", "list", "--store", guarded.store, "--json").stdout)
    mine = next(each["id"] for each in own if each["name"] == "the-operator")
    answer = olga.form("/tokens/revoke", {"id": mine})
    assert answer.status == 409
    assert "is the one of this call" in answer.text


def test_an_open_server_has_no_page_of_tokens(tmp_path: Path) -> None:
    serving = Serving(tmp_path, 0, grower=False)
    console = ConsoleProcess(serving.address)
    try:
        anyone = Visitor(console.port)
        assert anyone.sign_in(name="ann").status == 303
        assert "/tokens" not in anyone.get("/").text
        answer = anyone.get("/tokens")
        assert answer.status == 409
        assert "asks for no token, so anybody could create one" in answer.text
    finally:
        console.stop()
        serving.stop()
