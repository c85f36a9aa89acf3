"""Conversion of labelling policies, labellers and the history of queries between wire and store."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from enum import IntEnum
from typing import Any, Final

from quercus.belief.errors import InvalidInput, field_prefix, shown
from quercus.labelling.crowds.labellers import LabellerReliability
from quercus.labelling.disputes import LabellerAgreement
from quercus.labelling.gold import GoldScore
from quercus.server.wire.models import to_duration, to_timestamp
from quercus.server.wire.names import model_name, query_name
from quercus.specification.shares import wilson_interval
from quercus.storage import HistoryRow, LabellerCounts, Policy, check_policy
from quercus.v1 import query_pb2 as pb

CHANGEABLE: Final = tuple(field.name for field in fields(Policy))


def policy_rule(request: pb.UpdateLabellingPolicyRequest) -> Callable[[Policy], Policy]:
    """Return the rule that computes the new policy from the present one: it sets the fields of the mask, or all fields.

    Raises
    ------
    InvalidInput
        For an unknown field, a policy of another model, or an invalid value; the rule may raise it too.
    """
    if request.policy.model not in {"", request.model}:
        raise InvalidInput(
            "policy.model", f"is {shown(request.policy.model)}, must be empty or {request.model} as model is"
        )
    with field_prefix("policy"):
        whole = decode_policy(request.policy)
    paths = list(request.update_mask.paths)
    for i, path in enumerate(paths):
        if path not in CHANGEABLE:
            raise InvalidInput(
                f"update_mask.paths[{i}]", f"is {shown(path)}, must be one of {', '.join(CHANGEABLE)}"
            )
    changes = {path: getattr(whole, path) for path in paths}
    return lambda current: replace(current, **changes) if changes else whole


def decode_policy(message: pb.LabellingPolicy) -> Policy:
    """Convert a policy to the store's form; omitted fields get their defaults.

    Raises
    ------
    InvalidInput
        If a value is invalid; the error names the field, the value and the bound.
    """
    given: dict[str, Any] = {}
    for field in fields(Policy):
        value = getattr(message, field.name)
        descriptor = message.DESCRIPTOR.fields_by_name[field.name]
        if descriptor.is_repeated:
            given[field.name] = tuple(dict.fromkeys(value))
        elif message.HasField(field.name) if descriptor.has_presence else value:  # type: ignore[arg-type]
            if isinstance(field.default, IntEnum):
                kinds = type(field.default)
                if value not in set(kinds):
                    raise InvalidInput(field.name, f"is {value}, must be 1 to {max(kinds)}")
                value = kinds(value)
            given[field.name] = value
    policy = Policy(**given)
    check_policy(policy)
    return policy


def encode_policy(model: str, policy: Policy) -> pb.LabellingPolicy:
    """Convert a policy to the wire, which has the same names of fields and numbers of choices as the store."""
    return pb.LabellingPolicy(model=model_name(model), **asdict(policy))


def encode_labeller(
    counts: LabellerCounts,
    reliability: LabellerReliability | None,
    agreement: LabellerAgreement | None,
    stated: int,
    gold: GoldScore,
) -> pb.LabellerStatistics:
    """Convert the counts of a labeller to the wire, with reliability, agreement, statements, and gold answers."""
    numbers = asdict(counts)
    name, times_s = numbers.pop("labeller"), numbers.pop("times_s")
    lower, upper = wilson_interval(gold.right, gold.answered) if gold.answered else (None, None)
    return pb.LabellerStatistics(
        name=name,
        **numbers,
        stated=stated,
        gold_answered=gold.answered,
        gold_right=gold.right,
        gold_lower=lower,
        gold_upper=upper,
        **({} if reliability is None else asdict(reliability)),
        **({} if agreement is None else asdict(agreement)),
        median=to_duration(statistics.median(times_s)) if times_s else None,
    )


def encode_step(model: str, row: HistoryRow) -> pb.QueryStep:
    """Convert a step of a query to the wire."""
    return pb.QueryStep(
        query=query_name(model, row.query),
        kind=int(row.step),  # type: ignore[arg-type]  # the store's numbers are the wire's
        state=int(row.state),  # type: ignore[arg-type]
        labeller=row.labeller,
        lease=row.lease,
        time=to_timestamp(row.at),
        clock=row.clock,
        until=row.until,
        sequence=row.sequence,
        why=row.why,
    )
