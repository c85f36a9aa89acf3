"""Checks that a store is consistent: the file, its schema, every cell, and the relations between its tables."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from sqlalchemy import Column, Connection, Select, exists, func, select

from quercus.belief.errors import InvalidInput
from quercus.labelling.event import UNASKED, EventKind
from quercus.labelling.lifecycle import QueryState
from quercus.specification.bounds import check_model_id
from quercus.storage.admin.transfer import CHUNK, LogValidator, checked_chunks, events_of, learned_pairs
from quercus.storage.admin.transfer_lines import NAMES
from quercus.storage.admin.transfer_log import LogReader
from quercus.storage.admin.verify_columns import cell_faults
from quercus.storage.admin.verify_history import history_faults
from quercus.storage.admin.verify_schema import foreign_rules, schema_faults
from quercus.storage.backend import backend_of
from quercus.storage.dialect import Dialect, dialect_for
from quercus.storage.migrate import stored_revision
from quercus.storage.queries import policies
from quercus.storage.rows import shapes_of
from quercus.storage.schema import (
    HEAD,
    LIVE,
    AnyRow,
    change_counter,
    display,
    lease_clock,
    log,
    model,
    model_change,
    query,
    snapshot,
    token,
    vocabulary,
)

MAX_FAULTS = 100
NOT_READ = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors that reading damaged rows may raise, beyond those that a check reports."""
CONCERNS_INSTANCE = log.c.instance.is_not(None)  # so that the index of label events applies
ALONE = (model.c.report, snapshot.c.data, query.c.reason)
"""Columns of a model whose cells are checked one by one."""
OF_TOKENS = (token.c.id, token.c.digest, token.c.roles, token.c.models)


class ModelContents(LogValidator, Protocol):
    """Checks the contents of a model and of tokens, which a store keeps as uninterpreted bytes.

    All methods raise `InvalidInput` with the invalid field.
    """

    def check_asked(self, data: bytes) -> None:
        """Check `AgendaEntry.asked` of a query; called after `check_head`."""

    def check_cell(self, column: str, data: bytes | str) -> None:
        """Check a single cell; `column` is written as in ``token.roles``."""


ContentReader = Callable[[], ModelContents]
"""Returns the checks for one model."""


@dataclass(frozen=True, slots=True)
class StoreFault:
    """A fault of a store.

    Attributes
    ----------
    text : str
        The fault, for the user.
    is_damage : bool
        True if the file, its schema or the evidence is damaged, so that data are lost or may be wrong. False for a
        remark on the history of queries (holders and budgets), or on foreign objects in the database, on which no
        evidence and no tree depends.
    """

    text: str
    is_damage: bool = True

    def __str__(self) -> str:
        return self.text


def verify_store(url: str, contents: ContentReader | None = None) -> list[StoreFault]:
    """Return the faults of a store, damage first; an empty list if it is consistent.

    It reads one state of the store and writes nothing, so it may run on a backup, and while servers use the store. If
    the schema is older than this version's, only the file, its references and its triggers are checked.

    Parameters
    ----------
    url : URL of the store.
    contents : checks the contents of cells; None leaves their bytes unchecked.

    Raises
    ------
    StoreError
        If the store does not exist, is not a store, or cannot be read at all.
    """
    dialect = dialect_for(url, 5.0, read_only=True)
    dialect.check_exists()
    engine = dialect.create_engine()
    try:
        with engine.connect() as connection:
            connection.execution_options(**dialect.read_options)
            dialect.begin(connection, writes=False)
            dialect.allow_pauses(connection)
            is_current = stored_revision(connection, dialect.store_name) == HEAD
            found = list(islice(_find_faults(connection, dialect, is_current, contents), 2 * MAX_FAULTS))
    except dialect.driver_errors as error:
        raise dialect.translate_error(error) from error
    finally:
        engine.dispose()
    return sorted(found, key=lambda fault: not fault.is_damage)


def _find_faults(
    connection: Connection, dialect: Dialect, is_current: bool, contents: ContentReader | None
) -> Iterator[StoreFault]:
    """Yield all faults. A part that cannot be read is a fault, and the other parts are checked nevertheless."""
    parts: list[Callable[[], Iterator[StoreFault]]] = [
        lambda: map(StoreFault, backend_of(connection).file_faults(connection, MAX_FAULTS)),
        lambda: _faults_of_schema(connection, is_current),
    ]
    if is_current:
        parts.append(lambda: _faults_of_rows(connection, dialect, contents))
    for part in parts:
        yield from _readable(part(), connection, dialect, "the store")


def _readable(
    faults: Iterator[StoreFault], connection: Connection, dialect: Dialect, what: str
) -> Iterator[StoreFault]:
    """Yield at most `MAX_FAULTS` faults, and one more if an error ends the check; a lost connection is no fault."""
    try:
        yield from islice(faults, MAX_FAULTS)
    except dialect.driver_errors as error:
        if connection.invalidated:
            raise
        yield StoreFault(f"{what} cannot be read: {dialect.translate_error(error)}")
    except NOT_READ as error:
        yield StoreFault(f"{what} cannot be read ({type(error).__name__}: {str(error)[:200]})")


def _faults_of_schema(connection: Connection, is_current: bool) -> Iterator[StoreFault]:
    if is_current:
        yield from (StoreFault(text, is_damage) for text, is_damage in schema_faults(connection))
    else:
        yield from (
            StoreFault(f"the database {said}", is_damage) for said, is_damage in foreign_rules(connection)
        )


def _faults_of_rows(
    connection: Connection, dialect: Dialect, contents: ContentReader | None
) -> Iterator[StoreFault]:
    of_models: defaultdict[int | None, list[str]] = defaultdict(list)
    for fault in cell_faults(connection):
        of_models[fault.model_id].append(fault.text)
    yield from map(StoreFault, of_models.pop(None, ()))
    yield from _readable(_faults_of_the_whole(connection, contents), connection, dialect, "the store")
    rows = connection.execute(select(model.c.id, model.c.name).where(LIVE).order_by(model.c.id)).all()
    for key, name in rows:
        for text in (texts := of_models.pop(key, [])):
            yield StoreFault(f"model {name}: {text}")
        if not texts:  # damaged cells would only cause further faults
            yield from _readable(
                _faults_of_model(connection, key, contents), connection, dialect, f"model {name}"
            )
    for key, texts in of_models.items():  # models that are being deleted, or do not exist
        yield from (StoreFault(f"model number {key}: {text}") for text in texts)


def _faults_of_the_whole(connection: Connection, contents: ContentReader | None) -> Iterator[StoreFault]:
    """Yield the faults of rows that belong to no model, or of the list of models."""
    numbers = connection.execute(select(change_counter.c.number)).scalars().all()
    clocks = connection.execute(select(func.count()).select_from(lease_clock)).scalar_one()
    if len(numbers) != 1:
        yield StoreFault(f"table change_counter has {len(numbers)} rows, must have 1")
    if clocks > 1:
        yield StoreFault(f"table lease_clock has {clocks} rows, must have 1")
    newest = max(numbers, default=0)
    same = model_change.c.model_id == model.c.id
    told = select(model.c.name, model_change.c.name, model_change.c.number)
    for name, known, number in connection.execute(told.outerjoin(model_change, same).where(LIVE)):
        if known != name:
            yield StoreFault(f"model {name}: table model_change knows it as {known!r}")
        elif number > newest:
            yield StoreFault(f"model {name}: its newest change is number {number}, the store's is {newest}")
    if contents is not None:
        reader = contents()
        for row in connection.execute(select(token)):
            for column in OF_TOKENS:
                if (said := _fault_of_cell(reader, column, row._mapping[column])) is not None:
                    yield StoreFault(f"token {row.id!r}: {said}")


def _fault_of_cell(reader: ModelContents, column: Column[Any], cell: Any) -> str | None:
    """Return the fault of a single cell; None if it has none."""
    if cell is None:
        return None
    try:
        reader.check_cell(f"{column.table.name}.{column.name}", cell)
    except InvalidInput as error:
        return str(error)
    return None


def model_faults(connection: Connection, key: int, contents: ContentReader) -> Iterator[StoreFault]:
    """Yield the faults of one model; if cells are damaged, only those."""
    cells = [fault.text for fault in cell_faults(connection, key)]
    yield from map(StoreFault, cells)
    if cells:
        return
    try:
        yield from _faults_of_model(connection, key, contents)
    except NOT_READ as error:
        yield StoreFault(f"it cannot be read ({type(error).__name__}: {str(error)[:200]})")


def _faults_of_model(
    connection: Connection, key: int, contents: ContentReader | None
) -> Iterator[StoreFault]:
    row = connection.execute(select(model).where(model.c.id == key)).one()
    damage = list(islice(_damage_of_model(connection, row), MAX_FAULTS))
    if contents is not None and not damage:
        damage = list(islice(_damage_of_contents(connection, row, contents()), MAX_FAULTS))
    yield from (StoreFault(f"model {row.name}: {said}") for said in damage)
    for said in islice(_remarks_on_model(connection, row), MAX_FAULTS):
        yield StoreFault(f"model {row.name}: {said}", is_damage=False)


def _damage_of_model(connection: Connection, row: AnyRow) -> Iterator[str]:
    mine = log.c.model_id == row.id
    first, last, count = connection.execute(
        select(func.min(log.c.sequence), func.max(log.c.sequence), func.count()).where(mine)
    ).one()
    if count and (first != 1 or last != count):
        yield f"its log has {count} events numbered {first} to {last}: some are missing"
    if (last or 0) != row.sequence_committed:
        yield f"it counts {row.sequence_committed} events, its log ends at {last or 0}"
    if row.sequence_grown > row.sequence_committed:
        yield f"its tree knows {row.sequence_grown} events, it has {row.sequence_committed}"
    if row.sequence_asked > row.sequence_committed:
        yield f"its queries know {row.sequence_asked} events, it has {row.sequence_committed}"
    kinds = _read_counts(connection, select(log.c.kind, func.count()).where(mine).group_by(log.c.kind))
    if kinds.get(EventKind.INSTANCE, 0) != row.instance_count:
        yield f"it counts {row.instance_count} instances, its log has {kinds.get(EventKind.INSTANCE, 0)}"
    newest = select(func.max(snapshot.c.version)).where(snapshot.c.model_id == row.id)
    if (version := connection.execute(newest).scalar() or 0) != row.tree_version:
        yield f"its newest tree is version {row.tree_version}, the store has version {version}"
    for table in (query, display):
        named = table.c.model_id == row.id
        there = exists().where(
            log.c.model_id == row.id, log.c.sequence == table.c.instance, log.c.kind == EventKind.INSTANCE
        )
        for (instance,) in connection.execute(select(table.c.instance).where(named, ~there)):
            yield f"table {table.name} names instance {instance}, which does not exist"
    yield from _faults_of_statements(connection, row)


def _damage_of_contents(connection: Connection, row: AnyRow, reader: ModelContents) -> Iterator[str]:
    """Yield faults in the contents of a model; of its log, the first."""
    try:
        check_model_id(row.name, "name")
        learned = learned_pairs(connection, row.id)
        shapes = shapes_of(row)
        reader.check_head(row.initial_specification, row.budget, learned, shapes)
        policies.check_policy(policies.policy_of(connection, row.id))
    except InvalidInput as error:
        yield str(error)
        return
    yield from _damage_of_vocabulary(connection, row)
    reading = LogReader(shapes, is_unique=True)
    try:
        _read_log(connection, row, reader, reading)
    except InvalidInput as error:
        yield str(error)
        return
    if (reading.specification or row.initial_specification) != row.specification:
        yield "its specification is not the one of its newest event that has one"
    for column in ALONE:
        yield from _damage_of_cells(connection, row, reader, column)
    places = select(query.c.number, query.c.asked).where(query.c.model_id == row.id).distinct()
    for number, asked in connection.execute(places):
        try:
            reader.check_asked(asked)
        except InvalidInput as error:
            yield f"query {number}: {error}"


def _read_log(connection: Connection, row: AnyRow, reader: ModelContents, reading: LogReader) -> None:
    """Read the log as an import does; raise `InvalidInput` at the first event that cannot be read."""
    cells = connection.execute(events_of(row.id).execution_options(yield_per=CHUNK))
    events = (dict(zip(NAMES, each, strict=True)) for each in cells)
    deque(checked_chunks(((f"event {each['sequence']}", each) for each in events), reading, reader), maxlen=0)


def _damage_of_vocabulary(connection: Connection, row: AnyRow) -> Iterator[str]:
    mine = vocabulary.c.model_id == row.id
    counts = select(vocabulary.c.attribute, func.count(), func.max(vocabulary.c.position)).where(mine)
    for attribute, count, last in connection.execute(counts.group_by(vocabulary.c.attribute)):
        if last != count - 1:
            yield f"attribute {attribute} has {count} learned values, the last one at position {last}"


def _damage_of_cells(
    connection: Connection, row: AnyRow, reader: ModelContents, column: Column[Any]
) -> Iterator[str]:
    table = column.table
    owner = table.c.id if table is model else table.c.model_id
    place = next((each for each in table.primary_key if each.name not in {"id", "model_id"}), None)
    wanted = select(column, *([] if place is None else [place])).where(owner == row.id)
    for cell, *at in connection.execute(wanted.execution_options(yield_per=20)):
        if (said := _fault_of_cell(reader, column, cell)) is not None:
            where = "" if place is None else f"{table.name} {place.name} {at[0]}: "
            yield f"{where}{said}"


def _remarks_on_model(connection: Connection, row: AnyRow) -> Iterator[str]:
    asked = query.c.model_id == row.id
    states = _read_counts(
        connection, select(query.c.state, func.count()).where(asked).group_by(query.c.state)
    )
    spent = row.queries_answered + states.get(QueryState.LEASED, 0)
    if spent > row.budget:
        yield f"{spent} queries are answered or leased, its budget is {row.budget}"
    newest = connection.execute(select(func.max(query.c.number)).where(asked)).scalar() or 0
    if newest > row.query_count:
        yield f"it counts {row.query_count} queries, the newest has number {newest}"
    yield from history_faults(connection, row.id)


def _faults_of_statements(connection: Connection, row: AnyRow) -> Iterator[str]:
    """Yield statements and adjudications that no combined label follows, or whose instance does not exist."""
    joint, mine = (
        log.alias("joint"),
        (log.c.model_id == row.id, log.c.kind.in_(sorted(UNASKED)), CONCERNS_INSTANCE),
    )
    same = (joint.c.model_id == row.id, joint.c.instance == log.c.instance, joint.c.query.is_(None))
    follows = exists().where(*same, joint.c.kind == EventKind.CORRECTION, joint.c.sequence > log.c.sequence)
    for (sequence,) in connection.execute(select(log.c.sequence).where(*mine, ~follows)):
        yield f"event {sequence} states a label, and no later event combines it with the others"
    of = log.alias("of")
    there = exists().where(
        of.c.model_id == row.id, of.c.sequence == log.c.instance, of.c.kind == EventKind.INSTANCE
    )
    for (sequence,) in connection.execute(select(log.c.sequence).where(*mine, ~there)):
        yield f"event {sequence} states a label, but its instance does not exist"


def _read_counts(connection: Connection, wanted: Select[Any]) -> dict[int, int]:
    return {int(key): int(count) for key, count in connection.execute(wanted)}
