"""Commands that browsers and Label Studio call say when their own certificate ends, as the server does."""

import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from integration.client.serving import QUERCUS, Serving
from support.papers import Papers

from quercus.client import Model


@pytest.mark.parametrize("command", [("console",), ("bridge", "label-studio", "--item", "row", "--model")])
@pytest.mark.parametrize(
    ("days", "said"), [(-1, "has expired, and clients refuse it"), (5, "expires on 20"), (30, "")]
)
def test_a_command_says_that_its_certificate_ends(
    serving: Serving, model: Model, tmp_path: Path, command: tuple[str, ...], days: int, said: str
) -> None:
    papers = Papers(tmp_path, "own", timedelta(days=days))
    named = [*command, model.name] if command[-1] == "--model" else command
    flags = ["--server", serving.address, "--port", "0", "--tls-cert", papers.cert, "--tls-key", papers.key]
    with subprocess.Popen(
        [QUERCUS, *named, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert " at https://" in process.stdout.readline()  # it serves nevertheless
        process.terminate()
        told = process.stderr.read()
    assert (f"the certificate {papers.cert} {said}" if said else "") in told
    assert ("warning" in told) is bool(said)
