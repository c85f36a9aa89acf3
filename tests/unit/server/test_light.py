"""The server process computes little, so it does not load what only growing needs."""

import subprocess
import sys


def test_the_server_does_not_load_scipy() -> None:
    code = "import quercus.server.app, sys; print('scipy' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
