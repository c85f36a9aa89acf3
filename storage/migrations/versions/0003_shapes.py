"""The shapes of a model's log (`quercus.labelling.shapes`): classes and attributes that came later."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column; the logs of existing models have one shape."""
    text = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.add_column("model", sa.Column("shapes", text))
