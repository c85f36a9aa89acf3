"""Leases: how many queries a labeller may have now, or why none. Answers and leases together never exceed a budget.

Budgets are checked in the transaction that leases or takes a late answer, which locks the model: so two calls cannot
both use the last of a budget. All times are in seconds of the lease clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from quercus.labelling.event import Event
from quercus.labelling.history import known_contour, stored_values
from quercus.labelling.policy import Policy

HOUR_S = 3600.0
LONGEST_HOLD_S = 14_400.0  # a lease ends at most this long after it was given, however often it is extended


class Idle(IntEnum):
    """The reason why nothing was leased; 0 if something was. The numbers are those of the wire."""

    NOT_IDLE = 0
    NOTHING_TO_ASK = 1
    ALL_LEASED = 2
    BUDGET_SPENT = 3
    GROWING = 4
    NOT_FOR_YOU = 5
    """This labeller skipped or answered the open queries, or they are postponed, or do not pass the filter."""
    SHARE_SPENT = 6
    """This labeller has given all answers that the policy allows one labeller."""
    HOUR_SPENT = 7
    """The policy allows no more answers within this hour."""
    HANDS_FULL = 8
    """This labeller holds as many queries as the policy allows one labeller."""
    NOT_ASSIGNED = 9
    """The policy names those who may label, and this labeller is not one of them."""


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
        Most answers of the model, the answers given so far, and the queries leased now.
    held : int
        Queries that the labeller holds.
    given : int
        Answers of the labeller so far, with those taken back; used if the policy has `per_labeller`.
    recent : sequence of float
        Times of the answers of the last hour, oldest first; used if the policy has `per_hour`.
    """

    budget: int
    answered: int
    leased: int
    held: int
    given: int = 0
    recent: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class RemainingBudget:
    """The rest of a model's budgets.

    Attributes
    ----------
    total : int
        Rest of the model's own budget.
    mine : int
        Number of queries that may be leased to this labeller now, by all budgets.
    idle : Idle
        Why `mine` is 0 or less, else NOT_IDLE.
    again_s : float or None
        Seconds until the hourly budget allows the next answer; None unless it is the reason.
    """

    total: int
    mine: int
    idle: Idle
    again_s: float | None


def remaining_budget(usage: Usage, policy: Policy, now: float) -> RemainingBudget:
    """Return the rest of a model's budgets for one labeller; `now` is in seconds of the lease clock."""
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
    """Return why no budget is left for a late answer, None if there is some; `expired` says when the lease ended."""
    room = remaining_budget(usage, policy, now)
    if room.total <= 0:
        return (
            f"{expired}, and the budget of {usage.budget} is used up since by queries: "
            f"{usage.answered} answered, {usage.leased} held"
        )
    return f"{expired}, and {SPENT[room.idle]} is used up since" if room.idle in SPENT else None


@dataclass(frozen=True, slots=True)
class Growth:
    """The progress of a model's tree along its log.

    Attributes
    ----------
    grown, asked, committed : int
        Last event that the newest tree contains, last event considered when its queries were chosen, and newest event
        of the log.
    """

    grown: int
    asked: int
    committed: int


def why_no_lease(room: RemainingBudget, growth: Growth, min_sequence: int, last_settled: int) -> Idle:
    """Return why a labeller gets nothing, whatever queries there are; NOT_IDLE if the labeller may get some.

    Parameters
    ----------
    room : remaining budgets.
    growth : how far the tree has followed the log.
    min_sequence : event that the tree must contain.
    last_settled : event of the last query that the labeller settled; the queries must have been chosen after it.
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
    # events that the tree does not contain yet may lead to queries
    return Idle.GROWING if growth.grown < growth.committed else Idle.NOTHING_TO_ASK


@dataclass(frozen=True, slots=True)
class InstanceFilter:
    """The queries that a labeller wants, by their instances.

    Attributes
    ----------
    values : tuple of (int, int) or None
        Attributes, each with the value that it must have; None for an attribute or value that the model does not have,
        so that no instance passes.
    classes : tuple of bool
        Whether the labeller can recognise each class. Instances pass only if no other class is possible.
    """

    values: tuple[tuple[int, int] | None, ...]
    classes: tuple[bool, ...]

    def accepts(self, history: Sequence[Event]) -> bool:
        """Return whether an instance passes; `history` has all its events, oldest first."""
        values = stored_values(history[0])
        if not all(each is not None and values[each[0]] == each[1] for each in self.values):
            return False
        possible = known_contour(history, len(self.classes)) > 0
        return bool(np.array(self.classes)[possible].all())
