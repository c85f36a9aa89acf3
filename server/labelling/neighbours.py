"""Neighbours of a query: rows of known class that are most similar to its row."""

from __future__ import annotations

from typing import Final

import numpy as np

from quercus.belief.arrays import Floats
from quercus.belief.errors import InvalidInput
from quercus.labelling.gold import gold_mark
from quercus.labelling.history import known_contour, stored_values
from quercus.server.core.service_core import ServiceCore
from quercus.server.labelling.leasing import check_lease_token
from quercus.server.wire.instances import encode_cells
from quercus.server.wire.names import instance_name, parse_query
from quercus.server.wire.schema import ModelSchema
from quercus.server.wire.trees import TreeClassifier
from quercus.storage import FailedPrecondition, QueryState, Store
from quercus.trees import TreeModel
from quercus.v1 import model_pb2
from quercus.v1 import query_pb2 as pb

SEARCHED_ROWS: Final = 1_000
MAX_NEIGHBOURS: Final = 20
DEFAULT_NEIGHBOURS: Final = 5
DIFFERING: Final = 3


async def list_neighbours(core: ServiceCore, request: pb.ListNeighboursRequest) -> pb.ListNeighboursResponse:
    """Return the neighbours of a query's row, for its holder."""
    model, _ = parse_query(request.name)
    check_lease_token(request.lease_token)
    if not 0 <= request.limit <= MAX_NEIGHBOURS:
        raise InvalidInput("limit", f"is {request.limit}, must be 0 to {MAX_NEIGHBOURS}")
    for _ in range(2):
        classifier, _ = await core.catalogue.classifier_and_schema(model)
        found = await core.read(_find_neighbours, core.store, request, classifier)
        if found is not None:
            return found
        core.catalogue.forget_model(model)  # it was replaced by another of its name
    raise _lease_ended_error(request.name)


def _lease_ended_error(name: str) -> FailedPrecondition:
    model, number = parse_query(name)
    return FailedPrecondition(f"query {number} of {model} is not yours, or not any more")


def _find_neighbours(
    store: Store, request: pb.ListNeighboursRequest, classifier: TreeClassifier
) -> pb.ListNeighboursResponse | None:
    """Return the neighbours; None if the classifier is of an earlier model of this name."""
    model, number = parse_query(request.name)
    specification = model_pb2.Specification.FromString(store.get_model(model).specification)
    if "neighbours" in specification.presentation.withheld:
        raise FailedPrecondition(f"the model {model} withholds neighbours, because they may bias labellers")
    query = store.get_query(model, number)
    holder = store.holder(model, number, request.lease_token)
    if query.state is not QueryState.LEASED or not holder or holder != query.labeller:
        raise _lease_ended_error(request.name)
    rows = [*store.newest_rows(model, SEARCHED_ROWS), query.instance]
    histories = store.history(model, sorted(set(rows)))
    schema = ModelSchema.read(store, model)  # after the rows, so that it names all their values
    if schema.key != classifier.key:  # the rows may also be of another model
        return None
    own = stored_values(histories.pop(query.instance)[0])
    ids, values, shown, classes = [], [], [], []  # of rows with a single possible class
    for history in histories.values():
        if gold_mark(history) is not None:  # the class of a gold question must not be shown
            continue
        possible = np.flatnonzero(known_contour(history, schema.frame.size) > 0).tolist()
        if len(possible) == 1:
            ids.append(history[0].id)
            values.append(stored_values(history[0]))
            shown.append(encode_cells(history[0], schema))
            classes.append(schema.frame.classes[possible[0]])
    response = pb.ListNeighboursResponse()
    if not ids:
        return response
    others = np.stack(values)
    apart = _attribute_distances(own, others, schema)
    same = np.zeros(
        len(others), dtype=bool
    )  # in the same leaf as the query's row; all False if there are several trees
    if isinstance(classifier.model, TreeModel):
        both = np.vstack([own, others])[:, : classifier.width]
        leaves = classifier.model.flat.route(classifier.model.encoder.codes(both), both)
        same = np.asarray(leaves[1:] == leaves[0])
    mean = apart.mean(axis=1)
    for at in np.lexsort((mean, ~same))[: request.limit or DEFAULT_NEIGHBOURS].tolist():
        largest = np.argsort(-apart[at], kind="stable")[:DIFFERING]
        response.neighbours.add(
            instance=instance_name(model, ids[at]),
            values=shown[at],
            class_name=classes[at],
            same_leaf=bool(same[at]),
            distance=float(mean[at]),
            differing=[schema.columns[k].name for k in largest.tolist() if apart[at, k] > 0],
        )
    return response


def _attribute_distances(own: Floats, others: Floats, schema: ModelSchema) -> Floats:
    """Return the distances (n, K) in [0, 1] of each of `others` (n, K) from `own` (K,), by attribute."""
    apart = np.empty(others.shape)
    for k, column in enumerate(schema.columns):
        values = others[:, k]
        if column.values is None:
            halves = np.append(values, own[k]) / 2  # a difference of halves is always a number
            present = halves[~np.isnan(halves)]
            span = float(np.ptp(present)) if present.size else 0.0
            apart[:, k] = np.abs(halves[:-1] - halves[-1]) / span if span > 0 else 0.0
        else:
            apart[:, k] = values != own[k]
        missing = np.isnan(values) != np.isnan(own[k])
        both = np.isnan(values) & np.isnan(own[k])
        apart[:, k] = np.where(missing, 1.0, np.where(both, 0.0, apart[:, k]))
    return apart
