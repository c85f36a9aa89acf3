"""Statements of labellers who were not asked: by which request they came; what was said, by kind and in order."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

STATEMENT = 7


def upgrade() -> None:
    """Add the column, and indexes over all that was said."""
    op.add_column("log", sa.Column("request", sa.String(200)))
    op.drop_index("ix_log_said", "log")
    _index("ix_log_said", ["model_id", "kind"], "instance")
    _index("ix_log_spoken", ["model_id", "sequence"], "instance")
    _index("ix_log_request", ["model_id", "request"], "request")


def downgrade() -> None:
    """Go back; revision 0006 has no statements, so a store that holds some stays as it is."""
    found = op.get_bind().execute(sa.text(f"SELECT count(*) FROM log WHERE kind = {STATEMENT}")).scalar()  # noqa: S608
    if found:
        raise RuntimeError(f"the log holds {found} statements, which revision 0006 cannot say")
    for name in ("ix_log_request", "ix_log_spoken", "ix_log_said"):
        op.drop_index(name, "log")
    _index("ix_log_said", ["model_id", "kind"], "query")
    op.drop_column("log", "request")


def _index(name: str, columns: list[str], present: str) -> None:
    there = sa.column(present).is_not(None)
    op.create_index(name, "log", columns, sqlite_where=there, postgresql_where=there)
