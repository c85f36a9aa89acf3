"""Budgets: how many answers may still be asked for. Answered and leased together never exceed any of them.

Each is looked at in the transaction that leases (or takes a late answer), which holds the model: so no two calls can
both use the rest. All use the lease clock.
"""

from dataclasses import dataclass

from sqlalchemy import Connection

from quercus.storage.clocks import Timestamps
from quercus.storage.queries import history
from quercus.storage.queries.expiry import LeaseCounts
from quercus.storage.queries.records import Idle, Policy
from quercus.storage.schema import AnyRow

HOUR_S = 3600.0


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
    leased : int
        Queries leased now.
    """

    total: int
    mine: int
    idle: Idle
    again_s: float | None
    leased: int


def remaining_budget(
    connection: Connection, row: AnyRow, policy: Policy, labeller: str, leases: LeaseCounts, now: Timestamps
) -> RemainingBudget:
    """Return the remaining budgets of a model (its row is locked, expired leases are written down)."""
    leased, held = leases.all, leases.of_labeller
    total = row.budget - row.queries_answered - leased
    spent = row.queries_answered >= row.budget
    bounds = [(total, Idle.BUDGET_SPENT if spent else Idle.ALL_LEASED)]
    if policy.per_labeller is not None:
        given = history.count_answers(connection, row.id, labeller)
        bounds.append((policy.per_labeller - given - held, Idle.SHARE_SPENT))
    again_s = None
    if policy.per_hour is not None:
        recent = history.answers_since(connection, row.id, now.clock - HOUR_S)
        bounds.append((policy.per_hour - len(recent) - leased, Idle.HOUR_SPENT))
        again_s = recent[0] + HOUR_S - now.clock if recent else None
    bounds.append((policy.max_held - held, Idle.HANDS_FULL))
    idle = next((why for left, why in bounds if left <= 0), Idle.NOT_IDLE)
    mine = min(left for left, _ in bounds)
    return RemainingBudget(total, mine, idle, again_s if idle is Idle.HOUR_SPENT else None, leased)
