"""The processor cores that this process may use, and whether several processes can share a port."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

SHARES_PORTS: Final = sys.platform == "linux"
"""Linux divides the connections to a port among the processes that listen on it (SO_REUSEPORT). Other systems lack the
option, or give all connections to one of the processes."""


def usable_cores(root: Path = Path("/")) -> int:
    """Return how many cores this process may use: of its affinity, and of the quotas of its control groups.

    Parameters
    ----------
    root : folder of ``proc`` and ``sys``.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *_quotas(root)]))


def _quotas(root: Path) -> Iterator[int]:
    """Yield the cores that each control group of this process allows, rounded up."""
    groups = root / "sys/fs/cgroup"
    with suppress(OSError, UnicodeDecodeError, ValueError):
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers:  # of version 1
                continue
            parts = [each for each in path.split("/") if each not in {"", ".."}]
            for depth in range(len(parts) + 1):
                with suppress(OSError, ValueError):  # no quota: "max"
                    quota, period = (groups.joinpath(*parts[:depth]) / "cpu.max").read_text().split()
                    yield -(-int(quota) // int(period))
