"""Leases that have ended.

A lease that has expired is an open query, whether or not anybody has written that down yet: readers compute it,
writers write it first, so that a clock that steps back revives nothing that was not counted meanwhile.
"""

from typing import Any

from sqlalchemy import Connection, func, select, update

from quercus.storage.records import QueryState
from quercus.storage.schema import query

# Columns of an open query that nobody holds.
FREE: dict[str, Any] = {"state": int(QueryState.OPEN), "labeller": None, "token": None, "expires_at": None}


def reopen_expired(connection: Connection, model_id: int, now: float) -> None:
    """Write down which leases have expired. The table `lease` still knows who held them."""
    expired = (query.c.state == QueryState.LEASED, query.c.expires_at <= now)
    connection.execute(update(query).where(query.c.model_id == model_id, *expired).values(FREE))


def count_leased(connection: Connection, model_id: int, now: float) -> int:
    """Leases that have not expired."""
    live = select(func.count()).where(
        query.c.model_id == model_id, query.c.state == QueryState.LEASED, query.c.expires_at > now
    )
    return int(connection.execute(live).scalar_one())
