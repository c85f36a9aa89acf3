"""TLS of the HTTP port: the certificates of gRPC's port, renewed with them, and those of clients."""

import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.http_calls import Http, free_port
from support.papers import Papers

from quercus.server.config import BadConfiguration, Config


@pytest.fixture
def papers(tmp_path: Path) -> Papers:
    return Papers(tmp_path, "ours")


@pytest.fixture
def strangers(tmp_path: Path) -> Papers:
    return Papers(tmp_path, "theirs")


def trusting(papers: Papers, shown: Papers | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(papers.ca))
    if shown is not None:
        context.load_cert_chain(shown.cert, shown.key)
    return context


def test_it_has_the_certificate_of_the_server_and_renews_it(
    start_child: Callable[..., Any], tmp_path: Path, papers: Papers, strangers: Papers, tools: Any
) -> None:
    port = free_port()
    child = start_child(tmp_path / "store.db", grower=False, http_port=port, **papers.server)
    with pytest.raises((OSError, ConnectionError)):
        Http(port).get("/livez")
    said = Http(port, context=trusting(papers)).get("/livez")
    assert (said.status, said.headers["strict-transport-security"]) == (200, "max-age=31536000")
    for mine, new in ((papers.cert, strangers.cert), (papers.key, strangers.key)):
        mine.write_bytes(new.read_bytes())
    child.process.send_signal(tools.signals.SIGHUP)
    deadline = time.monotonic() + 30
    while True:
        try:
            assert Http(port, context=trusting(strangers)).get("/livez").status == 200
            break
        except ssl.SSLError:
            assert time.monotonic() < deadline
    with pytest.raises(ssl.SSLError):
        Http(port, context=trusting(papers)).get("/livez")
    assert child.finish(tools.signals.SIGTERM)[0] == 0


def test_clients_show_a_certificate_where_the_server_asks_for_one(
    start_live: Callable[..., Any], tmp_path: Path, papers: Papers, strangers: Papers
) -> None:
    port, ca = free_port(), tmp_path / "clients.ca"
    ca.write_bytes(papers.ca.read_bytes())
    live = start_live(
        tmp_path / "store.db", grower=False, http_port=port, **papers.server, tls_client_ca=str(ca)
    )
    assert Http(port, context=trusting(papers, papers)).get("/metrics").status == 200
    for context in (trusting(papers), trusting(papers, strangers)):
        with pytest.raises((OSError, ConnectionError)):
            Http(port, context=context).get("/livez")
    ca.write_bytes(strangers.ca.read_bytes())  # another authority of clients, from now on
    live.run(live.server.reload_files())
    assert Http(port, context=trusting(papers, strangers)).get("/metrics").status == 200
    with pytest.raises((OSError, ConnectionError)):
        Http(port, context=trusting(papers, papers)).get("/livez")


def test_other_machines_are_served_with_tls_and_tokens_only() -> None:
    with pytest.raises(BadConfiguration, match=r"http_host: is '0\.0\.0\.0', which other machines can reach"):
        Config(http_port=8080, http_host="0.0.0.0")
    assert Config(http_port=8080, http_host="0.0.0.0", plaintext=True).needs_tokens
    assert not Config(http_port=0, http_host="0.0.0.0").needs_tokens
    with pytest.raises(
        BadConfiguration, match=r"http_origins: has '\*', must be origins as a browser sends them"
    ):
        Config(http_origins="https://a.example, *")
