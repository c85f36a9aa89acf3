"""Callers without permission are refused before their request is read, and no request that will be refused is built."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from quercus.server.gate import access
from quercus.storage import Store, file_url

DEADLINE_S = 60.0
CLASSIFY = "/quercus.v1.ClassifyService/Classify"
ROWS = 7_000_000
SPENT_MB = 60
"""By which a server may grow over one message of 14 MB: the message as it came twice, and some."""


def field(number: int, data: bytes) -> bytes:
    """A field with a length, as it travels."""
    length, size = b"", len(data)
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


EMPTY_ROWS = field(1, b"models/m") + field(2, field(2, field(1, b"") * ROWS))


def most_mb(process: int) -> float:
    """The most memory a process ever had."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1000


@pytest.fixture
def child(start_child: Callable[..., Any], tmp_path: Path) -> Any:
    return start_child(tmp_path / "store.db", access="tokens", grower=False)


@pytest.fixture
def token(child: Any, tmp_path: Path) -> Iterator[str]:
    with Store.open(file_url(tmp_path / "store.db")) as store:
        yield access.issue_token(store.access, "reader", ["reader"])[0]


def classify(child: Any, token: str | None = None) -> grpc.RpcError:
    """Return the error of a classification of very many empty rows."""
    metadata = None if token is None else [("authorization", f"Bearer {token}")]
    with pytest.raises(grpc.RpcError) as caught:
        child.api.channel.unary_unary(CLASSIFY)(EMPTY_ROWS, timeout=DEADLINE_S, metadata=metadata)
    return caught.value


def test_strangers_cost_nothing(child: Any) -> None:
    before = most_mb(child.process.pid)
    with ThreadPoolExecutor(6) as pool:
        errors = list(pool.map(lambda _: classify(child), range(6)))
    assert {error.code() for error in errors} == {grpc.StatusCode.UNAUTHENTICATED}  # type: ignore[attr-defined]
    assert most_mb(child.process.pid) - before < SPENT_MB


def test_rows_that_are_too_many_are_not_made(child: Any, token: str, tools: Any) -> None:
    before = most_mb(child.process.pid)
    error = classify(child, token)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT  # type: ignore[attr-defined]
    assert tools.violation(error)[0] == "rows.named.rows"
    assert most_mb(child.process.pid) - before < SPENT_MB


def test_a_stranger_need_not_send_anything_to_be_refused(child: Any) -> None:
    never = threading.Event()
    silent = child.api.channel.stream_unary(CLASSIFY)
    with pytest.raises(grpc.RpcError) as caught:
        silent(iter(never.wait, True), timeout=DEADLINE_S)
    never.set()
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED  # type: ignore[attr-defined]
