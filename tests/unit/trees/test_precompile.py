"""Compiling of kernels is noticed, loading is not, and compiled kernels are kept in one place."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numba
import pytest

from quercus.trees import precompile
from quercus.trees.precompile import (
    Progress,
    kernel_cache,
    noticing_compilation,
    prepare,
)

KERNEL = """
import numba
import numpy as np

@numba.njit(cache=True)
def double(x):
    return 2 * x
"""


def loaded(file: Path) -> ModuleType:
    """The module, as a new process would have it."""
    specification = importlib.util.spec_from_file_location("kernel", file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_compiling_is_reported_once_and_loading_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL)
    told: list[str] = []
    for _ in range(2):
        with noticing_compilation(lambda: told.append("compiling")):
            assert loaded(file).double(3) == 6
    assert told == ["compiling"]
    with noticing_compilation(lambda: told.append("again")):
        again = loaded(file)
        again.double(1.5)
        again.double(1j)
    assert told == ["compiling", "again"]


def test_kernels_are_kept_in_a_folder() -> None:
    folder = kernel_cache()
    assert folder is not None
    assert list(Path(folder).glob("*.nbi"))


def test_nothing_is_reported_if_all_kernels_are_loaded() -> None:
    told: list[Progress] = []
    prepare(told.append)
    assert told == []


def test_each_step_is_reported_while_a_helper_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precompile, "is_helped", lambda: True)
    told: list[Progress] = []
    prepare(told.append)
    steps = len(precompile.COMPILING_STEPS)
    assert told == [Progress(done, steps, done >= len(precompile.BEFORE_TREES)) for done in range(steps + 1)]
