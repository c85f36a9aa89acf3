"""Gold questions: marks and answers in the log, queries, and the share in a model's policy."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and the indexes; no query is a gold question, and policies have the share 0."""
    op.add_column("log", sa.Column("gold", sa.Boolean))
    op.add_column("query", sa.Column("gold", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("policy", sa.Column("gold_share", sa.Double, nullable=False, server_default=sa.text("0")))
    is_marked = sa.text("gold IS NOT NULL")
    op.create_index(
        "ix_log_gold",
        "log",
        ["model_id", "kind", "instance"],
        sqlite_where=is_marked,
        postgresql_where=is_marked,
    )
    op.create_index(
        "ix_query_gold",
        "query",
        ["model_id", "state"],
        sqlite_where=sa.text("gold IS 1"),
        postgresql_where=sa.text("gold IS true"),
    )
