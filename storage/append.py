"""Appending instances: one insert a model and transaction, however many pushes it takes.

Rows are nearly always new, so they are inserted without a look: the unique index says whether an id was there. If one
was, the transaction is given up and made anew, now with a look at all ids, to tell what is known from what differs.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import chain, repeat
from typing import Any, TypeAlias

from sqlalchemy import Connection, Dialect, bindparam, false, insert, literal_column, select, update
from sqlalchemy.exc import IntegrityError

from quercus.belief.errors import InvalidInput
from quercus.storage import checks, log
from quercus.storage.errors import AlreadyExists, FailedPrecondition, NotFound, Stale
from quercus.storage.records import Appended, EventKind, NewValue, Push
from quercus.storage.rows import lock
from quercus.storage.schema import AnyRow, model, vocabulary
from quercus.storage.schema import log as log_table

Content: TypeAlias = tuple[bytes, bytes]  # values and label
Outcome: TypeAlias = Appended | AlreadyExists | FailedPrecondition | InvalidInput | NotFound | Stale

# What is the same in every row stands in the statement: to bind it for each row took a third of the time.
INSERT_INSTANCE = insert(log_table).values(
    kind=literal_column(str(int(EventKind.INSTANCE))),
    author=literal_column(f"'{log.SOURCE}'"),
    reliability=literal_column("1.0"),
    conflict=false(),
)


COUNT = (
    update(model)
    .where(model.c.id == bindparam("key"))
    .values(
        sequence_committed=model.c.sequence_committed + bindparam("count"),
        instance_count=model.c.instance_count + bindparam("count"),
    )
)
# In the order of the rows that `_Appender.write` makes.
BOUND = ("model_id", "sequence", "id", "values", "label", "created_at")

# Rows of one statement: a statement a row took half as long again. Older SQLite binds at most 999 values.
TOGETHER = 150


class _ThereAlreadyError(Exception):
    """An id that was to be inserted is there already, or was inserted by somebody else."""


def append_all(
    transaction: Callable[[], AbstractContextManager[Connection]],
    pushes: Sequence[Push],
    now: Callable[[], float],
) -> list[Outcome]:
    """Store each push whole or not at all; a refused one gives its exception and leaves no trace.

    Parameters
    ----------
    transaction : opens one that writes.
    pushes : in order.
    now : the time, asked once the transaction has begun.
    """
    try:
        with transaction() as connection:
            return _append(connection, pushes, now(), look=False)
    except _ThereAlreadyError:
        with transaction() as connection:
            return _append(connection, pushes, now(), look=True)


def _append(connection: Connection, pushes: Sequence[Push], now: float, look: bool) -> list[Outcome]:
    outcomes: dict[int, Outcome] = {}
    by_model: defaultdict[str, list[int]] = defaultdict(list)
    for place, push in enumerate(pushes):
        try:
            checks.push(push.ids, push.values, push.labels)
        except InvalidInput as error:
            outcomes[place] = error
        else:
            by_model[push.model].append(place)
    for name, places in by_model.items():
        mine = [pushes[place] for place in places]
        outcomes.update(zip(places, _append_to_model(connection, name, mine, now, look), strict=True))
    return [outcomes[place] for place in range(len(pushes))]


def _append_to_model(
    connection: Connection, name: str, pushes: Sequence[Push], now: float, look: bool
) -> list[Outcome]:
    try:
        appender = _Appender(connection, name, pushes, look)
    except NotFound as error:
        return [error] * len(pushes)
    outcomes: list[Outcome] = []
    for push in pushes:
        try:
            outcomes.append(appender.add(push))
        except (AlreadyExists, FailedPrecondition, InvalidInput, Stale) as error:
            outcomes.append(error)
    appender.write(now)
    return outcomes


class _Appender:
    """One model in one transaction. Rows wait in `fresh` until `write`."""

    def __init__(self, connection: Connection, name: str, pushes: Sequence[Push], look: bool) -> None:
        self.connection = connection
        self.row = lock(connection, name)
        self.looked = look
        self.known: dict[str, Content] = {}
        if look:
            self.known = _stored(connection, self.row, [each for push in pushes for each in push.ids])
        self.fresh: dict[str, Content] = {}

    def add(self, push: Push) -> Appended:
        """Take a push; nothing is kept before everything is checked."""
        if push.key not in (None, self.row.id):
            raise FailedPrecondition(f"model {push.model} was deleted, and another has its name: begin anew")
        fresh = self._new_rows(push)
        _check_vocabulary(self.connection, self.row, push.new_values)
        if push.new_values:
            rows = [_vocabulary_row(self.row, new) for new in push.new_values]
            self.connection.execute(insert(vocabulary), rows)
        self.known.update(fresh)
        self.fresh.update(fresh)
        committed = self.row.sequence_committed + len(self.fresh)
        return Appended(committed, len(fresh), len(push.ids) - len(fresh))

    def write(self, now: float) -> None:
        """Write the rows and count them."""
        if not self.fresh:
            return
        first = self.row.sequence_committed + 1
        count = len(self.fresh)
        values, labels = zip(*self.fresh.values(), strict=True)
        model_ids, sequences, times = (
            repeat(self.row.id, count),
            range(first, first + count),
            repeat(now, count),
        )
        rows = list(zip(model_ids, sequences, self.fresh, values, labels, times, strict=True))
        try:
            _insert(self.connection, rows)
        except IntegrityError:
            if self.looked:
                raise
            raise _ThereAlreadyError from None
        self.connection.execute(COUNT, {"key": self.row.id, "count": count})

    def _new_rows(self, push: Push) -> dict[str, Content]:
        """Rows that are not there yet (in the store, in an earlier push, or earlier in this one), by id."""
        contents = list(zip(checks.packed_rows(push.values), push.labels, strict=True))
        fresh = dict(zip(push.ids, contents, strict=True))
        if len(fresh) == len(contents) and fresh.keys().isdisjoint(self.known):
            return fresh
        fresh = {}
        for identifier, content in zip(push.ids, contents, strict=True):
            there = self.known.get(identifier) or fresh.get(identifier)
            if there is None:
                fresh[identifier] = content
            elif there != content:
                what = "values" if there[0] != content[0] else "label"
                raise AlreadyExists("instance", identifier, f"in model {push.model} with another {what}")
        return fresh


def _insert(connection: Connection, rows: list[tuple[Any, ...]]) -> None:
    """Insert rows of `BOUND`, past SQLAlchemy's care for each row where the driver takes rows as they are."""
    statement = _driver_statement(connection.dialect)
    if statement is None:
        connection.execute(INSERT_INSTANCE, [dict(zip(BOUND, row, strict=True)) for row in rows])
        return
    whole = len(rows) - len(rows) % TOGETHER
    for start in range(0, whole, TOGETHER):
        together = tuple(chain.from_iterable(rows[start : start + TOGETHER]))
        connection.exec_driver_sql(_for_many(statement), together)
    if rest := rows[whole:]:
        connection.exec_driver_sql(statement, rest)


@cache
def _driver_statement(dialect: Dialect) -> str | None:
    """The insert as the driver reads it, when it binds by position and in the order of `BOUND`."""
    compiled = INSERT_INSTANCE.compile(dialect=dialect, column_keys=list(BOUND))
    return str(compiled) if compiled.positional and tuple(compiled.positiontup or ()) == BOUND else None


@cache
def _for_many(statement: str) -> str:
    """The same statement for `TOGETHER` rows."""
    head, values = statement.rsplit(" VALUES ", 1)
    return f"{head} VALUES {', '.join([values] * TOGETHER)}"


def _stored(connection: Connection, row: AnyRow, ids: list[str]) -> dict[str, Content]:
    stored: dict[str, Content] = {}
    columns = (log_table.c.id, log_table.c["values"], log_table.c.label)
    for start in range(0, len(ids), log.CHUNK):
        chunk = ids[start : start + log.CHUNK]
        wanted = select(*columns).where(log_table.c.model_id == row.id, log_table.c.id.in_(chunk))
        stored.update(
            (identifier, (values, label)) for identifier, values, label in connection.execute(wanted)
        )
    return stored


def _check_vocabulary(connection: Connection, row: AnyRow, new_values: Sequence[NewValue]) -> None:
    if not new_values:
        return
    learned = log.learned(connection, row.id)
    for new in new_values:
        if len(new.value) == 0 or new.attribute < 0:
            raise InvalidInput("new_values", f"{new} names no value or no attribute")
        checks.encodable("new_values", new.value)
        values = learned[new.attribute]
        if new.index != len(values) or new.value in values:
            raise Stale(
                f"value {new.value!r} of attribute {new.attribute} was given index {new.index}; "
                f"{len(values)} values are learned: read the vocabulary again"
            )
        values.append(new.value)


def _vocabulary_row(row: AnyRow, new: NewValue) -> dict[str, Any]:
    return {"model_id": row.id, "attribute": new.attribute, "position": new.index, "value": new.value}
