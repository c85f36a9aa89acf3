"""StreamQueries: credits, answers, expiry, and leases that end with the stream."""

import queue
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from support.waiting import until

from quercus.v1 import model_pb2, query_pb2, values_pb2

Idle = query_pb2.LeaseQueriesResponse


class Conversation:
    """The client's side of one stream."""

    def __init__(self, api: Any, **first: Any) -> None:
        self._requests: queue.Queue[query_pb2.StreamQueriesRequest | None] = queue.Queue()
        self.send(**first)
        self.call = api.queries.StreamQueries(self._outgoing(), timeout=60)

    def _outgoing(self) -> Iterator[query_pb2.StreamQueriesRequest]:
        while (request := self._requests.get()) is not None:
            yield request

    def send(self, **fields: Any) -> None:
        self._requests.put(query_pb2.StreamQueriesRequest(**fields))

    def receive(self, kind: str) -> Any:
        """The next response, which must be a `kind`; that the tree is growing is told now and then."""
        response = next(self.call)
        while response.idle == Idle.IDLE_GROWING:
            response = next(self.call)
        assert response.WhichOneof("event") == kind, response
        return getattr(response, kind)

    def await_(self, kind: str) -> Any:
        """The next `kind`, whatever comes before it."""
        while (response := next(self.call)).WhichOneof("event") != kind:
            assert response.WhichOneof("event") in {"query", "idle"}, response
        return getattr(response, kind)

    def close(self) -> list[query_pb2.StreamQueriesResponse]:
        self._requests.put(None)
        return list(self.call)

    def answer(self, query: query_pb2.Query, name: str = "s") -> None:
        label = values_pb2.Label(class_name=name)
        self.send(
            answer=query_pb2.AnswerQueryRequest(name=query.name, lease_token=query.lease_token, label=label)
        )


@pytest.fixture
def open_stream(api: Any, tools: Any) -> Iterator[Any]:
    """Make a model that holds table T, and talk about it."""
    opened: list[Conversation] = []

    def start(model: str, budget: int = 5, **first: Any) -> Conversation:
        if budget:
            api.create(model, budget=budget)
            api.push(tools.table_t(model))
            api.grown(model, 21)
        opened.append(Conversation(api, **({"model": f"models/{model}", "labeller": "ann"} | first)))
        return opened[-1]

    yield start
    for each in opened:
        each.call.cancel()


def leased(api: Any, model: str) -> int:
    return int(api.get(model).queries_leased)


def test_never_more_outstanding_than_credits(api: Any, open_stream: Any) -> None:
    stream = open_stream("s-credits", credits=2)
    first, second = stream.receive("query"), stream.receive("query")
    assert first.name != second.name
    assert leased(api, "s-credits") == 2
    stream.send(refusal=query_pb2.RefuseQueryRequest(name=first.name, lease_token=first.lease_token))
    assert stream.receive("refused").name == first.name
    third = stream.receive("query")
    assert third.instance not in {first.instance, second.instance}
    assert leased(api, "s-credits") == 2
    stream.send(credits=1)
    fourth = stream.receive("query")
    assert len({first.name, second.name, third.name, fourth.name}) == 4
    assert leased(api, "s-credits") == 3


def test_no_credit_no_query(api: Any, open_stream: Any) -> None:
    stream = open_stream("s-none")
    assert stream.close() == []
    assert leased(api, "s-none") == 0


def test_leases_end_with_the_stream(api: Any, open_stream: Any) -> None:
    stream = open_stream("s-end", credits=3)
    held = [stream.receive("query") for _ in range(3)]
    assert leased(api, "s-end") == 3
    stream.close()
    until(lambda: leased(api, "s-end") == 0)
    other = api.lease("s-end", "bob", count=3)
    assert {each.name for each in other.queries} == {each.name for each in held}


def test_leases_end_when_the_client_vanishes(api: Any, open_stream: Any) -> None:
    stream = open_stream("s-vanish", credits=3)
    for _ in range(3):
        stream.receive("query")
    stream.call.cancel()
    until(lambda: leased(api, "s-vanish") == 0)


def test_expired_query_frees_its_credit(api: Any, open_stream: Any) -> None:
    stream = open_stream("s-expire", credits=1, lease_duration={"seconds": 1})
    first = stream.receive("query")
    again = stream.receive("query")  # the same query, under a new lease
    assert again.name == first.name
    assert again.lease_token != first.lease_token


def test_extended_query_keeps_its_credit(api: Any, open_stream: Any) -> None:
    stream = open_stream("s-extend", credits=1, lease_duration={"seconds": 1})
    first = stream.receive("query")
    request = query_pb2.ExtendLeaseRequest(name=first.name, lease_token=first.lease_token)
    request.lease_duration.FromSeconds(600)
    api.queries.ExtendLease(request)
    until = time.time() + 1.5
    while time.time() < until:
        assert leased(api, "s-extend") == 1
    stream.answer(first)
    assert stream.receive("answered").name == first.name


def test_waiting_stream_says_why_and_wakes_up(api: Any, tools: Any, open_stream: Any) -> None:
    api.create("s-wake")
    api.grown("s-wake", 0)
    stream = open_stream("s-wake", budget=0, credits=1)
    assert stream.receive("idle") == Idle.IDLE_NOTHING_TO_ASK
    api.push(tools.table_t("s-wake"))
    assert stream.receive("query").instance == "models/s-wake/instances/row1"


def test_a_bad_answer_is_reported_and_the_stream_continues(api: Any, open_stream: Any) -> None:
    stream = open_stream("s-bad", credits=1)
    query = stream.receive("query")
    stream.answer(query, "nonsense")
    failed = stream.receive("failed")
    assert (failed.name, failed.field) == (query.name, "label.class_name")
    assert failed.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert "'nonsense'" in failed.message
    stream.answer(query)
    assert stream.receive("answered").name == query.name
    stream.answer(query, "o")
    assert "already answered" in stream.receive("failed").message


def test_skip_postpone_correct_and_undo_on_the_stream(api: Any, open_stream: Any) -> None:
    How = query_pb2.ReturnQueryRequest.How
    stream = open_stream("s-ways", budget=9, credits=1)
    first = stream.receive("query")
    stream.send(returned={"name": first.name, "lease_token": first.lease_token, "how": How.HOW_SKIP})
    assert stream.receive("returned").name == first.name
    second = stream.receive("query")
    assert second.instance != first.instance
    later = {"name": second.name, "lease_token": second.lease_token, "how": How.HOW_POSTPONE}
    stream.send(returned=later | {"delay": {"seconds": 1}})
    assert stream.receive("returned").name == second.name
    third = stream.receive("query")
    assert third.instance not in {first.instance, second.instance}
    stream.answer(third)
    sequence = stream.await_("answered").committed_sequence
    stream.send(correction={"name": third.name, "label": {"class_name": "x"}, "comment": "looked again"})
    assert stream.await_("corrected").committed_sequence == sequence + 1
    stream.send(undo={"name": third.name})
    assert stream.await_("undone").committed_sequence == sequence + 2


def test_a_heartbeat_keeps_every_lease(api: Any, open_stream: Any) -> None:
    """Each then ends later than it did; nobody must be faster than a short lease for that to be seen."""
    stream = open_stream("s-beat", credits=2, lease_duration={"seconds": 60})
    names = {stream.receive("query").name for _ in range(2)}

    def ends() -> dict[str, int]:
        request = query_pb2.ListQueriesRequest(
            model="models/s-beat", states=[query_pb2.QUERY_STATE_LEASED], page_size=10
        )
        held = api.queries.ListQueries(request).queries
        return {query.name: query.lease_expire_time.ToNanoseconds() for query in held}

    before, second, until = ends(), 1_000_000_000, time.monotonic() + 30
    assert set(before) == names
    while not all(end > before[name] + second for name, end in ends().items()):
        assert time.monotonic() < until
        stream.send(heartbeat=True)
    assert set(ends()) == names


def test_deleted_model_ends_the_stream(api: Any, tools: Any, open_stream: Any) -> None:
    stream = open_stream("s-gone", credits=1)
    stream.receive("query")
    api.models.DeleteModel(model_pb2.DeleteModelRequest(name="models/s-gone"))
    stream.send(credits=1)
    with tools.refused(grpc.StatusCode.NOT_FOUND, "s-gone"):
        list(stream.call)
