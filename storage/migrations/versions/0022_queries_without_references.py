"""No foreign keys from queries to their model and from steps to their query in PostgreSQL, which looked each up."""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

QUERY, HISTORY = "fk_query_model", "fk_query_history_query"


def upgrade() -> None:
    """Drop the references."""
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint(HISTORY, "query_history", type_="foreignkey")
        op.drop_constraint(QUERY, "query", type_="foreignkey")


def downgrade() -> None:
    """Make them again: every query has its model, and every step its query."""
    if op.get_bind().dialect.name == "postgresql":
        op.create_foreign_key(QUERY, "query", "model", ["model_id"], ["id"], ondelete="CASCADE")
        pair = ["model_id", "number"]
        op.create_foreign_key(HISTORY, "query_history", "query", pair, pair, ondelete="CASCADE")
