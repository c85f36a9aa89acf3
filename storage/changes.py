"""The models that each commit changed: every commit that changes models has a number, which these models carry.

Numbers follow the order of the commits. A transaction that changes a model takes the next number last, and locks the
counter's row until its commit (a row lock if the database has them, the write lock in SQLite). So a reader of all
changes up to a number has missed none, however many write at once; and the lock is short.
"""

import json
from dataclasses import dataclass
from typing import Final

from sqlalchemy import BigInteger, Connection, bindparam, case, delete, func, insert, select, update

from quercus.storage.backend import backend_of
from quercus.storage.json_values import one_of
from quercus.storage.prepared import Prepared, Rows
from quercus.storage.schema import LIVE, AnyRow, change_counter, model, model_change

KEPT_COMMITS: Final = 1_000_000
"""The deletion of a model can be read during so many later commits, which take minutes at least.

Readers look many times a second. A process that was stopped for longer finds that the model is gone when it uses it.
"""
_HELD: Final = "quercus_held"  # models whose row the transaction holds: the key, and the name


@dataclass(frozen=True, slots=True)
class Change:
    """A model that changed.

    Attributes
    ----------
    number : int
        Of the newest commit that changed it.
    key, name : int, str
        Of the model.
    tree_version : int or None
        Now; None: the model was deleted.
    sequence_committed, instance_count : int
        Events of its log, and those of them that are rows.
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

All of them where there is no such commit any more: a database server took over that had not got it."""


def begin_transaction(connection: Connection) -> None:
    """Prepare a transaction that writes: it has changed no model yet."""
    connection.info[_HELD] = set()


def note_held_model(connection: Connection, row: AnyRow) -> None:
    """Note that the transaction holds a model's row, to change what belongs to it."""
    connection.info[_HELD].add(row.id)


def record_new_model(connection: Connection, key: int, name: str) -> None:
    """Record that the transaction made a model."""
    connection.execute(insert(model_change).values(model_id=key, name=name, number=0))
    connection.info[_HELD].add(key)


def forget_removed(connection: Connection) -> None:
    """Remove the changes of models that are gone, but for the newest `KEPT_COMMITS` commits.

    The greatest key stays: it is the last that was given, so `quercus migrate` gives it to no other model.
    """
    connection.execute(_FORGET)


def hold_counter(connection: Connection) -> None:
    """Lock the counter: no other change of a model commits before this transaction, which is almost done."""
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
    """The number of the newest commit that changed a model."""
    return int(connection.execute(_NEWEST).scalar_one())


def of_rows(rows: Rows) -> list[Change]:
    """Changes as `SINCE` returns them."""
    return [Change(*row) for row in rows]
