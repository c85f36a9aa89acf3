"""CPU time of processes, which does not depend on other programs on the machine."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np


class Clock:
    """Adds up the CPU seconds spent inside its ``with`` blocks."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._started = 0.0

    def __enter__(self) -> "Clock":
        self._started = time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.process_time() - self._started


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one call."""
    started = time.process_time()
    work()
    return time.process_time() - started


def in_turn(works: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Return the median CPU seconds of each of several works, run in turn, so that drift affects all of them."""
    taken = [[cpu(work) for work in works] for _ in range(repeats)]
    return [float(median) for median in np.median(taken, axis=0)]


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process, ended threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """Return a process and all its running descendants."""
    found = [pid]
    for each in found:
        with suppress(OSError):  # it has just ended
            for task in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (task / "children").read_text(encoding="ascii").split())
    return found


def family_cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process and all its descendants, including those that have ended."""
    total = 0.0
    for each in family(pid):
        with suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
            total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def resident_mb(pid: int) -> float:
    """Return the resident size of a process; 0 when it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def highest_mb(pid: int) -> float:
    """Return the highest resident size of a process so far; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM:"))


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.0f} ms" if seconds >= 0.1 else f"{seconds * 1e3:.3g} ms"


def times(ratio: float) -> str:
    """Return a ratio as text."""
    return f"{ratio:,.0f} ×" if ratio >= 100 else f"{ratio:.3g} ×"
