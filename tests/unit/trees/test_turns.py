"""Processes that need the same kernel: one compiles it, the others wait and load it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quercus.trees.likelihood.solver import turns
from quercus.trees.likelihood.solver.turns import is_taken, take_turn, taking_turn

HOLD = """
import sys
from pathlib import Path
from quercus.trees.likelihood.solver.turns import taking_turn

with taking_turn(sys.argv[1], sys.argv[2]):
    print("held", flush=True)
    sys.stdin.readline()
    Path(sys.argv[1], "ended").touch()
"""
KERNEL = """
from quercus.trees.likelihood.solver.compiled import compiled

@compiled
def doubled(value):
    return 2.0 * value

@compiled
def total(values):
    found = 0.0
    for i in range(values.shape[0]):
        found += doubled(values[i])
    return found
"""
COMPILE = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import kernels_in_turns
from quercus.trees.precompile import noticing_compilation

print("ready", flush=True)
sys.stdin.readline()
compiled = []
with noticing_compilation(lambda: compiled.append("compiled")):
    found = kernels_in_turns.total(np.arange(4.0))
print(found, len(compiled))
"""


def child(program: str, folder: Path, name: str = "kernel", **environment: str) -> subprocess.Popen[str]:
    """A process that has said its first word and waits for a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(folder), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


@contextmanager
def stopped_holder(folder: Path, name: str) -> Iterator[None]:
    """A process that holds a turn and stands still."""
    other = child(HOLD, folder, name)
    other.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        other.kill()
        other.communicate(timeout=60)


def test_a_process_waits_for_the_turn_of_another(tmp_path: Path) -> None:
    other = child(HOLD, tmp_path)
    assert is_taken(str(tmp_path), "kernel")
    assert not take_turn(str(tmp_path), "kernel")
    assert not is_taken(str(tmp_path), "other kernel")
    seen: list[bool] = []

    def wait() -> None:
        with taking_turn(str(tmp_path), "kernel"):
            seen.append((tmp_path / "ended").exists())

    waiting = threading.Thread(target=wait)
    waiting.start()
    other.communicate("go on\n", timeout=60)
    waiting.join(60)
    assert seen == [True]
    assert not is_taken(str(tmp_path), "kernel")


def test_a_turn_ends_with_its_process(tmp_path: Path) -> None:
    other = child(HOLD, tmp_path)
    other.kill()
    other.communicate(timeout=60)
    with taking_turn(str(tmp_path), "kernel"):
        pass
    assert not (tmp_path / "ended").exists()


def test_nobody_waits_without_a_folder(tmp_path: Path) -> None:
    for folder in (None, str(tmp_path / "missing")):
        with taking_turn(folder, "kernel"):
            assert is_taken(folder, "kernel")  # by anybody, for all that can be known


def test_of_two_processes_one_compiles(tmp_path: Path) -> None:
    (tmp_path / "kernels_in_turns.py").write_text(KERNEL)
    both = [child(COMPILE, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache")) for _ in range(2)]
    for each in both:
        assert each.stdin is not None
        each.stdin.write("go on\n")
        each.stdin.flush()
    said = [each.communicate(timeout=120)[0].split() for each in both]
    assert [value for value, _ in said] == ["12.0", "12.0"]
    assert sorted(count for _, count in said) == ["0", "1"]


def test_a_process_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LONGEST_S", 0.3)
    with stopped_holder(tmp_path, "kernel"):
        with taking_turn(str(tmp_path), "kernel"):
            assert is_taken(str(tmp_path), "kernel")
        assert is_taken(str(tmp_path), "kernel")


def test_what_is_compiled_is_loaded_without_a_turn(tmp_path: Path) -> None:
    """A grower that is stopped while it loads kernels does not hold back its successor."""
    (tmp_path / "kernels_in_turns.py").write_text(KERNEL)
    cache = tmp_path / "cache"
    child(COMPILE, tmp_path, NUMBA_CACHE_DIR=str(cache)).communicate("go on\n", timeout=120)
    folder = next(cache.rglob("kernels_in_turns.total-*.nbi")).parent
    with stopped_holder(folder, "kernels_in_turns.total"):
        other = child(COMPILE, tmp_path, NUMBA_CACHE_DIR=str(cache))
        assert other.communicate("go on\n", timeout=turns.LONGEST_S - 5)[0].split() == ["12.0", "0"]
