"""The rows that several labellers' calls about one model need, read together while the model is locked.

Calls of one transaction run one after the other. The view records the changes of each for the calls after it, because
they are not written yet. A call for which that does not suffice (a lease that expired, a budget of an hour) reads by
itself, after all others. A query that an answer opens again is offered from the next transaction on.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import SimpleNamespace
from typing import Any, Final

from sqlalchemy import Connection, Select

from quercus.labelling.event import Event
from quercus.storage import rows
from quercus.storage.clocks import Clock, Timestamps
from quercus.storage.driver_reads import read_each
from quercus.storage.log import event_log
from quercus.storage.queries import choosing, claims, expiry, history
from quercus.storage.queries.choosing import LeaseView
from quercus.storage.queries.claims import ClaimedQuery, LeaseClaim
from quercus.storage.queries.expiry import LeaseCounts
from quercus.storage.queries.records import AnswerOutcome, Policy, QueryState
from quercus.storage.rows import hold_row, lock_model
from quercus.storage.schema import AnyRow

MAX_FREE_QUERIES: Final = 1000  # free queries that are read at once
SPARE_QUERIES: Final = 16
"""Free queries that are read beyond those asked for, because some labellers pass some over."""


@dataclass(slots=True)
class SharedView:
    """A locked model, and the rows that its calls need.

    Attributes
    ----------
    row : the model's row, with the counts as the calls leave them.
    now : time of reading.
    policy : the policy of the model.
    leased : number of live leases.
    held : number of live leases by labeller.
    last_settled : event of the last settled query, by labeller; see `LeaseView`.
    free : queries that may be leased, in order, each with the labellers who may not have it (`passed`).
    is_cut : whether there may be more free queries.
    claimed : the rows behind each claim.
    touched : queries that a call has changed.
    spoken_of : instances for which a call has reported something.
    """

    row: Any
    now: Timestamps
    policy: Policy
    leased: int
    held: Counter[str]
    last_settled: dict[str, int]
    free: list[AnyRow]
    is_cut: bool
    claimed: Mapping[tuple[int, str], Sequence[AnyRow]]
    touched: set[int]
    spoken_of: set[int]
    _said: dict[int, list[Event]] = field(default_factory=dict)

    def lease_view(self, labeller: str, limit: int) -> LeaseView | None:
        """Return the view of a labeller who asks for queries; None: the call must read separately."""
        if self.policy.per_labeller is not None or self.policy.per_hour is not None:
            return None  # counts of the past
        left = (each for each in self.free if each.number not in self.touched)
        mine = list(islice((each for each in left if labeller not in (each.passed or ())), limit))
        if not mine or (self.is_cut and len(mine) < limit):
            return None
        counts = LeaseCounts(self.leased, self.held[labeller])
        return LeaseView(self.now, self.policy, counts, self.last_settled.get(labeller, 0), mine)

    def note_leased(self, labeller: str, numbers: Collection[int]) -> None:
        """A call leased these queries."""
        self.touched.update(numbers)
        self.leased += len(numbers)
        self.held[labeller] += len(numbers)

    def claimed_query(self, claim: LeaseClaim) -> ClaimedQuery | None:
        """The query whose lease is alive; None: it is not, or more must be read, and the call must do so itself."""
        found = self.claimed.get((claim.number, claim.token), ())
        if not found or claim.number in self.touched or found[0].instance in self.spoken_of:
            return None
        first = found[0]
        if first.given_step is None or first.is_spoken_of or first.token != claim.token:
            return None
        if first.state != QueryState.LEASED or first.ends <= self.now.clock:
            return None
        return ClaimedQuery(self.row, first, history.granted_lease(found, claim.token), self.now)

    def said_of(self, connection: Connection, instance: int) -> list[Event]:
        """Everything said about an instance that a claim is about; read for all of them when it is first asked."""
        if not self._said:
            claimed = {rows[0].instance for rows in self.claimed.values() if rows[0].instance is not None}
            self._said = event_log.history_of(connection, self.row, sorted(claimed))
        return self._said[instance]

    def note_said(self, held: ClaimedQuery, said: AnswerOutcome, events: int, *, refused: bool) -> None:
        """Note that a call settled a query that it held, or gave one of its answers, with a number of events."""
        labeller = held.given.labeller
        self.touched.add(held.query.number)
        self.spoken_of.add(held.query.instance)
        self.leased -= 1
        self.held[labeller] -= 1
        self.row.sequence_committed += events
        if refused:
            self.row.queries_refused += 1
        else:
            self.row.queries_answered += 1
        if said.settled:
            self.last_settled[labeller] = self.row.sequence_committed


def read_shared_view(
    connection: Connection, name: str, asking: Mapping[str, int], claimed: Sequence[LeaseClaim], clock: Clock
) -> SharedView:
    """Hold a model, and read what its calls look at.

    Parameters
    ----------
    connection : of a transaction that writes, in a database that takes arrays.
    name : of the model.
    asking : how many queries each labeller wants, of those who ask for some.
    claimed : of those who hold some.
    clock : asked when the model is held.
    """
    if not clock.clocks.is_in_database:  # it is asked here, so the model must be held before
        lock_model(connection, name)
    most = min(sum(asking.values()), MAX_FREE_QUERIES) + SPARE_QUERIES if asking else 0
    moment, named = clock.clocks.moment, {"wanted": name, **clock.clocks.moment_parameters()}
    wanted: list[tuple[Select[Any], Mapping[str, Any]]] = [
        (rows.BY_NAME_TO_HOLD, named),
        (choosing.look_for_all(moment), {**named, "asking": list(asking), "most": most}),
    ]
    if claimed:
        sent = {
            "sent_number": [each.number for each in claimed],
            "sent_token": [each.token for each in claimed],
        }
        wanted.append((claims.look_for_all(), {**named, **sent}))
    found = read_each(connection, *wanted)
    row = hold_row(connection, name, found[0])
    now, first, free = choosing.told_by(found[1], clock)
    if first.expired:
        expiry.write_expired(connection, row.id, now)
        found = read_each(connection, *wanted)
        now, first, free = choosing.told_by(found[1], clock)
    by_claim: defaultdict[tuple[int, str], list[AnyRow]] = defaultdict(list)
    for each in found[-1] if claimed else []:
        by_claim[each.sent_number, each.sent_token].append(each)
    return SharedView(
        row=SimpleNamespace(**found[0][0]._asdict()),
        now=now,
        policy=choosing.policy_in(first),
        leased=first.leased,
        held=Counter(first.holders or ()),
        last_settled=dict(zip(asking, first.settled or (), strict=True)),
        free=free,
        is_cut=len(free) >= most,
        claimed=by_claim,
        touched=set(),
        spoken_of=set(),
    )
