"""Rows of known class that are most like the row of a query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Floats
from quercus.belief.errors import InvalidInput
from quercus.labelling.history import known_contour, stored_values
from quercus.server.core.service_core import ServiceCore
from quercus.server.labelling.leasing import check_lease_token
from quercus.server.wire.names import instance_name, parse_query
from quercus.server.wire.rows import encode_row
from quercus.server.wire.schema import ModelSchema
from quercus.server.wire.trees import TreeClassifier
from quercus.storage import Event, FailedPrecondition, QueryState, Store
from quercus.trees import TreeModel
from quercus.v1 import model_pb2, query_pb2

SEARCHED_ROWS: Final = 1_000
MAX_NEIGHBOURS: Final = 20
DEFAULT_NEIGHBOURS: Final = 5
DIFFERING: Final = 3


@dataclass(frozen=True)
class _KnownRow:
    id: str
    values: Floats
    class_index: int


async def list_neighbours(
    core: ServiceCore, request: query_pb2.ListNeighboursRequest
) -> query_pb2.ListNeighboursResponse:
    """Return the neighbours of a query's row, for its holder."""
    model, number = parse_query(request.name)
    check_lease_token(request.lease_token)
    if not 0 <= request.limit <= MAX_NEIGHBOURS:
        raise InvalidInput("limit", f"is {request.limit}, must be 0 to {MAX_NEIGHBOURS}")
    asked = _Asked(model, number, request.lease_token, request.limit or DEFAULT_NEIGHBOURS)
    classifier, _ = await core.catalogue.classifier_and_schema(model)
    found = await core.read(_find_neighbours, core.store, asked, classifier)
    if found is None:
        core.catalogue.forget_model(model)
        classifier, _ = await core.catalogue.classifier_and_schema(model)
        found = await core.read(_find_neighbours, core.store, asked, classifier)
    if found is None:
        raise asked.lease_ended_error
    return found


@dataclass(frozen=True)
class _Asked:
    model: str
    number: int
    token: str
    limit: int

    @property
    def lease_ended_error(self) -> FailedPrecondition:
        """The error where the caller does not hold the query."""
        return FailedPrecondition(
            f"the lease of query {self.number} of {self.model} has ended, or is not yours"
        )


def _find_neighbours(
    store: Store, asked: _Asked, classifier: TreeClassifier
) -> query_pb2.ListNeighboursResponse | None:
    """Return the neighbours; None if another model than the classifier's has the name."""
    specification = model_pb2.Specification.FromString(store.get_model(asked.model).specification)
    if "neighbours" in specification.presentation.withheld:
        raise FailedPrecondition(
            f"the model {asked.model} withholds neighbours, because they may bias labellers"
        )
    query = store.get_query(asked.model, asked.number)
    holder = store.holder(asked.model, asked.number, asked.token)
    if query.state is not QueryState.LEASED or not holder or holder != query.labeller:
        raise asked.lease_ended_error
    rows = [*store.newest_rows(asked.model, SEARCHED_ROWS), query.instance]
    histories = store.history(asked.model, sorted(set(rows)))
    schema = ModelSchema.read(store, asked.model)  # after the rows: it names all their values
    if schema.key != classifier.key:  # the read rows may belong to another model, too
        return None
    own = stored_values(histories.pop(query.instance)[0])
    known = _known_rows(histories.values(), schema)
    response = query_pb2.ListNeighboursResponse()
    if not known:
        return response
    others = np.stack([row.values for row in known])
    apart = _attribute_distances(own, others, schema)
    same = _same_leaf(own, others, classifier)
    mean = apart.mean(axis=1)
    for at in np.lexsort((mean, ~same))[: asked.limit].tolist():
        largest = np.argsort(-apart[at], kind="stable")[:DIFFERING]
        response.neighbours.add(
            instance=instance_name(asked.model, known[at].id),
            values=encode_row(known[at].values, schema),
            class_name=schema.frame.classes[known[at].class_index],
            same_leaf=bool(same[at]),
            distance=float(mean[at]),
            differing=[schema.columns[k].name for k in largest.tolist() if apart[at, k] > 0],
        )
    return response


def _known_rows(histories: Iterable[Sequence[Event]], schema: ModelSchema) -> list[_KnownRow]:
    """Return the rows whose labels leave one class."""
    found = []
    for history in histories:
        possible = np.flatnonzero(known_contour(history, schema.frame.size) > 0)
        if possible.size == 1:
            found.append(_KnownRow(str(history[0].id), stored_values(history[0]), int(possible[0])))
    return found


def _attribute_distances(own: Floats, others: Floats, schema: ModelSchema) -> Floats:
    """Return how far each of `others` (n, K) is from `own` (K,) in each attribute, in [0, 1]."""
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


def _same_leaf(own: Floats, others: Floats, classifier: TreeClassifier) -> NDArray[np.bool_]:
    """Return which of `others` (n, K) end in the leaf of `own`; none if there are several trees."""
    model = classifier.model
    if not isinstance(model, TreeModel):
        return np.zeros(len(others), dtype=bool)
    rows = np.vstack([own, others])
    leaves = model.flat.route(model.encoder.codes(rows), rows)
    return np.asarray(leaves[1:] == leaves[0])
