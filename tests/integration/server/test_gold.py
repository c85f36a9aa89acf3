"""Gold questions on a live server with a grower: marked, mixed in, scored; and what no labelling token finds out."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.http_calls import Http, free_port

from quercus.client import (
    Client,
    FailedPrecondition,
    InvalidArgument,
    Nominal,
    NotFound,
    Numeric,
    PermissionDenied,
    Specification,
)
from quercus.client.messages import filled
from quercus.server.gate import access
from quercus.server.transfer.stored_contents import StoredModel
from quercus.specification.conditions import condition_of
from quercus.storage import AgendaEntry
from quercus.v1 import query_pb2

ROLES = ("operator", "reader", "labeller", "corrector")
ROWS, MARKED = 120, 30
CLASSES = ["oak", "ash"]


def class_of(k: int) -> str:
    return CLASSES[(k % 7 + k // 7) % 2]


@pytest.fixture
def callers(start_live: Callable[..., Any], tmp_path: Path) -> Iterator[dict[str, Client]]:
    """A client for each role; of 120 rows 30 are gold questions, which are to be half of the queries."""
    live = start_live(tmp_path / "store.db", access="tokens")
    tokens = live.server.core.store.access
    clients = {
        role: Client(live.server.address, token=access.issue_token(tokens, f"the-{role}", [role])[0])
        for role in ROLES
    }
    operator = clients["operator"]
    attributes = [Nominal("X", [*"abcdefg"]), Numeric("Y")]
    operator.create_model("m", Specification(attributes, CLASSES, budget=400))
    rows = [["abcdefg"[k % 7], float(k // 7)] for k in range(ROWS)]
    operator.push("m", rows, ids=[f"r{k}" for k in range(ROWS)])
    operator.mark_gold("m", {f"r{k}": class_of(k) for k in range(MARKED)}, comment="by the herbarium")
    operator.set_labelling_policy("m", replace(operator.labelling_policy("m"), gold_share=0.5))
    yield clients
    for each in clients.values():
        each.close()


def is_gold(query: Any) -> bool:
    return int(query.instance[1:]) < MARKED


def ask(client: Client, count: int, who: str, say: Callable[[int], str]) -> list[tuple[Any, Any]]:
    """Answer so many queries; return each with the report."""
    done = []
    while len(done) < count:
        lease = client.lease("m", who, wait_s=20.0)
        assert lease.queries, lease.idle
        (query,) = lease.queries
        done.append((query, client.answer(query, say(int(query.instance[1:])))))
    return done


def test_gold_questions_are_asked_scored_and_learned_from_by_nothing(callers: dict[str, Client]) -> None:
    operator, labeller, reader = callers["operator"], callers["labeller"], callers["reader"]
    done = ask(labeller, 40, "the-labeller", lambda k: class_of(k) if k % 5 else CLASSES[0])
    gold = [query for query, _ in done if is_gold(query)]
    assert 8 <= len(gold) <= 32  # four deviations
    assert len({each.instance for each in gold}) == len(gold)
    right = sum(int(each.instance[1:]) % 5 > 0 or class_of(int(each.instance[1:])) == "oak" for each in gold)
    (score,) = [each for each in reader.labellers("m") if each.name == "the-labeller"]
    assert (score.gold_answered, score.gold_right) == (len(gold), right)
    assert 0 <= score.gold_lower < right / len(gold) <= score.gold_upper <= 1
    questions = {each.instance: each for each in reader.gold_questions("m")}
    assert len(questions) == MARKED
    assert sum(each.answered for each in questions.values()) == len(gold)
    assert (questions["r1"].text, questions["r1"].labeller, questions["r1"].comment) == (
        class_of(1), "the-operator", "by the herbarium",
    )  # fmt: skip
    for each in gold:  # the row has the label of the lead
        known = operator.get_instance("m", each.instance)
        assert known.contour[CLASSES.index(class_of(int(each.instance[1:])))] == 1.0
        assert sorted(known.contour) == [0.0, 1.0]
    states = {
        each.instance: each.state for each in reader.answers("m", limit=1000) if each.kind == "answered"
    }
    assert {states[each.instance] for each in gold} == {"gold"}
    assert operator.get_model("m").queries_answered == 40

    first = gold[0]
    labeller.correct(first, class_of(int(first.instance[1:])), labeller="the-labeller")
    labeller.undo(gold[1], labeller="the-labeller")
    (score,) = [each for each in reader.labellers("m") if each.name == "the-labeller"]
    assert score.gold_answered == len(gold) - 1
    operator.unmark_gold("m", [first.instance])
    assert first.instance not in {each.instance for each in reader.gold_questions("m")}
    (score,) = [each for each in reader.labellers("m") if each.name == "the-labeller"]
    assert score.gold_answered == len(gold) - 2


def test_nothing_that_a_labelling_token_reads_tells_them_apart(callers: dict[str, Client]) -> None:
    labeller = callers["labeller"]
    done = ask(labeller, 60, "the-labeller", lambda k: CLASSES[k % 2])
    kinds: dict[bool, list[Any]] = {True: [], False: []}
    for query, report in done:
        kinds[is_gold(query)].append((query, report))
    assert min(map(len, kinds.values())) > 10
    seen = {}
    for gold, pairs in kinds.items():
        seen[gold] = {
            "contours": {query.contour for query, _ in pairs},
            "answers": {(query.answers, query.answers_wanted, query.state) for query, _ in pairs},
            "strategies": {query.reason.strategy for query, _ in pairs},
            "facts": {tuple(fact.name for fact in query.reason.facts) for query, _ in pairs},
            "has tree": {query.tree_version > 0 for query, _ in pairs},
            "place": {query.place for query, _ in pairs},
            "reports": {
                (report.conflict, report.wants_more, report.reliability, report.degree_of_conflict)
                for _, report in pairs
            },
        }
        for query, _ in pairs:  # a reason never contradicts its row
            for attribute, branch in query.reason.path:
                condition = condition_of(attribute, branch, is_nominal=attribute == "X")
                assert condition.holds(query.values[attribute]), (gold, query.reason.path, dict(query.values))
    for what, found in seen[True].items():
        assert found <= seen[False][what], what
    numbers = [query.number for query, _ in done]
    assert len(set(numbers)) == len(numbers)

    answers = list(labeller.answers("m", limit=1000))
    shown = {
        gold: {
            (each.kind, each.state, each.later is None, each.conflict, each.reliability, len(each.known))
            for each in answers
            if is_gold(each) is gold
        }
        for gold in (True, False)
    }
    assert shown[True] == shown[False] == {("answered", "counts", True, False, 1.0, 2)}
    assert all(each.class_name == each.text for each in answers)  # what the labeller said, and not what holds
    listed = list(labeller.list_queries("m"))
    assert {each.labeller for each in listed} == {"the-labeller"}  # open ones are not listed
    assert {each.state for each in listed} == {"answered"}
    by_gold = {
        gold: {max(each.contour) == 1.0 for each in listed if is_gold(each) is gold} for gold in (True, False)
    }
    assert by_gold[True] == by_gold[False]


def test_numbers_of_the_model_and_what_comes_back_tell_nothing(callers: dict[str, Client]) -> None:
    labeller, operator = callers["labeller"], callers["operator"]
    changes: dict[bool, set[Any]] = {True: set(), False: set()}
    guesses: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(24):
        lease = labeller.lease("m", "the-labeller", wait_s=20.0)
        (query,) = lease.queries
        held = labeller.get_model("m")
        assert query.tree_version == held.tree_version
        labeller.answer(query, class_of(int(query.instance[1:])))
        told = [
            (
                each.queries_open,
                each.conflicts,
                each.accuracy,
                each.average_confidence,
                each.drift,
            )
            for each in (held, labeller.get_model("m"), next(iter(labeller.models())))
        ]
        changes[is_gold(query)].update(told)
        estimate = next(fact.value for fact in query.reason.facts if fact.name == "estimate")
        guesses[is_gold(query)].append(max(estimate.theta))
    assert changes[True] == changes[False]
    assert min(map(len, guesses.values())) >= 4
    # it asked of rows of which it was least sure, and a gold question has the reason of one of the next
    assert min(guesses[True]) < 0.9
    assert operator.get_model("m").queries_open > 16


def test_a_labeller_who_may_decide_sees_no_marks(callers: dict[str, Client]) -> None:
    operator, labeller = callers["operator"], callers["labeller"]
    policy = operator.labelling_policy("m")
    operator.set_labelling_policy("m", replace(policy, corrections="anyone"), ["corrections"])
    ask(labeller, 12, "the-labeller", lambda k: CLASSES[0])
    assert not list(labeller.disputes("m"))
    answered = [each.instance for each in labeller.answers("m", limit=100)]
    assert any(int(each[1:]) < MARKED for each in answered)
    for row in answered:
        (own,) = labeller.get_dispute("m", row).labels
        assert (own.labeller, own.kind, own.state) == ("the-labeller", "answered", "counts")
    unasked = next(f"r{k}" for k in range(MARKED) if f"r{k}" not in answered)
    found = labeller.get_dispute("m", unasked)
    assert not found.labels
    assert set(found.known.values()) == {1.0}
    seen = operator.get_dispute("m", unasked)
    assert [each.kind for each in seen.labels][-1] == "marked"


def test_who_may_mark_and_what_cannot_be(callers: dict[str, Client]) -> None:
    operator = callers["operator"]
    for role in ("labeller", "reader", "corrector"):
        with pytest.raises(PermissionDenied):
            callers[role].mark_gold("m", {"r50": "oak"})
    with pytest.raises(PermissionDenied):
        callers["labeller"].gold_questions("m")
    assert callers["corrector"].gold_questions("m")
    with pytest.raises(NotFound, match="m/nowhere"):
        operator.mark_gold("m", {"r50": "oak", "nowhere": "oak"})
    with pytest.raises(InvalidArgument, match="labels"):
        operator.mark_gold("m", {})
    with pytest.raises(InvalidArgument, match="beech"):
        operator.mark_gold("m", {"r50": "beech"})
    with pytest.raises(FailedPrecondition, match="r50 is not a gold question"):
        operator.unmark_gold("m", ["r50"])
    with pytest.raises(FailedPrecondition, match="r50 says nothing"):
        operator.mark_gold("m", {"r50": {"oak": 1.0, "ash": 1.0}})
    assert operator.mark_gold("m", {"r1": class_of(1)}).known == 1
    request = filled(
        query_pb2.MarkGoldRequest, model="models/m",
        labels=[query_pb2.GoldLabel(instance_id="r1")],
    )  # fmt: skip
    with pytest.raises(InvalidArgument, match=r"labels\[0\]\.label"):
        operator._call(request)


def test_the_share_is_bounded_and_shown(callers: dict[str, Client]) -> None:
    operator = callers["operator"]
    policy = operator.labelling_policy("m")
    assert policy.gold_share == 0.5
    with pytest.raises(InvalidArgument, match=r"gold_share.*must lie in \[0, 1\]"):
        operator.set_labelling_policy("m", replace(policy, gold_share=1.5))
    operator.set_labelling_policy("m", replace(policy, gold_share=0.0))
    done = ask(callers["labeller"], 15, "the-labeller", class_of)
    assert not any(is_gold(query) for query, _ in done)


def test_labellers_of_a_copy_have_their_scores(start_live: Callable[..., Any], tmp_path: Path) -> None:
    live = start_live(tmp_path / "store.db", grower=False)
    store = live.server.core.store
    with Client(live.server.address) as client:
        client.create_model("m", Specification([Nominal("X", ["a"])], CLASSES, budget=9))
        client.push("m", [["a"]] * 4, ids=["r0", "r1", "r2", "r3"])
        client.mark_gold("m", {"r0": "oak"}, labeller="lea")
        client.set_labelling_policy("m", replace(client.labelling_policy("m"), gold_share=1.0))
        agenda = [AgendaEntry(row, b"[[],null,null,[]]", b"") for row in (2, 3, 4)]
        store.publish("m", as_of=6, snapshot=b"", agenda=agenda)
        (query,) = client.lease("m", "ann").queries
        assert query.instance == "r0"
        client.answer(query, "oak")
        store.load(list(store.dump("m")), name="copy", meaning=StoredModel())
        (ann,) = client.labellers("copy")
        assert (ann.name, ann.gold_answered, ann.gold_right) == ("ann", 1, 1)


def test_gold_questions_over_http(start_live: Callable[..., Any], tmp_path: Path) -> None:
    """By a door at which nobody has the client of Quercus: marked, asked like others, scored."""
    live = start_live(tmp_path / "store.db", access="tokens", http_port=(port := free_port()))
    tokens, http = live.server.core.store.access, Http(port)
    bearer = {
        role: {"authorization": f"Bearer {access.issue_token(tokens, f'the-{role}', [role])[0]}"}
        for role in ("operator", "labeller")
    }

    def call(role: str, method: str, **request: Any) -> Any:
        said = http.call(method, request, **bearer[role])
        assert said.status == 200, said.body
        return said.json

    attribute = {"name": "X", "nominal": {"values": ["a", "b"]}}
    call(
        "operator", "ModelService/CreateModel", modelId="m",
        specification={"classes": CLASSES, "attributes": [attribute], "budget": 9},
    )  # fmt: skip
    rows = [{"values": {"X": {"nominal": "ab"[k % 2]}}} for k in range(8)]
    push = {"rows": {"named": {"rows": rows}}, "ids": [f"r{k}" for k in range(8)]}
    call("operator", "InstanceService/PushBatch", model="models/m", **push)
    label = {"instanceId": "r0", "label": {"className": "oak"}, "comment": "seen"}
    refused = http.call(
        "QueryService/MarkGold", {"model": "models/m", "labels": [label]}, **bearer["labeller"]
    )
    assert refused.status == 403
    assert call("operator", "QueryService/MarkGold", model="models/m", labels=[label])["stored"] == "1"
    policy = {"model": "models/m", "policy": {"goldShare": 1.0}, "updateMask": "goldShare"}
    assert call("operator", "QueryService/UpdateLabellingPolicy", **policy)["goldShare"] == 1.0
    lease = call("labeller", "QueryService/LeaseQueries", model="models/m", maxQueries=2, wait="20s")
    first, second = lease["queries"]
    assert first["instance"] == "models/m/instances/r0"
    assert first.keys() == second.keys()
    assert first["contour"] == second["contour"]
    done = call(
        "labeller", "QueryService/AnswerQuery", name=first["name"], leaseToken=first["leaseToken"],
        label={"className": "oak"},
    )  # fmt: skip
    assert "conflict" not in done
    (question,) = call("operator", "QueryService/ListGold", model="models/m")["questions"]
    assert (question["answered"], question["right"], question["comment"]) == ("1", "1", "seen")
