"""The rule of a model's policy that combines several answers."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; policies have Dempster's rule, as before."""
    op.add_column(
        "policy", sa.Column("combination", sa.SmallInteger, nullable=False, server_default=sa.text("1"))
    )
