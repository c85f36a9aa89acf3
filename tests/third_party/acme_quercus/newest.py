"""A query strategy that asks about the newest rows first, a few at a time."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from quercus.specification.parameter import parametric
from quercus.specification.reasons import Fact
from quercus.specification.strategies import Asks
from quercus.trees import LeafRows, Query, QueryContext, QueryPosition, Reason, Strategy


@parametric
class Newest(Strategy):
    """The row that was pushed last."""

    name: ClassVar[str] = "newest"
    asks: ClassVar[frozenset[Asks]] = frozenset({"tree", "forest"})

    def queries(self, context: QueryContext, _last: QueryPosition | None, limit: int) -> Iterator[Query]:
        """See `Strategy`."""
        leaves = LeafRows(context)
        rows = context.sample.candidates(np.arange(len(context.sample.ids)))
        for age, row in enumerate(np.sort(rows)[::-1][:limit].tolist()):
            reason = Reason("Nobody has looked at what came last.", (Fact("newer rows", age),))
            yield leaves.query_about(row, float(row), reason)
