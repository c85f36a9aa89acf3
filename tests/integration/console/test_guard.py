"""The list of security, row by row, against a console in a process of its own."""

import re
import socket

import pytest
from support.consoles import ConsoleProcess, Visitor

PATHS = ("/", "/sign-in", "/static/console.css", "/nowhere", "/healthz", "/m/none/label")


@pytest.mark.parametrize("path", PATHS)
def test_every_response_carries_the_headers(ann: Visitor, path: str) -> None:
    headers = ann.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';" in policy
    assert "form-action 'self'; base-uri 'none'; frame-ancestors 'none'" in policy
    assert "media-src 'self'; connect-src 'self';" in policy
    assert "unsafe" not in policy
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "camera=()" in headers["permissions-policy"]
    assert headers["cache-control"] == ("no-cache" if path.startswith("/static") else "no-store")
    assert "server" not in headers


def test_also_a_refusal_carries_them(visitor: Visitor) -> None:
    answer = visitor.get("/", host="evil.example")
    assert answer.status == 421
    assert "--name" in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:80", "", "localhost.:1", "[::2]:80"]
)
def test_other_names_are_refused(visitor: Visitor, host: str) -> None:
    """A name that an attacker lets resolve to this machine is not the console's."""
    with socket.create_connection(("127.0.0.1", visitor.port)) as raw:
        raw.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert raw.makefile("rb").readline().split()[1] in (b"421", b"400")


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]"])
def test_names_of_this_machine_are_answered(visitor: Visitor, name: str) -> None:
    assert visitor.get("/healthz", host=f"{name}:{visitor.port}").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "none"},
        {"sec_fetch_site": ""},
        {"sec_fetch_site": "", "origin": "https://evil.example"},
        {"sec_fetch_site": "", "origin": "null"},
        {"sec_fetch_site": "", "origin": "http://["},
    ],
)
def test_posts_of_other_sites_are_refused(ann: Visitor, headers: dict[str, str]) -> None:
    assert ann.form("/sign-out", {}, **headers).status == 403
    assert ann.get("/").status == 200  # still signed in


def test_a_browser_that_sends_origin_alone_is_one_of_ours(ann: Visitor) -> None:
    assert ann.form("/sign-out", {}, sec_fetch_site="", origin=f"http://{ann.host}").status == 303


def test_a_form_needs_the_secret_of_the_session(ann: Visitor) -> None:
    assert ann.form("/sign-out", {"form_token": "x" * 43}).status == 403
    assert ann.form("/sign-out", {"form_token": ""}).status == 403
    assert ann.ask("POST", "/sign-out", "form_token=1", content_type="text/plain").status == 415
    assert ann.get("/").status == 200
    assert ann.form("/sign-out", {}).status == 303
    assert ann.get("/").headers["location"].startswith("/sign-in")


def test_large_requests_are_refused(ann: Visitor) -> None:
    answer = ann.ask(
        "POST", "/sign-out", b"name=" + b"x" * 1_100_000, content_type="application/x-www-form-urlencoded"
    )
    assert answer.status == 413
    assert "1,048,576" in answer.text
    with socket.create_connection(("127.0.0.1", ann.port)) as raw:  # without a length, in pieces
        head = f"POST /sign-in HTTP/1.1\r\nHost: {ann.host}\r\nSec-Fetch-Site: same-origin\r\n"
        raw.sendall(f"{head}Content-Type: application/x-www-form-urlencoded\r\n".encode())
        raw.sendall(b"Transfer-Encoding: chunked\r\n\r\n")
        piece = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        try:
            for _ in range(20):
                raw.sendall(piece)
        except OSError:
            return  # it did not wait for the end
        raw.sendall(b"0\r\n\r\n")
        assert raw.makefile("rb").readline().split()[1] == b"413"


def test_the_cookie_of_a_session(visitor: Visitor) -> None:
    cookie = visitor.sign_in(name="ann").headers["set-cookie"]
    assert re.match(r"quercus-console=[A-Za-z0-9_-]{43};", cookie)
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/" in cookie


def test_a_session_is_renewed_at_sign_in(ann: Visitor) -> None:
    before = dict(ann.cookies)
    ann.sign_in(name="ann")
    assert ann.cookies != before
    again = Visitor(ann.port)
    again.cookies = before
    assert again.get("/").status == 303


def test_pages_need_a_session_and_come_back_to_it(visitor: Visitor) -> None:
    answer = visitor.get("/m/wine/label?order=strict")
    assert (answer.status, answer.headers["location"]) == (
        303,
        "/sign-in?next=/m/wine/label%3Forder%3Dstrict",
    )
    assert visitor.sign_in(name="ann", next="/m/wine").headers["location"] == "/m/wine"
    other = Visitor(visitor.port)
    assert other.sign_in(name="ann", next="//evil.example").headers["location"] == "/"


@pytest.mark.parametrize("name", ["", " ", "x" * 101, "a\nb"])
def test_a_name_is_needed_where_there_is_no_token(visitor: Visitor, name: str) -> None:
    assert visitor.sign_in(name=name).status == 403


def test_a_console_that_others_reach_is_refused_without_tls(shared_console: ConsoleProcess) -> None:
    with pytest.raises(AssertionError, match="send their tokens unencrypted"):
        ConsoleProcess("127.0.0.1:1", 0, "--host", "0.0.0.0")
    with pytest.raises(AssertionError, match="--name"):
        ConsoleProcess("127.0.0.1:1", 0, "--host", "0.0.0.0", "--plaintext")


def test_an_open_server_is_not_given_to_everybody(
    shared_console: ConsoleProcess, shared_server: object
) -> None:
    address = shared_server.address  # type: ignore[attr-defined]
    flags = ("--host", "0.0.0.0", "--plaintext", "--name", "console.example")
    console = ConsoleProcess(address, 0, *flags)
    try:
        visitor = Visitor(console.port)
        visitor.host = "console.example"
        answer = visitor.sign_in(name="ann")
        assert answer.status == 403
        assert "--access open" in answer.text
    finally:
        console.stop()
    console = ConsoleProcess(address, 0, *flags, "--access", "open")
    try:
        visitor = Visitor(console.port)
        visitor.host = "console.example"
        answer = visitor.sign_in(name="ann")
        assert answer.status == 303
        assert answer.headers["set-cookie"].startswith("__Host-quercus-console=")
        assert "Secure" in answer.headers["set-cookie"]
    finally:
        assert "warning: anybody who can reach this console may label" in console.stop()


def test_the_consoles_own_token_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from support.command_line import quercus

    monkeypatch.setenv("QUERCUS_TOKEN", "quercus_0_x")
    done = quercus("console", "--port", "0")
    assert done.returncode == 1
    assert "no rights of its own" in done.stderr
    assert "quercus_0_x" not in done.stderr


def test_an_unreachable_server_is_reported(tmp_path: object) -> None:
    console = ConsoleProcess("127.0.0.1:1")
    try:
        answer = Visitor(console.port).get("/sign-in")
        assert answer.status == 200
        assert "no server answers at 127.0.0.1:1" in answer.text
        assert Visitor(console.port).sign_in(name="ann").status == 503
    finally:
        console.stop()


def test_before_sign_in_a_request_may_be_small_only(visitor: Visitor) -> None:
    """A form that nobody has signed in for is held in memory."""
    answer = visitor.form("/sign-in", {"name": "ann", "next": "x" * 20_000})
    assert answer.status == 413
    with socket.create_connection(("127.0.0.1", visitor.port)) as raw:
        raw.sendall(
            f"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1:{visitor.port}\r\nSec-Fetch-Site: same-origin\r\n"
            "Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        raw.sendall(b"5000\r\n" + b"x" * 0x5000 + b"\r\n0\r\n\r\n")
        assert raw.makefile("rb").readline().split()[1] == b"413"
