"""The compiled kernels: built from the sources beside them, strict about arrays, and compiled in no process."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import quercus.kernels
from quercus.kernels import compiled
from quercus.kernels.likelihood import maximise

FOLDER = Path(quercus.kernels.__file__).resolve().parent
IN_CLONES = pytest.mark.skipif(not (FOLDER / "arrays.hpp").exists(), reason="a wheel has no sources")
ON_SERVERS = pytest.mark.skipif(sys.platform == "win32", reason="no server runs on Windows")
UNALIGNED = np.frombuffer(bytearray(33), np.float64, 4, 1).reshape(2, 2)
P, W = np.array([[1.0, 0.5], [0.25, 1.0]]), np.ones(2)


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A package `quercus` of the kernels alone, as in a clone."""
    package = tmp_path / "quercus"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.copytree(FOLDER, package / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    return package / "kernels"


def imported(copied: Path) -> subprocess.CompletedProcess[str]:
    return run("import quercus.kernels", PYTHONPATH=str(copied.parents[1]))


@IN_CLONES
def test_kernels_of_other_sources_are_refused(copied: Path) -> None:
    assert imported(copied).returncode == 0
    with (copied / "likelihood.cpp").open("a") as file:
        file.write("// edited\n")
    done = imported(copied)
    assert done.returncode == 1
    assert "were built from other sources" in done.stderr
    assert "build them: make" in done.stderr


def test_missing_kernels_are_an_error_that_says_how_to_build_them(copied: Path) -> None:
    Path(copied / Path(compiled.__file__).name).unlink()
    done = imported(copied)
    assert done.returncode == 1
    assert "are not built for this Python; build them: make" in done.stderr


@pytest.mark.parametrize(
    "wrong",
    [P.astype(np.float32), P.T.copy().T, np.ones((2, 4))[:, ::2], P.ravel(), P.tolist(), UNALIGNED, P > 0.5],
    ids=["float32", "Fortran's order", "a view", "one dimension", "a list", "not aligned", "bools"],
)
def test_another_kind_of_array_is_a_type_error(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"maximise\(P: numpy.typing.NDArray\[numpy.float64\]"):
        maximise(wrong, W)  # type: ignore[arg-type]


def test_what_is_only_read_may_be_read_only() -> None:
    fixed = P.copy()
    fixed.flags.writeable = False
    theta, _ = maximise(fixed, W)
    assert theta.tolist() == maximise(P, W)[0].tolist()


@pytest.mark.parametrize(
    "module",
    [
        *(
            pytest.param(f"server.{each}", marks=ON_SERVERS)
            for each in (
                "app", "workers.parent", "workers.worker",
                "growth.grower", "growth.learner_process", "growth.replay_process",
            )
        ),
        "estimators",
        "estimators.executors",
        "cli.main",
    ],
)  # fmt: skip
def test_no_process_compiles(module: str) -> None:
    code = (
        f"import sys, quercus.{module}; from quercus.trees import fit, grow;"
        " print([m for m in ('numba', 'llvmlite', 'cffi', 'ziglang') if m in sys.modules])"
    )
    done = run(code)
    assert done.stdout.strip() == "[]", done.stderr


@IN_CLONES
def test_a_machine_without_a_compiler_gets_one_from_pypi() -> None:
    code = "import sys; sys.path.insert(0, 'kernels'); import building; print(building.missing_compiler())"

    def required(path: str) -> str:
        environment = {"PATH": path, "CXX": ""}
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=FOLDER.parent,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    assert required("/nowhere") == "['ziglang>=0.15']"
    assert required(os.environ["PATH"]) == "[]" or not shutil.which("c++")


@IN_CLONES
def test_a_build_without_headers_of_python_names_the_package() -> None:
    code = (
        "import sys; sys.path.insert(0, 'kernels'); import building; from setuptools import Distribution;"
        "building.sysconfig.get_path = lambda name: '/nowhere';"
        "building.BuildKernels(Distribution())._need_headers()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=FOLDER.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"apt-get install python3.{sys.version_info.minor}-dev" in done.stderr


@pytest.mark.parametrize("group", ["likelihood", "growth", "forest"])
def test_the_stubs_are_those_of_the_kernels(group: str, tmp_path: Path) -> None:
    pytest.importorskip("nanobind", reason="of the group checks")
    made = tmp_path / f"{group}.pyi"
    command = ["-m", "nanobind.stubgen", "-q", "-m", f"quercus.kernels.compiled.{group}", "-o", str(made)]
    subprocess.run([sys.executable, *command], check=True)
    assert made.read_text() == (FOLDER / f"{group}.pyi").read_text(), "make kernels"
