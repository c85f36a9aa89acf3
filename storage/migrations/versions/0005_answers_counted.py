"""The answers of each query counted anew: one that was taken back of several was still counted, a refusal as well."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

ANSWERED_STEP, CORRECTED_STEP, UNDONE_STEP = 7, 10, 11
REFUSED_STATE, WITHDRAWN_STATE = 4, 5


def upgrade() -> None:
    """Count by the history whose answers stand."""
    connection = op.get_bind()
    standing: dict[tuple[int, int], set[str]] = {}
    gave: dict[tuple[int, int], set[str]] = {}
    steps = sa.text(
        "SELECT model_id, number, step, labeller FROM query_history WHERE step IN (7, 10, 11) ORDER BY id"
    )
    for row in connection.execute(steps):
        _count(row, standing.setdefault((row.model_id, row.number), set()), gave)
    queries = connection.execute(sa.text("SELECT model_id, number, state, answers FROM query")).all()
    changes = []
    for row in queries:
        none = row.state in (REFUSED_STATE, WITHDRAWN_STATE)
        count = 0 if none else len(standing.get((row.model_id, row.number), ()))
        if count != row.answers:
            changes.append({"model": row.model_id, "which": row.number, "count": count})
    if changes:
        change = "UPDATE query SET answers = :count WHERE model_id = :model AND number = :which"
        connection.execute(sa.text(change), changes)


def downgrade() -> None:
    """Leave the counts as they are: they are right."""


def _count(row: Any, standing: set[str], gave: dict[tuple[int, int], set[str]]) -> None:
    mine = gave.setdefault((row.model_id, row.number), set())
    if row.step == ANSWERED_STEP:
        mine.add(row.labeller)
    if row.step == UNDONE_STEP:
        standing.discard(row.labeller)
    elif row.labeller in mine:
        standing.add(row.labeller)
