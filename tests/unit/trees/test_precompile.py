"""Whether kernels are compiled or only loaded is noticed, and where compiled ones are kept."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import numba
import pytest

from quercus.trees import precompile
from quercus.trees.precompile import (
    Progress,
    is_all_compiled,
    kernel_cache,
    note_all_compiled,
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


def test_a_full_cache_is_known_until_a_source_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setattr(precompile, "kernel_cache", lambda: str(cache))
    monkeypatch.setattr(precompile, "__file__", str(tmp_path / "trees" / "precompile.py"))
    for package in ("belief", "trees"):
        (tmp_path / package / "deep").mkdir(parents=True)
        (tmp_path / package / "deep" / "kernel.py").write_text(KERNEL)
    assert not is_all_compiled()
    note_all_compiled()
    assert is_all_compiled()
    os.utime(tmp_path / "belief" / "deep" / "kernel.py", (1, 1))  # Numba compiles its kernels again
    assert not is_all_compiled()
    note_all_compiled()
    assert is_all_compiled()
    (tmp_path / "trees" / "more.py").write_text("")
    assert not is_all_compiled()
    monkeypatch.setattr(precompile, "kernel_cache", lambda: None)  # no folder may be written
    note_all_compiled()
    assert not is_all_compiled()
