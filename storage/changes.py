"""Tracking of changed models: each commit that changes models has a number, which is stored with these models.

Numbers follow the order of commits. As its last step, a transaction that changes a model takes the next number and
locks the counter's row until it commits (SQLite: the write lock). So a reader who has seen all changes up to a number
has missed none, however many processes write at once, and the lock is short.
"""

import json
from dataclasses import dataclass
from typing import Final

from sqlalchemy import BigInteger, Connection, bindparam, case, delete, func, select, update

from quercus.storage.backend import backend_of
from quercus.storage.inserts import insert_rows
from quercus.storage.json_values import one_of
from quercus.storage.prepared import Prepared, Rows
from quercus.storage.schema import LIVE, AnyRow, change_counter, model, model_change

KEPT_COMMITS: Final = 1_000_000
"""The deletion of a model can be read until this many later commits, which take minutes at least.

Readers look several times a second. A process that was stopped for longer notices a deletion when it uses the model.
"""
_HELD: Final = "quercus_held"  # key in `connection.info`: keys of the models that the transaction has locked


@dataclass(frozen=True, slots=True)
class Change:
    """A model that changed.

    Attributes
    ----------
    number : int
        Number of the newest commit that changed the model.
    key, name : int, str
        The model.
    tree_version : int or None
        Version of its newest tree; None if the model was deleted.
    sequence_committed, instance_count : int
        Number of events of its log, and of INSTANCE events.
    shapes : str or None
        `quercus.labelling.shapes.Shapes.text` of its log.
    """

    number: int
    key: int
    name: str
    tree_version: int | None
    sequence_committed: int = 0
    instance_count: int = 0
    shapes: str | None = None


_COUNT_ON = (
    update(change_counter).values(number=change_counter.c.number + 1).returning(change_counter.c.number)
)
_NEXT = Prepared(_COUNT_ON)
_MARK = Prepared(
    update(model_change)
    .where(model_change.c.model_id == bindparam("key"))
    .values(number=bindparam("newest", type_=BigInteger))
)
_MARK_BY_NEXT = Prepared(
    update(model_change)
    .where(one_of(model_change.c.model_id, "keys"))
    .values(number=select(_COUNT_ON.cte("newest").c.number).scalar_subquery())
)
_NEWEST = select(change_counter.c.number)
_SEEN: Final = bindparam("seen", type_=BigInteger)
_FORGET = delete(model_change).where(
    model_change.c.number <= _NEWEST.scalar_subquery() - KEPT_COMMITS,
    model_change.c.model_id.not_in(select(model.c.id)),
    model_change.c.model_id < select(func.max(model_change.c.model_id)).scalar_subquery(),
)
SINCE: Final = Prepared(
    select(
        model_change.c.number,
        model_change.c.model_id,
        model_change.c.name,
        model.c.tree_version,
        func.coalesce(model.c.sequence_committed, 0),
        func.coalesce(model.c.instance_count, 0),
        model.c.shapes,
    )
    .outerjoin(model, (model.c.id == model_change.c.model_id) & LIVE)
    .where(model_change.c.number > case((_NEWEST.scalar_subquery() >= _SEEN, _SEEN), else_=0))
    .order_by(model_change.c.number)
)
"""Models that commits after number `seen` changed, each once, in the order of their newest change.

All models if the newest commit is before `seen`: a standby took over that had not received all commits."""


def begin_transaction(connection: Connection) -> None:
    """Prepare a write transaction, which has changed no model yet."""
    connection.info[_HELD] = set()


def note_held_model(connection: Connection, row: AnyRow) -> None:
    """Note that the transaction has locked a model's row, and will change the model."""
    connection.info[_HELD].add(row.id)


def record_new_model(connection: Connection, key: int, name: str) -> None:
    """Record that the transaction created a model."""
    insert_rows(connection, model_change, ["model_id", "name", "number"], [(key, name, 0)])
    connection.info[_HELD].add(key)


def forget_removed(connection: Connection) -> None:
    """Remove the changes of deleted models, except for those in the newest `KEPT_COMMITS` commits.

    The greatest key stays, so that `quercus migrate` knows the last key that was assigned.
    """
    connection.execute(_FORGET)


def hold_counter(connection: Connection) -> None:
    """Lock the counter, so that no other change of a model commits before this transaction. Call it near the end."""
    connection.execute(_NEWEST.with_for_update())


def mark_held_models(connection: Connection) -> None:
    """Give the locked models the number of this commit."""
    held = sorted(connection.info.pop(_HELD))
    if held and backend_of(connection).nests_changes:
        _MARK_BY_NEXT.run(connection, keys=json.dumps(held))
    elif held:
        (number,) = _NEXT.run(connection)
        _MARK.run_for_each(connection, [{"key": key, "newest": number} for key in held])


def newest_commit(connection: Connection) -> int:
    """Return the number of the newest commit that changed a model."""
    return int(connection.execute(_NEWEST).scalar_one())


def of_rows(rows: Rows) -> list[Change]:
    """Return the rows of `SINCE` as changes."""
    return [Change(*row) for row in rows]
