"""Two servers of one store are asked to change the same thing at once: both changes count, and bounds hold."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import numpy as np
import psycopg
import pytest

from quercus.belief.codec import encode_sets
from quercus.storage import AgendaEntry, Store
from quercus.v1 import instance_pb2, model_pb2, query_pb2, values_pb2

WAIT_S = 60.0
MAX_MODELS = 2


class TwoServers:
    """Two servers on one PostgreSQL store, without growers.

    Parameters
    ----------
    start : starts a server in this process.
    url : of the store.
    """

    def __init__(self, start: Callable[..., Any], url: str) -> None:
        self.url = url
        self.servers = [start(url, grower=False, max_models=MAX_MODELS) for _ in range(2)]
        self.apis = [live.api for live in self.servers]

    def meanwhile(self, held: str, *calls: Callable[[], Any]) -> list[Any]:
        """Return the results or errors of calls that all wait for the rows that a statement holds."""
        with psycopg.connect(self.url) as holder, ThreadPoolExecutor(len(calls)) as pool:
            assert holder.execute(held).fetchall()
            futures = [pool.submit(_outcome, call) for call in calls]
            self._wait_for_waiters(len(calls))
            holder.rollback()
            return [future.result(WAIT_S) for future in futures]

    def _wait_for_waiters(self, count: int) -> None:
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        deadline = time.monotonic() + WAIT_S
        with psycopg.connect(self.url, autocommit=True) as look:
            while look.execute(f"{waiting} AND datname = current_database()").fetchone() != (count,):
                assert time.monotonic() < deadline, "the calls do not come to the rows that are held"
                time.sleep(0.005)


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except grpc.RpcError as error:
        return error


@pytest.fixture
def two(postgres_url: str, start_live: Callable[..., Any]) -> TwoServers:
    return TwoServers(start_live, postgres_url)


@contextmanager
def asking(two: TwoServers) -> Iterator[query_pb2.Query]:
    """A query that ann and bob have answered, each with the class s."""
    first = two.apis[0]
    first.create("m", budget=9)
    policy = query_pb2.LabellingPolicy(answers_per_query=2, max_conflict=1.0)
    first.queries.UpdateLabellingPolicy(
        query_pb2.UpdateLabellingPolicyRequest(model="models/m", policy=policy)
    )
    with Store.open(two.url) as store:
        store.append_instances("m", ["row"], np.zeros((1, 2)), encode_sets(np.full(1, 7, np.uint64)))
        store.publish("m", as_of=1, snapshot=b"", agenda=[AgendaEntry(1, b"", b"")])
        for labeller in ("ann", "bob"):
            request = query_pb2.LeaseQueriesRequest(model="models/m", labeller=labeller)
            (query,) = first.queries.LeaseQueries(request, timeout=WAIT_S).queries
            first.answer(query, reliability=0.9)
        yield query


def contour(api: Any) -> list[float]:
    request = instance_pb2.GetInstanceRequest(name="models/m/instances/row")
    return list(api.instances.GetInstance(request, timeout=WAIT_S).contour.plausibilities)


def correction(api: Any, query: query_pb2.Query, labeller: str, name: str) -> Callable[[], Any]:
    request = query_pb2.CorrectAnswerRequest(
        name=query.name, labeller=labeller, label=values_pb2.Label(class_name=name), reliability=0.9
    )
    return lambda: api.queries.CorrectAnswer(request, timeout=WAIT_S)


def test_two_labellers_correct_their_answers_to_a_query(two: TwoServers) -> None:
    with asking(two) as query:
        done = two.meanwhile(
            "SELECT id FROM model WHERE name = 'm' FOR UPDATE",
            correction(two.apis[0], query, "ann", "x"),
            correction(two.apis[1], query, "bob", "x"),
        )
        assert all(isinstance(each, query_pb2.CorrectAnswerResponse) for each in done), done
        # both say x by now: o and s are left what two answers of reliability .9 leave of them
        assert contour(two.apis[0]) == pytest.approx([0.01, 0.01, 1.0])


def test_two_labellers_take_their_answers_to_a_query_back(two: TwoServers) -> None:
    with asking(two) as query:
        done = two.meanwhile(
            "SELECT id FROM model WHERE name = 'm' FOR UPDATE",
            lambda: two.apis[0].queries.UndoAnswer(
                query_pb2.UndoAnswerRequest(name=query.name, labeller="ann"), timeout=WAIT_S
            ),
            lambda: two.apis[1].queries.UndoAnswer(
                query_pb2.UndoAnswerRequest(name=query.name, labeller="bob"), timeout=WAIT_S
            ),
        )
        assert all(isinstance(each, query_pb2.UndoAnswerResponse) for each in done), done
        assert contour(two.apis[0]) == [1.0, 1.0, 1.0]  # nobody says anything any more
        assert two.apis[0].get("m").queries_open == 0


def updated(api: Any, **fields: Any) -> Callable[[], Any]:
    request = model_pb2.UpdateModelRequest(name="models/m", specification=model_pb2.Specification(**fields))
    request.update_mask.paths.extend(fields)
    return lambda: api.models.UpdateModel(request, timeout=WAIT_S)


def test_both_changes_of_a_model_count(two: TwoServers) -> None:
    two.apis[0].create("m", budget=9, alpha=0.9)
    done = two.meanwhile(
        "SELECT id FROM model WHERE name = 'm' FOR UPDATE",
        updated(two.apis[0], budget=30),
        updated(two.apis[1], alpha=0.5),
    )
    assert all(isinstance(each, model_pb2.Model) for each in done), done
    specification = two.apis[0].get("m").specification
    assert (specification.budget, specification.alpha) == (30, 0.5)


def policy_changed(api: Any, **fields: Any) -> Callable[[], Any]:
    policy = query_pb2.LabellingPolicy(**fields)
    request = query_pb2.UpdateLabellingPolicyRequest(model="models/m", policy=policy)
    request.update_mask.paths.extend(fields)
    return lambda: api.queries.UpdateLabellingPolicy(request, timeout=WAIT_S)


def test_both_changes_of_a_policy_count(two: TwoServers) -> None:
    two.apis[0].create("m")
    policy_changed(two.apis[0], per_hour=9, tags=["urgent"])()
    done = two.meanwhile(
        "SELECT id FROM model WHERE name = 'm' FOR UPDATE",
        policy_changed(two.apis[0], answers_per_query=3),
        policy_changed(two.apis[1], max_held=7),
    )
    assert all(isinstance(each, query_pb2.LabellingPolicy) for each in done), done
    request = query_pb2.GetLabellingPolicyRequest(model="models/m")
    policy = two.apis[0].queries.GetLabellingPolicy(request)
    assert (policy.answers_per_query, policy.max_held, policy.per_hour) == (3, 7, 9)
    assert policy.tags == ["urgent"]
    with pytest.raises(grpc.RpcError) as caught:
        two.apis[0].queries.UpdateLabellingPolicy(
            query_pb2.UpdateLabellingPolicyRequest(
                model="models/m", update_mask={"paths": ["per_hour", "mood"]}
            ),
            timeout=WAIT_S,
        )
    assert "update_mask.paths[1]: is 'mood', must be one of answers_per_query" in caught.value.details()


def test_two_who_create_the_last_model_that_there_may_be(two: TwoServers) -> None:
    two.apis[0].create("m")
    done = two.meanwhile(
        "SELECT number FROM change_counter FOR UPDATE",
        lambda: two.apis[0].create("one"),
        lambda: two.apis[1].create("other"),
    )
    (refused,) = (each for each in done if isinstance(each, grpc.RpcError))
    assert refused.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "max_models" in refused.details()
    assert len(two.apis[0].models.ListModels(model_pb2.ListModelsRequest()).models) == MAX_MODELS
