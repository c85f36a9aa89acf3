"""The part of `Store` for queries and labellers. Every call is one transaction."""

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

        Until the tree contains `min_sequence` and this labeller's last answer or refusal, nothing is leased
        (`Idle.GROWING`). The reason is BUDGET_SPENT if the whole budget is answered, ALL_LEASED if other labellers may
        still give queries back. Labellers do not get queries that they skipped or answered before.

        Parameters
        ----------
        only : InstanceFilter, optional
            Filter by instances.
        credential : str
            Id of the caller's access token, empty if there is none; see `evict_revoked`.
        """
        request = LeaseRequest(model, labeller, limit, duration_s, min_sequence, only, credential)
        return cast(Leased, self._run_one(request))

    def answer(self, model: str, number: int, token: str, words: Words, known: KnownModel) -> AnswerOutcome:
        """Settle a query with a label, as an ANSWER event, or refuse it, as a REFUSAL event.

        If the policy wants several answers, each becomes an OPINION event, and the query opens again for other
        labellers; after the last one, an ANSWER has the combination of all. If the instance has statements, a
        CORRECTION with the combination of all its labels follows. A refusal spends no budget; if others have answered
        the query already, it is stored as a vacuous answer.

        The same answer, sent again with the same token, succeeds with the same sequence. An answer after the lease
        expired is accepted as long as nobody else holds or has settled the query, growth still wants it, and the
        budgets allow it.

        Raises
        ------
        FailedPrecondition
            If the answer is not accepted; the message has the reason.
        ModelReplaced
            If the model is not the known one.
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
        """Run one lease or answer in a transaction of its own."""
        (outcome,) = self.run_group([call])
        if isinstance(outcome, Exception):
            raise outcome
        return cast("Leased | AnswerOutcome", outcome)

    def amend(self, model: str, number: int, change: Amendment, known: KnownModel) -> AnswerOutcome:
        """Correct the answer to a query, or take it back, as a CORRECTION event, if the policy allows it.

        A repeated call succeeds with the same sequence. After an answer is taken back, a new query may ask about the
        instance again; the budget stays spent.

        Raises
        ------
        FailedPrecondition
            If the query is not answered, or this labeller may not correct it.
        ModelReplaced
            If the model is not the known one.
        """
        with self._database.write() as connection:
            return answers.amend_answer(connection, model, number, change, known, self._clock_of(connection))

    def plan_statements(self, model: str, batch: StatementBatch, known: KnownModel) -> StatementPlan | None:
        """Compute the combined labels of a batch for `state`, which then locks the model only for a moment.

        Return None if there is nothing to compute; raise the errors of `state`.
        """
        with self._database.read() as connection:
            return statements.plan_statements(connection, model, batch, known)

    def state(
        self, model: str, batch: StatementBatch, known: KnownModel, planned: StatementPlan | None = None
    ) -> StatementOutcome:
        """Append labellers' statements about stored instances, all or none.

        For each instance, a CORRECTION with the combination of all its labels follows. Open queries about these
        instances are withdrawn; leased ones stay with their holders. Repeated statements are not stored again.

        Raises
        ------
        NotFound
            If an instance is not stored; the message names the first few.
        AlreadyExists
            If the request was used for other statements.
        FailedPrecondition
            If there is nothing to take back, or the policy forbids it.
        ModelReplaced
            If the model is not the known one.
        """
        with self._database.write() as connection:
            return statements.append_statements(
                connection, model, batch, known, self._clock_of(connection), planned
            )

    def adjudicate(
        self, model: str, identifier: str, given: Adjudication, known: KnownModel
    ) -> AdjudicationOutcome:
        """Decide between the labellers of an instance, or take the decision back.

        An ADJUDICATION event is stored, and a CORRECTION with the label that now counts. An open query about the
        instance is withdrawn; a leased one stays with its holder, but the answer will not change the label. A repeated
        call succeeds with the same sequence.

        Raises
        ------
        NotFound
            If the instance is not stored.
        FailedPrecondition
            If nobody has labelled it, there is nothing to take back, or this labeller may not decide.
        ModelReplaced
            If the model is not the known one.
        """
        with self._database.write() as connection:
            return adjudications.append_adjudication(
                connection, model, identifier, given, known, self._clock_of(connection)
            )

    def mark_gold(self, model: str, author: str, marks: Sequence[Mark], known: KnownModel) -> MarksOutcome:
        """Mark instances as gold questions, or take marks back, all or none.

        For each mark, an ADJUDICATION event with the flag `gold` is stored, and a CORRECTION with the label that now
        counts. Repeated marks are not stored again.

        Raises
        ------
        NotFound
            If an instance is not stored.
        FailedPrecondition
            If a label is vacuous, or there is no mark to take back.
        InvalidInput
            If the model would have more than `MAX_GOLD` gold questions.
        ModelReplaced
            If the model is not the known one.
        """
        with self._database.write() as connection:
            return gold_marks.append_marks(
                connection, model, author, marks, known, self._clock_of(connection)
            )

    def gold_histories(self, model: str) -> dict[int, list[Event]]:
        """Return all events of each gold question's instance, by its sequence."""
        with self._database.read() as connection:
            return gold_marks.marked_histories(connection, model)

    def newest_gold(self, model: str) -> int:
        """Return the number of the newest mark of, or answer to, a gold question; 0 if there is none."""
        with self._database.read() as connection:
            return gold_marks.newest_gold(connection, model)

    def shared_details(self, model: str, after: int, limit: int) -> tuple[QueryDetails, int | None]:
        """Return the instances of which labels of several may hold at once, in the order of their first such event.

        `limit` events after the event `after` are searched. The second result is `after` for the next page, None if
        there is no next page.
        """
        with self._database.read() as connection:
            return shared_details(connection, model, after, limit, self._clocks.now(connection))

    def newest_shared(self, model: str, limit: int) -> tuple[dict[int, Sequence[Event]], bool]:
        """Return the events of instances that several may have labelled, and whether there are more such instances.

        `limit` bounds the events that are searched: opinions, statements, and answers that were taken back.
        """
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

        An extension never shortens a lease, and extends it to at most `LONGEST_HOLD_S` after it was given. An expired
        lease stays expired.
        """
        with self._database.write() as connection:
            return leases.extend_lease(
                connection, LeaseClaim(model, number, token), duration_s, self._clock_of(connection)
            )

    def evict(self, model: str, number: int, end: Eviction) -> None:
        """End the lease of a query, whoever holds it; the query is open again.

        Raises
        ------
        FailedPrecondition
            If nobody holds the query, or not the labeller whom `end` names.
        """
        with self._database.write() as connection:
            leases.end_lease(connection, model, number, end, self._clock_of(connection))

    def has_revoked_leases(self) -> bool:
        """Return whether `evict_revoked` would end a lease; only reads."""
        with self._database.read() as connection:
            return leases.has_revoked(connection, self._clock_of(connection))

    def evict_revoked(self) -> int:
        """End all leases of revoked or expired access tokens; return their number."""
        with self._database.write() as connection:
            return leases.evict_revoked(connection, self._clock_of(connection))

    def release(self, model: str, number: int, token: str) -> None:
        """Give a query back, so that it is open again; a second call does nothing."""
        self._give_back(LeaseClaim(model, number, token), QueryReturn(Step.RELEASED))

    def skip(self, model: str, number: int, token: str, why: str = "") -> None:
        """Give a query back for other labellers: this one is not asked about the instance again."""
        self._give_back(LeaseClaim(model, number, token), QueryReturn(Step.SKIPPED, why=why))

    def postpone(self, model: str, number: int, token: str, delay_s: float, why: str = "") -> None:
        """Give a query back; no labeller gets it before `delay_s` have passed."""
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
        """Return queries in order of number, after `after`, in the given states (by default, in any state)."""
        with self._database.read() as connection:
            return reading.read_page(connection, model, states, after, limit, self._clocks.now(connection))

    def next_change_s(self, model: str | None = None) -> float | None:
        """Return the seconds until a live lease ends or a postponed query comes back; None if neither will happen."""
        with self._database.read() as connection:
            return reading.next_change_s(connection, model, self._clocks.now(connection))

    # Labellers

    def query_history(
        self, model: str, number: int | None = None, after: int = 0, limit: int = 1000
    ) -> list[HistoryRow]:
        """Return the steps of one query of a model, or of all its queries, after row `after`, in order."""
        with self._database.read() as connection:
            return history.read_page(connection, model, number, after, limit)

    def labellers(self, model: str) -> list[LabellerCounts]:
        """Return the counts of each labeller of a model, in order of name."""
        with self._database.read() as connection:
            return history.labeller_counts(connection, model, self._clocks.now(connection))

    def last_leased(self, labeller: str) -> dict[int, int]:
        """Return the number of this labeller's last lease in each model, by `ModelRecord.key`; it grows with time."""
        with self._database.read() as connection:
            return history.last_leased(connection, labeller)

    def holder(self, model: str, number: int, token: str) -> str:
        """Return the labeller who got the lease with a token; empty if no such token was given for this query."""
        with self._database.read() as connection:
            return history.lease_holder(connection, rows.find_model(connection, model).id, number, token)

    def opinions(self, model: str, limit: int = 2000) -> list[Event]:
        """Return the newest OPINION and STATEMENT events, oldest first."""
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
        """Change the labelling policy of a model, for later leases and answers.

        A rule computes the new policy from the present one while the model is locked, so that no change is lost.
        """
        with self._database.write() as connection:
            return policies.set_policy(connection, model, policy)
