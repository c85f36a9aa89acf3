"""The status codes that a server in this process gave, compared with what is declared."""

from typing import Any

import grpc

from quercus.server.gate.rpcs import RPCS
from quercus.server.telemetry.metrics import CODES

NAMES = {label: name for name, label in CODES.items()}
UNTOLD = {"OK", "UNKNOWN"}
"""UNKNOWN is counted where a client left while something was written to it: nobody was told."""


def undeclared(metrics: Any) -> list[str]:
    """Return the calls of a server that ended with a code that their RPC does not declare."""
    found = []
    for family in metrics.handled.collect():
        for sample in family.samples:
            if not sample.name.endswith("_total") or not sample.value:
                continue
            rpc = RPCS.get(f"/{sample.labels['grpc_service']}/{sample.labels['grpc_method']}")
            code = NAMES[sample.labels["grpc_code"]]
            if code in UNTOLD:
                continue
            if rpc is not None and grpc.StatusCode[code] not in rpc.statuses:
                found.append(f"{rpc.name} ended with {code}")
    return found
