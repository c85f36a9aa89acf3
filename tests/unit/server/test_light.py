"""The server process computes nothing, so it does not load what only growing needs."""

import subprocess
import sys


def test_the_server_does_not_load_numba() -> None:
    code = "import quercus.server.app, sys; print([m for m in ('numba', 'scipy') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
