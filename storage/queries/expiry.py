"""Expired leases.

A query whose lease has expired is open (or withdrawn, if growth no longer wants it), even if that is not recorded yet:
readers compute it, and writers record it first.
"""

from sqlalchemy import Connection, bindparam, func, select

from quercus.labelling.lifecycle import HistoryNote, QueryState, Step, after_expiry
from quercus.storage.clocks import Timestamps
from quercus.storage.prepared import Prepared
from quercus.storage.queries import history
from quercus.storage.queries.query_state import lifecycle_of, write_lifecycles
from quercus.storage.schema import query

_EXPIRED = Prepared(
    select(query).where(
        query.c.model_id == bindparam("of"),
        query.c.state == int(QueryState.LEASED),
        query.c.ends <= bindparam("now"),
    )
)


def write_expired(connection: Connection, model_id: int, now: Timestamps) -> None:
    """Record the leases that have expired; the caller has locked the model."""
    notes, lifecycles = [], []
    for row in _EXPIRED.run_for_all(connection, of=model_id, now=now.clock):
        after = after_expiry(lifecycle_of(row), now.clock)
        lifecycles.append((row.number, after, None))
        who = {"labeller": row.labeller, "token": row.token, "until": row.ends}
        notes.append(HistoryNote(row.number, row.instance, Step.EXPIRED, after.state, **who))
    write_lifecycles(connection, model_id, lifecycles)
    history.write_steps(connection, model_id, notes, now)


def count_leased(connection: Connection, model_id: int, now: Timestamps, labeller: str | None = None) -> int:
    """Return the number of live leases, of one labeller or of all."""
    live = [query.c.model_id == model_id, query.c.state == QueryState.LEASED, query.c.ends > now.clock]
    if labeller is not None:
        live.append(query.c.labeller == labeller)
    return int(connection.execute(select(func.count()).where(*live)).scalar_one())
