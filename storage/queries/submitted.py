"""A labeller's reply to a query, or a rule that makes it from the state of the locked model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from quercus.labelling.event import Event
from quercus.storage import checks
from quercus.storage.queries.claims import ClaimedQuery
from quercus.storage.queries.pending import CombinedAnswer, PendingRule
from quercus.storage.queries.records import Policy


@dataclass(frozen=True, slots=True)
class SubmittedAnswer:
    """The reply of a labeller: a label, or None = "cannot tell".

    `took_s` None: since it was leased. `settles` False: the query wants more answers. `combined`: the query wanted
    several answers, and this is the last of them. `declared` False: the reliability is an
    estimate, which may be another one when the same is said again. `shown` names what the labeller's screen showed.
    `pending`: the answer spends the budget, and this settles the queries that wanted more answers.
    """

    label: bytes | None
    reliability: float = 1.0
    conflict: bool = False
    comment: str = ""
    took_s: float | None = None
    settles: bool = True
    combined: CombinedAnswer | None = None
    declared: bool = True
    shown: str = ""
    pending: PendingRule | None = None

    def check(self) -> None:
        """Raise `InvalidInput` where something is out of bounds."""
        checks.reliability(self.reliability)
        checks.comment(self.comment)
        checks.answer_time(self.took_s)
        checks.shown_text(self.shown)


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """The state of the locked model that a rule for an answer needs.

    Attributes
    ----------
    key : int
        `ModelRecord.key`.
    spends_budget : bool
        Whether an answer is the last one of the budget.
    policy : Policy
    number : int
        Number of the query.
    labeller : str
        The labeller who leased the query.
    history : sequence of Event
        All events about the instance, oldest first.
    """

    key: int
    spends_budget: bool
    policy: Policy
    number: int
    labeller: str
    history: Sequence[Event]

    @classmethod
    def of(cls, held: ClaimedQuery, policy: Policy, history: Sequence[Event]) -> "AnswerContext":
        """Return the context of an answer by this lease."""
        row = held.model
        spends_budget = row.queries_answered + 1 >= row.budget
        return cls(row.id, spends_budget, policy, held.query.number, held.given.labeller, history)


AnswerRule: TypeAlias = Callable[[AnswerContext], SubmittedAnswer]
"""Makes the reply. It may raise `FailedPrecondition` or `InvalidInput`, and may be asked again."""


def check(reply: SubmittedAnswer | AnswerRule) -> None:
    """Raise `InvalidInput` if a reply that is no rule has a value out of bounds."""
    if isinstance(reply, SubmittedAnswer):
        reply.check()


def reply_in(reply: SubmittedAnswer | AnswerRule, context: Callable[[], AnswerContext]) -> SubmittedAnswer:
    """Return the reply itself, or the result of the rule for the context."""
    if isinstance(reply, SubmittedAnswer):
        return reply
    said = reply(context())
    said.check()
    return said
