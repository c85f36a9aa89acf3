"""The reliability of a model's labellers, estimated once for all calls at the same state of the log."""

from __future__ import annotations

from functools import partial

from quercus.labelling.crowds.labellers import MAX_LABELS, NOBODY, Crowd, crowd_of
from quercus.server.core.service_core import ServiceCore
from quercus.server.wire.schema import ModelSchema
from quercus.storage import KnownModel, Reliability, Store


async def crowd_of_model(core: ServiceCore, schema: ModelSchema) -> Crowd:
    """Return the estimates of a model's labellers, from the newest labels in its log."""
    newest = await core.read(_newest_answer, core.store, schema.model)
    make = partial(_make_estimate, core.store, schema)
    crowd: Crowd = await core.estimates.get_estimate(schema.key, newest, make)
    return crowd


async def known_model(core: ServiceCore, schema: ModelSchema) -> KnownModel:
    """Return a model as the store needs it, with estimates of the labellers if the policy asks for them.

    That is decided by the policy that the server saw last. If it has changed since, the store ignores the estimates, or
    computes them itself.
    """
    estimated = core.estimates.wanted.get(schema.key)
    if estimated is None:
        estimated = await core.read(is_estimated, core.store, schema.model)
        core.estimates.note_wanted(schema.key, estimated)
    crowd = await crowd_of_model(core, schema) if estimated else None
    return KnownModel(schema.frame.size, schema.key, crowd, schema.shapes.extensions)


def is_estimated(store: Store, model: str) -> bool:
    """Return whether the policy of a model says that reliability is estimated."""
    return store.policy(model).reliability is Reliability.ESTIMATED


def _newest_answer(store: Store, model: str) -> int:
    """Return the number of the newest event that the estimate depends on; 0 if there is none."""
    newest = store.opinions(model, 1)
    return newest[-1].sequence if newest else 0


def _make_estimate(store: Store, schema: ModelSchema) -> tuple[int, Crowd]:
    events = store.opinions(schema.model, MAX_LABELS)
    if not schema.fits(store.get_model(schema.model)):  # the labels may be of another model or frame
        return 0, NOBODY
    return events[-1].sequence if events else 0, crowd_of(events, schema.frame.size)
