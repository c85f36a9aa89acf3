"""``/livez`` and ``/readyz``: the health of the server and its parts, as a status for probes and text for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from starlette.datastructures import QueryParams
from starlette.responses import PlainTextResponse, Response

from quercus.server.http.calls import invalid_request

Parts = Callable[[], Mapping[str, str]]
"""Returns the trouble of each part of a server; empty texts for none."""

STORE, GROWER, WRITES, STOPPING = "store", "grower", "writes", "stopping"
LIVE: Final = (STORE, GROWER)
"""The parts that a restart may repair."""

READY: Final = (STORE, GROWER, WRITES, STOPPING)
"""The parts without which a server should get no calls."""

EXCLUDE: Final = "exclude"


def health_response(parts: Parts, names: tuple[str, ...], query: QueryParams) -> Response:
    """Return status 200 if all parts are well, otherwise 503, with a line for each part.

    Parameters
    ----------
    parts : returns the trouble of each part.
    names : the parts that count.
    query : ``exclude`` names parts that do not count.

    Raises
    ------
    Failure
        If it names an unknown part.
    """
    excluded = query.getlist(EXCLUDE)
    for name in excluded:
        if name not in names:
            raise invalid_request(f"{EXCLUDE}: is {name[:20]!r}, must be one of {', '.join(names)}")
    found = parts()
    lines = [f"{name}: {found[name] or 'well'}" for name in names if name not in excluded]
    is_well = not any(found[name] for name in names if name not in excluded)
    return PlainTextResponse("\n".join(lines) + "\n", 200 if is_well else 503)
