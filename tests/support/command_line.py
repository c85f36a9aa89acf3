"""The command line in processes forked from one that has imported all libraries.

Each is a process of its own that runs `quercus.cli.main.main` as the script ``quercus`` does. Imports are two thirds of
what a short command or the start of a server costs; commands in pseudo-terminals, and servers that are run by another
command, are started as a user starts them.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from support.forked import ForkedProcess

TIME_S = 100.0


def run(*arguments: str) -> None:
    sys.argv = ["quercus", *arguments]
    from quercus.cli.main import main

    main()


def serve(flags: dict[str, Any]) -> None:
    """Run a server with these settings and no others."""
    from quercus.server import app
    from quercus.server.config import Config

    app.serve(Config.load(flags, environ={}), lambda address: print(f"listening on {address}", flush=True))


def quercus(
    *arguments: str, server: str = "", stdin: str = "", environment: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """Run the command line in this folder, in this environment unless another is given, and wait for its end."""
    environment = {**environment, "NO_COLOR": "1", "COLUMNS": "200"}
    if server:
        environment["QUERCUS_SERVER"] = server
    process = ForkedProcess(run, *arguments, environment=environment, stdin=stdin)
    printed, errors = process.communicate(TIME_S)
    assert process.returncode is not None
    return subprocess.CompletedProcess(["quercus", *arguments], process.returncode, printed, errors)
