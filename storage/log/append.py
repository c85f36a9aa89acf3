"""Appends instances. A transaction makes one insert per model, however many pushes it contains.

Rows are nearly always new, so they are inserted without looking up their ids: the unique index reports ids that exist.
If there is one, the transaction is rolled back and repeated, now with all ids looked up, to tell known rows from
conflicting ones.

A row is known if its id is stored with the same content: the same bytes of values and label (`Content`,
`quercus.labelling.row_values`). Two encodings of equivalent labels count as different (`quercus.belief.codec`). The
display is not part of the content.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias

from sqlalchemy import Connection, bindparam, select, update

from quercus.belief.errors import InvalidInput
from quercus.labelling import checks
from quercus.labelling.event import SOURCE, EventKind
from quercus.labelling.row_values import pack_rows
from quercus.storage.backend import backend_of
from quercus.storage.clocks import Clock, StoreClock, Timestamps
from quercus.storage.errors import AlreadyExists, ConflictingRows, FailedPrecondition, NotFound, Stale
from quercus.storage.inserts import insert_rows
from quercus.storage.log import event_log
from quercus.storage.log.displays import insert_displays
from quercus.storage.prepared import Prepared
from quercus.storage.records import AppendedBatch, NewValue, Push
from quercus.storage.rows import chunks_of, lock_model, shapes_of
from quercus.storage.schema import AnyRow, model, vocabulary
from quercus.storage.schema import log as log_table

Content: TypeAlias = tuple[bytes, bytes]  # values and label
Columns: TypeAlias = tuple[Sequence[str], Sequence[bytes], Sequence[bytes]]  # ids, values, labels
Outcome: TypeAlias = AppendedBatch | AlreadyExists | FailedPrecondition | InvalidInput | NotFound | Stale

_PUSHED = (
    "model_id", "sequence", "id", "values", "label", "kind", "author", "reliability", "conflict", "created_at", "clock"
)  # fmt: skip
_COUNT = Prepared(
    update(model)
    .where(model.c.id == bindparam("key"))
    .values(
        sequence_committed=model.c.sequence_committed + bindparam("count"),
        instance_count=model.c.instance_count + bindparam("count"),
    )
)


class _ThereAlreadyError(Exception):
    """An id to insert exists already."""


def append_all(
    transaction: Callable[[], AbstractContextManager[Connection]],
    pushes: Sequence[Push],
    clocks: StoreClock,
) -> list[Outcome]:
    """Store each push completely or not at all; return its outcome, or the exception with which it was refused.

    Parameters
    ----------
    transaction : opens a write transaction.
    pushes : in order.
    clocks : read once a model is locked.
    """
    try:
        with transaction() as connection:
            return _append_pushes(connection, pushes, Clock(clocks, connection), checks_ids=False)
    except _ThereAlreadyError:
        with transaction() as connection:
            return _append_pushes(connection, pushes, Clock(clocks, connection), checks_ids=True)


def _append_pushes(
    connection: Connection, pushes: Sequence[Push], clock: Clock, checks_ids: bool
) -> list[Outcome]:
    outcomes: dict[int, Outcome] = {}
    by_model: defaultdict[str, list[int]] = defaultdict(list)
    for place, push in enumerate(pushes):
        try:
            _check_push(push)
        except InvalidInput as error:
            outcomes[place] = error
        else:
            by_model[push.model].append(place)
    for name, places in sorted(by_model.items()):  # every transaction locks models in this order: no deadlock
        mine = [pushes[place] for place in places]
        outcomes.update(zip(places, _append_to_model(connection, name, mine, clock, checks_ids), strict=True))
    return [outcomes[place] for place in range(len(pushes))]


def _append_to_model(
    connection: Connection, name: str, pushes: Sequence[Push], clock: Clock, checks_ids: bool
) -> list[Outcome]:
    try:
        row, held_at = lock_model(connection, name), clock()
    except NotFound as error:
        return [error] * len(pushes)
    appender = _Appender(connection, row, pushes, checks_ids)
    outcomes: list[Outcome] = []
    for push in pushes:
        try:
            outcomes.append(appender.add_push(push))
        except (AlreadyExists, FailedPrecondition, InvalidInput, Stale) as error:
            outcomes.append(error)
    appender.write_rows(held_at)
    return outcomes


class _Appender:
    """The pushes to one model in one transaction. Rows are collected as columns until `write_rows`."""

    def __init__(self, connection: Connection, row: AnyRow, pushes: Sequence[Push], checks_ids: bool) -> None:
        self.connection = connection
        self.row = row
        self.checked_ids = checks_ids
        self.known: dict[str, Content] = {}  # only if `checked_ids`
        if checks_ids:
            self.known = _stored_rows(connection, self.row, [each for push in pushes for each in push.ids])
        self.taken: set[str] = set()
        self.ids: list[str] = []
        self.values: list[bytes] = []
        self.labels: list[bytes] = []
        self.displays: dict[str, bytes] = {}

    def add_push(self, push: Push) -> AppendedBatch:
        """Add a push; if it is refused, nothing of it is kept."""
        if push.key not in (None, self.row.id):
            raise FailedPrecondition(f"model {push.model} was deleted, and another has its name: start again")
        if push.extensions not in (None, shapes_of(self.row).extensions):
            raise Stale(f"model {push.model} was extended: read its attributes and classes again")
        # before the rows: with outdated numbers of values, they would seem to conflict with the same stored rows
        _check_vocabulary(self.connection, self.row, push.new_values)
        (ids, values, labels), refused = self._new_rows(push)
        if refused and push.new_values:
            raise ConflictingRows(refused)
        if push.new_values:
            rows = [(self.row.id, new.attribute, new.index, new.value) for new in push.new_values]
            insert_rows(self.connection, vocabulary, ("model_id", "attribute", "position", "value"), rows)
        if self.checked_ids:
            self.known.update(zip(ids, zip(values, labels, strict=True), strict=True))
        if push.displays:
            fresh, left_out = set(ids), {each.row for each in refused}
            # from the end, because the first of several rows with the same id counts
            for place in reversed(range(len(push.ids))):
                each, data = push.ids[place], push.displays[place]
                if data and each in fresh and place not in left_out:
                    self.displays[each] = data
        self.taken.update(ids)
        self.ids += ids
        self.values += values
        self.labels += labels
        committed = self.row.sequence_committed + len(self.ids)
        known = len(push.ids) - len(ids) - len(refused)
        return AppendedBatch(committed, len(ids), known, self.row.uid, refused)

    def write_rows(self, now: Timestamps) -> None:
        """Write the rows and count them."""
        if not self.ids:
            return
        backend, key, first = backend_of(self.connection), self.row.id, self.row.sequence_committed + 1
        pushed = self.ids, self.values, self.labels
        rows = (
            (key, *row, int(EventKind.INSTANCE), SOURCE, 1.0, False, now.wall, now.clock)
            for row in zip(range(first, first + len(self.ids)), *pushed, strict=True)
        )
        try:
            if not backend.insert_together(self.connection, key, first, *pushed, now):
                insert_rows(self.connection, log_table, _PUSHED, rows)
        except backend.repeated:
            if self.checked_ids:
                raise
            raise _ThereAlreadyError from None
        shown = {at: self.displays[each] for at, each in enumerate(self.ids, first) if each in self.displays}
        insert_displays(self.connection, key, shown)
        _COUNT.run(self.connection, key=self.row.id, count=len(self.ids))

    def _new_rows(self, push: Push) -> tuple[Columns, tuple[AlreadyExists, ...]]:
        """Return the rows that are new (to the store, earlier pushes, and this one), and the refused ones."""
        values = pack_rows(push.values, push.parts)
        different = set(push.ids)
        if (
            len(different) == len(push.ids)
            and different.isdisjoint(self.known)
            and different.isdisjoint(self.taken)
        ):
            return (push.ids, values, push.labels), ()
        if not self.checked_ids:
            raise _ThereAlreadyError
        fresh: dict[str, Content] = {}
        refused: list[AlreadyExists] = []
        for place, (identifier, *content) in enumerate(zip(push.ids, values, push.labels, strict=True)):
            there = self.known.get(identifier) or fresh.get(identifier)
            if there is None:
                fresh[identifier] = (content[0], content[1])
            elif there != tuple(content):
                what = "other values" if there[0] != content[0] else "another label"
                error = AlreadyExists("instance", identifier, f"in model {push.model} with {what}", place)
                if not push.row_by_row:
                    raise error
                refused.append(error)
        columns = list(fresh), [each for each, _ in fresh.values()], [each for _, each in fresh.values()]
        return columns, tuple(refused)


def _stored_rows(connection: Connection, row: AnyRow, ids: list[str]) -> dict[str, Content]:
    stored: dict[str, Content] = {}
    shapes = shapes_of(row)
    columns = (log_table.c.id, log_table.c["values"], log_table.c.label, log_table.c.sequence)
    for chunk in chunks_of(ids):
        wanted = select(*columns).where(log_table.c.model_id == row.id, log_table.c.id.in_(chunk))
        for identifier, values, label, sequence in connection.execute(wanted):
            is_old = sequence < shapes.since
            stored[identifier] = (
                shapes.widen_values(values) if is_old else values,
                shapes.widen_label(sequence, label) if is_old else label,
            )
    return stored


def _check_vocabulary(connection: Connection, row: AnyRow, new_values: Sequence[NewValue]) -> None:
    if not new_values:
        return
    learned = event_log.learned_values(connection, row.id)
    for new in new_values:
        if len(new.value) == 0 or new.attribute < 0:
            raise InvalidInput("new_values", f"{new} names no value or no attribute")
        checks.storable_text("new_values", new.value)
        values = learned[new.attribute]
        if new.index != len(values) or new.value in values:
            raise Stale(
                f"value {new.value!r} of attribute {new.attribute} was given index {new.index}; "
                f"{len(values)} values are learned: read the vocabulary again"
            )
        values.append(new.value)


def _check_push(push: Push) -> None:
    """Check that a batch of instances has one id, one row and one label each."""
    ids, values, labels = push.ids, push.values, push.labels
    if values.ndim != 2 or values.shape[1] < 1:
        raise InvalidInput("values", f"has shape {values.shape}, must be (rows, attributes)")
    if not len(ids) == len(values) == len(labels):
        raise InvalidInput(
            "ids", f"{len(ids)} ids, {len(values)} rows of values and {len(labels)} labels, not one each"
        )
    lengths = set(map(len, ids))
    if lengths and not (min(lengths) >= 1 and max(lengths) <= checks.MAX_TEXT):
        for number, identifier in enumerate(ids):
            checks.name_text(f"ids[{number}]", identifier)
    checks.storable_text("ids", "".join(ids))
