"""Leases that end though their holder goes on: by an operator, by a bound, by a token that counts no more."""

import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from support.command_line import quercus
from support.published import published_model
from support.waiting import until

from quercus.client import Client, FailedPrecondition, Nominal, Query, Unauthenticated
from quercus.server.gate import access
from quercus.storage import Step, Store, file_url
from quercus.storage.admin.verify import verify_store
from quercus.storage.queries import leases
from quercus.v1 import query_pb2

DEADLINE_S = 60.0


def release(api: Any, query: query_pb2.Query, **fields: Any) -> None:
    api.queries.ReleaseLease(query_pb2.ReleaseLeaseRequest(name=query.name, **fields))


def test_an_operator_ends_leases(start_live: Callable[..., Any], tools: Any, tmp_path: Path) -> None:
    live = start_live(tmp_path / "store.db")
    api = live.api
    api.create("m", budget=12)
    api.push(tools.table_t("m"))
    api.grown("m", 21)
    hour = Duration(seconds=3600)  # a busy machine takes its time
    first, second, third = api.lease("m", "ann", count=3, lease_duration=hour).queries
    with tools.refused(grpc.StatusCode.FAILED_PRECONDITION, "not leased to bob, but to ann"):
        release(api, first, labeller="bob")
    release(api, first, labeller="ann", comment="went home")
    with tools.refused(grpc.StatusCode.FAILED_PRECONDITION, "nobody holds it"):
        release(api, first)
    with tools.refused(grpc.StatusCode.FAILED_PRECONDITION, "an operator took it back"):
        api.answer(first)
    request = query_pb2.ListQueryHistoryRequest(name=first.name)
    step = api.queries.ListQueryHistory(request).steps[-1]
    assert (step.kind, step.state) == (query_pb2.QUERY_STEP_KIND_EVICTED, query_pb2.QUERY_STATE_OPEN)
    assert (step.labeller, step.why) == ("ann", "by an operator: went home")
    (other,) = api.lease("m", "bob", lease_duration=hour).queries
    assert other.name == first.name  # somebody else has it now
    done = quercus("labellers", "evict", "ann", "--server", live.server.address)
    assert (done.returncode, done.stdout.strip()) == (0, "ended 2 leases of ann"), done.stderr
    listed = quercus("labellers", "m", "--server", live.server.address)
    assert "ann" in listed.stdout, listed.stderr
    states = [query_pb2.QUERY_STATE_LEASED]
    held = api.queries.ListQueries(query_pb2.ListQueriesRequest(model="models/m", states=states)).queries
    assert [(each.name, each.labeller) for each in held] == [(first.name, "bob")]
    assert {second.name, third.name} <= {each.name for each in api.lease("m", "cleo", count=9).queries}
    assert verify_store(file_url(tmp_path / "store.db")) == []


@pytest.mark.slow
def test_extensions_of_a_lease_end(
    start_live: Callable[..., Any], tools: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though heartbeats go on, the query comes back, and the stream is given another at once."""
    longest_s, lease_s = 3.0, 2.9
    monkeypatch.setattr(leases, "LONGEST_HOLD_S", longest_s)
    api = start_live(tmp_path / "store.db").api
    api.create("m", budget=12)
    api.push(tools.table_t("m"))
    api.grown("m", 21)
    lease = Duration(nanos=int(lease_s * 1e9) % 10**9, seconds=int(lease_s))
    (mine,) = api.lease("m", "bob", lease_duration=lease).queries
    hour = query_pb2.ExtendLeaseRequest(
        name=mine.name, lease_token=mine.lease_token, lease_duration=Duration(seconds=3600)
    )
    api.queries.ExtendLease(hour)
    first = query_pb2.StreamQueriesRequest(model="models/m", labeller="ann", credits=1, lease_duration=lease)
    ended = threading.Event()

    def beat() -> Iterator[query_pb2.StreamQueriesRequest]:
        yield first
        while not ended.wait(0.1):
            yield query_pb2.StreamQueriesRequest(heartbeat=True)

    stream = api.queries.StreamQueries(beat(), timeout=DEADLINE_S)
    given = [response.query.name for response in islice((r for r in stream if r.HasField("query")), 2)]
    ended.set()
    with tools.refused(grpc.StatusCode.FAILED_PRECONDITION, "it was yours until "):
        api.queries.ExtendLease(hour)
    request = query_pb2.ListQueryHistoryRequest(name="models/m")
    steps = api.queries.ListQueryHistory(request).steps
    leased = [step for step in steps if step.kind == query_pb2.QUERY_STEP_KIND_LEASED]
    over = {step.query: step for step in steps if step.kind == query_pb2.QUERY_STEP_KIND_EXPIRED}
    assert [step.query for step in leased] == [mine.name, *given]
    for step in leased[:2]:
        assert over[step.query].until - step.clock == pytest.approx(longest_s)
    assert leased[2].clock < over[given[0]].until + 10 * lease_s


@pytest.mark.slow
def test_a_revoked_token_gives_back_what_it_held(
    start_live: Callable[..., Any], tools: Any, tmp_path: Path
) -> None:
    """Revoked in another process; no call of anybody makes the server look."""
    path = tmp_path / "store.db"
    live = start_live(path, access="tokens")
    store: Store = live.server.core.store
    issued = {name: access.issue_token(store.access, name, [role]) for name, role in ROLES.items()}
    with Client(live.server.address, token=issued["olga"][0]) as olga:
        attributes = [Nominal("X", ("a", "b", "c")), Nominal("Y", ("d", "e"))]
        olga.create_model(
            "m", published_model(attributes, ("o", "s", "x"), alpha=0.9, budget=9, strategy="published")
        )
        rows = [["abc"[int(x)], "de"[int(y)]] for x, y, *_ in tools.rows_t]
        olga.push("m", rows)
        olga.wait_grown("m")
    with Client(live.server.address, token=issued["ann"][0]) as ann:
        held = [ann.lease("m", "ann", lease_s=3600, wait_s=30).queries[0] for _ in range(2)]
        done = quercus("tokens", "revoke", issued["ann"][1].id, "--store", str(path))
        assert done.returncode == 0, done.stderr
        until(lambda: not store.get_model("m").queries_leased, "the leases to end")
        with pytest.raises(Unauthenticated, match="was revoked"):
            answer_on(ann, held[0])
    last = [row for row in store.query_history("m") if row.step is Step.EVICTED]
    assert [(row.labeller, row.why) for row in last] == [("ann", "the access token of ann was revoked")] * 2
    with Client(live.server.address, token=issued["bob"][0]) as bob:
        again = [bob.lease("m", "bob", wait_s=30).queries[0] for _ in range(2)]
        assert {query.name for query in again} == {query.name for query in held}
    assert verify_store(file_url(path)) == []


def answer_on(client: Client, query: Query) -> None:
    """Answer until the token counts no more, which is within a second of the end of the lease."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        with pytest.raises(FailedPrecondition, match="an operator took it back"):
            client.answer(query, "s")
        assert time.monotonic() < deadline


ROLES = {"olga": "operator", "ann": "labeller", "bob": "labeller"}
