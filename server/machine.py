"""The resources that this process may use: cores, memory, open files, and ports shared with other processes."""

from __future__ import annotations

import logging
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final

_log = logging.getLogger(__name__)

SHARES_PORTS: Final = sys.platform == "linux"
"""Linux divides the connections to a port among the processes that listen on it (SO_REUSEPORT). Other systems do not
have the option, or give all connections to one of the processes."""

OWN_FILES: Final = 512
"""Files that a server needs besides connections: the store, pipes to the grower and learners, listening sockets."""

LEAST_SHARE: Final = 2
"""Connections get at least one in this many of the files that may be open, however few those are."""


def usable_cores(root: Path = Path("/")) -> int:
    """Return the number of cores that this process may use, by its affinity and the quotas of its control groups.

    Parameters
    ----------
    root : folder of ``proc`` and ``sys``.
    """
    cores = [len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1]
    for text in _group_bounds(root, "cpu.max"):
        with suppress(ValueError):  # "max" stands for no quota
            quota, period = map(int, text.split())
            cores.append(-(-quota // period))
    return max(1, min(cores))


def memory_of_machine(root: Path = Path("/")) -> int:
    """Return the bytes of memory that this process may use; 0 if unknown.

    That is the memory of the machine, or the lowest limit of the process's control groups: its own group and all above
    it, such as systemd's slices.

    Parameters
    ----------
    root : folder of ``proc`` and ``sys``.
    """
    found = []
    for text in _group_bounds(root, "memory.max", ("memory", "memory.limit_in_bytes")):
        with suppress(ValueError):  # "max" stands for no limit
            found.append(int(text))
    with suppress(ValueError, OSError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(found, default=0)


def _group_bounds(root: Path, file: str, former: tuple[str, str] | None = None) -> Iterator[str]:
    """Yield the contents of a file in the control group of this process, and in all groups above it.

    Parameters
    ----------
    root : folder of ``proc`` and ``sys``.
    file : name of the file in version 2 of control groups.
    former : controller and name of the file in version 1.
    """
    groups = root / "sys/fs/cgroup"
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        top, name = groups, file
        if controllers:
            if former is None or former[0] not in controllers.split(","):
                continue
            top, name = groups / former[0], former[1]
        group = PurePosixPath(path.strip("/"))
        # a container may see the names of its host's groups; its limit is then in the top folder
        for folder in (".",) if ".." in group.parts else (group, *group.parents):
            with suppress(OSError, UnicodeDecodeError):
                yield (top / folder / name).read_text(encoding="ascii")


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 if the system has no ``/proc`` like that of Linux."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def room_for_connections(wanted: int) -> int:
    """Raise the limit of open files for a number of connections, and return the number that it allows.

    The soft limit, usually 1,024, is raised as far as the hard limit allows.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    room = max(soft - OWN_FILES, soft // LEAST_SHARE)
    _log.warning(
        "max_connections: %d connections are taken instead of %d, because this process may open %d files only: "
        "raise the hard limit (ulimit -Hn, LimitNOFILE of systemd)",
        *(room, wanted, soft),
    )
    return room
