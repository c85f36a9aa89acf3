"""A column for whether the reliability of a label was sent with it or assumed."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; existing labels have NULL, not known, and count as before."""
    op.add_column("log", sa.Column("assumed", sa.Boolean))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("log", "assumed")
