"""Several answers, some taken back, on a live server: the store checks clean, and its backup can be restored."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from quercus.storage import file_url
from quercus.storage.admin.backup import back_up, restore_backup
from quercus.storage.admin.verify import verify_store
from quercus.v1 import instance_pb2, query_pb2, values_pb2

State = query_pb2.QueryState


class Several:
    """A model of table T that wants two answers a query.

    Parameters
    ----------
    live : the server.
    tools : of the tests.
    model : its name.
    """

    def __init__(self, live: Any, tools: Any, model: str) -> None:
        self.api = live.api
        self.model = model
        self.api.create(model, budget=12)
        self.api.push(tools.table_t(model))
        self.api.grown(model, 21)
        policy = query_pb2.LabellingPolicy(answers_per_query=2, max_conflict=1.0)
        self.api.queries.UpdateLabellingPolicy(
            query_pb2.UpdateLabellingPolicyRequest(model=f"models/{model}", policy=policy)
        )

    def lease(self, labeller: str) -> query_pb2.Query:
        (query,) = self.api.lease(self.model, labeller).queries
        return query

    def find(self, query: query_pb2.Query) -> query_pb2.Query:
        request = query_pb2.ListQueriesRequest(model=f"models/{self.model}")
        (found,) = (each for each in self.api.queries.ListQueries(request).queries if each.name == query.name)
        return found

    def say(self, labeller: str, name: str = "s") -> query_pb2.Query:
        query = self.lease(labeller)
        self.api.answer(query, label=values_pb2.Label(class_name=name), reliability=0.9)
        return query

    def undo(self, query: query_pb2.Query, labeller: str) -> int:
        request = query_pb2.UndoAnswerRequest(name=query.name, labeller=labeller)
        return self.api.queries.UndoAnswer(request).committed_sequence

    def correct(self, query: query_pb2.Query, labeller: str, name: str) -> int:
        request = query_pb2.CorrectAnswerRequest(
            name=query.name, labeller=labeller, label=values_pb2.Label(class_name=name), reliability=0.9
        )
        return self.api.queries.CorrectAnswer(request).committed_sequence

    def stands(self, query: query_pb2.Query) -> tuple[str, int]:
        found = self.find(query)
        return State.Name(found.state).removeprefix("QUERY_STATE_"), found.answers


@pytest.fixture(scope="module")
def server(start_for_all: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One server for all tests; when it has ended, its store comes back from a backup as it was."""
    folder = tmp_path_factory.mktemp("undo")
    live = start_for_all(folder / "store.db")
    yield live
    url, copy = file_url(folder / "store.db"), folder / "copy.db"
    back_up(url, copy)
    live.close()
    restore_backup(copy, file_url(folder / "restored.db"))
    restore_backup(copy, url, force=True)
    assert verify_store(url) == []


_numbers = itertools.count()


@pytest.fixture
def several(server: Any, tools: Any) -> Iterator[Several]:
    """Yields the model; afterwards the store must check clean, with the answers of all tests until then."""
    model = Several(server, tools, f"m{next(_numbers)}")
    yield model
    assert verify_store(server.server.core.store.url) == []


def test_one_of_two_answers_is_taken_back(several: Several) -> None:
    query = several.say("ann", "x")
    assert several.say("bob").name == query.name
    assert several.stands(query) == ("ANSWERED", 2)
    done = several.undo(query, "ann")
    assert several.stands(query) == ("ANSWERED", 1)  # what bob said holds
    assert several.undo(query, "ann") == done
    several.undo(query, "bob")
    assert several.stands(query) == ("WITHDRAWN", 0)


@pytest.mark.slow
def test_who_took_an_answer_back_gives_another_and_overrules_nobody(several: Several) -> None:
    query = several.say("ann", "x")
    several.say("bob")
    several.undo(query, "ann")
    done = several.correct(query, "ann", "s")
    assert several.correct(query, "ann", "s") == done
    assert several.stands(query) == ("ANSWERED", 2)
    found = several.find(query)
    # the source said .8 and .3 of o and s, each answer leaves .1 for o: both count, not the last alone
    assert found.contour.plausibilities[0] == pytest.approx(0.8 * 0.1 * 0.1 / 0.3)


def test_taken_back_before_the_second_answer_it_may_be_answered_by_both(several: Several) -> None:
    query = several.say("ann", "x")
    several.undo(query, "ann")
    assert several.stands(query) == ("OPEN", 0)
    again = several.say("ann")  # else two labellers alone could never settle it
    assert again.name == query.name
    assert several.stands(query) == ("OPEN", 1)
    several.say("bob")
    assert several.stands(query) == ("ANSWERED", 2)
    assert {several.undo(query, "bob"), several.undo(query, "ann")}
    last = several.undo(query, "ann")
    assert several.undo(query, "ann") == last  # sent again after all was taken back
    with pytest.raises(grpc.RpcError, match="not answered"):
        several.correct(query, "ann", "s")


@pytest.mark.slow
def test_refused_after_an_answer_was_taken_back(several: Several) -> None:
    query = several.say("ann")
    several.undo(query, "ann")
    mine = several.lease("bob")
    assert mine.name == query.name
    several.api.refuse(mine)
    assert several.stands(query) == ("REFUSED", 0)
    several.undo(query, "bob")
    assert several.stands(query) == ("WITHDRAWN", 0)


def test_a_refusal_after_an_answer_that_was_taken_back_is_taken_back_as_well(several: Several) -> None:
    query = several.say("ann")
    several.undo(query, "ann")
    again = several.lease("ann")
    assert again.name == query.name
    several.api.refuse(again)
    assert several.stands(query)[0] == "REFUSED"
    done = several.undo(query, "ann")
    assert several.stands(query)[0] == "WITHDRAWN"
    assert several.undo(query, "ann") == done


def test_the_one_answer_that_is_left_counts_as_it_stands(several: Several) -> None:
    """As it does where anything was stated of the instance."""
    query = several.lease("ann")
    several.api.answer(query, label=values_pb2.Label(class_name="s"))
    assert several.say("bob", "x").name == query.name
    several.undo(query, "bob")
    request = instance_pb2.GetInstanceRequest(name=query.instance)
    known = several.api.instances.GetInstance(request).contour.plausibilities
    assert list(known) == [0, 1, 0]
