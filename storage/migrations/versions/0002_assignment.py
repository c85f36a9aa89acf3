"""The labellers whom a model's policy names."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; policies name nobody, so everybody may label, as before."""
    text = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.add_column("policy", sa.Column("labellers", text, nullable=False, server_default=""))
