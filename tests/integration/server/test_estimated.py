"""Reliability that is estimated: a function of the log, estimated once for each state of it, in a thread of its own."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.statements import statements_noted

from quercus.belief.codec import encode_sets
from quercus.server.labelling.reliability import MAX_LABELS, crowd_of
from quercus.storage import AgendaEntry, Policy, Reliability, Store, file_url
from quercus.v1 import instance_pb2, query_pb2, values_pb2

ROWS = 20
ANSWERS = 5


def stated(labeller: str, wrong: int) -> instance_pb2.StateEvidenceRequest:
    """Return a labeller's statements about all rows: x for the first ones, s for the others."""
    request = instance_pb2.StateEvidenceRequest(
        model="models/m", request_id=f"of-{labeller}", labeller=labeller
    )
    for row in range(ROWS):
        label = values_pb2.Label(class_name="x" if row < wrong else "s")
        request.statements.add(instance_id=f"row{row}", label=label)
    return request


def estimated(store: Store, labeller: str) -> float:
    return crowd_of(store.opinions("m", MAX_LABELS), 3).reliability_of(labeller)


def test_what_an_answer_counts_is_estimated_once(start_live: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    api = start_live(file, grower=False).api
    api.create("m", budget=9)
    readers: list[str] = []

    def note(_connection: Any, _cursor: Any, _statement: str, parameters: Any, *_: Any) -> None:
        if MAX_LABELS in (parameters.values() if isinstance(parameters, dict) else parameters):
            readers.append(threading.current_thread().name)

    with Store.open(file_url(file)) as store:
        ids = [f"row{row}" for row in range(ROWS + ANSWERS)]
        store.append_instances(
            "m", ids, np.zeros((len(ids), 2)), encode_sets(np.full(len(ids), 7, np.uint64))
        )
        agenda = [AgendaEntry(ROWS + 1 + k, b"", b"") for k in range(ANSWERS)]
        store.publish("m", as_of=len(ids), snapshot=b"", agenda=agenda)
        store.set_policy("m", Policy(reliability=Reliability.ESTIMATED, max_held=ANSWERS))
        for labeller, wrong in (("ann", 0), ("bob", 2), ("cid", 9)):
            api.instances.StateEvidence(stated(labeller, wrong), timeout=60)
        request = query_pb2.LeaseQueriesRequest(model="models/m", labeller="cid", max_queries=ANSWERS)
        queries = api.queries.LeaseQueries(request, timeout=60).queries
        assert len(queries) == ANSWERS
        with statements_noted(note):
            counts = [api.answer(query).reliability for query in queries]
        assert counts == [pytest.approx(estimated(store, "cid"))] * ANSWERS
        assert estimated(store, "cid") < 0.8
        assert len(readers) == 2  # opinions and statements, each once
        assert all(name.startswith("quercus-estimate") for name in readers)
        api.instances.StateEvidence(stated("dan", 9), timeout=60)  # who agrees with cid
        listed = api.queries.ListLabellers(query_pb2.ListLabellersRequest(model="models/m"), timeout=60)
        (cid,) = (each for each in listed.labellers if each.name == "cid")
        assert cid.reliability == pytest.approx(estimated(store, "cid"))
