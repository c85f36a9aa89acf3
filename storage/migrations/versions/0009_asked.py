"""Up to which event a model's newest queries were chosen, where they come before the tree."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; of what is there the tree says it."""
    op.add_column(
        "model", sa.Column("sequence_asked", sa.BigInteger, nullable=False, server_default=sa.text("0"))
    )


def downgrade() -> None:
    """Forget it."""
    op.drop_column("model", "sequence_asked")
