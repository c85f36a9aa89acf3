"""The store's calls about queries and labellers; `Store` has them too. Every call is one transaction."""

from collections.abc import Collection, Sequence
from typing import Any, TypeVar, cast

from quercus.labelling import checks
from quercus.labelling.adjudication import Adjudication, AdjudicationOutcome
from quercus.labelling.answers import Amendment, AnswerOutcome, Words
from quercus.labelling.event import Event
from quercus.labelling.gold import Mark
from quercus.labelling.leasing import InstanceFilter
from quercus.labelling.lifecycle import QueryState, Step
from quercus.labelling.policy import Policy
from quercus.labelling.statements import StatementBatch, StatementPlan
from quercus.storage import rows
from quercus.storage.calls import StoreCalls
from quercus.storage.grouping import GroupCall, run_group
from quercus.storage.log import event_log
from quercus.storage.queries import (
    adjudications,
    answers,
    gold_marks,
    history,
    leases,
    policies,
    reading,
    statements,
)
from quercus.storage.queries.desk import AnswerRequest, KnownModel, LeaseClaim, LeaseRequest
from quercus.storage.queries.details import (
    QueryDetails,
    page_details,
    read_details,
    said_details,
    shared_details,
)
from quercus.storage.queries.gold_marks import MarksOutcome
from quercus.storage.queries.leases import Eviction, QueryReturn
from quercus.storage.queries.policies import PolicyRule
from quercus.storage.queries.records import HistoryRow, LabellerCounts, Leased, QueryRecord
from quercus.storage.queries.statements import StatementOutcome
from quercus.storage.records import EventSelection

T = TypeVar("T")


class QueryCalls(StoreCalls):
    """The calls of labellers; see `Store`."""

    # Queries

    def lease(
        self,
        model: str,
        labeller: str,
        limit: int,
        duration_s: float,
        *,
        min_sequence: int = 0,
        only: InstanceFilter | None = None,
        credential: str = "",
    ) -> Leased:
        """Lease up to `limit` open queries, in the order of the agenda, within the budgets.

        The tree must contain `min_sequence` and this labeller's last answer or refusal (`Idle.GROWING` until then).
        Idle is BUDGET_SPENT if the whole budget is answered; ALL_LEASED if other labellers may still give queries back.
        Labellers do not get queries that they skipped or answered once.

        Parameters
        ----------
        only : InstanceFilter, optional
            Filter of the instances.
        credential : str
            Id of the caller's access token, empty if there is none; see `evict_revoked`.
        """
        request = LeaseRequest(model, labeller, limit, duration_s, min_sequence, only, credential)
        return cast(Leased, self._run_one(request))

    def answer(self, model: str, number: int, token: str, words: Words, known: KnownModel) -> AnswerOutcome:
        """Settle a query by a label, as an ANSWER event, or without one (a refusal), as a REFUSAL.

        Where the policy wants several answers, each becomes an OPINION event, and the query is open again, for others;
        the last one is followed by an ANSWER with the combination of all. Behind an answer to an instance with
        statements follows a CORRECTION with the combination of all labels. A refusal spends no budget; if others have
        answered the query already, it is stored as an answer that says nothing.

        The same answer again by the same token succeeds with the same sequence. An answer after the lease
        expired is accepted while nobody else holds or settled the query, growth still wants it, and the
        budgets allow.

        Raises
        ------
        FailedPrecondition
            If the answer is not accepted, with the reason in words.
        ModelReplaced
            If the model is another one than the known one.
        """
        request = AnswerRequest(LeaseClaim(model, number, token), words, known)
        return cast(AnswerOutcome, self._run_one(request))

    def run_group(self, calls: Sequence[GroupCall]) -> list[Any]:
        """Run several leases and answers (group commit), those of one model in order, in one transaction.

        Returns
        -------
        list
            The result of each call, or the exception that it would have raised, which does not stop the others.
        """
        return run_group(self._database, self._clocks, calls)

    def _run_one(self, call: GroupCall) -> Leased | AnswerOutcome:
        """Run one lease or answer in a transaction of its own; raise what it raises."""
        (outcome,) = self.run_group([call])
        if isinstance(outcome, Exception):
            raise outcome
        return cast("Leased | AnswerOutcome", outcome)

    def amend(self, model: str, number: int, change: Amendment, known: KnownModel) -> AnswerOutcome:
        """Correct the answer to a query, or take it back, as a CORRECTION event; the policy says who may do so.

        The same call again succeeds with the same sequence. If the answer is taken back, the instance may be asked
        about again, by another query; the budget stays spent.

        Raises
        ------
        FailedPrecondition
            If the query is not answered, or this labeller may not correct it.
        ModelReplaced
            If the model is another one than the known one.
        """
        with self._database.write() as connection:
            return answers.amend_answer(connection, model, number, change, known, self._clock_of(connection))

    def plan_statements(self, model: str, batch: StatementBatch, known: KnownModel) -> StatementPlan | None:
        """Compute the combined labels of a batch for `state`, which then locks the model only for a moment.

        None if there is nothing to compute. Raises like `state`.
        """
        with self._database.read() as connection:
            return statements.plan_statements(connection, model, batch, known)

    def state(
        self, model: str, batch: StatementBatch, known: KnownModel, planned: StatementPlan | None = None
    ) -> StatementOutcome:
        """Append labellers' statements about stored instances, made without a query: all or none.

        After them follows, for each instance, the combination of all its labels. Open queries about these instances are
        withdrawn; leased ones stay with their holders. A repeated statement is not stored again.

        Raises
        ------
        NotFound
            If an instance is not stored; the first few are named.
        AlreadyExists
            If the request was used for other statements.
        FailedPrecondition
            If there is nothing to take back, or the policy allows no corrections.
        ModelReplaced
            If the model is another one than the known one.
        """
        with self._database.write() as connection:
            return statements.append_statements(
                connection, model, batch, known, self._clock_of(connection), planned
            )

    def adjudicate(
        self, model: str, identifier: str, given: Adjudication, known: KnownModel
    ) -> AdjudicationOutcome:
        """Decide between the labellers of an instance, or take that back, as an ADJUDICATION event and what holds then.

        Its open query is withdrawn; a leased one stays with its holder, whose answer changes nothing of what
        holds. The same call again succeeds with the same sequence.

        Raises
        ------
        NotFound
            If the instance is not stored.
        FailedPrecondition
            If nobody has labelled it, there is nothing to take back, or this labeller may not decide.
        ModelReplaced
            If the model is another one than the known one.
        """
        with self._database.write() as connection:
            return adjudications.append_adjudication(
                connection, model, identifier, given, known, self._clock_of(connection)
            )

    def mark_gold(self, model: str, author: str, marks: Sequence[Mark], known: KnownModel) -> MarksOutcome:
        """Make instances gold questions, or take that back, all or none.

        Each is an ADJUDICATION event that is flagged, and what holds then. A mark that stands already is not stored
        again.

        Raises
        ------
        NotFound
            If an instance is not stored.
        FailedPrecondition
            If a label says nothing, or there is no mark to take back.
        InvalidInput
            If there were more than `MAX_GOLD` then.
        ModelReplaced
            If the model is another one than the known one.
        """
        with self._database.write() as connection:
            return gold_marks.append_marks(
                connection, model, author, marks, known, self._clock_of(connection)
            )

    def gold_histories(self, model: str) -> dict[int, list[Event]]:
        """Return everything said about the instances that are gold questions."""
        with self._database.read() as connection:
            return gold_marks.marked_histories(connection, model)

    def newest_gold(self, model: str) -> int:
        """Return the newest event of a mark or an answer to a gold question; 0 when there is none."""
        with self._database.read() as connection:
            return gold_marks.newest_gold(connection, model)

    def shared_details(self, model: str, after: int, limit: int) -> tuple[QueryDetails, int | None]:
        """Return the instances that may have labels of several labellers, in the order of their first such event.

        It looks at `limit` events after the event `after`. Also returned is the event after which the next instances
        begin; None: there are no more.
        """
        with self._database.read() as connection:
            return shared_details(connection, model, after, limit, self._clocks.now(connection))

    def newest_shared(self, model: str, limit: int) -> tuple[dict[int, Sequence[Event]], bool]:
        """Return the instances of the newest `limit` OPINION and STATEMENT events, and whether there are more."""
        with self._database.read() as connection:
            return adjudications.newest_shared(connection, model, limit)

    def said(self, model: str, selection: EventSelection) -> list[Event]:
        """Return the events of labellers, in order."""
        with self._database.read() as connection:
            return event_log.labeller_events(connection, model, selection)

    def places(self, model: str, ids: Sequence[str]) -> dict[str, int]:
        """Return the sequence of the INSTANCE event of each stored id."""
        with self._database.read() as connection:
            return event_log.instance_sequences(connection, rows.find_model(connection, model).id, ids)

    def stated(self, model: str) -> dict[str, int]:
        """Return the number of statements of each labeller."""
        with self._database.read() as connection:
            return statements.statement_counts(connection, rows.find_model(connection, model).id)

    def extend(self, model: str, number: int, token: str, duration_s: float) -> float:
        """Extend a live lease to `duration_s` from now; return its end by the wall clock.

        The lease never ends sooner than before, and at most `leases.LONGEST_HOLD_S` after it was given. An expired
        lease stays expired.
        """
        with self._database.write() as connection:
            return leases.extend_lease(
                connection, LeaseClaim(model, number, token), duration_s, self._clock_of(connection)
            )

    def evict(self, model: str, number: int, end: Eviction) -> None:
        """End the lease of a query, by any holder; the query is open again.

        Raises
        ------
        FailedPrecondition
            If nobody holds it, or another labeller than the named one.
        """
        with self._database.write() as connection:
            leases.end_lease(connection, model, number, end, self._clock_of(connection))

    def has_revoked_leases(self) -> bool:
        """Return whether `evict_revoked` would find any lease; needs no write."""
        with self._database.read() as connection:
            return leases.has_revoked(connection, self._clock_of(connection))

    def evict_revoked(self) -> int:
        """End all leases of revoked or expired access tokens; return their number."""
        with self._database.write() as connection:
            return leases.evict_revoked(connection, self._clock_of(connection))

    def release(self, model: str, number: int, token: str) -> None:
        """Give a query back; it is open again. A second call does nothing."""
        self._give_back(LeaseClaim(model, number, token), QueryReturn(Step.RELEASED))

    def skip(self, model: str, number: int, token: str, why: str = "") -> None:
        """Give a query back to all others: this labeller is not asked about the instance again."""
        self._give_back(LeaseClaim(model, number, token), QueryReturn(Step.SKIPPED, why=why))

    def postpone(self, model: str, number: int, token: str, delay_s: float, why: str = "") -> None:
        """Return a query; no labeller gets it before `delay_s` have passed."""
        checks.duration("delay_s", delay_s)
        self._give_back(LeaseClaim(model, number, token), QueryReturn(Step.POSTPONED, delay_s, why))

    def _give_back(self, claim: LeaseClaim, how: QueryReturn) -> None:
        checks.comment(how.why)
        with self._database.write() as connection:
            leases.return_query(connection, claim, how, self._clock_of(connection))

    def get_query(self, model: str, number: int) -> QueryRecord:
        """Return one query in its present state."""
        with self._database.read() as connection:
            return reading.get_query(connection, model, number, self._clocks.now(connection))

    def query_details(self, model: str, instances: Sequence[int]) -> QueryDetails:
        """Return the details that are sent with queries about these instances, read from one state of the store."""
        with self._database.read() as connection:
            return read_details(connection, model, instances, self._clocks.now(connection))

    def page_details(self, model: str, after: int = 0, limit: int = 1000) -> QueryDetails:
        """Return the details of the instances after a sequence number, in order, read from one state of the store."""
        with self._database.read() as connection:
            return page_details(connection, model, after, limit, self._clocks.now(connection))

    def instance_details(self, model: str, id: str) -> QueryDetails:  # noqa: A002 - its name on the wire
        """Return the details of one instance, read from one state of the store."""
        with self._database.read() as connection:
            found = event_log.get_instance(connection, model, id)[0].sequence
            return read_details(connection, model, [found], self._clocks.now(connection))

    def said_details(self, model: str, selection: EventSelection) -> tuple[list[Event], QueryDetails]:
        """Return the events of labellers, in order, and the details of their instances, from one state of the store."""
        with self._database.read() as connection:
            return said_details(connection, model, selection, self._clocks.now(connection))

    def list_queries(
        self, model: str, states: Collection[QueryState] = (), after: int = 0, limit: int = 1000
    ) -> list[QueryRecord]:
        """Return queries in order of number, after `after`, in the given states (none: all)."""
        with self._database.read() as connection:
            return reading.read_page(connection, model, states, after, limit, self._clocks.now(connection))

    def next_change_s(self, model: str | None = None) -> float | None:
        """Return the seconds until the first live lease ends or a postponed query comes back; None: neither will."""
        with self._database.read() as connection:
            return reading.next_change_s(connection, model, self._clocks.now(connection))

    # Labellers

    def query_history(
        self, model: str, number: int | None = None, after: int = 0, limit: int = 1000
    ) -> list[HistoryRow]:
        """Return the steps of one query of a model, or of all, after row `after`, in the order they were taken."""
        with self._database.read() as connection:
            return history.read_page(connection, model, number, after, limit)

    def labellers(self, model: str) -> list[LabellerCounts]:
        """Return the counts of each labeller of a model, in order of name."""
        with self._database.read() as connection:
            return history.labeller_counts(connection, model, self._clocks.now(connection))

    def last_leased(self, labeller: str) -> dict[int, int]:
        """Return the last lease of this labeller in each model, by `ModelRecord.key` (larger = later)."""
        with self._database.read() as connection:
            return history.last_leased(connection, labeller)

    def holder(self, model: str, number: int, token: str) -> str:
        """Return the labeller who got a lease; empty if no such token was given for this query."""
        with self._database.read() as connection:
            return history.lease_holder(connection, rows.find_model(connection, model).id, number, token)

    def opinions(self, model: str, limit: int = 2000) -> list[Event]:
        """Return the newest OPINION and STATEMENT events, oldest first; see `Store.answer`."""
        with self._database.read() as connection:
            return event_log.newest_opinions(connection, model, limit)

    def policy(self, model: str) -> Policy:
        """Return the labelling policy of a model."""
        with self._database.read() as connection:
            return policies.get_policy(connection, model)

    def policies_of(self, keys: Sequence[int]) -> dict[int, Policy]:
        """Return the policies of several models by `ModelRecord.key`."""
        with self._database.read() as connection:
            return policies.policies_of_keys(connection, keys)

    def set_policy(self, model: str, policy: Policy | PolicyRule) -> Policy:
        """Change the labelling policy of a model; it holds for leases and answers from now on.

        A rule makes the policy of the one there is, while the model is held: no change is lost.
        """
        with self._database.write() as connection:
            return policies.set_policy(connection, model, policy)
