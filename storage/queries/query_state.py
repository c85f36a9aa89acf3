"""Lives of queries as rows of the table, and back."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, update

from quercus.labelling.lifecycle import NEVER, QueryLifecycle, QueryState
from quercus.storage.prepared import Prepared
from quercus.storage.schema import AnyRow, query


def lifecycle_of(row: AnyRow) -> QueryLifecycle:
    """The life of a row of `query`."""
    return QueryLifecycle(
        QueryState(row.state),
        row.token or "",
        NEVER if row.ends is None else row.ends,
        NEVER if row.not_before is None else row.not_before,
        row.wanted,
        row.answers,
    )


def columns_of(lifecycle: QueryLifecycle, labeller: str | None = None) -> dict[str, Any]:
    """Columns of a row of `query`; `labeller` holds or settled it."""
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
"""The columns of a life."""


def query_update(*columns: str) -> Prepared:
    """Update of these columns of the query `which` of the model `of`, by parameters of the same names."""
    one = update(query).where(query.c.model_id == bindparam("of"), query.c.number == bindparam("which"))
    return Prepared(one.values({name: bindparam(name, type_=query.c[name].type) for name in columns}))


_WRITE = query_update(*LIFE)


def write_lifecycles(
    connection: Connection, model_id: int, lifecycles: Sequence[tuple[int, QueryLifecycle, str | None]]
) -> None:
    """Write the lives of many queries of a model, each by number, with who holds or settled it."""
    _WRITE.run_for_each(
        connection,
        [
            {"of": model_id, "which": number, **columns_of(life, labeller)}
            for number, life, labeller in lifecycles
        ],
    )
