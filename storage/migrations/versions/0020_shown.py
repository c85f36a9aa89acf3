"""An answer keeps the name of what the labeller's screen showed."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; earlier answers name nothing."""
    op.add_column(
        "log", sa.Column("shown", sa.String(200).with_variant(sa.String(collation="C"), "postgresql"))
    )


def downgrade() -> None:
    """Forget it."""
    op.drop_column("log", "shown")
