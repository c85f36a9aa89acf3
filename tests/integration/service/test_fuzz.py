"""Some mutated messages for every RPC; ``make fuzz N=10000`` sends more."""

from pathlib import Path

import pytest
from integration.client.serving import Serving
from support.fuzz import METHODS, Fuzz, garbage
from support.right import right_messages

from quercus.client import Client


def test_every_rpc_has_a_right_message() -> None:
    named = right_messages("m", [], "models/m/queries/1", 1)
    assert set(named) == {method.rpartition("/")[2] for method in METHODS}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_rpc_takes_whatever_comes(tmp_path: Path) -> None:
    serving = Serving(tmp_path, 0, "--log-level", "error")
    try:
        fuzz = Fuzz(serving.address, seed=1)
        fuzz.run(8)
        assert fuzz.bugs == []
        passed = {method for method, code in fuzz.codes if code == "OK"}
        of_tokens = {method for method in METHODS if "Token" in method}  # this server asks for none
        missing = set(METHODS) - of_tokens - passed
        told = {each: count for each, count in fuzz.codes.items() if each[0] in missing}
        assert not missing, f"some are refused at the door, whatever they are sent: {told}"
        garbage(serving.address, 20, seed=1)
        fuzz.prepare()
        with Client(serving.address) as client:
            assert client.status().is_healthy
    finally:
        assert serving.stop() == 0
