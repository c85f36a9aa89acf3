"""A number that the log does not reach is refused at once, wherever it is taken; waiting for it would be in vain."""

from typing import Any

import grpc
import pytest

from quercus.proto.v1 import classify_pb2, query_pb2

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
