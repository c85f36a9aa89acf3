"""Growers that share a store, and which of them has taken which model."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables; nobody has taken anything."""
    op.create_table(
        "grower",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("place", sa.String(200), nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_grower"),
    )
    op.create_table(
        "growing",
        sa.Column("model_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("owner", sa.String(64)),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["model_id"], ["model.id"], name="fk_growing_model", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("model_id", name="pk_growing"),
    )
    op.create_index("ix_growing_owner", "growing", ["owner"])


def downgrade() -> None:
    """Forget them."""
    op.drop_table("growing")
    op.drop_table("grower")
