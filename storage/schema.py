"""The tables. The migrations build the same tables; a test compares the two.

`model` has one row per model, which also counts the events of its log. A writer locks that row before it appends, so
sequence numbers have no gaps. `log` is append-only.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    SmallInteger,
    Table,
    false,
    text,
)
from sqlalchemy.types import TypeEngine

from quercus.labelling.event import EVENT_FIELDS, EVENT_TYPES, EventKind
from quercus.storage.column_types import KEY, text_type

AnyRow: TypeAlias = Row[*tuple[Any, ...]]

# The newest migration, equal to Alembic's head (tested), so that opening a store of this revision imports no Alembic.
HEAD = max(each.name for each in Path(__file__).parent.glob("migrations/versions/[0-9]*.py"))[:4]
REVISION_TABLE = "quercus_revision"
REVISION_TABLE_SQL = (
    f"CREATE TABLE IF NOT EXISTS {REVISION_TABLE} "
    "(version_num VARCHAR(32) NOT NULL CONSTRAINT quercus_revision_pkc PRIMARY KEY)"
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
    }
)


def each_of(column: ColumnElement[int]) -> ColumnElement[int]:
    """Return the column as an expression for which no index is used, for a condition on rows that another has found.

    A planner without statistics may otherwise prefer the index of all answers of a model to that of a query's steps.
    """
    return column + 0


def _model_column() -> Column[int]:
    return Column("model_id", KEY, ForeignKey("model.id", ondelete="CASCADE"), primary_key=True)


def _foreign_key(columns: list[str], to: list[str]) -> ForeignKeyConstraint:
    """Return a foreign key that only SQLite has, for tables with many rows, whose writers have locked the parent row.

    PostgreSQL would look the parent up for each row, which is nearly half of the work of an insert.
    """
    return ForeignKeyConstraint(columns, to, ondelete="CASCADE").ddl_if(dialect="sqlite")


def _event_column(name: str) -> Column[Any]:
    """Return the column of a field of `Event`."""
    stored, kind = EVENT_FIELDS[name], EVENT_TYPES[name]
    column_type = text_type(stored.most) if kind is str else _TYPES[kind]
    if name == "sequence":
        return Column(name, column_type, primary_key=True, autoincrement=False)
    return Column(name, column_type, nullable=stored.may_be_null)


_TYPES: Final[Mapping[type, TypeEngine[Any]]] = {
    int: BigInteger(), EventKind: SmallInteger(), float: Double(), bytes: LargeBinary(), bool: Boolean()
}  # fmt: skip


model = Table(
    "model",
    metadata,
    Column("id", KEY, primary_key=True),
    Column("name", text_type(200), nullable=False, unique=True),
    # By it, clients distinguish a model from a later one of the same name.
    Column("uid", text_type(36), nullable=False),
    Column("initial_specification", LargeBinary, nullable=False),
    Column("specification", LargeBinary, nullable=False),
    Column("budget", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("sequence_committed", BigInteger, nullable=False),
    Column("sequence_grown", BigInteger, nullable=False),
    # Last event considered when the newest queries were chosen; it may be before or after that of the tree.
    Column("sequence_asked", BigInteger, nullable=False, server_default=text("0")),
    Column("tree_version", BigInteger, nullable=False),
    Column("instance_count", BigInteger, nullable=False),
    Column("query_count", BigInteger, nullable=False),
    Column("queries_answered", BigInteger, nullable=False),
    Column("queries_refused", BigInteger, nullable=False),
    Column("conflicts", BigInteger, nullable=False),
    # Counts the changes after which a labeller may get a query that was not free before: a query was opened or given
    # back, or a budget or policy changed.
    Column("times_opened", BigInteger, nullable=False, server_default=text("0")),
    # The grower's report: `quercus.v1.GrowthReport`.
    Column("report", LargeBinary),
    # The model was deleted, and its rows are being removed (see `removal`).
    Column("deleted", Boolean, nullable=False, server_default=false()),
    # The shapes of the log (`quercus.labelling.shapes`); NULL for a model that was never extended.
    Column("shapes", text_type()),
    # Without it, SQLite assigns the id of a deleted model again, and a late snapshot would reach the wrong model.
    sqlite_autoincrement=True,
)

LIVE = ~model.c.deleted

# One row: the number of the newest commit that changed a model (see `changes`).
change_counter = Table(
    "change_counter",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("number", BigInteger, nullable=False),
)

# The newest commit that changed each model. The row of a deleted model stays for a while, so that readers notice.
model_change = Table(
    "model_change",
    metadata,
    Column("model_id", KEY, primary_key=True, autoincrement=False),
    Column("name", text_type(200), nullable=False),
    Column("number", BigInteger, nullable=False),
)
Index("ix_model_change_number", model_change.c.number)

log = Table(
    "log",
    metadata,
    Column("model_id", KEY, primary_key=True),
    _foreign_key(["model_id"], ["model.id"]),
    *map(_event_column, EVENT_FIELDS),
    # Time of the lease clock, from which the lag of the tree is computed. It belongs to the store, and is not exported.
    Column("clock", Double, nullable=False),
    sqlite_with_rowid=False,
)
Index(
    "ix_log_id",
    log.c.model_id,
    log.c.id,
    unique=True,
    sqlite_where=log.c.id.is_not(None),
    postgresql_where=log.c.id.is_not(None),
)
Index(
    "ix_log_instance",
    log.c.model_id,
    log.c.instance,
    sqlite_where=log.c.instance.is_not(None),
    postgresql_where=log.c.instance.is_not(None),
)

# Labellers' events, by kind and in order, without INSTANCE events.
for _name, _columns in (
    ("ix_log_said", (log.c.model_id, log.c.kind)),
    ("ix_log_spoken", (log.c.model_id, log.c.sequence)),
):
    _speaks = log.c.instance.is_not(None)
    Index(_name, *_columns, sqlite_where=_speaks, postgresql_where=_speaks)
Index(
    "ix_log_request",
    log.c.model_id,
    log.c.request,
    sqlite_where=log.c.request.is_not(None),
    postgresql_where=log.c.request.is_not(None),
)

# Marks of gold questions and answers to them; most models have none.
Index(
    "ix_log_gold",
    log.c.model_id,
    log.c.kind,
    log.c.instance,
    sqlite_where=log.c.gold.is_not(None),
    postgresql_where=log.c.gold.is_not(None),
)

vocabulary = Table(
    "vocabulary",
    metadata,
    _model_column(),
    Column("attribute", Integer, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("value", text_type(), nullable=False),
    sqlite_with_rowid=False,
)
Index("ix_vocabulary_value", vocabulary.c.model_id, vocabulary.c.attribute, vocabulary.c.value, unique=True)

# What people see of a row beside its values; not part of the evidence. Most rows have none.
display = Table(
    "display",
    metadata,
    _model_column(),
    # Sequence of the INSTANCE event.
    Column("instance", BigInteger, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)

snapshot = Table(
    "snapshot",
    metadata,
    _model_column(),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("as_of", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Column("created_at", Double, nullable=False),
)

query = Table(
    "query",
    metadata,
    Column("model_id", KEY, primary_key=True),
    _foreign_key(["model_id"], ["model.id"]),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("instance", BigInteger, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("asked", LargeBinary, nullable=False),
    Column("reason", LargeBinary, nullable=False),
    Column("tree_version", BigInteger, nullable=False),
    Column("labeller", text_type(200)),
    Column("token", text_type(64)),
    # Times are those of the lease clock (see `clocks`).
    Column("ends", Double),
    Column("not_before", Double),
    Column("sequence", BigInteger),
    # Number of answers that count, and whether the newest agenda names the query.
    Column("answers", Integer, nullable=False, server_default="0"),
    Column("wanted", Boolean, nullable=False, server_default="1"),
    # Id of the access token with which it was last leased; NULL if there was none.
    Column("credential", text_type(32)),
    Column("created_at", Double, nullable=False),
    # True for a gold question, which growth did not ask for.
    Column("gold", Boolean, nullable=False, server_default=false()),
)
Index(
    "ix_query_gold",
    query.c.model_id,
    query.c.state,
    sqlite_where=query.c.gold.is_(True),
    postgresql_where=query.c.gold.is_(True),
)
Index("ix_query_agenda", query.c.model_id, query.c.state, query.c.position)
Index("ix_query_settled", query.c.model_id, query.c.sequence)
Index("ix_query_labeller", query.c.model_id, query.c.labeller, query.c.sequence)
for _name, _column in (("ix_query_expiry", query.c.ends), ("ix_query_postponed", query.c.not_before)):
    Index(_name, _column, sqlite_where=_column.is_not(None), postgresql_where=_column.is_not(None))
# An instance has at most one open or leased query: the database refuses a second one. The index does not keep a query
# from being settled twice; serialisation does: a transaction locks its model, and within a group of calls, a query that
# an earlier call changed is read again (`Desk.suffices_for`).
Index(
    "ix_query_live",
    query.c.model_id,
    query.c.instance,
    unique=True,
    sqlite_where=query.c.state <= 2,
    postgresql_where=query.c.state <= 2,
)

# Every step of every query, and so every lease ever given, which tells a late answer from a made-up token. Rows are
# never changed; they are removed with their query, if it was withdrawn and nobody ever held it.
query_history = Table(
    "query_history",
    metadata,
    Column("id", KEY, primary_key=True),
    Column("model_id", KEY, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("instance", BigInteger, nullable=False),
    Column("step", SmallInteger, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("labeller", text_type(200)),
    Column("token", text_type(64)),
    Column("clock", Double, nullable=False),
    Column("at", Double, nullable=False),
    Column("until", Double),
    Column("sequence", BigInteger),
    Column("why", text_type()),
    _foreign_key(["model_id", "number"], ["query.model_id", "query.number"]),
    sqlite_autoincrement=True,
)
Index("ix_query_history_query", query_history.c.model_id, query_history.c.number)
Index(
    "ix_query_history_skipped", query_history.c.model_id, query_history.c.instance, query_history.c.labeller
)
Index("ix_query_history_labeller", query_history.c.model_id, query_history.c.labeller, query_history.c.step)
Index("ix_query_history_clock", query_history.c.clock)
Index("ix_query_history_step", query_history.c.model_id, query_history.c.step, query_history.c.clock)

# One row: the offset of the lease clock, and the boot that it is valid for.
lease_clock = Table(
    "lease_clock",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("boot", text_type(64), nullable=False),
    Column("offset", Double, nullable=False),
)

# Labelling policies; a model without a row has the defaults.
policy = Table(
    "policy",
    metadata,
    _model_column(),
    Column("answers_per_query", Integer, nullable=False),
    Column("max_conflict", Double, nullable=False),
    Column("reliability", SmallInteger, nullable=False),
    Column("per_labeller", BigInteger),
    Column("per_hour", BigInteger),
    Column("max_held", Integer, nullable=False),
    Column("corrections", SmallInteger, nullable=False),
    Column("tags", text_type(), nullable=False),
    Column("labellers", text_type(), nullable=False, server_default=text("''")),
    Column("combination", SmallInteger, nullable=False, server_default=text("1")),
    Column("gold_share", Double, nullable=False, server_default=text("0")),
)

# Growers that share the store; each is live as long as it renews its row (see `growers`).
grower = Table(
    "grower",
    metadata,
    Column("id", text_type(64), primary_key=True),
    Column("place", text_type(200), nullable=False),
    # Time of the lease clock.
    Column("until", Double, nullable=False),
)

# The grower that has taken a model, and how often it was taken; no row if never.
growing = Table(
    "growing",
    metadata,
    _model_column(),
    Column("owner", text_type(64)),
    Column("epoch", BigInteger, nullable=False),
)
Index("ix_growing_owner", growing.c.owner)

# Access tokens of callers; only digests of the secrets are stored.
token = Table(
    "token",
    metadata,
    Column("id", text_type(32), primary_key=True),
    Column("name", text_type(200), nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("roles", text_type(), nullable=False),
    # Names of models, in JSON; NULL for all.
    Column("models", text_type()),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
)

# The audit log of administrative calls; rows are never changed.
audit = Table(
    "audit",
    metadata,
    Column("id", KEY, primary_key=True),
    Column("at", Double, nullable=False),
    Column("who", text_type(200), nullable=False),
    Column("action", text_type(200), nullable=False),
    Column("target", text_type(200), nullable=False),
    Column("outcome", text_type(200), nullable=False),
    sqlite_autoincrement=True,
)
