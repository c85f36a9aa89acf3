"""The history of queries in the place of the table of leases; the lease clock; labelling policies; comments."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

WHY = "before the history was kept"
OPENED, LEASED, RELEASED, EXPIRED, ANSWERED, REFUSED, WITHDRAWN = 1, 2, 3, 4, 7, 8, 9  # steps
OPEN_STATE, LEASED_STATE, ANSWERED_STATE, REFUSED_STATE = 1, 2, 3, 4
HISTORY_COLUMNS = "model_id, number, instance, step, state, labeller, token, clock, at, until, sequence, why"


def upgrade() -> None:
    """Add columns and tables, and write the history as far as it is known."""
    for name, kind in (("query", sa.BigInteger), ("comment", sa.String), ("took_s", sa.Double)):
        op.add_column("log", sa.Column(name, kind))
    said = sa.column("query").is_not(None)
    op.create_index("ix_log_said", "log", ["model_id", "kind"], sqlite_where=said, postgresql_where=said)
    _extend_query()
    _create_history()
    _create_clock_and_policy()
    connection = op.get_bind()
    connection.execute(sa.text("UPDATE log SET query = (SELECT number FROM query WHERE query.model_id = log.model_id "
                               "AND query.sequence = log.sequence) WHERE kind IN (2, 3)"))  # fmt: skip
    _write_history(connection)
    op.drop_table("lease")


def downgrade() -> None:
    """Go back; of the history only the leases stay, and what revision 0002 cannot say is lost."""
    op.create_table(
        "lease",
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("labeller", sa.String(200), nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("released", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("model_id", "number", "token", name="pk_lease"),
        sa.ForeignKeyConstraint(
            ["model_id", "number"], ["query.model_id", "query.number"], name="fk_lease_query", ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )  # fmt: skip
    given_up = (
        "EXISTS (SELECT 1 FROM query_history AS b WHERE b.model_id = a.model_id AND b.number = a.number "
        "AND b.token = a.token AND b.step IN (3, 5, 6))"
    )
    op.execute(
        "INSERT INTO lease SELECT model_id, number, token, labeller, until, "  # noqa: S608 - our own words
        f"{given_up} FROM query_history AS a WHERE step = {LEASED}"
    )
    for table in ("query_history", "lease_clock", "policy"):
        op.drop_table(table)
    op.drop_index("ix_query_postponed", "query")
    op.drop_index("ix_query_expiry", "query")
    op.execute("ALTER TABLE query RENAME COLUMN ends TO expires_at")
    held = sa.column("expires_at").is_not(None)
    op.create_index("ix_query_expiry", "query", ["expires_at"], sqlite_where=held, postgresql_where=held)
    for name in ("not_before", "answers", "wanted"):
        op.drop_column("query", name)
    op.drop_index("ix_log_said", "log")
    for name in ("query", "comment", "took_s"):
        op.drop_column("log", name)


def _extend_query() -> None:
    op.drop_index("ix_query_expiry", "query")
    op.execute("ALTER TABLE query RENAME COLUMN expires_at TO ends")
    op.add_column("query", sa.Column("not_before", sa.Double))
    op.add_column("query", sa.Column("answers", sa.Integer, nullable=False, server_default="0"))
    op.add_column("query", sa.Column("wanted", sa.Boolean, nullable=False, server_default="1"))
    for name, column in (("ix_query_expiry", "ends"), ("ix_query_postponed", "not_before")):
        present = sa.column(column).is_not(None)
        op.create_index(name, "query", [column], sqlite_where=present, postgresql_where=present)


def _create_history() -> None:
    op.create_table(
        "query_history",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("instance", sa.BigInteger, nullable=False),
        sa.Column("step", sa.SmallInteger, nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("labeller", sa.String(200)),
        sa.Column("token", sa.String(64)),
        sa.Column("clock", sa.Double, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("until", sa.Double),
        sa.Column("sequence", sa.BigInteger),
        sa.Column("why", sa.String),
        sa.PrimaryKeyConstraint("id", name="pk_query_history"),
        sa.ForeignKeyConstraint(
            ["model_id", "number"],
            ["query.model_id", "query.number"],
            name="fk_query_history_query",
            ondelete="CASCADE",
        ),
        sqlite_autoincrement=True,
    )
    for name, columns in (
        ("query", ["model_id", "number"]),
        ("skipped", ["model_id", "instance", "labeller"]),
        ("labeller", ["model_id", "labeller", "step"]),
        ("clock", ["clock"]),
        ("step", ["model_id", "step", "clock"]),
    ):
        op.create_index(f"ix_query_history_{name}", "query_history", columns)


def _create_clock_and_policy() -> None:
    op.create_table(
        "lease_clock",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("boot", sa.String(64), nullable=False),
        sa.Column("offset", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_lease_clock"),
    )
    op.create_table(
        "policy",
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("answers_per_query", sa.Integer, nullable=False),
        sa.Column("max_conflict", sa.Double, nullable=False),
        sa.Column("reliability", sa.SmallInteger, nullable=False),
        sa.Column("per_labeller", sa.BigInteger),
        sa.Column("per_hour", sa.BigInteger),
        sa.Column("max_held", sa.Integer, nullable=False),
        sa.Column("corrections", sa.SmallInteger, nullable=False),
        sa.Column("tags", sa.String, nullable=False),
        sa.PrimaryKeyConstraint("model_id", name="pk_policy"),
        sa.ForeignKeyConstraint(["model_id"], ["model.id"], name="fk_policy_model", ondelete="CASCADE"),
    )


def _write_history(connection: sa.Connection) -> None:
    """Each query was opened, leased to each holder in turn, and came to the state it is in."""
    leases: dict[tuple[int, int], list[Any]] = {}
    found = "SELECT model_id, number, token, labeller, expires_at, released FROM lease ORDER BY expires_at"
    for lease in connection.execute(sa.text(found)):
        leases.setdefault((lease.model_id, lease.number), []).append(lease)
    rows: list[dict[str, Any]] = []
    for query in connection.execute(sa.text("SELECT * FROM query ORDER BY model_id, number")):
        rows += _steps(query, leases.get((query.model_id, query.number), []))
    if rows:
        places = ", ".join(":" + name for name in HISTORY_COLUMNS.split(", "))
        connection.execute(
            sa.text(f"INSERT INTO query_history ({HISTORY_COLUMNS}) VALUES ({places})"),  # noqa: S608
            rows,
        )


def _steps(query: Any, leases: list[Any]) -> list[dict[str, Any]]:
    at = query.created_at  # of the steps in between nothing else is known

    def row(step: int, state: int, lease: Any = None, **more: Any) -> dict[str, Any]:
        empty = dict.fromkeys(HISTORY_COLUMNS.split(", "))
        who = {} if lease is None else {"labeller": lease.labeller, "token": lease.token}
        what = {"model_id": query.model_id, "number": query.number, "instance": query.instance}
        return empty | what | {"step": step, "state": state, "clock": at, "at": at, "why": WHY} | who | more

    steps = [row(OPENED, OPEN_STATE)]
    for lease in sorted(leases, key=lambda lease: lease.token == query.token):  # the last holder comes last
        steps.append(row(LEASED, LEASED_STATE, lease, until=lease.expires_at))
        if lease.token != query.token:
            ended = RELEASED if lease.released else EXPIRED
            steps.append(row(ended, OPEN_STATE, lease, until=lease.expires_at))
        elif query.state in (ANSWERED_STATE, REFUSED_STATE):
            ended = ANSWERED if query.state == ANSWERED_STATE else REFUSED
            steps.append(row(ended, query.state, lease, sequence=query.sequence))
    if query.state > REFUSED_STATE:
        steps.append(row(WITHDRAWN, query.state))
    return steps
