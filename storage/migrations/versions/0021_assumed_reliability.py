"""The log says of a label whether its reliability was sent with it."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Of the labels that are there nobody knows; they count as they did."""
    op.add_column("log", sa.Column("assumed", sa.Boolean))


def downgrade() -> None:
    """Forget it."""
    op.drop_column("log", "assumed")
