"""No foreign key from the log to its model in PostgreSQL, which looked the model up for each row."""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop the reference."""
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint("fk_log_model", "log", type_="foreignkey")


def downgrade() -> None:
    """Make it again: every row has its model."""
    if op.get_bind().dialect.name == "postgresql":
        op.create_foreign_key("fk_log_model", "log", "model", ["model_id"], ["id"], ondelete="CASCADE")
