"""The `.proto` files say what an RPC is; a golden file keeps who may call what from changing unseen."""

import re
import subprocess
import sys
from pathlib import Path

import grpc
from support.checkout import ROOT, generator
from support.status_codes import undeclared

from quercus.server.gate.rpcs import ANY_CALL, LIBRARY, OPERATOR, RPCS, Rpc, rpc_of
from quercus.server.telemetry.metrics import Metrics
from quercus.storage import Store
from quercus.v1.calls import METHODS, is_repeatable

GOLDEN = ROOT / "tests/golden/rpcs.txt"


def line_of(path: str, rpc: Rpc) -> str:
    traits = {
        "reads": rpc.reads,
        "audited": rpc.audited,
        "whole-server": rpc.whole_server,
        "unrestricted": rpc.unrestricted,
        "light": rpc.light,
        "waits": rpc.waits,
        "not-repeated": path in METHODS and not is_repeatable(METHODS[path]),
    }
    parts = sorted(rpc.roles), [name for name, on in traits.items() if on], sorted(c.name for c in rpc.causes)
    return f"{rpc.name}: {'; '.join(' '.join(part) or '-' for part in parts)}"


def test_roles_traits_and_codes_of_every_rpc_are_those_of_the_golden_file() -> None:
    """A change is written there by hand, for it changes who may do what."""
    assert sorted(line_of(*each) for each in RPCS.items()) == GOLDEN.read_text(encoding="utf-8").splitlines()


def test_a_method_that_is_not_described_is_for_operators_alone() -> None:
    rpc = rpc_of("/quercus.v1.ModelService/Nothing")
    assert (rpc.name, rpc.roles) == ("ModelService/Nothing", {OPERATOR})
    assert not any((rpc.reads, rpc.light, rpc.audited, rpc.waits, rpc.causes))


def test_any_compiler_reads_the_protos_in_their_own_folder(tmp_path: Path) -> None:
    """Google's files, which a compiler need not bring, are among them."""
    files = [str(path) for path in sorted((ROOT / "proto").glob("[iq]*/**/*.proto"))]
    assert len(files) == 10
    compiled = "import sys; from grpc_tools import protoc; sys.exit(protoc.main(sys.argv))"
    asked = [f"-I{ROOT / 'proto'}", f"--descriptor_set_out={tmp_path / 'set'}", *files]
    subprocess.run([sys.executable, "-c", compiled, *asked], env={"PYTHONPATH": str(generator())}, check=True)


def test_every_rpc_declares_its_codes_with_a_sentence() -> None:
    for rpc in RPCS.values():
        assert ANY_CALL.keys() <= rpc.statuses.keys()
        assert grpc.StatusCode.OK not in rpc.statuses
        assert all(cause.endswith(".") and cause[0].isupper() for cause in rpc.statuses.values()), rpc.name


def test_a_code_that_is_not_declared_is_found(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/store.db") as store:
        metrics = Metrics(store)
        metrics.handled.labels("unary", "quercus.v1.ModelService", "GetModel", "NotFound").inc()
        metrics.handled.labels("unary", "grpc.health.v1.Health", "Check", "Unknown").inc()
        assert not undeclared(metrics)
        metrics.handled.labels("unary", "quercus.v1.ModelService", "GetModel", "Aborted").inc()
        assert undeclared(metrics) == ["ModelService/GetModel ended with ABORTED"]


def test_the_protocol_tells_every_code_that_a_caller_can_see_and_no_other() -> None:
    """Callers of other languages read the table of `docs/protocol.md`."""
    protocol = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    section = protocol.split("## Status codes", 1)[1].split("\n## ", 1)[0]
    told = set(re.findall(r"^\| `([A-Z_]+)` \|", section, re.MULTILINE))
    seen = {code for rpc in RPCS.values() for code in rpc.causes} | ANY_CALL.keys() | LIBRARY.keys()
    assert told == {code.name for code in seen}
