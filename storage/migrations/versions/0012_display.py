"""The display of a row."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table; no row has a display yet."""
    op.create_table(
        "display",
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("instance", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.ForeignKeyConstraint(["model_id"], ["model.id"], name="fk_display_model", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("model_id", "instance", name="pk_display"),
    )


def downgrade() -> None:
    """Forget what was pushed beside rows."""
    op.drop_table("display")
