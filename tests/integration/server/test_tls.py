"""TLS, also with certificates of clients; what a client is told when it does not fit."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.papers import Papers
from support.waiting import until

from quercus.client import Client, InvalidArgument, Unauthenticated, Unavailable
from quercus.client.aio import Client as AioClient
from quercus.server.gate import access
from quercus.server.wire.errors import BadStart
from quercus.storage import Store, file_url


@pytest.fixture
def papers(tmp_path: Path) -> Papers:
    return Papers(tmp_path, "ours")


@pytest.fixture
def strangers(tmp_path: Path) -> Papers:
    return Papers(tmp_path, "theirs")


def unreachable(client: Client, why: str | None = None) -> None:
    with client, pytest.raises(Unavailable, match=why):
        list(client.models())


def test_a_client_that_trusts_the_authority_is_served(
    start_live: Callable[..., Any], tmp_path: Path, papers: Papers
) -> None:
    server = start_live(tmp_path / "store.db", grower=False, **papers.server)
    with Client(f"tls://{server.server.address}", ca=papers.ca) as client:
        assert list(client.models()) == []

    async def ask() -> list[Any]:
        async with AioClient(f"tls://{server.server.address}", ca=papers.ca) as client:
            return [model async for model in client.models()]

    assert server.run(ask()) == []


def test_a_wrong_authority_and_plaintext_do_not_get_in(
    start_live: Callable[..., Any], tmp_path: Path, papers: Papers, strangers: Papers
) -> None:
    server = start_live(tmp_path / "store.db", grower=False, **papers.server)
    unreachable(Client(f"tls://{server.server.address}", ca=strangers.ca, timeout_s=3))
    unreachable(Client(server.server.address, timeout_s=3))
    plain = start_live(tmp_path / "plain.db", grower=False)
    unreachable(Client(f"tls://{plain.server.address}", ca=papers.ca, timeout_s=3))


def test_clients_show_a_certificate_where_the_server_asks_for_one(
    start_live: Callable[..., Any],
    tmp_path: Path,
    papers: Papers,
    strangers: Papers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = start_live(tmp_path / "store.db", **papers.server, tls_client_ca=str(papers.ca), grower=False)
    address = f"tls://{server.server.address}"
    unreachable(Client(address, ca=papers.ca, timeout_s=3), "requires a client certificate")
    monkeypatch.setenv("QUERCUS_CLIENT_CERT", str(strangers.cert))
    monkeypatch.setenv("QUERCUS_CLIENT_KEY", str(strangers.key))
    unreachable(Client(address, ca=papers.ca, timeout_s=3), "requires a client certificate")
    monkeypatch.setenv("QUERCUS_CLIENT_CERT", str(papers.cert))
    monkeypatch.setenv("QUERCUS_CLIENT_KEY", str(papers.key))
    with Client(address, ca=papers.ca) as client:
        assert list(client.models()) == []


def test_a_token_never_crosses_a_network_in_the_clear() -> None:
    with pytest.raises(InvalidArgument, match=r"unencrypted: write tls://192\.0\.2\.1:50051"):
        Client("192.0.2.1:50051", token="quercus_secret")


def test_tokens_cross_with_tls(start_live: Callable[..., Any], tmp_path: Path, papers: Papers) -> None:
    from quercus.server.gate.access import issue_token

    server = start_live(tmp_path / "store.db", **papers.server, access="tokens", grower=False)
    token, _ = issue_token(server.server.core.store.access, "ann", ["reader"])
    with Client(f"tls://{server.server.address}", ca=papers.ca, token=token) as client:
        assert list(client.models()) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"tls_cert": "nowhere.pem"}, "tls_cert: cannot read"),
        ({"tls_key": "cert"}, "not a certificate and its private key"),
        ({"tls_cert": "key"}, "not a certificate and its private key"),
        ({"tls_client_ca": "key"}, "tls_client_ca: .* has no certificate"),
    ],
)
def test_unfit_files_are_named(
    start_live: Callable[..., Any], tmp_path: Path, papers: Papers, fields: dict[str, str], said: str
) -> None:
    files = {name: str(getattr(papers, value, value)) for name, value in fields.items()}
    with pytest.raises(BadStart, match=said):
        start_live(tmp_path / "store.db", **(papers.server | files))


def fails(call: Callable[[], Any]) -> bool:
    try:
        call()
    except (Unavailable, Unauthenticated):
        return True
    return False


def test_a_hangup_renews_certificates_and_tokens(
    start_child: Callable[..., Any], tmp_path: Path, papers: Papers, strangers: Papers, tools: Any
) -> None:
    child = start_child(tmp_path / "store.db", access="tokens", grower=False, **papers.server)
    with Store.open(file_url(tmp_path / "store.db")) as store:
        token, _ = access.issue_token(store.access, "op", ["operator"])
    address = f"tls://{child.api.address}"
    before = Client(address, ca=papers.ca, token=token)
    assert list(before.models()) == []
    for mine, new in ((papers.cert, strangers.cert), (papers.key, strangers.key)):
        mine.write_bytes(new.read_bytes())
    child.process.send_signal(tools.signals.SIGHUP)
    with Client(address, ca=strangers.ca, token=token, outage_s=0) as after:
        until(lambda: not fails(lambda: list(after.models())))
    assert list(before.models()) == []  # its connection is as it was
    before.close()
    papers.key.write_text("no key")
    child.process.send_signal(tools.signals.SIGHUP)
    with Client(address, ca=strangers.ca, token=token) as still:
        assert list(still.models()) == []
    code, logged = child.finish(tools.signals.SIGTERM)
    assert code == 0
    assert "certificates are read again" in logged


def test_a_hangup_without_tls_kills_nobody(
    start_child: Callable[..., Any], tmp_path: Path, tools: Any
) -> None:
    child = start_child(tmp_path / "store.db", grower=False)
    for _ in range(5):
        child.process.send_signal(tools.signals.SIGHUP)
    child.api.create("m")
    assert child.finish(tools.signals.SIGTERM)[0] == 0


@pytest.mark.parametrize(("days", "said"), [(-1, "has expired, and clients refuse it"), (5, "expires on 20")])
def test_a_server_says_that_its_certificate_ends(
    start_live: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture, days: int, said: str
) -> None:
    papers = Papers(tmp_path, "old", timedelta(days=days))
    with caplog.at_level("WARNING"):
        server = start_live(tmp_path / "store.db", grower=False, **papers.server)
    assert any(f"{papers.cert} {said}" in line and "SIGHUP" in line for line in caplog.messages)
    with Client(f"tls://{server.server.address}", ca=papers.ca, timeout_s=5, outage_s=0) as client:
        if days < 0:
            unreachable(client, "the certificate of the server at .* is not valid now .*expired")
        else:
            assert list(client.models()) == []


def test_a_client_whose_certificate_has_expired_gets_nothing(
    start_live: Callable[..., Any], tmp_path: Path, papers: Papers, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_live(tmp_path / "store.db", grower=False, tls_client_ca=str(papers.ca), **papers.server)
    expired = papers.authority.issue_cert("localhost", not_after=datetime.now(UTC) - timedelta(days=1))
    expired.private_key_pem.write_to_path(tmp_path / "expired.key")
    expired.cert_chain_pems[0].write_to_path(tmp_path / "expired.cert")
    monkeypatch.setenv("QUERCUS_CLIENT_CERT", str(tmp_path / "expired.cert"))
    monkeypatch.setenv("QUERCUS_CLIENT_KEY", str(tmp_path / "expired.key"))
    address = f"tls://{server.server.address}"
    unreachable(Client(address, ca=papers.ca, timeout_s=5, outage_s=0), "give one that has not expired")
