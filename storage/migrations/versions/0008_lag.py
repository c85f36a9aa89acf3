"""The time of an event by the lease clock, so that no step of the wall clock shows as lag."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; what is there keeps the wall's time alone."""
    op.add_column("log", sa.Column("clock", sa.Double))


def downgrade() -> None:
    """Forget it."""
    op.drop_column("log", "clock")
