"""ClassifyService: classifies rows by the newest tree, which is in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from quercus.server.core.service_core import OnCore
from quercus.server.wire.limits import MessageLimits
from quercus.server.wire.names import parse_model
from quercus.server.wire.request_checks import check_sequence, empty_stream
from quercus.server.wire.rows import decode_rows, known_row
from quercus.server.wire.schema import ModelSchema
from quercus.server.wire.trees import TreeClassifier
from quercus.trees import UncertainValues, check_coverage
from quercus.v1 import classify_pb2 as pb
from quercus.v1 import classify_pb2_grpc


class ClassifyService(OnCore, classify_pb2_grpc.ClassifyServiceServicer):
    """Converts rows, classifies them with the newest tree, and converts the result."""

    async def Classify(self, request: pb.ClassifyRequest, context: Any) -> pb.ClassifyResponse:
        """Classify one batch."""
        return await self._classify_batch(request)

    async def ClassifyStream(self, request_iterator: Any, context: Any) -> AsyncIterator[pb.ClassifyResponse]:
        """Classify batches in order, each by the tree that is newest at that time."""
        empty = True
        async for request in self._core.requests_until_stop(request_iterator):
            empty = False
            yield await self._classify_batch(request)
        if empty:
            raise empty_stream("at least one batch of rows")

    async def _classify_batch(self, request: pb.ClassifyRequest) -> pb.ClassifyResponse:
        model = parse_model(request.model, "model")
        response = await self._core.answer_by_tree(
            request, _classify_request, model, check_sequence(request.min_sequence)
        )
        self._core.rows_classified += len(response.class_indices)
        return response


def _classify_request(
    request: pb.ClassifyRequest,
    schema: ModelSchema,
    classifier: TreeClassifier,
    sizes: MessageLimits,
) -> pb.ClassifyResponse:
    coverage = request.coverage if request.HasField("coverage") else None
    if coverage is not None:
        check_coverage(coverage)
    elif not (request.want_paths or request.want_masses or request.want_doubt):
        row = known_row(request.rows, schema)
        if row is not None:
            return classifier.classify_row(row)
    rows = decode_rows(request.rows, schema, learn=False, sizes=sizes)
    response = classifier.classify(
        UncertainValues(rows.values, rows.parts),
        request.want_paths,
        request.want_masses,
        coverage,
        request.want_doubt,
    )
    if not rows.unseen:
        return response
    counted = pb.ClassifyResponse(unseen=rows.unseen)
    counted.MergeFrom(response)  # a copy, because other calls share the response
    return counted
