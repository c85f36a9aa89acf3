"""The report of the grower about a model, beside its trees."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; no model has a report yet."""
    op.add_column("model", sa.Column("report", sa.LargeBinary))


def downgrade() -> None:
    """Drop the column: the next tree would say it again."""
    op.drop_column("model", "report")
