"""Numbers of changes of models, in the order of the commits; an identity of each model that is never used again."""

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Number what is there as changed once, and give every model its identity."""
    op.create_table(
        "change_counter",
        sa.Column("id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_change_counter"),
    )
    op.create_table(
        "model_change",
        sa.Column("model_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("model_id", name="pk_model_change"),
    )
    op.create_index("ix_model_change_number", "model_change", ["number"])
    op.execute("INSERT INTO change_counter (id, number) VALUES (1, 1)")
    op.execute("INSERT INTO model_change (model_id, name, number) SELECT id, name, 1 FROM model")
    op.add_column("model", sa.Column("uid", sa.String(36), nullable=False, server_default=sa.text("''")))
    connection = op.get_bind()
    model = sa.table("model", sa.column("id", sa.Integer), sa.column("uid", sa.String))
    for key in connection.execute(sa.select(model.c.id)).scalars().all():
        connection.execute(sa.update(model).where(model.c.id == key).values(uid=str(uuid.uuid4())))


def downgrade() -> None:
    """Forget the numbers and the identities."""
    op.drop_column("model", "uid")
    op.drop_table("model_change")
    op.drop_table("change_counter")
