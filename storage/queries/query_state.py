"""Lives of queries as rows of the table, and back."""

from typing import Any

from quercus.storage.queries.records import QueryState
from quercus.storage.queries.transitions import NEVER, QueryLifecycle
from quercus.storage.schema import AnyRow


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


def values_of(lifecycle: QueryLifecycle, labeller: str | None = None) -> dict[str, Any]:
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
