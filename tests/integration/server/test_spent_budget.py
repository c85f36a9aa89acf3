"""The budget is spent while queries want more answers: they are settled with those that they have."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.histories import check_history

from quercus.belief.codec import encode_sets
from quercus.storage import AgendaEntry, EventKind, QueryState, Step, Store, file_url
from quercus.storage.admin.verify import verify_store
from quercus.v1 import instance_pb2, query_pb2, values_pb2

INSTANCES = ("a", "b", "c")


class Crowd:
    """A model that wants three answers to each of three queries; a server without a grower.

    Parameters
    ----------
    live : the server.
    budget : of the model.
    """

    def __init__(self, live: Any, budget: int) -> None:
        self.api, self.store = live.api, live.server.core.store
        self.api.create("m", budget=budget)
        policy = query_pb2.LabellingPolicy(answers_per_query=3, max_conflict=1.0)
        self.api.queries.UpdateLabellingPolicy(
            query_pb2.UpdateLabellingPolicyRequest(model="models/m", policy=policy)
        )
        labels = encode_sets(np.full(len(INSTANCES), 7, np.uint64))
        self.store.append_instances("m", INSTANCES, np.zeros((len(INSTANCES), 2)), labels)
        entries = [AgendaEntry(i + 1, b"", b"") for i in range(len(INSTANCES))]
        self.store.publish("m", as_of=len(INSTANCES), snapshot=b"", agenda=entries)

    def take(self, labeller: str, limit: int = 1) -> list[query_pb2.Query]:
        request = query_pb2.LeaseQueriesRequest(model="models/m", labeller=labeller, max_queries=limit)
        return list(self.api.queries.LeaseQueries(request, timeout=60).queries)

    def say(self, query: query_pb2.Query, name: str = "s") -> query_pb2.AnswerQueryResponse:
        return self.api.answer(query, label=values_pb2.Label(class_name=name), reliability=0.8)

    def states(self) -> list[tuple[str, int]]:
        return [(each.state.name, each.answers) for each in self.store.list_queries("m")]


@pytest.fixture(params=["sqlite", "postgres"])
def crowd(
    request: pytest.FixtureRequest, start_live: Callable[..., Any], tmp_path: Any
) -> Callable[[int], Crowd]:
    sqlite = request.param == "sqlite"
    url = file_url(tmp_path / "store.db") if sqlite else request.getfixturevalue("postgres_url")
    return lambda budget: Crowd(start_live(url, grower=False), budget)


def answered_events(store: Store) -> list[tuple[int, str]]:
    return [
        (each.query or 0, each.author) for each in store.read_events("m") if each.kind is EventKind.ANSWER
    ]


def take_again(asked: Crowd) -> tuple[query_pb2.Query, query_pb2.Query]:
    """Ann answers two queries, and bob takes the first of them. Return his query and the second one."""
    first, second = asked.take("ann", 2)
    asked.say(first)
    asked.say(second)
    (again,) = asked.take("bob")
    assert again.name == first.name
    return again, second


def test_the_last_answer_settles_all_queries_that_have_some(crowd: Callable[[int], Crowd]) -> None:
    asked = crowd(4)
    again, second = take_again(asked)
    assert asked.say(again, "x").wants_more
    (last,) = asked.take("cleo")
    assert last.name == again.name
    settled = asked.say(last)
    assert not settled.wants_more
    assert asked.states() == [("ANSWERED", 3), ("ANSWERED", 1), ("OPEN", 0)]
    assert answered_events(asked.store) == [(1, "ann + bob + cleo"), (2, "ann")]
    check(asked)
    # what was settled may be corrected as any other answer
    asked.api.queries.UndoAnswer(query_pb2.UndoAnswerRequest(name=second.name, labeller="ann"))
    assert asked.states()[1] == ("WITHDRAWN", 0)


def check(asked: Crowd) -> None:
    """The same commit settled them, the history says so, and the store holds together."""
    store = asked.store
    check_history(store.query_history("m"))
    steps = [row for row in store.query_history("m") if row.step is Step.SETTLED]
    assert [(row.query, row.state, row.why) for row in steps] == [
        (2, QueryState.ANSWERED, "the budget is spent")
    ]
    model = store.get_model("m")
    assert model.sequence_committed == steps[-1].sequence == store.list_queries("m")[1].sequence
    assert model.queries_answered == model.budget
    assert verify_store(store.url) == []


def test_what_was_stated_counts_with_the_answers(crowd: Callable[[int], Crowd]) -> None:
    asked = crowd(2)
    (first,) = asked.take("ann")
    asked.say(first)
    said = instance_pb2.Statement(instance_id="a", label=values_pb2.Label(class_name="o"))
    request = instance_pb2.StateEvidenceRequest(
        model="models/m", labeller="dan", statements=[said], request_id="r"
    )
    asked.api.instances.StateEvidence(request)
    (second,) = asked.take("ann")
    asked.say(second)
    assert asked.states() == [("ANSWERED", 1), ("ANSWERED", 1), ("OPEN", 0)]
    joint = list(asked.store.read_events("m"))[-1]
    assert (joint.kind, joint.instance, joint.author) == (EventKind.CORRECTION, 1, "ann + dan")
    assert verify_store(asked.store.url) == []
