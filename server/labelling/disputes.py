"""Disputes of labellers as messages, decisions about them, and the agreement of labellers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial

import numpy as np

from quercus.belief.codec import encode
from quercus.belief.errors import InvalidInput
from quercus.belief.label import contour
from quercus.labelling.adjudication import may_adjudicate
from quercus.labelling.disputes import (
    Agreement,
    LabellerConfusion,
    agreement_of,
    are_in_dispute,
    first_shared,
    named_classes,
)
from quercus.labelling.gold import as_known_to
from quercus.labelling.history import (
    LabelEvent,
    LabelKind,
    known_contour,
    own_labels,
    standing_labels,
    stored_label,
)
from quercus.server.core.service_core import ServiceCore
from quercus.server.gate.access import corrects_all, current_caller, is_trusted, only_labels
from quercus.server.labelling.answering import with_schema
from quercus.server.labelling.reliability import known_model
from quercus.server.wire.displays import encode_display
from quercus.server.wire.errors import PermissionDenied
from quercus.server.wire.instances import encode_cells
from quercus.server.wire.labels import class_named, decode_label, encode_contour, label_text
from quercus.server.wire.limits import MAX_FILTER
from quercus.server.wire.models import to_duration, to_timestamp
from quercus.server.wire.names import (
    instance_name,
    make_page_token,
    page_size,
    parse_instance,
    parse_model,
    read_number_token,
)
from quercus.server.wire.request_checks import check_labeller
from quercus.server.wire.schema import ModelSchema
from quercus.storage import Adjudication, Event, Store
from quercus.v1 import query_pb2 as pb
from quercus.v1 import values_pb2

PAGE_EVENTS = 2_000
"""Labels that are searched for a page of disputes; more pages may follow one without disputes."""
MOST_LABELS = 20_000
"""Most labels, the newest ones, that agreement is computed from."""
MOST_PAIRS = 1_000
"""Most pairs of labellers in a response."""


async def list_disputes(core: ServiceCore, request: pb.ListDisputesRequest) -> pb.ListDisputesResponse:
    """Return a page of the disputes that pass the filter."""
    model = parse_model(request.model, "model")
    schema = await core.catalogue.reload_schema(model)
    await _check_may_see(core, model)
    for name in ("classes", "labellers"):
        if (count := len(getattr(request, name))) > MAX_FILTER:
            raise InvalidInput(name, f"has {count:,} entries, at most {MAX_FILTER:,} are allowed")
    classes = frozenset(_position(name, f"classes[{i}]", schema) for i, name in enumerate(request.classes))
    size, after = page_size(request.page_size), read_number_token("disputes", request.page_token)
    return await core.read(
        _read_page, core.store, schema, after, size, classes, frozenset(request.labellers), only_labels()
    )


async def get_dispute(core: ServiceCore, request: pb.GetDisputeRequest) -> pb.Dispute:
    """Return the labels of one instance, in dispute or not."""
    model, identifier = parse_instance(request.name)
    await _check_may_see(core, model)
    return await core.read(_read_one, core.store, model, identifier, only_labels())


async def adjudicate(
    core: ServiceCore, request: pb.AdjudicateRequest, labeller: str
) -> pb.AdjudicateResponse:
    """Decide between the labellers of an instance, or take the decision back."""
    model, identifier = parse_instance(request.name)
    check_labeller(labeller)
    if request.retract and request.HasField("label"):
        raise InvalidInput("label", "is given, but retract takes back what was adjudicated: leave out one")

    async def attempt(schema: ModelSchema) -> pb.AdjudicateResponse:
        label = None
        if not request.retract:
            label = encode(
                await core.convert_message(
                    request, decode_label, request.label, schema.frame, "label", schema.shapes
                )
            )
        given = Adjudication(labeller, label, request.comment, corrects_all(), is_trusted())
        known = await known_model(core, schema)
        done = await core.write(core.store.adjudicate, model, identifier, given, known)
        return pb.AdjudicateResponse(committed_sequence=done.sequence, conflict=done.conflict)

    return await with_schema(core, model, attempt)


async def get_agreement(core: ServiceCore, request: pb.GetAgreementRequest) -> pb.Agreement:
    """Return the agreement of labellers, by the newest labels."""
    schema = await core.catalogue.reload_schema(parse_model(request.model, "model"))
    found, is_partial = await agreement_of_model(core, schema)
    return encode_agreement(found, is_partial=is_partial)


async def agreement_of_model(core: ServiceCore, schema: ModelSchema) -> tuple[Agreement, bool]:
    """Return the agreement of a model's labellers, and whether older labels were left out."""
    status = await core.model_statuses.get_status(schema.model, fresh=True)
    make = partial(_read_agreement, core.store, schema)
    found: tuple[Agreement, bool] = await core.agreements.get_estimate(
        schema.key, status.record.sequence_committed, make
    )
    return found


async def _check_may_see(core: ServiceCore, model: str) -> None:
    """Refuse a labeller who may not decide disputes, because other people's answers would bias the labeller's own."""
    principal = current_caller()
    if principal is None or only_labels() is None:
        return
    policy = await core.read(core.store.policy, model)
    if not may_adjudicate(policy, principal.name):
        raise PermissionDenied(
            f"the token of {principal.name} has the role labeller, and by the labelling policy of {model} it may not "
            "decide between labellers; disputes need the role reader or corrector, or a policy that lets this labeller "
            "label, and anyone correct"
        )


def _position(given: str, field: str, schema: ModelSchema) -> int:
    name = class_named(given, schema.frame)
    if name not in schema.frame.classes:
        known = ", ".join(schema.frame.classes)
        raise InvalidInput(field, f"is {name[:60]!r}, which is not a class; the classes are {known}")
    return schema.frame.classes.index(name)


def _read_page(
    store: Store,
    schema: ModelSchema,
    after: int,
    size: int,
    classes: frozenset[int],
    labellers: frozenset[str],
    only: str | None,
) -> pb.ListDisputesResponse:
    details, following = store.shared_details(schema.model, after, PAGE_EVENTS)
    schema.check_record(details.model)
    found: list[pb.Dispute] = []
    last = after
    for found_history in details.histories.values():
        history = found_history
        if only is not None:
            history = as_known_to(only, history, schema.frame.size, details.policy.combination)
        standing = standing_labels(history)
        if not are_in_dispute(standing, schema.frame.size) or not _passes(
            standing, schema, classes, labellers
        ):
            continue
        if len(found) == size:
            return pb.ListDisputesResponse(disputes=found, next_page_token=make_page_token("disputes", last))
        found.append(encode_dispute(history, schema))
        last = first_shared(history)
    token = "" if following is None else make_page_token("disputes", following)
    return pb.ListDisputesResponse(disputes=found, next_page_token=token)


def _passes(
    standing: Collection[LabelEvent], schema: ModelSchema, classes: frozenset[int], labellers: frozenset[str]
) -> bool:
    if labellers and labellers.isdisjoint(each.event.author for each in standing):
        return False
    return not classes or any(named_classes(each.event, schema.frame.size) & classes for each in standing)


def _read_one(store: Store, model: str, identifier: str, only: str | None) -> pb.Dispute:
    details = store.instance_details(model, identifier)
    ((sequence, history),) = details.histories.items()
    schema = ModelSchema.of(details.model, details.vocabulary)
    if only is not None:
        history = as_known_to(only, history, schema.frame.size, details.policy.combination)
    found = encode_dispute(history, schema)
    found.values.CopyFrom(encode_cells(history[0], schema))
    if (display := encode_display(details.displays.get(sequence))) is not None:
        found.display.CopyFrom(display)
    return found


def encode_dispute(history: Sequence[Event], schema: ModelSchema) -> pb.Dispute:
    """Convert an instance with the labels of its labellers to the wire.

    Parameters
    ----------
    history : all events of the instance, oldest first, beginning with its INSTANCE event.
    schema : schema of the model.
    """
    standing = standing_labels(history)
    decided = [each for each in standing if each.kind in (LabelKind.ADJUDICATED, LabelKind.MARKED)]
    return pb.Dispute(
        instance=instance_name(schema.model, history[0].id),
        disputed=are_in_dispute(standing, schema.frame.size),
        labels=[_encode_label(each, schema) for each in (*own_labels(history), *decided)],
        contour=encode_contour(known_contour(history, schema.frame.size)),
    )


def _encode_label(words: LabelEvent, schema: ModelSchema) -> pb.DisputeLabel:
    event, size = words.event, schema.frame.size
    label = stored_label(event.label or b"", size)
    return pb.DisputeLabel(
        sequence=event.sequence,
        labeller=event.author,
        create_time=to_timestamp(event.created_at),
        kind=int(words.kind),  # type: ignore[arg-type]  # our numbers are the wire's
        state=int(words.state),  # type: ignore[arg-type]
        contour=encode_contour(contour(label, size)),
        text=label_text(label, schema.frame),
        reliability=event.reliability,
        comment=event.comment,
        took=None if event.took_s is None else to_duration(event.took_s),
    )


def _read_agreement(store: Store, schema: ModelSchema) -> tuple[int, tuple[Agreement, bool]]:
    # read first, so that later events are either included or counted as newer
    newest = store.get_model(schema.model).sequence_committed
    histories, is_partial = store.newest_shared(schema.model, MOST_LABELS)
    schema.check_record(store.get_model(schema.model))
    return newest, (agreement_of(histories.values(), schema.frame.size), is_partial)


def encode_agreement(found: Agreement, *, is_partial: bool) -> pb.Agreement:
    """Convert the agreement of labellers to the wire."""
    return pb.Agreement(
        shared=found.shared,
        disputed=found.disputed,
        adjudicated=found.adjudicated,
        alpha=found.alpha,
        alpha_rows=found.alpha_rows,
        alpha_labels=found.alpha_labels,
        pairs=[
            pb.LabellerPair(
                first=pair.first, second=pair.second, rows=pair.rows, same=pair.same, kappa=pair.kappa
            )
            for pair in found.pairs[:MOST_PAIRS]
        ],
        confusions=[
            pb.LabellerConfusion(labeller=each.labeller, cells=_cells_of(each)) for each in found.confusions
        ],
        is_partial=is_partial,
    )


def _cells_of(confusion: LabellerConfusion) -> Iterator[values_pb2.ConfusionCell]:
    for said, holds in np.argwhere(confusion.counts).tolist():
        yield values_pb2.ConfusionCell(said=said, holds=holds, rows=int(confusion.counts[said, holds]))
