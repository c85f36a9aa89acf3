"""The tool that checks the import rules (`make checks`) notices a violation in every folder."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.checkout import FOLDERS, PARTS, ROOT, copy_checkout

VIOLATIONS = {
    "belief": "import quercus.trees",
    "specification": "import numpy",
    "trees": "import sqlalchemy",
    "storage": "import quercus.trees",
    "v1": "import quercus.belief",
    "inference": "import quercus.trees",
    "server": "def late() -> None:\n    import quercus.client",
    "client": "import quercus.server",
    "estimators": "import quercus.client.client",
    "experiments": "import quercus.server",
    "files": "import quercus.trees",
    "view": "import rich",
    "console": "import quercus.view.terminal",
}


INTERNAL = {
    "server/internal": "import quercus.storage.records\nimport quercus.trees.tree.node\n",
    "estimators/internal": "import quercus.trees.growth.stream\n",
}


def lint(directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(directory / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def violated(tmp_path_factory: pytest.TempPathFactory) -> str:
    copy = copy_checkout(tmp_path_factory.mktemp("violated"))
    for part, line in VIOLATIONS.items():
        (copy / PARTS[part] / "violation.py").write_text(line + "\n")
    for module, lines in INTERNAL.items():
        (copy / f"{module}.py").write_text(lines)
    result = lint(copy)
    assert result.returncode == 1, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("part", VIOLATIONS)
def test_a_violation_in_any_part_is_found(violated: str, part: str) -> None:
    assert f"quercus.{part}.violation ->" in violated


@pytest.mark.parametrize(
    "found",
    [
        "quercus.server.internal -> quercus.storage.records",
        "quercus.server.internal -> quercus.trees.tree.node",
        "quercus.estimators.internal -> quercus.trees.growth.stream",
    ],
)
def test_an_import_past_the_face_of_a_package_is_found(violated: str, found: str) -> None:
    assert found in violated


@pytest.mark.parametrize(
    ("folder", "allowed"),
    [
        ("belief", {"numpy"}),
        ("specification", set()),
        ("trees", {"numpy", "scipy"}),
    ],
)
def test_mathematical_folders_use_only_their_libraries(folder: str, allowed: set[str]) -> None:
    files = list((ROOT / folder).rglob("*.py"))
    assert files
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            roots = {name.split(".")[0] for name in names}
            foreign = roots - allowed - {"quercus"} - sys.stdlib_module_names
            assert not foreign, f"{file.relative_to(ROOT)} imports {foreign}"
            assert not any(isinstance(n, ast.ImportFrom) and n.level for n in [node]), (
                f"{file}: relative import"
            )


def test_no_file_imports_what_compiles_while_a_process_runs() -> None:
    """Not even in a function: the kernels are compiled before Quercus runs (docs/explanation/kernels.md)."""
    files = [file for folder in {*FOLDERS, "proto"} for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 300
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            compiling = {"numba", "llvmlite", "cffi", "ziglang"} & {name.split(".")[0] for name in names}
            assert not compiling, f"{file.relative_to(ROOT)} imports {compiling}"
