"""Leases for the query service: finding queries in one model or in all, leasing them in turn, and giving them back."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice
from typing import TypeAlias

from quercus.belief.errors import InvalidInput, shown
from quercus.labelling.leasing import InstanceFilter
from quercus.server.core.fair_queue import QueuedRequest, fair_share
from quercus.server.core.leasable_models import LeasableModel, mark_of
from quercus.server.core.model_status import STATUS_POLL_S
from quercus.server.core.service_core import ServiceCore
from quercus.server.gate.access import Principal, current_caller
from quercus.server.transfer.stored_contents import UNREADABLE
from quercus.server.wire.displays import encode_display
from quercus.server.wire.instances import encode_query
from quercus.server.wire.limits import MAX_FILTER
from quercus.server.wire.names import ANY, not_found, parse_model, parse_query
from quercus.server.wire.request_checks import check_labeller, check_sequence, delay_s, lease_s
from quercus.server.wire.schema import ModelSchema
from quercus.storage import (
    CorruptStore,
    Idle,
    Leased,
    LeaseRequest,
    NotFound,
    QueryDetails,
    QueryRecord,
    Store,
    growth_mark,
)
from quercus.v1 import model_pb2
from quercus.v1 import query_pb2 as pb


@dataclass(frozen=True)
class QueryFilter:
    """A labeller's filter of queries; see ``quercus.v1.QueryFilter``."""

    classes: frozenset[str] = frozenset()
    values: dict[str, str] = field(default_factory=dict)
    tags: frozenset[str] = frozenset()

    def check_names(self, schema: ModelSchema) -> None:
        """Check that a model has everything that the filter names; otherwise no query could pass.

        Raises
        ------
        InvalidInput
            If it has not; the error names the attribute, value or class, and those that exist.
        """
        columns = {column.name: column for column in schema.columns}
        for name in sorted(self.classes - set(schema.frame.classes)):
            raise InvalidInput("filter.classes", not_found("class", name, schema.frame.classes))
        for name, value in self.values.items():
            if name not in columns:
                raise InvalidInput("filter.values", not_found("attribute", name, list(columns)))
            if columns[name].values is None:
                raise InvalidInput("filter.values", f"{shown(name)} is numeric, a filter takes names")
            if columns[name].index_of(value) is None:
                known = not_found(f"value of {name}", value, list(columns[name].index))
                raise InvalidInput("filter.values", known)

    def of_instances(self, schema: ModelSchema) -> InstanceFilter | None:
        """Return the filter for instances of a model; None if it accepts all."""
        if not self.classes and not self.values:
            return None
        columns = {column.name: (k, column) for k, column in enumerate(schema.columns)}
        values: list[tuple[int, int] | None] = []
        for name, value in self.values.items():
            place, column = columns.get(name, (0, None))
            index = None if column is None else column.index_of(value)
            # an attribute or value that the model does not have lets nothing pass: no cell has the number -1
            values.append(None if column is None else (place, -1 if index is None else index))
        can_tell = (not self.classes or name in self.classes for name in schema.frame.classes)
        return InstanceFilter(tuple(values), tuple(can_tell))


@dataclass(frozen=True)
class LeaseOptions:
    """The options of a lease: model, labeller, duration, the event that the tree must contain, filter, and caller."""

    model: str
    labeller: str
    lease_s: float
    min_sequence: int
    filter: QueryFilter
    principal: Principal | None = None

    def may_touch(self, model: str) -> bool:
        """Return whether the caller may use a model, which matters if `model` is `ANY`."""
        return self.principal is None or self.principal.may_touch(model)


@dataclass(frozen=True)
class LeasedQueries:
    """The outcome of a lease, with the queries converted to the wire."""

    model: str
    leased: Leased
    queries: tuple[pb.Query, ...] = ()
    again_s: float = math.inf
    """Seconds after which another attempt may succeed, even if nothing else happens."""


LeaseTurn: TypeAlias = QueuedRequest[tuple[LeaseOptions, int], LeasedQueries]
"""A labeller's request in the queue of a model: its options, and the number of queries that it wants."""

_TurnRequest: TypeAlias = tuple[LeaseTurn, LeaseRequest]


def decode_lease_options(
    request: pb.LeaseQueriesRequest | pb.StreamQueriesRequest,
) -> LeaseOptions:
    """Return the options of a request; raise ``InvalidInput`` for an invalid field."""
    model = ANY if request.model == f"models/{ANY}" else parse_model(request.model, "model")
    wanted = request.filter
    for name in ("classes", "values", "tags"):
        if (count := len(getattr(wanted, name))) > MAX_FILTER:
            raise InvalidInput(f"filter.{name}", f"has {count} entries, at most {MAX_FILTER} are allowed")
    if wanted.tags and model != ANY:
        raise InvalidInput("filter.tags", f"are for models/{ANY}; {shown(request.model)} is one model")
    return LeaseOptions(
        model,
        check_labeller(request.labeller),
        lease_s(request.lease_duration, request.HasField("lease_duration")),
        check_sequence(request.min_sequence),
        QueryFilter(frozenset(wanted.classes), dict(wanted.values), frozenset(wanted.tags)),
        current_caller(),
    )


async def lease_of(core: ServiceCore, options: LeaseOptions, model: str, limit: int) -> LeasedQueries:
    """Lease queries in turn; if the caller leaves before it gets them, they are given back."""
    serve = partial(_serve_turns, core)
    turn: LeaseTurn = core.fair_queue.join_line(model, options.labeller, (options, limit), serve)
    try:
        return await turn.outcome
    except asyncio.CancelledError:
        if not turn.outcome.cancelled() and turn.outcome.exception() is None:  # it was just served
            _give_back_all(core, model, turn.outcome.result().leased)
        raise


async def _serve_turns(core: ServiceCore, model: str, turns: Sequence[LeaseTurn]) -> None:
    """Lease for all turns, in order, and set their outcomes."""
    requests = await _lease_requests(core, model, turns)
    # a request with a filter gets a transaction of its own, because it reads all queries while other writes wait
    for _, part in groupby(requests, lambda each: None if each[1].filter is None else id(each)):
        await _serve_together(core, model, [*part])


async def _serve_together(core: ServiceCore, model: str, requests: Sequence[_TurnRequest]) -> None:
    """Lease in one transaction for all callers who still wait."""
    requests = [each for each in requests if not each[0].outcome.done()]
    futures = core.writer.queue_grouped([request for _, request in requests])
    served: list[tuple[LeaseTurn, Leased]] = []
    for (turn, _), taken in zip(requests, futures, strict=True):
        try:
            leased = await taken
        except Exception as error:
            turn.fail(error)
        else:
            served.append((turn, leased))
            if leased.queries:
                core.fair_queue.record_served(model, turn.labeller)
    try:
        records = [record for _, leased in served for record in leased.queries]
        queries = iter(await core.read(for_holder, core.store, model, records) if records else ())
    except Exception as error:
        for turn, leased in served:
            turn.fail(error)
            _give_back_all(core, model, leased)
        return
    for turn, leased in served:
        mine = tuple(islice(queries, len(leased.queries)))
        again_s = math.inf if leased.again_s is None else leased.again_s
        if turn.outcome.done():  # the caller has gone
            _give_back_all(core, model, leased)
        else:
            turn.outcome.set_result(LeasedQueries(model, leased, mine, again_s))


async def _lease_requests(core: ServiceCore, model: str, turns: Sequence[LeaseTurn]) -> list[_TurnRequest]:
    """Return the store's request for each turn, limited to a fair share; turns with invalid filters fail."""
    there = math.inf
    if any(turn.others and turn.asked[1] > 1 for turn in turns):
        there = (await core.read(core.store.get_model, model)).queries_open
    filters = any(turn.asked[0].filter != QueryFilter() for turn in turns)
    schema = await core.catalogue.reload_schema(model) if filters else None
    requests = []
    for turn in turns:
        if turn.outcome.done():  # the caller has gone
            continue
        options, limit = turn.asked
        only = None
        if schema is not None and options.filter != QueryFilter():
            try:
                if options.model != ANY:
                    options.filter.check_names(schema)
                only = options.filter.of_instances(schema)
            except InvalidInput as error:
                turn.fail(error)
                continue
        if turn.others and limit > 1:
            limit = fair_share(limit, int(there), turn.others)
        there = max(0, there - limit)
        credential = options.principal.token_id if options.principal is not None else ""
        min_sequence = options.min_sequence if options.model != ANY else 0
        request = LeaseRequest(
            model, options.labeller, limit, options.lease_s, min_sequence, only, credential
        )
        requests.append((turn, request))
    return requests


async def take_back(core: ServiceCore, request: pb.ReturnQueryRequest) -> pb.ReturnQueryResponse:
    """Let the holder of a query release, skip or postpone it."""
    model, number = parse_query(request.name)
    check_lease_token(request.lease_token)
    store, token = core.store, request.lease_token
    How = pb.ReturnQueryRequest.How
    match request.how:
        case How.HOW_UNSPECIFIED:
            await core.write(store.release, model, number, token)
        case How.HOW_SKIP:
            await core.write(store.skip, model, number, token, request.comment)
        case How.HOW_POSTPONE:
            delay = delay_s(request.delay, request.HasField("delay"))
            await core.write(store.postpone, model, number, token, delay, request.comment)
        case _:
            raise InvalidInput("how", f"is {request.how}, must be 0 (release), 1 (skip) or 2 (postpone)")
    return pb.ReturnQueryResponse(name=request.name)


def check_lease_token(token: str) -> None:
    """Raise ``InvalidInput`` if a lease token is missing or has a NUL character."""
    if not token:
        raise InvalidInput("lease_token", "is missing: send the one that came with the query")
    if "\0" in token:
        raise InvalidInput("lease_token", "has a NUL character: send the one that came with the query")


def give_back(core: ServiceCore, model: str, number: int, token: str) -> None:
    """Release a lease without waiting; it is no error if it has ended."""
    done = core.writer.queue_write(partial(core.store.release, model, number, token))
    done.add_done_callback(lambda future: future.cancelled() or future.exception())


def _give_back_all(core: ServiceCore, model: str, leased: Leased) -> None:
    for query in leased.queries:
        give_back(core, model, query.number, query.token)


def for_holder(store: Store, model: str, records: Sequence[QueryRecord]) -> tuple[pb.Query, ...]:
    """Convert queries to the wire for their holder, with displays and without withheld parts."""
    details = _details_of(store, model, records)
    queries = _encode_details(records, details)
    withheld = model_pb2.Specification.FromString(details.model.specification).presentation.withheld
    for record, query in zip(records, queries, strict=True):
        if "reason" in withheld:
            query.ClearField("reason")
        if "guess" in withheld:
            told = [fact for fact in query.reason.facts if not fact.HasField("shares")]
            del query.reason.facts[:]
            query.reason.facts.extend(told)
        if "belief" in withheld:
            query.ClearField("contour")
        if (display := encode_display(details.displays.get(record.instance))) is not None:
            query.display.CopyFrom(display)
    return queries


def with_instances(store: Store, model: str, records: Sequence[QueryRecord]) -> tuple[pb.Query, ...]:
    """Read the instances of queries, and convert the queries to the wire."""
    return _encode_details(records, _details_of(store, model, records)) if records else ()


def _details_of(store: Store, model: str, records: Sequence[QueryRecord]) -> QueryDetails:
    return store.query_details(model, sorted({record.instance for record in records}))


def _encode_details(records: Sequence[QueryRecord], details: QueryDetails) -> tuple[pb.Query, ...]:
    schema = ModelSchema.of(details.model, details.vocabulary)
    return tuple(
        encode_query(record, details.histories[record.instance], schema, details.policy) for record in records
    )


_REPORTED_REASONS = (
    Idle.GROWING, Idle.HANDS_FULL, Idle.HOUR_SPENT, Idle.NOT_FOR_YOU, Idle.ALL_LEASED, Idle.SHARE_SPENT,
)  # fmt: skip


@dataclass(frozen=True)
class SearchMark:
    """The state that a waiting labeller has seen; another attempt makes sense if `mark` differs, or after `patience_s`.

    A labeller who waits for the tree to grow tries again only if `growth` differs; it is empty if any model will do.
    """

    mark: tuple[int, ...]
    patience_s: float
    growth: tuple[int, ...] = ()

    def may_offer(self, before: LeasedQueries | None) -> bool:
        """Return whether a labeller may get queries now who got none `before`."""
        return before is None or not before.leased.awaits_growth or before.leased.awaits_growth != self.growth


@dataclass(frozen=True)
class _ModelWithoutQueries:
    """A model that had nothing for this labeller: its state, the reason, and when that may change by itself."""

    mark: tuple[int, ...]
    leased: Leased
    again_at: float  # monotonic

    def is_current(self, leasable: LeasableModel) -> bool:
        return self.mark == leasable.change_mark and time.monotonic() < self.again_at


class QuerySearch:
    """The search of one call or stream for queries: it leases, and waits until another attempt makes sense."""

    def __init__(self, core: ServiceCore, options: LeaseOptions) -> None:
        self._core = core
        self._options = options
        self._tried: dict[int, _ModelWithoutQueries] = {}  # by the key of the model

    @property
    def change_stamp(self) -> int:
        """A stamp that differs after every relevant change; take it before a read, then wait for a change."""
        if self._options.model == ANY:
            return self._core.leasable_models.change_stamp
        return self._core.changes.change_stamp(self._options.model)

    async def wait_for_change(self, seen: int, timeout_s: float) -> bool:
        """Wait for a change after the stamp `seen`; return False if the time runs out first."""
        if self._options.model == ANY:
            return await self._core.leasable_models.wait_for_change(seen, timeout_s)
        return await self._core.changes.wait_for_change(self._options.model, seen, timeout_s)

    async def current_mark(self, *, fresh: bool) -> SearchMark:
        """Return the present state of the model, or of all leasable models."""
        if self._options.model == ANY:
            await self._core.leasable_models.list_leasable(fresh=fresh)
            return SearchMark((self._core.leasable_models.change_stamp,), STATUS_POLL_S)
        status = await self._core.model_statuses.get_status(self._options.model, fresh=fresh)
        return SearchMark(mark_of(status.record), status.patience_s, growth_mark(status.record))

    async def lease_queries(self, limit: int) -> LeasedQueries:
        """Lease up to `limit` queries of the model, or of the first of all models that has some for this labeller."""
        if self._options.model != ANY:
            return await lease_of(self._core, self._options, self._options.model, limit)
        options = self._options
        there = [
            each
            for each in await self._core.leasable_models.list_leasable()
            if not self._core.damaged.has_damage(each.record.name, each.record.key)
            and options.may_touch(each.record.name)
            and options.filter.tags <= set(each.policy.tags)
        ]
        leasable_models = [each for each in there if each.policy.may_label(options.labeller)]
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
        nothing = Idle.NOT_ASSIGNED if there and not leasable_models else Idle.NOTHING_TO_ASK
        told = next(reasons, Leased([], nothing, 0))
        again_at = min((tried.again_at for tried in self._tried.values()), default=math.inf)
        return LeasedQueries(ANY, told, again_s=max(0.0, again_at - time.monotonic()))

    async def _try_model(self, leasable: LeasableModel, limit: int) -> LeasedQueries | None:
        try:
            found = await lease_of(self._core, self._options, leasable.record.name, limit)
        except NotFound:  # just deleted
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
