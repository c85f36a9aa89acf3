"""A query strategy that asks about the newest rows first, a few at a time."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from quercus.specification.parameter import parameter, parametric
from quercus.specification.reasons import Fact
from quercus.specification.strategies import Asks
from quercus.trees import LeafRows, Query, QueryContext, QueryPosition, Reason, Strategy


@parametric
class Newest(Strategy):
    """The row that was pushed last."""

    among: int | None = parameter(
        None, "Number of the last rows that may be asked about", 1, 1_000_000, meaning_of_none="all rows"
    )
    name: ClassVar[str] = "newest"
    asks: ClassVar[frozenset[Asks]] = frozenset({"tree", "forest"})

    def queries(self, context: QueryContext, _last: QueryPosition | None, limit: int) -> Iterator[Query]:
        """See `Strategy`."""
        leaves = LeafRows(context)
        count = len(context.sample.ids)
        first = 0 if self.among is None else max(0, count - self.among)
        rows = context.sample.candidates(np.arange(first, count))
        for age, row in enumerate(np.sort(rows)[::-1][:limit].tolist()):
            reason = Reason("Nobody has looked at what came last.", (Fact("newer rows", age),))
            yield leaves.query_about(row, float(row), reason)
