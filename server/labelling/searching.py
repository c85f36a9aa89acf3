"""A labeller's search for queries of one model or of any; unchanged models are not tried again."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from quercus.server.core.leasable_models import LeasableModel, mark_of
from quercus.server.core.model_status import STATUS_POLL_S
from quercus.server.core.service_core import ServiceCore
from quercus.server.labelling.leasing import LeasedQueries, LeaseOptions, lease_of
from quercus.server.transfer.stored_contents import UNREADABLE
from quercus.server.wire.names import ANY
from quercus.storage import CorruptStore, Idle, Leased, NotFound, Store

_REPORTED_REASONS = (
    Idle.GROWING, Idle.HANDS_FULL, Idle.HOUR_SPENT, Idle.NOT_FOR_YOU, Idle.ALL_LEASED, Idle.SHARE_SPENT,
)  # fmt: skip


@dataclass(frozen=True)
class SearchMark:
    """The state that a waiting labeller has seen; it tries again when `mark` differs, or after `patience_s`."""

    mark: tuple[int, ...]
    patience_s: float


@dataclass(frozen=True)
class _ModelWithoutQueries:
    """A model that had nothing for this labeller: its state, the reason, and when that may change without an event."""

    mark: tuple[int, ...]
    leased: Leased
    again_at: float  # monotonic

    def is_current(self, leasable: LeasableModel) -> bool:
        return self.mark == leasable.change_mark and time.monotonic() < self.again_at


class QuerySearch:
    """One call or stream of a labeller: looks, leases, and waits until another try makes sense."""

    def __init__(self, core: ServiceCore, options: LeaseOptions) -> None:
        self._core = core
        self._options = options
        self._tried: dict[int, _ModelWithoutQueries] = {}  # by the key of the model

    @property
    def change_stamp(self) -> int:
        """A stamp that differs after every relevant change: take it before a read, then wait for another."""
        if self._options.model == ANY:
            return self._core.leasable_models.change_stamp
        return self._core.changes.change_stamp(self._options.model)

    async def wait_for_change(self, seen: int, timeout_s: float) -> bool:
        """Wait for a change later than `seen`; False when the time was up first."""
        if self._options.model == ANY:
            return await self._core.leasable_models.wait_for_change(seen, timeout_s)
        return await self._core.changes.wait_for_change(self._options.model, seen, timeout_s)

    async def current_mark(self, *, fresh: bool) -> SearchMark:
        """Return the present state of the model, or of all leasable models."""
        if self._options.model == ANY:
            await self._core.leasable_models.list_leasable(fresh=fresh)
            return SearchMark((self._core.leasable_models.change_stamp,), STATUS_POLL_S)
        status = await self._core.model_statuses.get_status(self._options.model, fresh=fresh)
        return SearchMark(mark_of(status.record), status.patience_s)

    async def lease_queries(self, limit: int) -> LeasedQueries:
        """Lease up to `limit` queries of the model, or of the first of all models that has one for this labeller."""
        if self._options.model != ANY:
            return await lease_of(self._core, self._options, self._options.model, limit)
        options = self._options
        leasable_models = [
            each
            for each in await self._core.leasable_models.list_leasable()
            if not self._core.damaged.has_damage(each.record.name, each.record.key)
            and options.may_touch(each.record.name)
            and options.filter.tags <= set(each.policy.tags)
        ]
        self._tried = {
            each.record.key: tried
            for each in leasable_models
            if (tried := self._tried.get(each.record.key)) is not None and tried.is_current(each)
        }
        untried = [each for each in leasable_models if each.record.key not in self._tried]
        if untried:
            last = await self._core.read(Store.last_leased, self._core.store, options.labeller)
            untried.sort(key=lambda each: (last.get(each.record.key, 0), each.record.name))
        for leasable in untried:
            found = await self._try_model(leasable, limit)
            if found is not None and found.queries:
                return found
        reasons = (each.leased for each in self._tried.values() if each.leased.idle in _REPORTED_REASONS)
        told = next(reasons, Leased([], Idle.NOTHING_TO_ASK, 0))
        again_at = min((tried.again_at for tried in self._tried.values()), default=math.inf)
        return LeasedQueries(ANY, told, again_s=max(0.0, again_at - time.monotonic()))

    async def _try_model(self, leasable: LeasableModel, limit: int) -> LeasedQueries | None:
        try:
            found = await lease_of(self._core, self._options, leasable.record.name, limit)
        except NotFound:  # deleted at this moment
            return None
        except (CorruptStore, *UNREADABLE):
            if not await self._core.damaged.find_damage(leasable.record.name):
                raise
            return None
        if not found.queries:
            again_at = time.monotonic() + found.again_s
            self._tried[leasable.record.key] = _ModelWithoutQueries(
                leasable.change_mark, found.leased, again_at
            )
        return found
