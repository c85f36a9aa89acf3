"""Statements: labels without a query."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from quercus.belief.codec import encode
from quercus.belief.errors import InvalidInput, field_prefix
from quercus.labelling.answers import check_declared
from quercus.labelling.crowds.labellers import MAX_LABELS, Crowd, crowd_of
from quercus.labelling.statements import statement_events
from quercus.server.core.service_core import ServiceCore
from quercus.server.gate.access import current_caller, labeller_of
from quercus.server.labelling.answering import with_schema
from quercus.server.labelling.reliability import is_estimated
from quercus.server.wire.labels import decode_label
from quercus.server.wire.names import parse_model
from quercus.server.wire.request_checks import check_labeller
from quercus.server.wire.schema import ModelSchema
from quercus.specification.bounds import MAX_STATEMENTS
from quercus.specification.names import check_id
from quercus.storage import KnownModel, Statement, StatementBatch, Store, check_comment
from quercus.v1 import instance_pb2 as pb


async def state_evidence(core: ServiceCore, request: pb.StateEvidenceRequest) -> pb.StateEvidenceResponse:
    """Store statements, all or none."""
    model = parse_model(request.model, "model")
    check_id(request.request_id, "request_id")
    count = len(request.statements)
    if not 1 <= count <= MAX_STATEMENTS:
        raise InvalidInput("statements", f"are {count:,}, must be 1 to {MAX_STATEMENTS:,}")
    labellers = []
    for i, each in enumerate(request.statements):  # first of all, so that nobody labels in another's name
        with field_prefix(f"statements[{i}]"):
            labellers.append(check_labeller(labeller_of(each.labeller or request.labeller)))

    principal = current_caller()
    permitted = principal is not None and principal.is_operator

    async def attempt(schema: ModelSchema) -> pb.StateEvidenceResponse:
        spoken = await core.convert_message(request, _decode_statements, request, labellers, schema)
        crowd = None
        if await core.read(is_estimated, core.store, model):
            crowd = await core.estimates.run_unshared(partial(_crowd_of_all, core.store, schema, spoken))
        batch = StatementBatch(request.request_id, spoken, permitted)
        known = KnownModel(schema.frame.size, schema.key, crowd, schema.shapes.extensions)
        planned = await core.read(core.store.plan_statements, model, batch, known)
        done = await core.write(core.store.state, model, batch, known, planned)
        return pb.StateEvidenceResponse(
            committed_sequence=done.committed_sequence,
            statements_stored=done.stored,
            statements_known=done.known,
        )

    return await with_schema(core, model, attempt)


def _decode_statements(
    request: pb.StateEvidenceRequest, labellers: Sequence[str], schema: ModelSchema
) -> list[Statement]:
    found = []
    for i, (given, labeller) in enumerate(zip(request.statements, labellers, strict=True)):
        field = f"statements[{i}]"
        if given.retract and given.HasField("label"):
            raise InvalidInput(
                f"{field}.label", "is given, but retract takes back what was stated: leave out one"
            )
        label = (
            None
            if given.retract
            else encode(decode_label(given.label, schema.frame, f"{field}.label", schema.shapes))
        )
        declared = given.reliability if given.HasField("reliability") else None
        with field_prefix(field):
            check_declared(declared)
            check_comment(given.comment)
        instance = check_id(given.instance_id, f"{field}.instance_id")
        found.append(Statement(instance, labeller, label, declared, given.comment))
    return found


def _crowd_of_all(store: Store, schema: ModelSchema, spoken: Sequence[Statement]) -> Crowd:
    """Return the estimates of the labellers of a model and a request.

    They use the newest labels in the log and all statements of the request, so that the first file of a crowd is
    weighted by its own statements.
    """
    places = store.places(schema.model, list(dict.fromkeys(each.instance for each in spoken)))
    events = [*store.opinions(schema.model, MAX_LABELS), *statement_events(spoken, places)]
    return crowd_of(events, schema.frame.size)
