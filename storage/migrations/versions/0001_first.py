"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def text(length: int | None = None) -> sa.String:
    """Return a type of text that sorts by bytes."""
    return sa.String(length).with_variant(sa.String(collation="C"), "postgresql")


def model_id() -> sa.Column[int]:
    """Return the column with the key of the model that a row belongs to, part of the primary key."""
    return sa.Column("model_id", KEY, sa.ForeignKey("model.id", ondelete="CASCADE"), primary_key=True)


def of_sqlite(columns: list[str], referred: list[str]) -> list[sa.ForeignKeyConstraint]:
    """Return a foreign key that only SQLite has; see `quercus.storage.schema`."""
    if op.get_context().dialect.name != "sqlite":
        return []
    return [sa.ForeignKeyConstraint(columns, referred, ondelete="CASCADE")]


def index(name: str, table: str, columns: list[str], *, unique: bool = False, where: str = "") -> None:
    """Create an index, with `where` a partial one."""
    condition = sa.text(where) if where else None
    op.create_index(name, table, columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


def upgrade() -> None:
    """Create all tables, and the counter of changes."""
    op.create_table(
        "audit",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("who", text(200), nullable=False),
        sa.Column("action", text(200), nullable=False),
        sa.Column("target", text(200), nullable=False),
        sa.Column("outcome", text(200), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "change_counter",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("number", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "grower",
        sa.Column("id", text(64), primary_key=True),
        sa.Column("place", text(200), nullable=False),
        sa.Column("until", sa.Double, nullable=False),
    )
    op.create_table(
        "lease_clock",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("boot", text(64), nullable=False),
        sa.Column("offset", sa.Double, nullable=False),
    )
    op.create_table(
        "model",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("name", text(200), nullable=False, unique=True),
        sa.Column("uid", text(36), nullable=False),
        sa.Column("initial_specification", sa.LargeBinary, nullable=False),
        sa.Column("specification", sa.LargeBinary, nullable=False),
        sa.Column("budget", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("sequence_committed", sa.BigInteger, nullable=False),
        sa.Column("sequence_grown", sa.BigInteger, nullable=False),
        sa.Column("sequence_asked", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("tree_version", sa.BigInteger, nullable=False),
        sa.Column("instance_count", sa.BigInteger, nullable=False),
        sa.Column("query_count", sa.BigInteger, nullable=False),
        sa.Column("queries_answered", sa.BigInteger, nullable=False),
        sa.Column("queries_refused", sa.BigInteger, nullable=False),
        sa.Column("conflicts", sa.BigInteger, nullable=False),
        sa.Column("times_opened", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("report", sa.LargeBinary),
        sa.Column("deleted", sa.Boolean, nullable=False, server_default=sa.false()),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "model_change",
        sa.Column("model_id", KEY, primary_key=True, autoincrement=False),
        sa.Column("name", text(200), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
    )
    index("ix_model_change_number", "model_change", ["number"])
    op.create_table(
        "token",
        sa.Column("id", text(32), primary_key=True),
        sa.Column("name", text(200), nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("roles", text(), nullable=False),
        sa.Column("models", text()),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double),
        sa.Column("revoked_at", sa.Double),
    )
    op.create_table(
        "display",
        model_id(),
        sa.Column("instance", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "growing",
        model_id(),
        sa.Column("owner", text(64)),
        sa.Column("epoch", sa.BigInteger, nullable=False),
    )
    index("ix_growing_owner", "growing", ["owner"])
    op.create_table(
        "log",
        sa.Column("model_id", KEY, primary_key=True),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.SmallInteger, nullable=False),
        sa.Column("instance", sa.BigInteger),
        sa.Column("id", text(200)),
        sa.Column("values", sa.LargeBinary),
        sa.Column("label", sa.LargeBinary),
        sa.Column("author", text(200), nullable=False),
        sa.Column("reliability", sa.Double, nullable=False),
        sa.Column("asked", sa.LargeBinary),
        sa.Column("conflict", sa.Boolean, nullable=False),
        sa.Column("specification", sa.LargeBinary),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("query", sa.BigInteger),
        sa.Column("comment", text()),
        sa.Column("took_s", sa.Double),
        sa.Column("shown", text(200)),
        sa.Column("assumed", sa.Boolean),
        sa.Column("request", text(200)),
        sa.Column("clock", sa.Double, nullable=False),
        *of_sqlite(["model_id"], ["model.id"]),
        sqlite_with_rowid=False,
    )
    index("ix_log_id", "log", ["model_id", "id"], unique=True, where="id IS NOT NULL")
    index("ix_log_instance", "log", ["model_id", "instance"], where="instance IS NOT NULL")
    index("ix_log_request", "log", ["model_id", "request"], where="request IS NOT NULL")
    index("ix_log_said", "log", ["model_id", "kind"], where="instance IS NOT NULL")
    index("ix_log_spoken", "log", ["model_id", "sequence"], where="instance IS NOT NULL")
    op.create_table(
        "policy",
        model_id(),
        sa.Column("answers_per_query", sa.Integer, nullable=False),
        sa.Column("max_conflict", sa.Double, nullable=False),
        sa.Column("reliability", sa.SmallInteger, nullable=False),
        sa.Column("per_labeller", sa.BigInteger),
        sa.Column("per_hour", sa.BigInteger),
        sa.Column("max_held", sa.Integer, nullable=False),
        sa.Column("corrections", sa.SmallInteger, nullable=False),
        sa.Column("tags", text(), nullable=False),
    )
    op.create_table(
        "query",
        sa.Column("model_id", KEY, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("instance", sa.BigInteger, nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("asked", sa.LargeBinary, nullable=False),
        sa.Column("reason", sa.LargeBinary, nullable=False),
        sa.Column("tree_version", sa.BigInteger, nullable=False),
        sa.Column("labeller", text(200)),
        sa.Column("token", text(64)),
        sa.Column("ends", sa.Double),
        sa.Column("not_before", sa.Double),
        sa.Column("sequence", sa.BigInteger),
        sa.Column("answers", sa.Integer, nullable=False, server_default="0"),
        sa.Column("wanted", sa.Boolean, nullable=False, server_default="1"),
        sa.Column("credential", text(32)),
        sa.Column("created_at", sa.Double, nullable=False),
        *of_sqlite(["model_id"], ["model.id"]),
    )
    index("ix_query_agenda", "query", ["model_id", "state", "position"])
    index("ix_query_expiry", "query", ["ends"], where="ends IS NOT NULL")
    index("ix_query_labeller", "query", ["model_id", "labeller", "sequence"])
    index("ix_query_live", "query", ["model_id", "instance"], unique=True, where="state <= 2")
    index("ix_query_postponed", "query", ["not_before"], where="not_before IS NOT NULL")
    index("ix_query_settled", "query", ["model_id", "sequence"])
    op.create_table(
        "snapshot",
        model_id(),
        sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("as_of", sa.BigInteger, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "vocabulary",
        model_id(),
        sa.Column("attribute", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("value", text(), nullable=False),
        sqlite_with_rowid=False,
    )
    index("ix_vocabulary_value", "vocabulary", ["model_id", "attribute", "value"], unique=True)
    op.create_table(
        "query_history",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("model_id", KEY, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("instance", sa.BigInteger, nullable=False),
        sa.Column("step", sa.SmallInteger, nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("labeller", text(200)),
        sa.Column("token", text(64)),
        sa.Column("clock", sa.Double, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("until", sa.Double),
        sa.Column("sequence", sa.BigInteger),
        sa.Column("why", text()),
        *of_sqlite(["model_id", "number"], ["query.model_id", "query.number"]),
        sqlite_autoincrement=True,
    )
    index("ix_query_history_clock", "query_history", ["clock"])
    index("ix_query_history_labeller", "query_history", ["model_id", "labeller", "step"])
    index("ix_query_history_query", "query_history", ["model_id", "number"])
    index("ix_query_history_skipped", "query_history", ["model_id", "instance", "labeller"])
    index("ix_query_history_step", "query_history", ["model_id", "step", "clock"])
    op.execute("INSERT INTO change_counter (id, number) VALUES (1, 1)")
