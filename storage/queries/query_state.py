"""Lives of queries as rows of the table, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from quercus.labelling.lifecycle import NEVER, QueryLifecycle, QueryState
from quercus.storage import row_writes
from quercus.storage.row_writes import RowWrite
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


_COLUMNS = ("state", "labeller", "token", "ends", "not_before", "wanted", "answers")  # of a life


def query_update(prefix: str, *columns: str) -> RowWrite:
    """Update of the life of a query and of these columns.

    `query_update_parameters` makes its parameters, whose names have the prefix.
    """
    keys = {"model_id": f"{prefix}_of", "number": f"{prefix}_which"}
    return row_writes.row_update(query, keys, {name: f"{prefix}_{name}" for name in _COLUMNS + columns})


def query_update_parameters(
    prefix: str, model_id: int, number: int, columns: Mapping[str, Any]
) -> dict[str, Any]:
    """Parameters of `query_update` for one query."""
    changed = {f"{prefix}_{name}": value for name, value in columns.items()}
    return {f"{prefix}_of": model_id, f"{prefix}_which": number} | changed


SETTLE = query_update("settle", "sequence")
"""Update of a query that is settled, with the event that settled it.

`query_update_parameters("settle", ...)` makes its parameters.
"""
_WRITE = query_update("life")


def write_lifecycles(
    connection: Connection, model_id: int, lifecycles: Sequence[tuple[int, QueryLifecycle, str | None]]
) -> None:
    """Write the lives of many queries of a model, each by number, with who holds or settled it, in one statement."""
    _WRITE.run(
        connection,
        [
            query_update_parameters("life", model_id, number, columns_of(life, labeller))
            for number, life, labeller in lifecycles
        ],
    )
