"""Labelling policies: one row for each model whose policy is not the default."""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from sqlalchemy import Connection, bindparam, delete, select

from quercus.belief.errors import InvalidInput
from quercus.labelling import checks
from quercus.labelling.policy import Combination, Corrections, Policy, Reliability
from quercus.specification.bounds import MAX_ANSWERS_PER_QUERY, MAX_POLICY_COUNT
from quercus.storage.inserts import insert_rows
from quercus.storage.prepared import Prepared
from quercus.storage.rows import chunks_of, count_opening, find_model, lock_model
from quercus.storage.schema import AnyRow, policy

_OF_MODEL = Prepared(select(policy).where(policy.c.model_id == bindparam("of")))
MAX_HELD = 100
MAX_TAGS = 20
MAX_LABELLERS = 1000


def get_policy(connection: Connection, name: str) -> Policy:
    """Return the policy of a model, by name."""
    return policy_of(connection, find_model(connection, name).id)


def policy_of(connection: Connection, model_id: int) -> Policy:
    """Return the policy of a model, by key."""
    row = _OF_MODEL.run(connection, of=model_id)
    return Policy() if row is None else policy_from(row)


def policies_of_keys(connection: Connection, model_ids: Sequence[int]) -> dict[int, Policy]:
    """Return the policies of several models, by key, without damaged ones."""
    found = dict.fromkeys(model_ids, Policy())
    wanted = select(policy).where(policy.c.model_id.in_(bindparam("keys", expanding=True)))
    for chunk in chunks_of(model_ids):
        for row in connection.execute(wanted, {"keys": chunk}):
            try:
                found[row.model_id] = policy_from(row)
            except (AttributeError, TypeError, ValueError):
                del found[row.model_id]
    return found


def policy_from(row: AnyRow) -> Policy:
    """Return a row of `policy` as a policy."""
    return Policy(
        answers_per_query=row.answers_per_query,
        max_conflict=row.max_conflict,
        reliability=Reliability(row.reliability),
        per_labeller=row.per_labeller,
        per_hour=row.per_hour,
        max_held=row.max_held,
        corrections=Corrections(row.corrections),
        tags=tuple(row.tags.split("\n")) if row.tags else (),
        labellers=tuple(row.labellers.split("\n")) if row.labellers else (),
        combination=Combination(row.combination),
        gold_share=row.gold_share,
    )


PolicyRule: TypeAlias = Callable[[Policy], Policy]
"""Returns the next policy for the present one; may raise `InvalidInput`."""


def set_policy(connection: Connection, name: str, new: Policy | PolicyRule) -> Policy:
    """Set the policy of a model, or let a rule compute it, for later leases and answers."""
    if isinstance(new, Policy):
        check_policy(new)
    row = lock_model(connection, name)
    if not isinstance(new, Policy):
        new = new(policy_of(connection, row.id))
        check_policy(new)
    count_opening(connection, row.id)
    connection.execute(delete(policy).where(policy.c.model_id == row.id))
    if new != Policy():
        cells = {
            "model_id": row.id,
            "answers_per_query": new.answers_per_query,
            "max_conflict": new.max_conflict,
            "reliability": int(new.reliability),
            "per_labeller": new.per_labeller,
            "per_hour": new.per_hour,
            "max_held": new.max_held,
            "corrections": int(new.corrections),
            "tags": "\n".join(new.tags),
            "labellers": "\n".join(new.labellers),
            "combination": int(new.combination),
            "gold_share": new.gold_share,
        }
        insert_rows(connection, policy, [*cells], [[*cells.values()]])
    return new


def check_policy(new: Policy) -> None:
    """Raise ``InvalidInput`` if a value is out of bounds."""
    _check_bounds("answers_per_query", new.answers_per_query, 1, MAX_ANSWERS_PER_QUERY)
    _check_bounds("max_held", new.max_held, 1, MAX_HELD)
    for field, value in (("per_labeller", new.per_labeller), ("per_hour", new.per_hour)):
        if value is not None:
            _check_bounds(field, value, 0, MAX_POLICY_COUNT)
    for field, share in (("max_conflict", new.max_conflict), ("gold_share", new.gold_share)):
        if not (math.isfinite(share) and 0.0 <= share <= 1.0):
            raise InvalidInput(field, f"is {share}, must lie in [0, 1]")
    if len(new.tags) > MAX_TAGS:
        raise InvalidInput("tags", f"are {len(new.tags)}, at most {MAX_TAGS} are allowed")
    if len(new.labellers) > MAX_LABELLERS:
        raise InvalidInput("labellers", f"are {len(new.labellers):,}, at most {MAX_LABELLERS:,} are allowed")
    for field in ("tags", "labellers"):
        for i, name in enumerate(getattr(new, field)):
            checks.name_text(f"{field}[{i}]", name)
            if not name.isprintable():
                raise InvalidInput(f"{field}[{i}]", f"{name!r} has an unprintable character")


def _check_bounds(field: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InvalidInput(field, f"is {value}, must lie in [{low}, {high}]")
