"""Processes that need the same kernel: one compiles it, the others wait and load it."""

import os
import subprocess
import sys
import threading
from pathlib import Path

from quercus.trees.likelihood.solver.turns import is_taken, take_turn, taking_turn

HOLD = """
import sys
from pathlib import Path
from quercus.trees.likelihood.solver.turns import taking_turn

with taking_turn(sys.argv[1], "kernel"):
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


def child(program: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    """A process that has said its first word and waits for a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


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
