"""A call that ends, however it does, is seen to have ended; and who leaves a loop waits for nobody who is away."""

import asyncio
import queue
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from quercus.client import Client, Lease, QuercusError, Query, Tree, Unavailable, aio
from quercus.client.concurrency import AsyncBidirectionalCall, BidirectionalCall
from quercus.client.query_calls import read_event
from quercus.client.sync import queries
from quercus.v1 import query_pb2, tree_pb2

LATER = 99
"""A value of an enum that only a later server knows."""
QUERY = Query.from_message(query_pb2.Query(name="models/m/queries/1"))


class Away(grpc.RpcError):
    """No server is there."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        return "away"

    def trailing_metadata(self) -> tuple[()]:
        return ()


class Responses:
    """A call with one response."""

    is_cancelled = False

    def __iter__(self) -> Any:
        yield "response"

    async def __aiter__(self) -> Any:
        yield "response"

    def cancel(self) -> None:
        self.is_cancelled = True


def refuse(events: "queue.SimpleQueue[Any]", event: Any) -> None:
    if event == "response":
        raise ValueError("no such name")
    events.put(event)


def test_a_reader_that_fails_says_that_the_call_ended() -> None:
    call, events = Responses(), queue.SimpleQueue[Any]()
    BidirectionalCall(lambda _: call, lambda event: refuse(events, event), "reader")
    ended = events.get(timeout=10)
    assert isinstance(ended, QuercusError)
    assert "no such name" in str(ended)
    assert call.is_cancelled


def test_a_task_that_fails_says_that_the_call_ended() -> None:
    call, events = Responses(), queue.SimpleQueue[Any]()

    async def run() -> None:
        await AsyncBidirectionalCall(lambda: call, lambda event: refuse(events, event), "reader")._reader

    asyncio.run(run())
    ended = events.get(timeout=10)
    assert isinstance(ended, QuercusError)
    assert call.is_cancelled


class CutOff:
    """A call that ended while a request was written, as grpc.aio describes it."""

    async def __aiter__(self) -> Any:
        nothing = grpc.aio.Metadata()
        raise grpc.aio.AioRpcError(grpc.StatusCode.INTERNAL, nothing, nothing, "Internal error from Core")
        yield


def test_a_call_that_ends_while_a_request_is_written_is_no_fault_of_the_server() -> None:
    ended: list[Any] = []

    async def run() -> None:
        await AsyncBidirectionalCall(CutOff, ended.append, "reader")._reader

    asyncio.run(run())
    assert [(type(each), str(each)) for each in ended] == [
        (Unavailable, "the call ended while a request was written")
    ]


def test_words_of_a_later_server_have_a_name() -> None:
    assert read_event(query_pb2.StreamQueriesResponse(idle=LATER), {}) == "nothing_to_ask"  # type: ignore[arg-type]
    lease = query_pb2.LeaseQueriesResponse(idle=LATER)  # type: ignore[arg-type]
    assert Lease.from_message(lease).idle == "nothing_to_ask"
    assert Query.from_message(query_pb2.Query(name="models/m/queries/1", state=LATER)).state == "unspecified"  # type: ignore[arg-type]
    leaf = tree_pb2.Nodes(
        parents=[-1], branches=[0], attributes=[-1], class_indices=[0], counts=[1], undecided=[False]
    )
    leaf.MergeFrom(
        tree_pb2.Nodes(theta=[1], belief=[1], plausibility=[1], stops=[LATER], interval_counts=[0])
    )  # type: ignore[list-item]
    tree = tree_pb2.Tree(name="models/m/trees/1", classes=["a"], nodes=leaf)
    assert Tree.from_message(tree).root.stop == "unspecified"


def test_who_leaves_a_loop_during_an_outage_tries_once(monkeypatch: pytest.MonkeyPatch) -> None:
    deadlines: list[float] = []

    def away(_: Any, timeout: float) -> None:
        deadlines.append(timeout)
        raise Away

    with Client("127.0.0.1:1", outage_s=0.5) as client:
        client._outage.reached = True
        client._methods[query_pb2.ReturnQueryRequest.DESCRIPTOR] = away
        client._give_back(QUERY)

    async def run() -> None:
        async with aio.Client("127.0.0.1:1", outage_s=0.5) as client:
            client._outage.reached = True
            client._methods[query_pb2.ReturnQueryRequest.DESCRIPTOR] = away
            await client._give_back(QUERY)

    asyncio.run(run())
    assert len(deadlines) == 2
    assert max(deadlines) < 10


class Line(queries.QueryLine):
    """One query, then what ends the stream."""

    end: QuercusError | str

    def open_call(self, first: Any) -> None:
        self.events: list[Query | str | QuercusError] = [QUERY, self.end]
        self.closed = False

    def next_event(self, wait_s: float) -> Query | str | QuercusError:
        return self.events.pop(0)

    def give_back(self, query: Query) -> None:
        pass

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("end", ["share_spent", QuercusError("broken")])
def test_a_stream_without_with_is_closed_at_its_end(
    monkeypatch: pytest.MonkeyPatch, end: QuercusError | str
) -> None:
    monkeypatch.setattr(queries, "QueryLine", Line)
    monkeypatch.setattr(Line, "end", end, raising=False)
    with Client("127.0.0.1:1") as client:
        stream = client.stream_queries("m", "ann")
        assert next(stream) is QUERY
        line = stream._line
        with pytest.raises((StopIteration, QuercusError)):
            next(stream)
        assert isinstance(line, Line)
        assert line.closed


def test_a_heart_stops_when_the_call_has_ended() -> None:
    with Client("127.0.0.1:1") as client:
        line = queries.QueryLine(client, 1.0)
        written: list[Any] = []
        line._call = SimpleNamespace(write=written.append)  # type: ignore[assignment]
        assert line._send_heartbeat()
        line._take_response(None)
        assert not line._send_heartbeat()
        assert len(written) == 1
