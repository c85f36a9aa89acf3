"""The number of times that a query of a model became open, so that waiting labellers miss none."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; it may begin with 0, because nobody waits yet."""
    op.add_column(
        "model", sa.Column("times_opened", sa.BigInteger, nullable=False, server_default=sa.text("0"))
    )


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("model", "times_opened")
