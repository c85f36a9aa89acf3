"""Whether kernels are compiled or only loaded is noticed, and where compiled ones are kept."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numba
import pytest

from quercus.trees.precompile import (
    Progress,
    kernel_cache,
    noticing_compilation,
    prepare,
)

KERNEL = """
import numba

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


def test_compiling_is_told_once_and_loading_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_nothing_is_told_where_all_kernels_are_loaded() -> None:
    told: list[Progress] = []
    prepare(told.append)
    assert told == []
