"""A number that the log does not reach is refused at once, wherever it is taken; waiting for it would be in vain."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from quercus.belief.codec import encode_sets
from quercus.server.core import catalogue
from quercus.server.growth.grower import Grower
from quercus.storage import NewValue, Store, file_url
from quercus.v1 import classify_pb2, query_pb2, values_pb2

ENDLESS = 2**63 - 1
REFUSED = (grpc.StatusCode.FAILED_PRECONDITION, "min_sequence", "ends at 21")


@pytest.fixture(scope="module")
def model(api: Any, tools: Any) -> str:
    api.create("ms-bounded")
    api.push(tools.table_t("ms-bounded"))
    api.grown("ms-bounded", 21)
    return "ms-bounded"


@pytest.mark.parametrize("beyond", [22, ENDLESS])
def test_classify(api: Any, tools: Any, model: str, beyond: int) -> None:
    request = classify_pb2.ClassifyRequest(
        model=f"models/{model}", rows=tools.packed([[0, 0]]), min_sequence=beyond
    )
    with tools.refused(*REFUSED, str(beyond), field="min_sequence"):
        api.classifier.Classify(request, timeout=60)
    with tools.refused(*REFUSED, str(beyond), field="min_sequence"):
        list(api.classifier.ClassifyStream(iter([request]), timeout=60))


@pytest.mark.parametrize("beyond", [22, ENDLESS])
def test_leases(api: Any, tools: Any, model: str, beyond: int) -> None:
    request = query_pb2.LeaseQueriesRequest(model=f"models/{model}", labeller="ann", min_sequence=beyond)
    request.wait.FromSeconds(60)
    with tools.refused(*REFUSED, str(beyond), field="min_sequence"):
        api.queries.LeaseQueries(request, timeout=30)


@pytest.mark.parametrize("held", [0, 1])
def test_a_stream_of_queries(api: Any, tools: Any, model: str, held: int) -> None:
    request = query_pb2.StreamQueriesRequest(
        model=f"models/{model}", labeller="ann", min_sequence=ENDLESS, credits=held
    )
    with tools.refused(*REFUSED, str(ENDLESS), field="min_sequence"):
        list(api.queries.StreamQueries(iter([request]), timeout=30))


def test_what_is_committed_and_not_grown_is_waited_for(api: Any, tools: Any, model: str) -> None:
    api.create("ms-ungrown", budget=0)
    (ack,) = api.push(tools.table_t("ms-ungrown"))
    assert api.lease("ms-ungrown", wait_s=0).idle == query_pb2.LeaseQueriesResponse.IDLE_BUDGET_SPENT
    assert ack.model_uid == api.get("ms-ungrown").uid != api.get(model).uid


def test_a_tree_comes_with_the_names_of_all_values_that_it_knows(
    start_live: Callable[..., Any], tools: Any, tmp_path: Path
) -> None:
    """Another server stored them, and this one is asked before it looked for changes."""
    file = tmp_path / "store.db"
    api = start_live(file, grower=False, poll_ms=10_000).api
    api.create("m", attributes=[tools.nominal("X", "ab")], classes=["o", "s"], budget=0)
    with Store.open(file_url(file)) as other:
        grower = Grower(other, interval_s=0.0)

        def push(name: str, value: int, class_number: int, *new: NewValue) -> int:
            labels = encode_sets(np.full(20, 1 << class_number, np.uint64))
            ids = [f"{name}{k}" for k in range(20)]
            last = other.append_instances(
                "m", ids, np.full((20, 1), float(value)), labels, new
            ).committed_sequence
            while grower.run_round():
                pass
            return last

        def classes(sequence: int) -> list[int]:
            row = values_pb2.NamedRow(values={"X": values_pb2.NamedValue(nominal="c")})
            rows = values_pb2.Rows(named=values_pb2.NamedRows(rows=[row]))
            request = classify_pb2.ClassifyRequest(model="models/m", rows=rows, min_sequence=sequence)
            return list(api.classifier.Classify(request, timeout=60).class_indices)

        try:
            push("a", 0, 0)
            assert classes(push("b", 1, 0)) == [0]
            assert classes(push("c", 2, 1, NewValue(0, 0, "c"))) == [1]
        finally:
            grower.close()


def test_rows_are_classified_by_the_tree_that_a_watch_told_of(
    start_live: Callable[..., Any], tools: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a number, and however late the server follows the store by itself."""
    monkeypatch.setattr(catalogue, "REFRESH_EVERY_S", 60.0)
    api = start_live(tmp_path / "store.db").api
    api.create("m")
    request = classify_pb2.ClassifyRequest(model="models/m", rows=tools.packed([[0, 0]]))
    for rows in (1, 2, 3):
        (ack,) = api.push(tools.batch("m", [[0, 0]] * rows))
        api.grown("m", ack.committed_sequence)
        assert api.classifier.Classify(request, timeout=60).as_of == ack.committed_sequence
