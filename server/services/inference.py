"""GRPCInferenceService: classification for clients of the Open Inference Protocol."""

from __future__ import annotations

from typing import Any, Final

from quercus import __version__
from quercus.belief.errors import InvalidInput, shown
from quercus.inference import open_inference_pb2 as pb
from quercus.inference import open_inference_pb2_grpc
from quercus.server.core.service_core import OnCore
from quercus.server.wire.errors import Unavailable
from quercus.server.wire.inference import (
    ON_REQUEST,
    decode_inputs,
    describe_model,
    encode_outputs,
    wanted_outputs,
)
from quercus.server.wire.limits import MessageLimits
from quercus.server.wire.request_checks import check_sequence
from quercus.server.wire.schema import ModelSchema
from quercus.server.wire.trees import TreeClassifier
from quercus.specification.bounds import check_model_id
from quercus.storage import FailedPrecondition, NotFound, Store
from quercus.v1 import classify_pb2, model_pb2

MAX_ID: Final = 200
_MIN_SEQUENCE: Final = "min_sequence"


class InferenceService(OnCore, open_inference_pb2_grpc.GRPCInferenceServiceServicer):
    """Converts tensors to rows, classifies them as `ClassifyService` does, and converts the result to tensors."""

    async def ServerLive(self, request: pb.ServerLiveRequest, context: Any) -> pb.ServerLiveResponse:
        """Return that the server is live."""
        return pb.ServerLiveResponse(live=True)

    async def ServerReady(self, request: pb.ServerReadyRequest, context: Any) -> pb.ServerReadyResponse:
        """Return whether the store can be read."""
        return pb.ServerReadyResponse(ready=not self._core.changes.trouble)

    async def ServerMetadata(
        self, request: pb.ServerMetadataRequest, context: Any
    ) -> pb.ServerMetadataResponse:
        """Return name and version."""
        return pb.ServerMetadataResponse(name="quercus", version=__version__)

    async def ModelReady(self, request: pb.ModelReadyRequest, context: Any) -> pb.ModelReadyResponse:
        """Return whether the model has a tree, and so can classify."""
        model = check_model_id(request.name, "name")
        try:
            classifier, _ = await self._core.catalogue.classifier_and_schema(model)
        except (FailedPrecondition, Unavailable):  # it has no tree yet, or was just replaced
            return pb.ModelReadyResponse(ready=False)
        _check_version(request.version, classifier.version)
        return pb.ModelReadyResponse(ready=True)

    async def ModelMetadata(self, request: pb.ModelMetadataRequest, context: Any) -> pb.ModelMetadataResponse:
        """Return inputs and outputs."""
        model = check_model_id(request.name, "name")
        learner, version = await self._core.read(_read_head, self._core.store, model)
        _check_version(request.version, version)
        schema = await self._core.catalogue.reload_schema(model)
        response = pb.ModelMetadataResponse(name=model, platform=f"quercus_{learner}")
        if version:
            response.versions.append(str(version))
        return describe_model(response, schema)

    async def ModelInfer(self, request: pb.ModelInferRequest, context: Any) -> pb.ModelInferResponse:
        """Classify the rows of a request."""
        model = check_model_id(request.model_name, "model_name")
        if len(request.id) > MAX_ID:
            raise InvalidInput("id", f"has {len(request.id)} characters, at most {MAX_ID} are allowed")
        response = await self._core.answer_by_tree(
            request, _infer_rows, model, check_sequence(_min_sequence(request))
        )
        self._core.rows_classified += response.outputs[0].shape[0]
        return response


def _infer_rows(
    request: pb.ModelInferRequest, schema: ModelSchema, classifier: TreeClassifier, sizes: MessageLimits
) -> pb.ModelInferResponse:
    names = wanted_outputs(request)
    cells, unseen = decode_inputs(request, schema, sizes)
    said: classify_pb2.ClassifyResponse = classifier.classify(cells, want_masses=ON_REQUEST in names)
    _check_version(request.model_version, said.tree_version)
    response = pb.ModelInferResponse(
        model_name=schema.model, model_version=str(said.tree_version), id=request.id
    )
    return encode_outputs(response, said, names, unseen, raw=bool(request.raw_input_contents))


def _min_sequence(request: pb.ModelInferRequest) -> int:
    if _MIN_SEQUENCE not in request.parameters:
        return 0
    given = request.parameters[_MIN_SEQUENCE]
    kind = given.WhichOneof("parameter_choice")
    if kind not in {"int64_param", "uint64_param"}:
        raise InvalidInput(f"parameters[{shown(_MIN_SEQUENCE)}]", "must be a whole number")
    return int(getattr(given, kind))


def _check_version(given: str, newest: int) -> None:
    """Raise `NotFound` for any version but the newest, which alone classifies."""
    if given not in {"", str(newest)}:
        raise NotFound("tree version", given, f"the newest is {newest}; leave the version empty")


def _read_head(store: Store, model: str) -> tuple[str, int]:
    record = store.get_model(model)
    return model_pb2.Specification.FromString(record.specification).learner.name, record.tree_version
