"""The compilation of kernels: functions that Python calls become machine code, others part of their callers."""

import gc
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import event
from numba.core.errors import TypingError

KERNELS = """
import numpy as np

from quercus.trees.likelihood.solver.compiled import compact, compiled, reordered

@compiled
def scaled(value, negative):
    return -2.0 * value if negative else 2.0 * value

@compact
def sum_of_scaled(values):
    total = 0.0
    for value in values:
        total += scaled(value, True) + 2.0 * scaled(value, False)
    return total

@compiled
def difference(values):
    return scaled(values[0], False) - scaled(values[1], False)

@compiled
def fill(values, value):
    for i in range(values.shape[0]):
        values[i] = value

@reordered
def plain_sum(values):
    total = 0.0
    for i in range(values.shape[0]):
        total += values[i]
    return total

@compact
def sum_of_filled(values):
    filled = np.zeros(values.shape[0])
    fill(filled, 2.0)
    return plain_sum(filled)

@compiled
def exchanged(table, last, one):
    table[last, 0], table[one, last] = table[one, last], table[last, 0] + 1
    total = 0.0
    for i in range(table.shape[0]):
        line = table[i]
        for j in range(len(line)):
            total += line[j - len(line)]
    return total

@compiled
def counted(n):
    line = np.empty(n)
    for i in range(n):
        line[i] = i
    return line, line[1:]

@compiled
def sum_of_counted(n):
    line, rest = counted(n)
    return plain_sum(line) + plain_sum(rest)

@compiled
def wrong(values):
    return scaled("a name", True)
"""
VALUES = np.arange(100.0)


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], ModuleType]:
    """A function that returns the kernels as a new process would have them."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "kernels.py"
    file.write_text(KERNELS)

    def loaded() -> ModuleType:
        specification = importlib.util.spec_from_file_location("kernels", file)
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        monkeypatch.setitem(sys.modules, "kernels", module)  # what comes from the cache imports its module
        specification.loader.exec_module(module)
        return module

    return loaded


class _Compiled(event.Listener):
    """The kernels that are compiled, by name."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if function.__module__ == "kernels":
            self.names.append(function.__qualname__)

    def on_end(self, event: Any) -> None:
        pass


def compiled_by(call: Callable[[], object]) -> list[str]:
    listener = _Compiled()
    with event.install_listener("numba:compile", listener):
        call()
    return listener.names


def test_a_part_is_compiled_once_for_all_flags_and_callers_and_then_loaded(
    load: Callable[[], ModuleType],
) -> None:
    first = load()
    assert compiled_by(lambda: first.sum_of_scaled(VALUES)) == [
        "sum_of_scaled",
        "sum_of_scaled_part",
        "scaled_part",
    ]
    assert first.sum_of_scaled(VALUES) == 2.0 * VALUES.sum()
    assert compiled_by(lambda: first.difference(VALUES)) == ["difference", "difference_part"]
    second = load()
    assert compiled_by(lambda: second.sum_of_scaled(VALUES)) == []
    assert second.sum_of_scaled(VALUES) == 2.0 * VALUES.sum()
    third = load()
    assert compiled_by(lambda: third.scaled(1.5, True)) == ["scaled"]
    assert third.scaled(1.5, True) == -3.0
    assert third.difference(VALUES) == -2.0


def test_a_new_caller_takes_a_part_from_the_cache(load: Callable[[], ModuleType]) -> None:
    load().sum_of_scaled(VALUES)
    gc.collect()  # nothing is left of the first caller in memory
    again = load()
    assert compiled_by(lambda: again.difference(VALUES)) == ["difference", "difference_part"]
    assert again.difference(VALUES) == -2.0


def test_an_entry_around_a_part_from_the_cache_returns_arrays(load: Callable[[], ModuleType]) -> None:
    assert load().sum_of_counted(4) == 12.0
    again = load()
    assert compiled_by(lambda: again.counted(4)) == ["counted"]
    for kernels in (again, load()):
        for _ in range(3):
            line, rest = kernels.counted(4)
            assert line.tolist() == [0.0, 1.0, 2.0, 3.0]
            assert rest.tolist() == [1.0, 2.0, 3.0]
            assert rest.base is not None


def test_items_are_read_and_written_as_in_python(load: Callable[[], ModuleType]) -> None:
    table = np.arange(12.0).reshape(3, 4)
    kernels = load()
    for array in (
        table.copy(),
        table.T.copy().T,
        table[:, ::2].copy(),
        np.arange(24.0).reshape(3, 8)[:, ::2],
    ):
        expected = array.copy()
        expected[-1, 0], expected[1, -1] = expected[1, -1], expected[-1, 0] + 1
        assert kernels.exchanged(array, -1, np.uint8(1)) == expected.sum()
        assert np.array_equal(array, expected)


def test_a_compact_kernel_has_vectors_only_where_sums_are_reordered(load: Callable[[], ModuleType]) -> None:
    kernels = load()
    assert kernels.sum_of_filled(VALUES) == 200.0
    assert kernels.sum_of_scaled(VALUES) == 2.0 * VALUES.sum()
    kernels.fill(VALUES.copy(), 1.0)
    for name, has_vectors in (("sum_of_filled", True), ("fill", True), ("sum_of_scaled", False)):
        (code,) = getattr(kernels, name).inspect_llvm().values()
        assert ("x double>" in code) == has_vectors, name


def test_after_an_error_all_is_as_before(load: Callable[[], ModuleType]) -> None:
    kernels = load()
    with pytest.raises(TypingError):
        kernels.wrong(VALUES)
    assert gc.isenabled()
    assert kernels.sum_of_filled(VALUES) == 200.0

    @numba.njit
    def usual(x: float) -> float:
        """Uses a function of Numba's that was compiled as a part."""
        line = np.zeros(3)
        line[1] = x
        return line[0] + line[1]

    assert usual(1.5) == 1.5
    assert kernels.difference(VALUES) == -2.0
