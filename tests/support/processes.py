"""Children and memory of other processes, read from Linux's ``/proc``."""

from __future__ import annotations

import os
from pathlib import Path


def children(pid: int) -> list[int]:
    """Process ids of a process's children that live."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found += [child for child in (task / "children").read_text().split() if _lives(child)]
        except OSError:
            continue
    return [int(child) for child in found]


def _lives(pid: str) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def has_open(pid: int, suffix: str) -> bool:
    """Return whether a process has a file open whose name ends with `suffix`."""
    try:
        return any(str(entry.readlink()).endswith(suffix) for entry in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:  # it, or one of them, is gone meanwhile
        return False


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has used, in seconds."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
