"""The rule that combines several answers: a part of a model's policy."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; Dempster's rule combines answers, as before."""
    op.add_column(
        "policy", sa.Column("combination", sa.SmallInteger, nullable=False, server_default=sa.text("1"))
    )
