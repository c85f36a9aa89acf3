"""``/livez`` and ``/readyz``: whether the server is well, part by part, in words for people and a status for probes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from starlette.datastructures import QueryParams
from starlette.responses import PlainTextResponse, Response

from quercus.server.http.calls import invalid_request

Parts = Callable[[], Mapping[str, str]]
"""Returns what is wrong with each part of a server; empty: nothing."""

STORE, GROWER, WRITES, STOPPING = "store", "grower", "writes", "stopping"
LIVE: Final = (STORE, GROWER)
"""The parts that a restart may repair."""

READY: Final = (STORE, GROWER, WRITES, STOPPING)
"""The parts without which a server should be given no calls."""

EXCLUDE: Final = "exclude"


def health_response(parts: Parts, names: tuple[str, ...], query: QueryParams) -> Response:
    """Return status 200 while all parts are well, else 503; a line says so of each.

    Parameters
    ----------
    parts : what is wrong with each part.
    names : the parts that count.
    query : ``exclude`` names parts that do not count after all.

    Raises
    ------
    Failure
        When it names another part.
    """
    excluded = query.getlist(EXCLUDE)
    for name in excluded:
        if name not in names:
            raise invalid_request(f"{EXCLUDE}: is {name[:20]!r}, must be one of {', '.join(names)}")
    found = parts()
    lines = [f"{name}: {found[name] or 'well'}" for name in names if name not in excluded]
    is_well = not any(found[name] for name in names if name not in excluded)
    return PlainTextResponse("\n".join(lines) + "\n", 200 if is_well else 503)
