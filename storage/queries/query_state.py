"""Conversion between the life cycle of a query and its row."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, update

from quercus.labelling.lifecycle import NEVER, QueryLifecycle, QueryState
from quercus.storage.clocks import Timestamps
from quercus.storage.inserts import insert_rows
from quercus.storage.prepared import Prepared
from quercus.storage.schema import AnyRow, query


def lifecycle_of(row: AnyRow) -> QueryLifecycle:
    """Return the life cycle of a row of `query`."""
    return QueryLifecycle(
        QueryState(row.state),
        row.token or "",
        NEVER if row.ends is None else row.ends,
        NEVER if row.not_before is None else row.not_before,
        row.wanted,
        row.answers,
    )


def columns_of(lifecycle: QueryLifecycle, labeller: str | None = None) -> dict[str, Any]:
    """Return the columns of a life cycle; `labeller` holds or settled the query."""
    return {
        "state": int(lifecycle.state),
        "labeller": labeller,
        "token": lifecycle.token or None,
        "ends": lifecycle.ends if lifecycle.state is QueryState.LEASED else None,
        "not_before": None if lifecycle.not_before == NEVER else lifecycle.not_before,
        "wanted": lifecycle.wanted,
        "answers": lifecycle.answers,
    }


LIFE = ("state", "labeller", "token", "ends", "not_before", "wanted", "answers")
"""The columns of a life cycle."""


def query_update(*columns: str) -> Prepared:
    """Return the update of these columns, by parameters of the same names, of query `which` of the model `of`."""
    one = update(query).where(query.c.model_id == bindparam("of"), query.c.number == bindparam("which"))
    return Prepared(one.values({name: bindparam(name, type_=query.c[name].type) for name in columns}))


_WRITE = query_update(*LIFE)


def write_lifecycles(
    connection: Connection, model_id: int, lifecycles: Sequence[tuple[int, QueryLifecycle, str | None]]
) -> None:
    """Write the life cycles of queries of a model, each with its number and the labeller who holds or settled it."""
    _WRITE.run_for_each(
        connection,
        [
            {"of": model_id, "which": number, **columns_of(life, labeller)}
            for number, life, labeller in lifecycles
        ],
    )


def insert_opened(
    connection: Connection,
    model_id: int,
    rows: Iterable[tuple[int, int, int, bytes, bytes, int]],
    now: Timestamps,
) -> None:
    """Insert open queries, each as number, instance, position, `asked`, `reason`, and version of the tree."""
    columns = (
        "number", "instance", "position", "asked", "reason", "tree_version",
        "model_id", "state", "answers", "wanted", "created_at",
    )  # fmt: skip
    state = (model_id, int(QueryState.OPEN), 0, True, now.wall)
    insert_rows(connection, query, columns, [(*row, *state) for row in rows])
