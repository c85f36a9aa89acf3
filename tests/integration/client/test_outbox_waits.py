"""The connection between an outbox and its server fails in transient ways: the outbox waits, says why, and goes on."""

import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from integration.client.serving import Serving
from support.proxy import Proxy, running_proxy

from quercus.client import (
    Client,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    Nominal,
    RejectedRow,
    RejectedRows,
    ServerError,
    Specification,
)

PATIENCE = 300
SPECIFICATION = Specification([Nominal("X", "ab")], ["o", "s"])
CODES = [grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAVAILABLE,
         grpc.StatusCode.UNKNOWN, grpc.StatusCode.CANCELLED]  # fmt: skip


@pytest.fixture(scope="module")
def proxy(shared_server: Serving) -> Iterator[Proxy]:
    with running_proxy(shared_server.address) as running:
        yield running


@pytest.mark.parametrize("code", CODES)
def test_an_outbox_outlives_what_passes(code: grpc.StatusCode, proxy: Proxy, tmp_path: Path) -> None:
    model = f"outbox-{code.name.lower().replace('_', '-')}"
    with Client(proxy.address) as client:
        client.create_model(model, SPECIFICATION)
        with client.outbox(model, tmp_path / "rows.buffer") as outbox:
            proxy.broken, proxy.refused = code, 0
            for k in range(3):
                outbox.put([["a"], ["b"]], ids=[f"a{k}", f"b{k}"])
            for _ in range(PATIENCE):  # gRPC tries some codes several times before it says so
                if outbox.waiting_for and proxy.refused > 1:
                    break
                with pytest.raises(DeadlineExceeded, match=r"6 rows still wait after 0\.1 s"):
                    outbox.flush(0.1)
            assert "the proxy is broken" in outbox.waiting_for
            assert proxy.refused > 1
            with pytest.raises(DeadlineExceeded, match=r"6 rows still wait after .* the proxy is broken"):
                outbox.flush(0.1)
            proxy.broken = None
            outbox.flush(60)
            assert outbox.waiting_for == ""
        assert client.get_model(model).instance_count == 6


def test_rows_are_refused_once_although_the_stream_breaks_behind_them(proxy: Proxy) -> None:
    refused: list[RejectedRow] = []

    def take(rows: RejectedRows) -> None:
        refused.extend(rows)
        for reader in threading.enumerate():  # it ends when it has seen the break
            if reader.name == "quercus-push":
                reader.join(60)

    with Client(proxy.address) as client:
        client.create_model("outbox-breaks", SPECIFICATION)
        client.push("outbox-breaks", [["b"]], ids=["0"])
        proxy.passes, proxy.loses = 1, 1
        with client.outbox("outbox-breaks", on_rejected=take) as outbox:
            outbox.put([["a"]] * 1_500, ids=map(str, range(1_500)))
            outbox.flush(60)
        assert [each.id for each in refused] == ["0"]
        assert client.get_model("outbox-breaks").instance_count == 1_500


@pytest.mark.parametrize("code", [grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.DATA_LOSS])
def test_an_outbox_stops_at_what_lasts_and_keeps_its_rows(
    code: grpc.StatusCode, proxy: Proxy, tmp_path: Path
) -> None:
    """A server of another version, or a damaged store: no waiting helps, and somebody must hear of it."""
    model, path = f"outbox-{code.name.lower().replace('_', '-')}", tmp_path / "rows.buffer"
    with Client(proxy.address) as client:
        client.create_model(model, SPECIFICATION)
        outbox = client.outbox(model, path)
        proxy.broken = code
        try:
            outbox.put([["a"], ["b"]], ids=["1", "2"])
            with pytest.raises(ServerError, match="the proxy is broken"):
                outbox.flush(60)
            with pytest.raises(ServerError, match="the proxy is broken"):
                outbox.put([["a"]], ids=["3"])
            with pytest.raises(ServerError, match="the proxy is broken"):
                outbox.close()
        finally:
            proxy.broken = None
        with client.outbox(model, path) as again:
            again.flush(60)
        assert client.get_model(model).instance_count == 2


def test_an_outbox_says_which_names_were_never_seen(
    proxy: Proxy, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It says what one push of the same rows says, also of rows that an earlier process left in the file."""
    specification = Specification([Nominal("machine", ["101", "102"]), Nominal("part", [])], ["o", "s"])
    rows = [["101", "p"], ["101a", "p"], ["7b", "q"], ["101a", "q"]]
    path = tmp_path / "rows.buffer"
    with Client(proxy.address) as client:
        client.create_model("outbox-pushed", specification)
        wanted = client.push("outbox-pushed", rows).unseen
        client.create_model("outbox-unseen", specification)
        proxy.broken = grpc.StatusCode.UNAVAILABLE
        outbox = client.outbox("outbox-unseen", path)
        outbox.put(rows[:2])
        with pytest.raises(DeadlineExceeded):
            outbox.close(0.1)
        proxy.broken = None
        with client.outbox("outbox-unseen", path) as outbox:
            outbox.put(rows[2:3])
            outbox.flush(60)
            outbox.put(rows[3:])
            outbox.flush(60)
            assert outbox.unseen == wanted
    assert [each.text for each in wanted] == ["3 of 4 rows: `machine` has 2 names never seen, as 101a"]
    said = [each.getMessage() for each in caplog.records if each.name == "quercus.client.outbox"]
    (line,) = [each for each in said if "never seen" in each]
    assert line.startswith("outbox-unseen: ")
    assert "`machine` has" in line


def test_rows_packed_for_a_given_specification_do_not_reach_another_model(
    shared_server: Serving, tmp_path: Path
) -> None:
    with Client(shared_server.address) as client:
        client.create_model("outbox-swapped", Specification([Nominal("X", "ba")], ["o", "s"]))
        outbox = client.outbox("outbox-swapped", tmp_path / "rows.buffer", specification=SPECIFICATION)
        outbox.put([["a"]])
        refused = "specification: has other attributes or classes than model"
        with pytest.raises(InvalidArgument, match=refused):
            outbox.flush(60)
        with pytest.raises(InvalidArgument, match=refused):
            outbox.close()
        assert client.get_model("outbox-swapped").instance_count == 0


def test_rows_for_a_given_specification_keep_to_the_model_that_was_met_first(
    shared_server: Serving, tmp_path: Path
) -> None:
    with Client(shared_server.address) as client:
        client.create_model("outbox-again", SPECIFICATION)
        outbox = client.outbox("outbox-again", tmp_path / "rows.buffer", specification=SPECIFICATION)
        outbox.put([["a"]])
        outbox.flush(60)
        client.delete_model("outbox-again")
        client.create_model("outbox-again", SPECIFICATION)
        outbox.put([["b"]])
        with pytest.raises(FailedPrecondition, match="was deleted, and another has its name"):
            outbox.flush(60)
        with pytest.raises(FailedPrecondition):
            outbox.close()
        assert client.get_model("outbox-again").instance_count == 0
