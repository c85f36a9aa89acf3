"""Sign-on by a proxy, against a console in a process of its own: addresses of this machine stand for its hosts."""

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.client.serving import Serving
from support.consoles import ConsoleProcess, Visitor
from support.waiting import until

from quercus.client import Client, Nominal, Specification
from quercus.server.gate.access import issue_token
from quercus.storage import Store, file_url

PROXY, STRANGER = "127.0.0.2", "127.0.0.3"
HEADER = "X-Forwarded-User"


class SignedOn:
    """A server with tokens, a console behind a sign-on proxy, and its file of users."""

    def __init__(self, folder: Path) -> None:
        self.serving = Serving(folder, 0, "--access", "tokens", grower=False)
        with Store.open(file_url(folder / "quercus.db")) as store:
            made = {
                name: issue_token(store.access, name, [role])
                for name, role in (
                    ("ann", "labeller"),
                    ("bob", "reader"),
                    ("olga", "operator"),
                    ("gone", "reader"),
                )
            }
            # before the server has seen it, which accepts a known token for up to a second after it is revoked
            store.access.revoke_token(made["gone"][1].id)
        self.tokens = {name: token for name, (token, _) in made.items()}
        with Client(self.serving.address, token=self.tokens["olga"]) as olga:
            olga.create_model("m", Specification([Nominal("X", "abc")], ["yes", "no"], budget=9))
        self.users = folder / "users"
        self.users.touch(0o600)
        self.write({f"{name}@example.org": token for name, token in self.tokens.items()})
        self.console = ConsoleProcess(
            self.serving.address, 0, "--sign-on-header", HEADER, "--sign-on-users", str(self.users),
            "--sign-on-proxy", PROXY,
        )  # fmt: skip

    def write(self, users: dict[str, str]) -> None:
        self.users.write_text("".join(f"{user} {token}\n" for user, token in users.items()))

    def visitor(self, source: str = PROXY) -> Visitor:
        return Visitor(self.console.port, source)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignedOn]:
    made = SignedOn(tmp_path_factory.mktemp("signed-on"))
    yield made
    made.visitor(STRANGER).get(
        "/sign-in", x_forwarded_user="eve@example.org"
    )  # which is logged once a minute
    said = made.console.stop()
    made.serving.stop()
    assert f"a request from {STRANGER} has the header x-forwarded-user and was read without it" in said
    assert "example.org" not in said  # no value of a header
    assert not any(token in said for token in made.tokens.values())
    assert "Traceback" not in said


def signed_on(visitor: Visitor, user: str, path: str = "/m/m") -> Visitor:
    """Open a page as a browser behind the proxy does, which adds the header to every request."""
    first = visitor.get(path, x_forwarded_user=user)
    assert (first.status, first.headers["location"]) == (303, f"/sign-in?next={path}")
    page = visitor.get(first.headers["location"], x_forwarded_user=user, sec_fetch_dest="document")
    assert page.status == 200, page.text
    assert f'content="0; url={path}"' in page.text
    cookie = page.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    visitor.get(path, x_forwarded_user=user)  # the secret of its forms
    return visitor


def test_whom_the_proxy_names_is_signed_in_with_the_token_of_that_user(world: SignedOn) -> None:
    ann = signed_on(world.visitor(), "ann@example.org")
    page = ann.get("/m/m", x_forwarded_user="ann@example.org")
    assert page.status == 200
    assert 'data-labeller="ann"' in page.text  # the name of the token, under which ann labels
    assert world.tokens["ann"] not in page.text
    assert ann.get("/create", x_forwarded_user="ann@example.org").status == 403  # and with its rights


def test_the_header_of_another_address_is_ignored(world: SignedOn) -> None:
    """A stranger, also one who says by headers that it comes from the proxy."""
    stranger = world.visitor(STRANGER)
    for more in ({}, {"x_forwarded_for": PROXY}, {"forwarded": f"for={PROXY}"}, {"x_real_ip": PROXY}):
        answer = stranger.get("/sign-in", x_forwarded_user="olga@example.org", **more)
        assert answer.status == 200
        assert 'name="token"' in answer.text
        assert "set-cookie" not in answer.headers
        assert stranger.get("/", x_forwarded_user="olga@example.org", **more).status == 303


def test_a_session_of_the_proxy_is_of_no_use_without_it(world: SignedOn) -> None:
    """A stolen cookie counts neither from another address nor beside another user's name."""
    ann = signed_on(world.visitor(), "ann@example.org")
    thief = world.visitor(STRANGER)
    thief.cookies = dict(ann.cookies)
    assert thief.get("/m/m").status == 303
    assert thief.get("/m/m", x_forwarded_user="ann@example.org").status == 303
    other = world.visitor()
    other.cookies = dict(ann.cookies)
    assert other.get("/m/m").status == 303  # the proxy names nobody
    assert other.get("/m/m", x_forwarded_user="bob@example.org").status == 303
    assert ann.get("/m/m", x_forwarded_user="ann@example.org").status == 200


def test_another_user_at_the_same_browser_gets_a_session_of_its_own(world: SignedOn) -> None:
    browser = signed_on(world.visitor(), "ann@example.org")
    anns = dict(browser.cookies)
    signed_on(browser, "bob@example.org")
    assert browser.cookies != anns
    assert 'data-labeller="bob"' in browser.get("/m/m", x_forwarded_user="bob@example.org").text
    browser.cookies = anns  # the former one is over
    assert browser.get("/m/m", x_forwarded_user="ann@example.org").status == 303


def test_a_session_by_a_token_is_not_the_users_whom_the_proxy_names(world: SignedOn) -> None:
    olga = world.visitor()
    assert (
        olga.sign_in(token=world.tokens["olga"]).status == 303
    )  # the proxy lets through whom it does not know
    assert olga.get("/m/m").status == 200
    assert olga.get("/m/m", x_forwarded_user="ann@example.org").status == 303


@pytest.mark.parametrize(
    ("user", "said"),
    [
        (
            "eve@example.org",
            "The sign-on proxy says that you are eve@example.org. This console has no token for that user",
        ),
        ("ANN@example.org", "has no token for that user"),
        ("gone@example.org", "does not take the token of that user. It was revoked or has expired"),
    ],
)
def test_who_has_no_token_is_told_so(world: SignedOn, user: str, said: str) -> None:
    visitor = world.visitor()
    answer = visitor.get("/sign-in", x_forwarded_user=user)
    assert answer.status == 403
    assert said in answer.text
    assert "set-cookie" not in answer.headers
    assert "Traceback" not in answer.text


def test_two_names_are_refused(world: SignedOn) -> None:
    ann = signed_on(world.visitor(), "ann@example.org")
    cookie = "; ".join(f"{k}={v}" for k, v in ann.cookies.items())
    for path in ("/m/m", "/sign-in", "/static/console.css"):
        with socket.create_connection(("127.0.0.1", ann.port), source_address=(PROXY, 0)) as raw:
            lines = [
                f"GET {path} HTTP/1.1", f"Host: {ann.host}", f"Cookie: {cookie}", f"{HEADER}: ann@example.org",
                f"{HEADER.lower()}: olga@example.org", "Connection: close",
            ]  # fmt: skip
            raw.sendall("\r\n".join([*lines, "", ""]).encode())
            said = raw.makefile("rb").read().decode()
        assert " 400 " in said.splitlines()[0]
        assert "names the user more than once" in said
    for two in ("ann@example.org, olga@example.org", "ann@example.org,"):
        assert ann.get("/m/m", x_forwarded_user=two).status == 400


def test_only_a_page_signs_in(world: SignedOn) -> None:
    """Pictures on a page of another site would end the user's sessions, of which there are only so many."""
    for dest in ("image", "iframe", "empty", "script"):
        answer = world.visitor().get("/sign-in", x_forwarded_user="ann@example.org", sec_fetch_dest=dest)
        assert answer.status == 403
        assert "set-cookie" not in answer.headers
    assert world.visitor().form("/sign-in", {"token": "x"}, x_forwarded_user="ann@example.org").status == 403


def test_forms_need_the_secret_and_the_origin_as_ever(world: SignedOn) -> None:
    ann = signed_on(world.visitor(), "ann@example.org")
    own = {"x_forwarded_user": "ann@example.org"}
    assert ann.form("/sign-out", {"form_token": "x" * 43}, **own).status == 403
    assert ann.form("/sign-out", {}, sec_fetch_site="cross-site", **own).status == 403
    assert ann.script("/m/m/label/next", {}, x_form_token="wrong", **own).status == 403
    assert ann.get("/m/m", **own).status == 200
    out = ann.form("/sign-out", {}, **own)
    assert out.status == 200
    assert "one click signs you in again" in out.text
    assert ann.get("/m/m", **own).status == 303
    signed_on(ann, "ann@example.org")


def test_where_a_page_continues_is_a_page_of_the_console(world: SignedOn) -> None:
    for evil in ("//evil.example", "https://evil.example", "javascript:alert(1)", "/\\\\evil"):
        page = world.visitor().get(f"/sign-in?next={evil}", x_forwarded_user="ann@example.org")
        address = re.search(r'content="0; url=([^"]*)"', page.text)
        assert address is not None
        assert address[1].startswith("/")
        assert not address[1].startswith("//")
        assert "evil" not in address[1]


def test_a_changed_file_counts_at_once_and_a_bad_one_lets_nobody_in(world: SignedOn) -> None:
    good = world.users.read_text()
    try:
        world.write({"new@example.org": world.tokens["bob"]})
        signed_on(world.visitor(), "new@example.org")
        assert world.visitor().get("/sign-in", x_forwarded_user="ann@example.org").status == 403
        world.users.chmod(0o644)
        answer = world.visitor().get("/sign-in", x_forwarded_user="new@example.org")
        assert answer.status == 503
        assert "cannot read its file of users" in answer.text
        assert str(world.users) not in answer.text
    finally:
        world.users.chmod(0o600)
        world.users.write_text(good)


def test_a_revoked_token_ends_the_session_and_says_so(world: SignedOn) -> None:
    with Client(world.serving.address, token=world.tokens["olga"]) as olga:
        made = olga.create_token("temp", ["reader"])
        good = world.users.read_text()
        try:
            world.write({"temp@example.org": made.secret})
            temp = signed_on(world.visitor(), "temp@example.org")
            olga.revoke_token(made.id)
            answer = until(  # the server may accept a token for a second after it was revoked
                lambda: (said := temp.get("/m/m", x_forwarded_user="temp@example.org")).status == 303 and said
            )
            assert answer.headers["location"].startswith("/sign-in")
            end = temp.get(answer.headers["location"], x_forwarded_user="temp@example.org")
            assert end.status == 403  # in words, and no way round and round
            assert "ask the operator of the console for another" in end.text
        finally:
            world.users.write_text(good)


def test_it_is_off_unless_it_is_asked_for(world: SignedOn) -> None:
    console = ConsoleProcess(world.serving.address)
    try:
        visitor = Visitor(console.port, PROXY)
        assert 'name="token"' in visitor.get("/sign-in", x_forwarded_user="ann@example.org").text
    finally:
        assert "sign-on" not in console.stop()


def test_a_console_whose_file_others_can_read_does_not_start(world: SignedOn, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(world.users.read_text())
    os.chmod(users, 0o640)
    flags = ("--sign-on-header", HEADER, "--sign-on-users", str(users), "--sign-on-proxy", PROXY)
    with pytest.raises(AssertionError, match="chmod 600"):
        ConsoleProcess(world.serving.address, 0, *flags)
    users.chmod(0o600)
    with pytest.raises(AssertionError, match="needs all three"):
        ConsoleProcess(world.serving.address, 0, *flags[:4])
    console = ConsoleProcess(world.serving.address, 0, *flags[:4], "--sign-on-proxy", "127.0.0.1")
    assert "any program on it may sign in as any of its users" in console.stop()
