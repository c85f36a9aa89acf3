"""Compiling of kernels is noticed, loading is not, and compiled kernels are kept in one place."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numba
import numpy as np
import pytest

from quercus.trees import precompile
from quercus.trees.memory_forest import growing, routing
from quercus.trees.memory_forest.asking import choose_rows
from quercus.trees.memory_forest.forest import MemoryForest
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


def test_forests_of_any_size_compile_nothing_after_it() -> None:
    """The keys of a memory's trees are every so many of all: a kernel compiled anew for such an array takes seconds."""
    prepare()
    values = np.random.default_rng(0).integers(0, 3, (60, 3)).astype(float)
    labels = np.eye(3)[values[:, 0].astype(int)]
    labels[40:] = 1.0
    before = set(growing.grow.signatures), set(routing.add_opinions.signatures)  # type: ignore[attr-defined]
    for trees in (1, 7, 60):
        forest = MemoryForest(np.array([False, True, True]), 3, trees=trees, seed=0, level=0.5)
        forest.observe(values, labels)
        list(choose_rows(forest, np.arange(40, 60), 2))
        forest.replace_contour(40, np.array([1.0, 0.5, 0.0]))
        forest.predict(values)
    assert (set(growing.grow.signatures), set(routing.add_opinions.signatures)) == before  # type: ignore[attr-defined]
