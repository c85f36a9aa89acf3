"""Models that are deleted and whose rows are still to be removed."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; no model is."""
    op.add_column("model", sa.Column("deleted", sa.Boolean, nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Delete them at once, for an older version would show them."""
    op.execute("DELETE FROM model WHERE deleted")
    op.drop_column("model", "deleted")
