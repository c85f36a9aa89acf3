"""The file of users, the addresses of proxies, and the settings that are refused."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from quercus.belief.errors import InvalidInput
from quercus.client.http_serving import PEER
from quercus.console.config import ConsoleConfig
from quercus.console.sign_on import MAX_FILE_BYTES, USER, BadUserFile, SignOn, plain_address, read_users

TOKEN = "quercus_0123456789ab_" + "x" * 43
OTHER = "quercus_ba9876543210_" + "y" * 43


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def test_a_line_names_a_user_and_its_token(tmp_path: Path) -> None:
    file = written(tmp_path / "users", f"# who may\n\nann {TOKEN}\n  björn@example.org\t{OTHER}  \n")
    assert read_users(file) == {"ann": TOKEN, "björn@example.org": OTHER}
    assert read_users(written(tmp_path / "owner", f"ann {TOKEN}", 0o400)) == {"ann": TOKEN}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ann\n", ":1: must be a user, a blank and the token"),
        (f"ann {TOKEN} {OTHER}\n", ":1: must be"),
        (f"\nann smith {TOKEN}\n", ":2: must be"),
        (f"ann {TOKEN[:-1]}\n", ":1: must be"),
        (f"ann,bob {TOKEN}\n", ":1: no proxy can send"),
        (f"a\u202enn {TOKEN}\n", ":1: no proxy can send"),
        (f"{'a' * 201} {TOKEN}\n", ":1: no proxy can send"),
        (f"ann {TOKEN}\nann {OTHER}\n", ":2: the user has a line already"),
    ],
)
def test_a_line_that_is_none_is_refused_without_showing_a_token(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadUserFile) as caught:
        read_users(written(tmp_path / "users", text))
    assert said in str(caught.value)
    assert TOKEN[21:40] not in str(caught.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602, 0o610, 0o644])
def test_a_file_that_others_can_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(BadUserFile, match=f"has mode {mode:o}, so others can read or change it: chmod 600"):
        read_users(written(tmp_path / "users", f"ann {TOKEN}", mode))
    link = tmp_path / "link"  # what counts is the file, whatever leads to it
    link.symlink_to(tmp_path / "users")
    with pytest.raises(BadUserFile, match="others can read"):
        read_users(link)


def test_what_is_no_file_of_ours_is_refused(tmp_path: Path) -> None:
    for path, said in (
        (tmp_path / "nothing", "cannot be read: No such file"),
        (tmp_path, "is not a file"),
        (Path("/dev/null"), "is not a file"),
    ):
        with pytest.raises(BadUserFile, match=said):
            read_users(path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(BadUserFile, match="is not a file"):  # and nobody waits for its other end
        read_users(tmp_path / "pipe")
    with pytest.raises(BadUserFile, match="more than 1,048,576 bytes"):
        read_users(written(tmp_path / "long", "#" * (MAX_FILE_BYTES + 1)))
    (tmp_path / "latin").write_bytes(b"\xff")
    (tmp_path / "latin").chmod(0o600)
    with pytest.raises(BadUserFile, match="is not UTF-8"):
        read_users(tmp_path / "latin")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "users", f"ann {TOKEN}")
    os.chown(file, 65534, 65534)
    with pytest.raises(BadUserFile, match="belongs to another user"):
        read_users(file)


def claim(scope: dict[str, Any], *proxies: str) -> tuple[str | None, str | None]:
    """Return the user, and why the request is refused; the header itself is gone in any case."""
    why = SignOn("X-Forwarded-User", proxies, Path("none")).claim_user(scope)
    assert not [name for name, _ in scope["headers"] if name == b"x-forwarded-user"]
    return scope.get(USER), why


def scope_of(peer: str | None, *users: bytes) -> dict[str, Any]:
    headers = [(b"host", b"a.example"), *((b"x-forwarded-user", user) for user in users)]
    return {"headers": headers, "client": ("10.0.0.7", 1), PEER: None if peer is None else (peer, 1)}


@pytest.mark.parametrize(
    ("peer", "proxy"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("10.0.0.7", "::ffff:a00:7"),
        ("2001:db8::1", "2001:DB8:0:0:0:0:0:1"),
        ("fe80::1%eth0", "fe80::1"),
    ],
)
def test_the_header_of_the_proxy_counts_however_its_address_is_written(peer: str, proxy: str) -> None:
    assert claim(scope_of(peer, b"ann"), proxy) == ("ann", None)


@pytest.mark.parametrize(
    "peer", ["10.0.0.8", "::ffff:10.0.0.8", "::1", "2001:db8::2", None, "", "unix:", "10.0.0.7.evil"]
)
def test_the_header_of_anybody_else_does_not(peer: str | None) -> None:
    """Not even where a header has made the client's address that of the proxy."""
    assert claim(scope_of(peer, b"ann"), "10.0.0.7", "2001:db8::1") == (None, None)


@pytest.mark.parametrize(
    ("users", "said"),
    [
        ((b"ann", b"bob"), "more than once"),
        ((b"ann", b"ann"), "more than once"),
        ((b"ann", b""), "more than once"),
        ((b"ann, bob",), "more than once"),
        ((b"ann smith",), "is not a name"),
        ((b"a\xff",), "is not a name"),
        ((b"a" * 201,), "is not a name"),
        (("a\u202e".encode(),), "is not a name"),
    ],
)
def test_a_header_that_names_no_single_user_refuses_the_request(users: tuple[bytes, ...], said: str) -> None:
    user, why = claim(scope_of("10.0.0.7", *users), "10.0.0.7")
    assert user is None
    assert why is not None
    assert said in why


def test_no_header_and_an_empty_one_name_nobody() -> None:
    assert claim(scope_of("10.0.0.7"), "10.0.0.7") == (None, None)
    assert claim(scope_of("10.0.0.7", b""), "10.0.0.7") == (None, None)
    assert claim(scope_of("10.0.0.7", "björn".encode()), "10.0.0.7") == ("björn", None)


def test_no_address_is_compared_as_text() -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        plain_address("10.0.0.7.evil")
    assert str(plain_address(socket.inet_ntoa(b"\n\0\0\x07"))) == "10.0.0.7"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sign_on_users": ""}, "sign_on: needs all three"),
        ({"sign_on_proxies": ()}, "sign_on: needs all three"),
        ({"sign_on_header": ""}, "sign_on: needs all three"),
        ({"sign_on_header": "Cookie"}, "sign_on_header: is 'Cookie'"),
        ({"sign_on_header": "Sec-Fetch-Site"}, "not a standard header"),
        ({"sign_on_header": "X_Forwarded_User"}, "letters, digits and hyphens"),
        ({"sign_on_header": "X-User\r\nX"}, "letters, digits and hyphens"),
        ({"sign_on_proxies": ("10.0.0.0/8",)}, "sign_on_proxy: is '10.0.0.0/8', must be an address"),
        ({"sign_on_proxies": ("proxy.example",)}, "sign_on_proxy: is 'proxy.example'"),
        ({"sign_on_users": "/dev/null"}, "sign_on_users: /dev/null is not a file"),
    ],
)
def test_settings_by_which_others_could_sign_on_are_refused(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    file = written(tmp_path / "users", f"ann {TOKEN}")
    good = {
        "sign_on_header": "X-Forwarded-User",
        "sign_on_users": str(file),
        "sign_on_proxies": ("10.0.0.7",),
    }
    assert ConsoleConfig(**good).sign_on is not None  # type: ignore[arg-type]
    assert ConsoleConfig().sign_on is None
    with pytest.raises(InvalidInput) as caught:
        ConsoleConfig(**(good | changes))  # type: ignore[arg-type]
    assert said in str(caught.value)
