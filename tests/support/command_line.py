"""The command line in processes that are forked from one which has imported all libraries.

Each is a process of its own that runs `quercus.cli.main.main` as the script ``quercus`` does. Imports are two thirds of
what a short command costs; commands in pseudo-terminals, and all that are killed, are started as a user starts them.
"""

import atexit
import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TIME_S = 100.0
_LIBRARIES = [
    "google.protobuf.timestamp_pb2", "google.rpc.error_details_pb2", "grpc", "numpy", "pydantic", "quercus.client",
    "quercus.files", "rich.console", "rich.progress", "rich.table", "typer.main",
]  # fmt: skip
_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(_LIBRARIES)
_STREAMS = (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_WRONLY), ("stderr", "w", os.O_WRONLY))


def _main(folder: Path, arguments: tuple[str, ...], environment: dict[str, str], cwd: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    for number, (name, mode, flags) in enumerate(_STREAMS):
        file = os.open(folder / name, flags)
        os.dup2(file, number)
        os.close(file)
        raw = io.FileIO(number, mode, closefd=False)
        buffered = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
        setattr(sys, name, io.TextIOWrapper(buffered, environment.get("PYTHONIOENCODING", "utf-8")))
    sys.argv = ["quercus", *arguments]
    from quercus.cli.main import main

    try:
        main()
    finally:
        atexit._run_exitfuncs()  # a forked process would leave them out
        sys.stdout.flush()


def quercus(*arguments: str, server: str = "", stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line in this environment and folder, and wait for its end."""
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "200"}
    if server:
        environment["QUERCUS_SERVER"] = server
    with tempfile.TemporaryDirectory(prefix="quercus-command-") as name:
        folder = Path(name)
        for each in ("stdout", "stderr"):
            (folder / each).touch()
        (folder / "stdin").write_text(stdin or "")
        process = _forking.Process(target=_main, args=(folder, arguments, environment, str(Path.cwd())))
        process.start()
        process.join(TIME_S)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(["quercus", *arguments], TIME_S)
        printed, errors = ((folder / each).read_bytes().decode() for each in ("stdout", "stderr"))
        code = process.exitcode
        process.close()
    return subprocess.CompletedProcess(["quercus", *arguments], code, printed, errors)
