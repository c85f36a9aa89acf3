"""ModelService: creating, reading, changing and deleting models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from google.protobuf import empty_pb2

from quercus.belief.errors import InvalidInput, shown
from quercus.server.core.damaged_models import DamagedModels
from quercus.server.core.service_core import OnCore
from quercus.server.gate.access import current_caller, only_labels
from quercus.server.labelling.reliability import known_model
from quercus.server.transfer.stored_contents import UNREADABLE
from quercus.server.wire.errors import ResourceExhausted
from quercus.server.wire.limits import MessageLimits
from quercus.server.wire.models import (
    check_sizes,
    encode_model,
    extension_of,
    is_extension,
    new_specification,
    stored_specification,
    updated_specification,
)
from quercus.server.wire.names import make_page_token, page_size, parse_model, read_token
from quercus.server.wire.plugins import encode_learners
from quercus.specification.bounds import check_model_id
from quercus.specification.guidance import MAX_EXAMPLES
from quercus.specification.names import check_id
from quercus.storage import CorruptStore, KnownModel, ModelRecord, ModelReplaced, NotFound, Store
from quercus.v1 import model_pb2 as pb
from quercus.v1 import model_pb2_grpc

OPEN_TOLD: Final = 16
"""Most open queries that labellers are told about who must not find out which rows are gold questions."""


class ModelService(OnCore, model_pb2_grpc.ModelServiceServicer):
    """Converts requests, calls the store, and converts its results."""

    async def CreateModel(self, request: pb.CreateModelRequest, context: Any) -> pb.Model:
        """Store a new model."""
        model = check_model_id(request.model_id, "model_id")
        sizes = self._core.config.message_limits
        specification = await self._core.convert_message(
            request, new_specification, request.specification, sizes.max_values
        )
        check_sizes(specification, sizes)
        data = specification.SerializeToString(deterministic=True)
        record = await self._core.write(
            _create_in_store,
            self._core.store,
            model,
            data,
            specification.budget,
            self._core.config.max_models,
        )
        self._core.catalogue.forget_model(model)
        return encode_model(record, {})

    async def GetModel(self, request: pb.GetModelRequest, context: Any) -> pb.Model:
        """Return one model."""
        return await self._core.read(
            _read_model, self._core.store, parse_model(request.name), only_labels() is not None
        )

    async def ListModels(self, request: pb.ListModelsRequest, context: Any) -> pb.ListModelsResponse:
        """Return a page of models, in order of name."""
        size = page_size(request.page_size)
        after = read_token("models", request.page_token)
        principal = current_caller()
        granted = None if principal is None else principal.models
        damaged = self._core.damaged
        return await self._core.read(
            _list_page, self._core.store, after, size, granted, damaged, only_labels() is not None
        )

    async def ListLearners(self, request: pb.ListLearnersRequest, context: Any) -> pb.ListLearnersResponse:
        """Return the learners with their parameters."""
        return pb.ListLearnersResponse(learners=encode_learners())

    async def UpdateModel(self, request: pb.UpdateModelRequest, context: Any) -> pb.Model:
        """Change the fields of the mask; the change is an event of the log."""
        model, store = parse_model(request.name), self._core.store
        if "budget" not in request.update_mask.paths:
            return await self._core.write(_update_in_store, store, model, request)
        try:
            known = await known_model(self._core, await self._core.catalogue.schema(model))
            return await self._core.write(_update_in_store, store, model, request, known)
        except ModelReplaced:
            known = await known_model(self._core, await self._core.catalogue.reload_schema(model))
            return await self._core.write(_update_in_store, store, model, request, known)

    async def ExtendModel(self, request: pb.ExtendModelRequest, context: Any) -> pb.Model:
        """Add classes and attributes; the extension is an event of the log."""
        model, core = parse_model(request.name), self._core
        check_id(request.request_id, "request_id")
        done = await core.write(_extend_in_store, core.store, model, request, core.config.message_limits)
        core.catalogue.forget_schema(model)
        return done

    async def DeleteModel(self, request: pb.DeleteModelRequest, context: Any) -> empty_pb2.Empty:
        """Delete a model with all its data."""
        model = parse_model(request.name)
        await self._core.write(self._core.store.delete_model, model)
        self._core.catalogue.forget_model(model)
        return empty_pb2.Empty()


def _create_in_store(store: Store, model: str, data: bytes, budget: int, most: int) -> ModelRecord:
    def check_model_count(count: int) -> None:
        if count > most:
            raise ResourceExhausted(
                f"max_models: there are {most} models, the most allowed: delete one", None
            )

    return store.create_model(model, data, budget=budget, admit=check_model_count)


def _read_model(store: Store, model: str, to_labeller: bool) -> pb.Model:
    return _encode(store, store.get_model(model), to_labeller)


def _encode(store: Store, record: ModelRecord, to_labeller: bool) -> pb.Model:
    """Convert a model to the wire; for labellers, without what would reveal which answers the model ignores."""
    message = encode_model(record, store.vocabulary(record.name))
    if to_labeller and store.policy(record.name).gold_share:
        message.queries_open = min(message.queries_open, OPEN_TOLD)
        for name in ("conflicts", "accuracy", "average_confidence", "drift"):
            message.ClearField(name)
    return message


def _list_page(
    store: Store,
    after: str,
    size: int,
    granted: frozenset[str] | None,
    damaged: DamagedModels,
    to_labeller: bool,
) -> pb.ListModelsResponse:
    if granted is None:
        records = store.list_models(after, size + 1)
    else:
        records = list(islice(_granted_records(store, after, granted), size + 1))
    page = records[:size]
    response = pb.ListModelsResponse(
        next_page_token=make_page_token("models", page[-1].name) if len(records) > size else ""
    )
    for record in page:
        try:
            if not damaged.has_damage(record.name, record.key):
                response.models.append(_encode(store, record, to_labeller))
        except NotFound:  # just deleted
            pass
        except (CorruptStore, *UNREADABLE) as error:
            damaged.note_unreadable(record.name, error)
    return response


def _granted_records(store: Store, after: str, granted: frozenset[str]) -> Iterator[ModelRecord]:
    """Yield the existing models that a caller may use, in order of name."""
    for name in sorted(granted):
        if name > after:
            with suppress(NotFound, CorruptStore):
                yield store.get_model(name)


def _extend_in_store(
    store: Store, model: str, request: pb.ExtendModelRequest, sizes: MessageLimits
) -> pb.Model:
    record = store.extend_model(
        model,
        lambda stored: extension_of(stored, request, sizes),
        request.request_id,
        lambda stored, before: is_extension(stored, before, request, sizes),
    )
    return encode_model(record, store.vocabulary(model))


def _check_examples(store: Store, model: str, request: pb.UpdateModelRequest) -> None:
    """Check that examples are rows of the model."""
    for k, each in enumerate(request.specification.guidance.examples[:MAX_EXAMPLES]):
        field = f"specification.guidance.examples[{k}].instance"
        check_id(each.instance, field)
        try:
            store.get_instance(model, each.instance)
        except NotFound as error:
            if error.resource == "model":
                raise
            raise InvalidInput(field, f"is {shown(each.instance)}, which is not a row of {model}") from None


def _update_in_store(
    store: Store, model: str, request: pb.UpdateModelRequest, known: KnownModel | None = None
) -> pb.Model:
    """Change the present specification while the model is locked, so that no update is lost."""
    if "guidance" in request.update_mask.paths:
        _check_examples(store, model, request)

    def revised_specification(stored: bytes) -> tuple[bytes, int] | None:
        current = stored_specification(stored)
        after = updated_specification(current, request)
        return None if after == current else (after.SerializeToString(deterministic=True), after.budget)

    return encode_model(store.revise(model, revised_specification, known), store.vocabulary(model))
