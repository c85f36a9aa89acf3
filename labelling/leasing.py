"""Leases: how many queries a labeller may have now, and why none. Answered and leased never exceed any budget.

Each budget is looked at in the transaction that leases (or takes a late answer), which holds the model: so no two
calls can both use the rest. All times are of the lease clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from quercus.labelling.event import Event
from quercus.labelling.history import known_contour, stored_values
from quercus.labelling.policy import Policy

HOUR_S = 3600.0
LONGEST_HOLD_S = 14_400.0  # that extensions can make of a lease, from when it was given


class Idle(IntEnum):
    """The reason why nothing was leased. The numbers are the wire's; 0 = something was leased."""

    NOT_IDLE = 0
    NOTHING_TO_ASK = 1
    ALL_LEASED = 2
    BUDGET_SPENT = 3
    GROWING = 4
    NOT_FOR_YOU = 5
    """The open queries were skipped or answered by this labeller, are postponed, or do not pass the filter."""
    SHARE_SPENT = 6
    """This labeller has given all answers that the policy allows one labeller."""
    HOUR_SPENT = 7
    """The policy allows no more answers within this hour."""
    HANDS_FULL = 8
    """This labeller holds as many queries as the policy allows one labeller."""
    NOT_ASSIGNED = 9
    """The policy names those who may label, and this labeller is not among them."""


SPENT = {
    Idle.SHARE_SPENT: "the share of one labeller in the labelling policy",
    Idle.HOUR_SPENT: "the hourly limit of the labelling policy",
}


@dataclass(frozen=True, slots=True)
class Usage:
    """The use of the budgets of a model.

    Attributes
    ----------
    budget, answered, leased : int
        Most answers of the model, and those that were given or are leased now.
    held : int
        Queries that the labeller holds.
    given : int
        Answers of the labeller so far, taken back or not; matters where the policy has `per_labeller`.
    recent : sequence of float
        Times of the answers of the last hour, oldest first; matters where the policy has `per_hour`.
    """

    budget: int
    answered: int
    leased: int
    held: int
    given: int = 0
    recent: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class RemainingBudget:
    """The remaining budget.

    Attributes
    ----------
    total : int
        Of the model's budget.
    mine : int
        Of all budgets, for this labeller: what may be leased to it now.
    idle : Idle
        Why `mine` is 0 or less, else NOT_IDLE.
    again_s : float or None
        When the hour's budget frees the next answer, in seconds.
    """

    total: int
    mine: int
    idle: Idle
    again_s: float | None


def remaining_budget(usage: Usage, policy: Policy, now: float) -> RemainingBudget:
    """Return the remaining budgets of a model for one labeller."""
    total = usage.budget - usage.answered - usage.leased
    spent = usage.answered >= usage.budget
    bounds = [(total, Idle.BUDGET_SPENT if spent else Idle.ALL_LEASED)]
    if policy.per_labeller is not None:
        bounds.append((policy.per_labeller - usage.given - usage.held, Idle.SHARE_SPENT))
    again_s = None
    if policy.per_hour is not None:
        bounds.append((policy.per_hour - len(usage.recent) - usage.leased, Idle.HOUR_SPENT))
        again_s = usage.recent[0] + HOUR_S - now if usage.recent else None
    bounds.append((policy.max_held - usage.held, Idle.HANDS_FULL))
    idle = next((why for left, why in bounds if left <= 0), Idle.NOT_IDLE)
    mine = min(left for left, _ in bounds)
    return RemainingBudget(total, mine, idle, again_s if idle is Idle.HOUR_SPENT else None)


def why_late_answer_is_beyond(usage: Usage, policy: Policy, now: float, expired: str) -> str | None:
    """Return why no budget is left for an answer after its lease expired (`expired`); None if there is some."""
    room = remaining_budget(usage, policy, now)
    if room.total <= 0:
        return (
            f"{expired}, and the budget of {usage.budget} is used up since: "
            f"{usage.answered} queries are answered and {usage.leased} are held"
        )
    return f"{expired}, and {SPENT[room.idle]} is used up since" if room.idle in SPENT else None


@dataclass(frozen=True, slots=True)
class Growth:
    """The events that the tree of a model knows.

    Attributes
    ----------
    grown, asked, committed : int
        Event up to which the newest tree was grown, that up to which its queries were chosen, and the newest event.
    """

    grown: int
    asked: int
    committed: int


def why_no_lease(room: RemainingBudget, growth: Growth, min_sequence: int, last_settled: int) -> Idle:
    """Return why a labeller gets nothing, whatever there is to ask; NOT_IDLE if it may get something.

    Parameters
    ----------
    room : remaining budgets.
    growth : what the tree knows.
    min_sequence : event that the tree must contain.
    last_settled : event of the last query that the labeller settled, which its queries must come after.
    """
    if room.idle in (Idle.BUDGET_SPENT, Idle.SHARE_SPENT):
        return room.idle
    if growth.grown < min_sequence or max(growth.grown, growth.asked) < last_settled:
        return Idle.GROWING
    return room.idle


def why_none_is_free(open_queries: int, leased: int, growth: Growth) -> Idle:
    """Return why none of the queries is free for a labeller."""
    if open_queries:
        return Idle.NOT_FOR_YOU
    if leased:
        return Idle.ALL_LEASED
    # events that are not in the tree yet may lead to queries
    return Idle.GROWING if growth.grown < growth.committed else Idle.NOTHING_TO_ASK


@dataclass(frozen=True, slots=True)
class InstanceFilter:
    """The queries that a labeller wants, by their instances.

    Attributes
    ----------
    values : tuple of (int, int) or None
        Attributes, and the value that each must have; None: one that the model does not have, so nothing passes.
    classes : tuple of bool
        Of each class, whether the labeller can tell it: no other may be possible.
    """

    values: tuple[tuple[int, int] | None, ...]
    classes: tuple[bool, ...]

    def accepts(self, history: Sequence[Event]) -> bool:
        """Return whether an instance passes, by all events about it, oldest first."""
        values = stored_values(history[0])
        if not all(each is not None and values[each[0]] == each[1] for each in self.values):
            return False
        possible = known_contour(history, len(self.classes)) > 0
        return bool(np.array(self.classes)[possible].all())
