"""The library costs little: nothing of the server, and no heavy package, is imported with it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import quercus.client

HEAVY = ("scipy", "quercus.kernels", "sqlalchemy", "pandas", "sklearn", "matplotlib")
PARTS = ("quercus.server", "quercus.storage", "quercus.trees", "quercus.belief.mass", "quercus.experiments")


def imported_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_library() -> None:
    modules = imported_by("import quercus.client, quercus.client.aio")
    assert not modules.intersection(HEAVY + PARTS + ("typer", "rich"))


def test_the_command_line() -> None:
    modules = imported_by("import quercus.cli.main")
    assert not modules.intersection(HEAVY + PARTS)


def test_commands_that_show_what_a_server_has() -> None:
    names = ("answers", "label", "labellers", "models", "tree", "watch")
    modules = imported_by(f"import {', '.join(f'quercus.cli.{name}' for name in names)}")
    assert not modules.intersection(HEAVY + PARTS)


def test_pages_need_no_terminal() -> None:
    modules = imported_by("import quercus.console.app")
    assert not modules.intersection((*HEAVY, *PARTS, "rich", "typer"))


HELP = "sys.argv[1:] = ['--help']"
COMPLETION = (
    "import os; os.environ |= dict(_QUERCUS_COMPLETE='complete_bash', COMP_WORDS='quercus p', COMP_CWORD='1')"
)


@pytest.mark.parametrize(("asked", "shows"), [(HELP, "serve"), (COMPLETION, "push")])
def test_help_and_completion_import_no_command(asked: str, shows: str) -> None:
    ends = "import atexit; atexit.register(lambda: print(*sys.modules))"
    start = "sys.argv[:] = ['quercus']; from quercus.cli.main import main"
    code = f"import sys; {ends}; {start}; {asked}; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    shown, _, modules = done.stdout.strip().rpartition("\n")
    assert done.returncode == 0, done.stderr
    assert shows in shown
    loaded = set(modules.split())
    assert "quercus.cli.main" in loaded
    assert not loaded.intersection(
        (
            *HEAVY,
            *PARTS,
            "quercus.belief",
            "quercus.specification",
            "pydantic_settings",
            "grpc",
            "google.protobuf",
            "numpy",
            "quercus.client.client",
        )
    )
    modules_of_ours = {name for name in loaded if name.startswith(("quercus.cli.", "quercus.view."))}
    assert modules_of_ours == {
        "quercus.cli.failures",
        "quercus.cli.main",
        "quercus.view.terminal",
        "quercus.view.terminal.ascii_form",
    }


def test_public_names_are_known_to_type_checkers_and_at_run_time() -> None:
    (checked,) = (
        node
        for node in ast.parse(Path(quercus.client.__file__).read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    imported = {name.name for each in checked.body if isinstance(each, ast.ImportFrom) for name in each.names}
    assert imported == set(quercus.client.__all__)
    assert all(hasattr(quercus.client, name) for name in imported)
