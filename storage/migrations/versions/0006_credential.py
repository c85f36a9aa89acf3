"""Leases know the access token by which they were taken."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("query", sa.Column("credential", sa.String(32)))


def downgrade() -> None:
    """Remove it."""
    op.drop_column("query", "credential")
