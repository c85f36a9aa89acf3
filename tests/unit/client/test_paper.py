"""Texts of others are printed as text, and control no terminal."""

import io

import pytest
from rich.table import Table

from quercus.cli.common import PlainConsole
from quercus.client.transport import reaches_loopback
from quercus.client.unreachable import explain, is_transport


def printed(*things: object, **style: object) -> str:
    paper = PlainConsole()
    paper.file = io.StringIO()
    for thing in things:
        paper.print(thing, **style)  # type: ignore[arg-type]
    return paper.file.getvalue()  # type: ignore[attr-defined]


def test_brackets_and_colons_are_no_markup() -> None:
    assert printed("[/x] [bold]a[/bold] :warning:") == "[/x] [bold]a[/bold] :warning:\n"
    table = Table("who", box=None)
    table.add_row("[/x]")
    assert "[/x]" in printed(table)


@pytest.mark.parametrize(
    "text", ["\x1b[2J", "\x1b]0;title\x07", "\x9b2J", "a\rb", "\x08", "\u202egnp.exe", "\x7f"]
)
def test_no_text_steers_a_terminal(text: str) -> None:
    table = Table("who", box=None)
    table.add_row(text)
    found = printed(text, table, style="red")
    assert not set(found) & set("\x1b\x07\x9b\r\x08\u202e\x7f")
    assert "\N{REPLACEMENT CHARACTER}" in printed("\x1b")


def test_what_a_terminal_shows_is_printed_as_it_is() -> None:
    text = "naïve 観 │ ├─ ≥ 1\nsecond line"
    assert printed(text) == text + "\n"


@pytest.mark.parametrize(
    ("details", "says"),
    [
        (
            "SSL_ERROR_SSL: OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: unable to get local issuer certificate",
            "--tls-ca",
        ),
        ("OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: certificate has expired: OK", "not valid now"),
        ("Custom verification check failed with error: Hostname Verification Check failed.", "another name"),
        (
            "Tls handshake failed (TSI_PROTOCOL_FAILURE): OPENSSL_internal:WRONG_VERSION_NUMBER",
            "omit tls://",
        ),
        ("Failed parsing HTTP/2 (Expected SETTINGS frame as the first frame)", "not a quercus server"),
        ("Failed to connect to remote host: Connection refused", "no server answers at tls://example.org:1"),
        ("Socket closed", "if the server requires a client certificate, give one"),
    ],
)
def test_why_a_server_cannot_be_reached(details: str, says: str) -> None:
    whole = f"failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: {details}"
    assert is_transport(whole)
    assert says in explain(whole, "tls://example.org:1")


def test_a_name_that_looks_like_this_machine_is_another() -> None:
    assert all(
        map(reaches_loopback, ("127.0.0.2:1", "localhost:1", "[::1]:1", "unix:/tmp/x", "ipv4:127.0.0.1:1"))
    )
    for address in (
        "127.0.0.1.example.org:1",
        "127.evil:1",
        "localhost.example.org:1",
        "[fe80::1]:1",
        "10.0.0.1:1",
    ):
        assert not reaches_loopback(address)
