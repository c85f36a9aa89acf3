"""Protobuf to results and back: the one place where the client knows the wire, shared by both clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from quercus.belief.errors import shown
from quercus.client import algorithms
from quercus.client.display_messages import (
    display_from_proto,
    presentation_from_proto,
    presentation_to_proto,
)
from quercus.client.errors import invalid
from quercus.client.labels import label_from_proto
from quercus.client.messages import filled
from quercus.client.query_results import Lease, Query, Reason, Rival
from quercus.client.results import (
    AccuracyBlock,
    AverageConfidence,
    Caller,
    Evidence,
    GrowerMember,
    Instance,
    Model,
    RecentAccuracy,
    Specification,
    Status,
    Value,
)
from quercus.specification import parameters
from quercus.specification.algorithms import Pruning, PruningKind
from quercus.specification.attributes import Attribute, Missing, Nominal, Numeric, Overflow
from quercus.specification.names import decode_id, encode_id
from quercus.specification.reasons import Fact, FactValue, Shares
from quercus.v1 import admin_pb2, instance_pb2, model_pb2, query_pb2, values_pb2
from quercus.v1.words import words_of

_PRUNING = words_of(model_pb2.PruningKind.DESCRIPTOR, parameters.PRUNING_KIND.choices)
_MISSING = words_of(model_pb2.MissingPolicy.DESCRIPTOR, parameters.MISSING_VALUE.choices)
_OVERFLOW = words_of(model_pb2.OverflowPolicy.DESCRIPTOR, parameters.OVERFLOW.choices)


def model_resource(model: str) -> str:
    """Return ``models/{model}``."""
    return f"models/{model}"


def instance_resource(model: str, instance: str) -> str:
    """Return ``models/{model}/instances/{id}``, with the id percent-encoded."""
    return f"models/{model}/instances/{encode_id(instance)}"


def instance_of(resource: str) -> str:
    """Return the id in a resource name ``models/{model}/instances/{id}``."""
    return decode_id(last_segment(resource), "instance")


def last_segment(resource: str) -> str:
    """Return the last segment of a resource name."""
    return resource.rsplit("/", 1)[-1]


def model_of(resource: str) -> str:
    """Return the model in a resource name ``models/{model}/...``."""
    return resource.split("/", 2)[1]


def seconds_of(length: Duration) -> float:
    """Return the seconds of a length of time."""
    return length.ToNanoseconds() / 1e9


def to_datetime(timestamp: Timestamp) -> datetime:
    """Return a timestamp, in UTC."""
    return timestamp.ToDatetime(tzinfo=UTC)


def specification_to_proto(specification: Specification) -> model_pb2.Specification:
    """Return the message for CreateModel; fields that are ``None`` stay absent."""
    given = specification.algorithm
    return filled(
        model_pb2.Specification,
        attributes=[_attribute_to_proto(attribute) for attribute in specification.attributes],
        classes=specification.classes,
        alpha=specification.alpha,
        budget=specification.budget,
        min_instances=specification.min_instances,
        max_depth=specification.max_depth,
        warmup_rows=specification.warmup_rows,
        strategy=specification.strategy,
        pruning=None if specification.pruning is None else pruning_to_proto(specification.pruning),
        algorithm=None if given is None else algorithms.to_proto(given, "specification.algorithm"),
        prediction_level=specification.prediction_level,
        presentation=_convert_optional(presentation_to_proto, specification.presentation),
        split_significance=specification.split_significance,
        ask=specification.ask,
        memory_rows=specification.memory_rows,
    )


def _convert_optional(convert: Callable[[Any], Any], value: object) -> Any:
    return None if value is None else convert(value)


def pruning_to_proto(pruning: Pruning) -> model_pb2.Pruning:
    """Return the message of a pruning."""
    return filled(model_pb2.Pruning, kind=_enum_number(_PRUNING, pruning.kind), level=pruning.level)


def _enum_number(words: Mapping[int, str], word: str) -> Any:
    return next(number for number, each in words.items() if each == word)


def _attribute_to_proto(attribute: Attribute) -> model_pb2.Attribute:
    missing = _enum_number(_MISSING, attribute.missing)
    if isinstance(attribute, Nominal):
        nominal = filled(
            model_pb2.NominalAttribute,
            values=attribute.values,
            max_values=attribute.max_values or 0,
            overflow=_enum_number(_OVERFLOW, attribute.overflow),
        )
        return filled(model_pb2.Attribute, name=attribute.name, nominal=nominal, missing=missing)
    numeric = filled(
        model_pb2.NumericAttribute, bins=attribute.bins, edges=attribute.edges, cuts=attribute.cuts or 0
    )
    return filled(model_pb2.Attribute, name=attribute.name, numeric=numeric, missing=missing)


def specification_from_proto(message: model_pb2.Specification) -> Specification:
    """Return the specification in a message."""

    def field_or_none(name: str) -> Any:
        return getattr(message, name) if message.HasField(name) else None  # type: ignore[arg-type]

    return Specification(
        attributes=[_attribute_from_proto(attribute) for attribute in message.attributes],
        classes=message.classes,
        alpha=field_or_none("alpha"),
        budget=field_or_none("budget"),
        min_instances=field_or_none("min_instances"),
        max_depth=field_or_none("max_depth"),
        warmup_rows=field_or_none("warmup_rows"),
        strategy=field_or_none("strategy"),
        pruning=_pruning_from_proto(message.pruning) if message.HasField("pruning") else None,
        algorithm=algorithms.from_proto(message.algorithm) if message.HasField("algorithm") else None,
        prediction_level=field_or_none("prediction_level"),
        presentation=_convert_optional(presentation_from_proto, field_or_none("presentation")),
        split_significance=field_or_none("split_significance"),
        ask=field_or_none("ask"),
        memory_rows=field_or_none("memory_rows"),
    )


def _pruning_from_proto(message: model_pb2.Pruning) -> Pruning:
    return Pruning(cast(PruningKind, _PRUNING[message.kind]), message.level)


def _attribute_from_proto(message: model_pb2.Attribute) -> Attribute:
    missing = cast(Missing, _MISSING.get(message.missing, parameters.MISSING_VALUE.default))
    if message.WhichOneof("kind") == "nominal":
        overflow = cast(Overflow, _OVERFLOW.get(message.nominal.overflow, parameters.OVERFLOW.default))
        most = message.nominal.max_values
        most_or_default = None if most in {0, parameters.MAX_VALUES} else most
        return Nominal(message.name, message.nominal.values, missing, most_or_default, overflow)
    numeric = message.numeric
    return Numeric(
        message.name, numeric.bins or parameters.BINS.default, numeric.edges, missing, numeric.cuts or None
    )


def model_from_proto(message: model_pb2.Model) -> Model:
    """Return the model in a message."""
    return Model(
        name=last_segment(message.name),
        specification=specification_from_proto(message.specification),
        created_at=to_datetime(message.create_time),
        sequence_committed=message.sequence_committed,
        sequence_grown=message.sequence_grown,
        tree_version=message.tree_version,
        instance_count=message.instance_count,
        queries_answered=message.queries_answered,
        queries_leased=message.queries_leased,
        queries_refused=message.queries_refused,
        queries_open=message.queries_open,
        conflicts=message.conflicts,
        lag_s=seconds_of(message.lag),
        uid=message.uid,
        accuracy=recent_accuracy(message.accuracy) if message.HasField("accuracy") else None,
        settled=message.settled if message.HasField("settled") else None,
        average_confidence=AverageConfidence(message.average_confidence.rows, message.average_confidence.mean)
        if message.HasField("average_confidence")
        else None,
        other_names={each.attribute: each.rows for each in message.other_names},
        growth_stopped=message.growth_stopped,
    )


def recent_accuracy(message: model_pb2.RecentAccuracy) -> RecentAccuracy:
    """Return the accuracy of recent predictions."""
    return RecentAccuracy(
        tuple(
            AccuracyBlock(each.rows, each.precise_rows, each.right, each.expected) for each in message.blocks
        )
    )


def status_from_proto(message: admin_pb2.GetStatusResponse) -> Status:
    """Return the status of a server."""
    grower = message.grower
    return Status(
        version=message.version,
        uptime_s=seconds_of(message.uptime),
        store_revision=message.store_revision,
        store_bytes=message.store_bytes,
        store_trouble=message.store_trouble,
        grower=enum_word(admin_pb2.GrowerStatus.State, grower.state, "STATE"),
        grower_pid=grower.pid or None,
        grower_at=grower.at,
        grower_restarts=grower.restarts,
        learning=tuple(grower.learning),
        waiting=tuple(grower.waiting),
        waiting_count=grower.waiting_count,
        lag_s=seconds_of(grower.lag),
        models=message.models,
        calls=message.calls,
        writes_waiting=message.writes_waiting,
        memory_bytes=message.memory_bytes,
        tls=message.tls,
        tokens=message.tokens,
        log_level=message.log_level,
        growers=tuple(GrowerMember(each.place, each.models, each.own) for each in message.growers),
        restricted=message.restricted,
        damaged={each.model: each.reason for each in message.damaged},
        stopped={each.model: each.reason for each in message.stopped},
    )


def caller_from_proto(message: admin_pb2.GetCallerResponse) -> Caller:
    """Return the caller of a server."""
    models = None if message.all_models else tuple(message.models)
    return Caller(message.name, tuple(message.roles), models, message.tokens, frozenset(message.methods))


def row_values(row: values_pb2.NamedRow) -> dict[str, Value]:
    """Return the values of a row by attribute."""
    values: dict[str, Value] = {}
    for name, value in row.values.items():
        kind = value.WhichOneof("kind")
        values[name] = getattr(value, kind) if kind in {"nominal", "number", "other"} else None
    return values


def _reason_from_proto(message: query_pb2.Reason) -> Reason:
    return Reason(
        path=tuple((step.attribute, step.value) for step in message.path),
        rivals=tuple(
            Rival(r.attribute, r.lower, r.upper, r.threshold if r.HasField("threshold") else None)
            for r in message.rivals
        ),
        attribute=message.attribute,
        value=message.value,
        score=message.score,
        node_count=message.node_count,
        strategy=message.strategy,
        sentence=message.sentence,
        facts=tuple(Fact(each.name, _fact_value(each)) for each in message.facts),
    )


def _fact_value(message: query_pb2.Fact) -> FactValue:
    match message.WhichOneof("value"):
        case "shares":
            return Shares(tuple(message.shares.theta), message.shares.who)
        case "interval":
            return message.interval.lower, message.interval.upper
        case None:  # of a kind that this client does not know
            return ""
        case kind:
            value: FactValue = getattr(message, kind)
            return value


def query_from_proto(message: query_pb2.Query) -> Query:
    """Return the query in a message, with its reason."""
    leased = message.HasField("lease_expire_time")
    return Query(
        name=message.name,
        model=model_of(message.name),
        number=int(last_segment(message.name)),
        state=enum_word(query_pb2.QueryState, message.state, "QUERY_STATE"),
        instance=instance_of(message.instance),
        values=row_values(message.values),
        contour=tuple(message.contour.plausibilities),
        classes=tuple(message.classes),
        reason=_reason_from_proto(message.reason),
        tree_version=message.tree_version,
        labeller=message.labeller,
        expires_at=to_datetime(message.lease_expire_time) if leased else None,
        lease_token=message.lease_token,
        left_s=seconds_of(message.lease_left) if leased else None,
        answers=message.answers,
        answers_wanted=message.answers_wanted,
        display=display_from_proto(message.display),
        place=message.place or None,
    )


def lease_from_proto(message: query_pb2.LeaseQueriesResponse) -> Lease:
    """Return the result of a lease call.

    ``idle`` is the name of a ``LeaseQueriesResponse.Idle`` in lower case, for example nothing_to_ask or all_leased.
    """
    queries = tuple(query_from_proto(each) for each in message.queries)
    return Lease(queries, None if queries else idle_reason(message.idle), message.budget_left)


def idle_reason(number: int) -> str:
    """Return the reason why there is no query; a reason that only a later server knows becomes nothing_to_ask."""
    reason: str = enum_word(query_pb2.LeaseQueriesResponse.Idle, number, "IDLE", unknown="nothing_to_ask")
    return reason


def enum_word(kind: Any, number: int, prefix: str, unknown: str = "unspecified") -> Any:
    """Return the name of a value of an enum, in lower case; ``unknown`` for one that only a later server knows.

    Examples
    --------
    >>> [enum_word(query_pb2.QueryState, number, "QUERY_STATE") for number in (1, 99)]
    ['open', 'unspecified']
    """
    if number not in kind.values():
        return unknown
    return kind.Name(number).removeprefix(f"{prefix}_").lower()


def enum_value(kind: Any, prefix: str, field: str, word: str) -> Any:
    """Return the value of an enum with a name, as users write it; raise InvalidArgument if there is none."""
    try:
        return kind.Value(f"{prefix}_{word.upper()}")
    except ValueError:
        known = ", ".join(name.removeprefix(f"{prefix}_").lower() for name in kind.keys()[1:])
        raise invalid(field, f"{shown(word)} is none of {known}") from None


def evidence_from_proto(message: instance_pb2.Evidence, classes: tuple[str, ...]) -> Evidence:
    """Return one piece of evidence about a row."""
    return Evidence(
        message.sequence,
        message.author,
        label_from_proto(message.label, classes) if message.HasField("label") else None,
        message.refused,
        message.reliability,
        to_datetime(message.create_time),
        _evidence_kind(message),
        int(last_segment(message.query)) if message.query else None,
        message.comment,
        seconds_of(message.took) if message.HasField("took") else None,
    )


def _evidence_kind(message: instance_pb2.Evidence) -> str:
    """Return the word for evidence, that of its event in the log; "unspecified" if only a later server knows it."""
    if message.kind == instance_pb2.Evidence.KIND_UNSPECIFIED:
        return "refusal" if message.refused else "answer" if message.query else "instance"
    found: str = enum_word(instance_pb2.Evidence.Kind, message.kind, "KIND")
    return found


def instance_from_proto(message: instance_pb2.Instance, classes: tuple[str, ...]) -> Instance:
    """Return the row in a message, with its label history."""
    history = tuple(evidence_from_proto(each, classes) for each in message.history)
    contour = tuple(message.contour.plausibilities)
    name = instance_of(message.name)
    display = display_from_proto(message.display)
    return Instance(name, row_values(message.values), history, contour, message.conflict, display)
