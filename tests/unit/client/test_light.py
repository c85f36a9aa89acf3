"""The library costs little: nothing of the server, and no heavy package, is imported with it."""

import subprocess
import sys

HEAVY = ("scipy", "numba", "sqlalchemy", "pandas", "sklearn", "matplotlib")
PARTS = ("quercus.server", "quercus.storage", "quercus.trees", "quercus.belief", "quercus.experiments")


def imported_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_library() -> None:
    modules = imported_by("import quercus.client, quercus.client.aio")
    assert not modules.intersection(HEAVY + PARTS + ("typer", "rich"))


def test_the_command_line() -> None:
    modules = imported_by("import quercus.client.cli")
    assert not modules.intersection(HEAVY + PARTS)
