"""The table of status codes names every RPC, and nothing else."""

import re
from pathlib import Path

import grpc
import pytest
from support.checkout import ROOT
from support.status_codes import undeclared

from quercus.server.gate.access import PERMISSIONS
from quercus.server.gate.statuses import ANY_CALL, LIBRARY, OWN, statuses_of
from quercus.server.telemetry.metrics import Metrics
from quercus.storage import Store


def test_every_rpc_declares_its_codes_with_a_sentence() -> None:
    assert OWN.keys() == PERMISSIONS.keys()
    for method in OWN:
        told = statuses_of(method)
        assert ANY_CALL.keys() <= told.keys()
        assert grpc.StatusCode.OK not in told
        assert all(sentence.endswith(".") and sentence[0].isupper() for sentence in told.values()), method


def test_a_code_that_is_not_declared_is_found(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/store.db") as store:
        metrics = Metrics(store)
        metrics.handled.labels("quercus.v1.ModelService", "GetModel", "NOT_FOUND").inc()
        metrics.handled.labels("grpc.health.v1.Health", "Check", "UNKNOWN").inc()
        assert not undeclared(metrics)
        metrics.handled.labels("quercus.v1.ModelService", "GetModel", "ABORTED").inc()
        assert undeclared(metrics) == ["ModelService/GetModel ended with ABORTED"]
    with pytest.raises(KeyError):
        statuses_of("ModelService/Nothing")


def test_the_protocol_tells_every_code_that_a_caller_can_see_and_no_other() -> None:
    """Callers of other languages read the table of `docs/protocol.md`."""
    protocol = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    section = protocol.split("## Status codes", 1)[1].split("\n## ", 1)[0]
    told = set(re.findall(r"^\| `([A-Z_]+)` \|", section, re.MULTILINE))
    seen = {code for own in OWN.values() for code in own} | ANY_CALL.keys() | LIBRARY.keys()
    assert told == {code.name for code in seen}
