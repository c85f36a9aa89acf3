"""Publishing a tree: the snapshot and the agenda that goes with it, in one transaction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from quercus.belief.errors import InvalidInput
from quercus.storage import expiry, snapshots
from quercus.storage.errors import FailedPrecondition, NotFound
from quercus.storage.log import CHUNK
from quercus.storage.models import lock
from quercus.storage.records import AgendaEntry, EventKind, QueryState, Snapshot
from quercus.storage.schema import AnyRow, log, model, query

KEPT_WITHDRAWN = 1000


@dataclass(frozen=True, slots=True)
class Publication:
    """A tree as of an event, its agenda, and the model it was grown for (see `Store.publish`)."""

    as_of: int
    data: bytes
    agenda: Sequence[AgendaEntry]
    key: int | None = None
    keep: int = snapshots.KEPT_VERSIONS


def publish(connection: Connection, name: str, published: Publication, now: float) -> int:
    """Insert the next tree version and make the queries follow its agenda."""
    try:
        row = lock(connection, name)
    except NotFound:
        return 0
    if published.key not in (None, row.id):
        return 0
    as_of = published.as_of
    if not 0 <= as_of <= row.sequence_committed:
        raise FailedPrecondition(f"a tree as of event {as_of} of a log with {row.sequence_committed} events")
    if as_of < row.sequence_grown:
        return int(row.tree_version)
    version = int(row.tree_version) + 1
    snapshots.add(connection, row, Snapshot(version, as_of, published.data, now), published.keep)
    expiry.reopen_expired(connection, row.id, now)
    _reconcile(connection, row, published, version, now)
    return version


def _reconcile(connection: Connection, row: AnyRow, published: Publication, version: int, now: float) -> None:
    wanted = {int(entry.instance): (position, entry) for position, entry in enumerate(published.agenda)}
    if len(wanted) != len(published.agenda):
        raise InvalidInput("agenda", "names an instance twice")
    live = select(query).where(query.c.model_id == row.id, query.c.state <= QueryState.LEASED)
    there: dict[int, AnyRow] = {found.instance: found for found in connection.execute(live)}
    waiting = {instance: found for instance, found in there.items() if found.state == QueryState.OPEN}
    pointless = [found.number for instance, found in waiting.items() if instance not in wanted]
    _withdraw(connection, row, pointless)
    _update(connection, row, waiting, wanted, version)
    # Settled after the tree looked: the tree does not know yet that it has its answer.
    late = select(query.c.instance).where(query.c.model_id == row.id, query.c.sequence > published.as_of)
    passed = set(connection.execute(late).scalars()) | set(there)
    fresh = {instance: item for instance, item in wanted.items() if instance not in passed}
    _insert(connection, row, fresh, version, now)


def _withdraw(connection: Connection, row: AnyRow, numbers: list[int]) -> None:
    for chunk in _chunks(numbers):
        mine = (query.c.model_id == row.id, query.c.number.in_(chunk))
        connection.execute(update(query).where(*mine).values(state=int(QueryState.WITHDRAWN)))
    if numbers:
        _remove_old_withdrawn(connection, row)


def _remove_old_withdrawn(connection: Connection, row: AnyRow) -> None:
    """Keep the newest of the withdrawn queries: nobody answered them, so they are no evidence."""
    mine = (query.c.model_id == row.id, query.c.state == QueryState.WITHDRAWN)
    newest_first = select(query.c.number).where(*mine).order_by(query.c.number.desc())
    last = connection.execute(newest_first.offset(KEPT_WITHDRAWN).limit(1)).scalar()
    if last is not None:
        connection.execute(delete(query).where(*mine, query.c.number <= last))


def _update(
    connection: Connection,
    row: AnyRow,
    waiting: dict[int, AnyRow],
    wanted: dict[int, tuple[int, AgendaEntry]],
    version: int,
) -> None:
    changes = [
        {"which": found.number, "place": position, "where": entry.asked, "why": entry.reason}
        for instance, found in waiting.items()
        if instance in wanted
        for position, entry in [wanted[instance]]
        if (found.position, found.asked, found.reason) != (position, entry.asked, entry.reason)
    ]
    if not changes:
        return
    statement = (
        update(query)
        .where(query.c.model_id == row.id, query.c.number == bindparam("which"))
        .values(
            position=bindparam("place"),
            asked=bindparam("where"),
            reason=bindparam("why"),
            tree_version=version,
        )
    )
    connection.execute(statement, changes)


def _insert(
    connection: Connection, row: AnyRow, fresh: dict[int, tuple[int, AgendaEntry]], version: int, now: float
) -> None:
    if not fresh:
        return
    _check_instances(connection, row, list(fresh))
    rows = [
        {
            "model_id": row.id,
            "number": number,
            "instance": instance,
            "state": int(QueryState.OPEN),
            "position": position,
            "asked": entry.asked,
            "reason": entry.reason,
            "tree_version": version,
            "created_at": now,
        }
        for number, (instance, (position, entry)) in enumerate(fresh.items(), row.query_count + 1)
    ]
    connection.execute(insert(query), rows)
    change = {"query_count": row.query_count + len(rows)}
    connection.execute(update(model).where(model.c.id == row.id).values(change))


def _check_instances(connection: Connection, row: AnyRow, instances: list[int]) -> None:
    found: set[int] = set()
    for chunk in _chunks(instances):
        mine = (log.c.model_id == row.id, log.c.sequence.in_(chunk), log.c.kind == EventKind.INSTANCE)
        found.update(connection.execute(select(log.c.sequence).where(*mine)).scalars())
    for instance in instances:
        if instance not in found:
            raise InvalidInput("agenda", f"event {instance} is not an instance of model {row.name}")


def _chunks(numbers: list[int]) -> Iterator[list[int]]:
    return (numbers[start : start + CHUNK] for start in range(0, len(numbers), CHUNK))
