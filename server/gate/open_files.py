"""The open files of the process: connections must leave some to the store."""

from __future__ import annotations

import logging
import resource
from typing import Final

_log = logging.getLogger(__name__)

OWN_FILES: Final = 512
"""Files that a server needs besides connections: the store, pipes to the grower and learners, sockets that listen."""

LEAST_SHARE: Final = 2
"""Connections have at least one in this many of the files that may be open, however few they are."""


def room_for_connections(wanted: int) -> int:
    """Let this process open enough files for so many connections, and return for how many there are.

    The soft limit, 1,024 nearly everywhere, is raised as far as the hard limit allows.
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
