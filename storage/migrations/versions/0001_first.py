"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Build every table."""
    _create_model()
    _create_log()
    _create_vocabulary_and_snapshot()
    _create_query()
    _create_lease()


def downgrade() -> None:
    """Remove every table."""
    for table in ("lease", "query", "snapshot", "vocabulary", "log", "model"):
        op.drop_table(table)


def _model_id(table: str) -> list[sa.schema.SchemaItem]:
    return [
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.ForeignKeyConstraint(["model_id"], ["model.id"], name=f"fk_{table}_model", ondelete="CASCADE"),
    ]


def _create_model() -> None:
    counts = ("sequence_committed", "sequence_grown", "tree_version", "instance_count", "query_count")
    more_counts = ("queries_answered", "queries_refused", "conflicts")
    op.create_table(
        "model",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("initial_specification", sa.LargeBinary, nullable=False),
        sa.Column("specification", sa.LargeBinary, nullable=False),
        sa.Column("budget", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in counts + more_counts),
        sa.PrimaryKeyConstraint("id", name="pk_model"),
        sa.UniqueConstraint("name", name="uq_model_name"),
        sqlite_autoincrement=True,
    )


def _create_log() -> None:
    op.create_table(
        "log",
        *_model_id("log"),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.SmallInteger, nullable=False),
        sa.Column("id", sa.String(200)),
        sa.Column("instance", sa.BigInteger),
        sa.Column("values", sa.LargeBinary),
        sa.Column("label", sa.LargeBinary),
        sa.Column("author", sa.String(200), nullable=False),
        sa.Column("reliability", sa.Double, nullable=False),
        sa.Column("asked", sa.LargeBinary),
        sa.Column("conflict", sa.Boolean, nullable=False),
        sa.Column("specification", sa.LargeBinary),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("model_id", "sequence", name="pk_log"),
        sqlite_with_rowid=False,
    )
    for name, column, unique in (("ix_log_id", "id", True), ("ix_log_instance", "instance", False)):
        present = sa.column(column).is_not(None)
        columns = ["model_id", column]
        op.create_index(name, "log", columns, unique=unique, sqlite_where=present, postgresql_where=present)


def _create_vocabulary_and_snapshot() -> None:
    op.create_table(
        "vocabulary",
        *_model_id("vocabulary"),
        sa.Column("attribute", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("value", sa.String, nullable=False),
        sa.PrimaryKeyConstraint("model_id", "attribute", "position", name="pk_vocabulary"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_vocabulary_value", "vocabulary", ["model_id", "attribute", "value"], unique=True)
    op.create_table(
        "snapshot",
        *_model_id("snapshot"),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("as_of", sa.BigInteger, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("model_id", "version", name="pk_snapshot"),
    )


def _create_query() -> None:
    op.create_table(
        "query",
        *_model_id("query"),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("instance", sa.BigInteger, nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("asked", sa.LargeBinary, nullable=False),
        sa.Column("reason", sa.LargeBinary, nullable=False),
        sa.Column("tree_version", sa.BigInteger, nullable=False),
        sa.Column("labeller", sa.String(200)),
        sa.Column("token", sa.String(64)),
        sa.Column("expires_at", sa.Double),
        sa.Column("sequence", sa.BigInteger),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("model_id", "number", name="pk_query"),
    )
    op.create_index("ix_query_agenda", "query", ["model_id", "state", "position"])
    op.create_index("ix_query_settled", "query", ["model_id", "sequence"])
    op.create_index("ix_query_labeller", "query", ["model_id", "labeller", "sequence"])
    held = sa.column("expires_at").is_not(None)
    op.create_index("ix_query_expiry", "query", ["expires_at"], sqlite_where=held, postgresql_where=held)
    live = sa.column("state") <= sa.literal_column("2")
    columns = ["model_id", "instance"]
    op.create_index("ix_query_live", "query", columns, unique=True, sqlite_where=live, postgresql_where=live)


def _create_lease() -> None:
    op.create_table(
        "lease",
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("labeller", sa.String(200), nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("released", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("model_id", "number", "token", name="pk_lease"),
        sa.ForeignKeyConstraint(
            ["model_id", "number"],
            ["query.model_id", "query.number"],
            name="fk_lease_query",
            ondelete="CASCADE",
        ),
        sqlite_with_rowid=False,
    )
