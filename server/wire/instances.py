"""Conversion of instances with their history, and of queries, to the wire."""

from __future__ import annotations

from collections.abc import Sequence

from quercus.labelling.gold import as_known_to
from quercus.labelling.history import known_contour, stored_cells
from quercus.server.wire.labels import encode_contour, encode_label
from quercus.server.wire.models import to_duration, to_timestamp
from quercus.server.wire.names import instance_name, query_name
from quercus.server.wire.rows import encode_row
from quercus.server.wire.schema import ModelSchema
from quercus.specification.conditions import condition_of
from quercus.storage import Event, EventKind, Policy, QueryRecord, QueryState
from quercus.v1 import instance_pb2, query_pb2, values_pb2


def encode_instance(history: Sequence[Event], schema: ModelSchema) -> instance_pb2.Instance:
    """Convert an instance to the wire.

    Parameters
    ----------
    history : all events of the instance, oldest first, beginning with its INSTANCE event.
    schema : schema of the model.
    """
    return instance_pb2.Instance(
        name=instance_name(schema.model, history[0].id),
        values=encode_cells(history[0], schema),
        history=[encode_evidence(event, schema) for event in history],
        contour=encode_contour(known_contour(history, schema.frame.size)),
        conflict=any(event.conflict for event in history),
    )


def encode_cells(event: Event, schema: ModelSchema) -> values_pb2.NamedRow:
    """Convert the values of an INSTANCE event to a row by name."""
    values, parts = stored_cells(event)
    return encode_row(values, schema, parts)


def encode_evidence(event: Event, schema: ModelSchema) -> instance_pb2.Evidence:
    """Convert the label of an event to the wire."""
    return instance_pb2.Evidence(
        sequence=event.sequence,
        author=event.author,
        label=None if event.label is None else encode_label(event.label, schema.frame),
        refused=event.kind is EventKind.REFUSAL,
        reliability=event.reliability,
        create_time=to_timestamp(event.created_at),
        kind=int(event.kind),  # type: ignore[arg-type]  # the store's numbers are the wire's
        query=query_name(schema.model, event.query) if event.query else None,
        comment=event.comment,
        took=None if event.took_s is None else to_duration(event.took_s),
    )


_ASKED = frozenset({QueryState.OPEN, QueryState.LEASED})


def encode_query(
    record: QueryRecord, history: Sequence[Event], schema: ModelSchema, policy: Policy
) -> query_pb2.Query:
    """Convert a query to the wire, with its instance and the evidence about it.

    A gold question looks like any other query: it comes only with what the labeller may know.

    Parameters
    ----------
    record : the query.
    history : all events of its instance.
    schema : schema of the model.
    policy : labelling policy of the model.
    """
    if record.is_gold:
        size, rule = schema.frame.size, policy.combination
        history = as_known_to(record.labeller or "", history, size, rule, record.number)
    query = query_pb2.Query(
        name=query_name(schema.model, record.number),
        state=int(record.state),  # type: ignore[arg-type]  # the store's numbers are the wire's
        instance=instance_name(schema.model, record.instance_id),
        values=encode_cells(history[0], schema),
        contour=encode_contour(known_contour(history, schema.frame.size)),
        classes=schema.frame.classes,
        reason=query_pb2.Reason.FromString(record.reason),
        tree_version=record.tree_version,
        labeller=record.labeller,
        lease_token=record.token,
        answers=record.answers,
        answers_wanted=max(policy.answers_per_query, 1),
        place=record.position + 1 if record.state in _ASKED else None,
    )
    if record.expires_at is not None:
        query.lease_expire_time.CopyFrom(to_timestamp(record.expires_at))
        query.lease_left.CopyFrom(to_duration(record.left_s or 0.0))
    if record.is_gold:
        _fit_reason(query, schema)
    return query


def _fit_reason(query: query_pb2.Query, schema: ModelSchema) -> None:
    """Remove from a reason, which was copied from another row, what does not fit this row."""
    cells, reason = query.values.values, query.reason
    nominal = {column.name for column in schema.columns if column.values is not None}

    def leads_here(attribute: str, branch: str) -> bool:
        condition = condition_of(attribute, branch, is_nominal=attribute in nominal)
        return attribute in cells and condition.holds(_cell_of(cells[attribute]))

    path = list(reason.path)
    kept = next((i for i, each in enumerate(path) if not leads_here(each.attribute, each.value)), len(path))
    del reason.path[kept:]
    if reason.attribute and not leads_here(reason.attribute, reason.value):
        reason.ClearField("attribute")
        reason.ClearField("value")


def _cell_of(value: values_pb2.NamedValue) -> str | float | None:
    """Return a value in the form for conditions; an uncertain one meets no condition."""
    match value.WhichOneof("kind"):
        case None:
            return None
        case "number":
            return value.number
        case "nominal":
            return value.nominal
        case _:
            return ""
