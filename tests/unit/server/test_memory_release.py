"""A process that computes gives memory back: what is freed below something that stays does not stay with it."""

import subprocess
import sys

import pytest

CHILD = """
import sys
from pathlib import Path
import numpy as np
from quercus.server.growth import child_process

def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

if sys.argv[1] == "small" and not child_process.keep_small():
    print("no mallopt")
    sys.exit()
large = np.ones(3_750_000)  # 30 MB; freed, it tells glibc to keep what is smaller on the heap
del large
before = resident_mb()
arrays, pins = [], []
for _ in range(20):
    arrays.append(np.ones(1_000_000))
    pins.append(np.ones(20_000))
arrays.clear()
print(resident_mb() - before)
"""


def left_mb(how: str) -> float:
    ended = subprocess.run([sys.executable, "-c", CHILD, how], stdout=subprocess.PIPE, text=True, check=True)
    if "mallopt" in ended.stdout:
        pytest.skip("this C library has no mallopt: nothing to set")
    return float(ended.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_freed_arrays_go_back() -> None:
    assert left_mb("small") < 20
    assert left_mb("as it is") > 100  # else there is nothing to gain, and this can go
