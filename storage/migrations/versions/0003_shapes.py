"""The shapes of a model's log (`quercus.labelling.shapes`), for classes and attributes that are added later."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; the logs of existing models have a single shape."""
    text = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.add_column("model", sa.Column("shapes", text))
