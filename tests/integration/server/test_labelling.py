"""Several answers combined, corrections, filters, any model in turn, policies, statistics: on the wire."""

from typing import Any

import grpc
import numpy as np
import pytest

from quercus.v1 import instance_pb2, query_pb2, values_pb2

Idle = query_pb2.LeaseQueriesResponse
How = query_pb2.ReturnQueryRequest.How
Kind = instance_pb2.LogEvent


def label(name: str) -> values_pb2.Label:
    return values_pb2.Label(class_name=name)


@pytest.fixture
def asking(api: Any, tools: Any, request: pytest.FixtureRequest) -> str:
    """A model of table T that asks; its name is the test's."""
    model = request.node.name.removeprefix("test_").replace("_", "-")[:60]
    api.create(model, budget=12)
    api.push(tools.table_t(model))
    api.grown(model, 21)
    return model


def set_policy(api: Any, model: str, **fields: Any) -> query_pb2.LabellingPolicy:
    policy = query_pb2.LabellingPolicy(**fields)
    request = query_pb2.UpdateLabellingPolicyRequest(model=f"models/{model}", policy=policy)
    return api.queries.UpdateLabellingPolicy(request)


def lease(api: Any, model: str, labeller: str, **fields: Any) -> Any:
    request = query_pb2.LeaseQueriesRequest(model=f"models/{model}", labeller=labeller, **fields)
    request.wait.FromSeconds(20)
    return api.queries.LeaseQueries(request, timeout=60)


def instance(api: Any, name: str) -> instance_pb2.Instance:
    return api.instances.GetInstance(instance_pb2.GetInstanceRequest(name=name))


def correction(query: query_pb2.Query, labeller: str, name: str, **fields: Any) -> Any:
    return query_pb2.CorrectAnswerRequest(name=query.name, labeller=labeller, label=label(name), **fields)


def test_answers_of_labellers_who_confer_count_once(api: Any, asking: str) -> None:
    """The cautious rule: of two who say the same, the more reliable one; the conflict is theirs with the third."""
    cautious = query_pb2.COMBINATION_RULE_CAUTIOUS
    set_policy(api, asking, answers_per_query=3, max_conflict=1.0, combination=cautious)
    for labeller, name, reliability in (("ann", "s", 0.9), ("bob", "s", 0.8), ("cleo", "x", 0.5)):
        (query,) = lease(api, asking, labeller).queries
        done = api.answer(query, label=label(name), reliability=reliability)
    assert done.degree_of_conflict == pytest.approx(0.9 * 0.5)
    mass = instance(api, query.instance).history[-1].label.mass
    masses = dict(zip(mass.focal_sets, mass.masses, strict=True))
    assert masses[0b010] == pytest.approx(0.9 * 0.5 / 0.55)
    assert masses[0b100] == pytest.approx(0.1 * 0.5 / 0.55)


def test_three_answers_are_combined_by_their_reliability(api: Any, asking: str) -> None:
    set_policy(api, asking, answers_per_query=3, max_conflict=1.0)
    said = (("ann", "s", 0.9), ("bob", "s", 0.8), ("cleo", "x", 0.5))
    names = set()
    for place, (labeller, name, reliability) in enumerate(said):
        (query,) = lease(api, asking, labeller).queries
        assert (query.answers, query.answers_wanted) == (place, 3)
        names.add(query.name)
        done = api.answer(query, label=label(name), reliability=reliability, comment=f"{labeller} looked")
        assert done.wants_more == (place < 2)
        assert api.answer(query, label=label(name), reliability=reliability).committed_sequence == (
            done.committed_sequence
        )
    assert len(names) == 1
    agree = 1 - 0.1 * 0.2  # mass of {s} of the two who agree
    kappa = agree * 0.5
    assert done.degree_of_conflict == pytest.approx(kappa)
    assert done.ignorance == pytest.approx((1 - agree) * 0.5 / (1 - kappa))
    history = instance(api, query.instance).history
    assert [(each.kind, each.author) for each in history] == [
        (Kind.KIND_INSTANCE, "source"),
        *((Kind.KIND_OPINION, labeller) for labeller, *_ in said),
        (Kind.KIND_ANSWER, "ann + bob + cleo"),
    ]
    assert history[1].comment == "ann looked"
    assert {each.query for each in history[1:]} == {query.name}
    masses = dict(zip(history[-1].label.mass.focal_sets, history[-1].label.mass.masses, strict=True))
    assert masses[0b010] == pytest.approx(agree * 0.5 / (1 - kappa))
    assert masses[0b100] == pytest.approx((1 - agree) * 0.5 / (1 - kappa))
    assert api.get(asking).queries_answered == 3


def test_reliability_is_estimated_from_agreement(api: Any, asking: str) -> None:
    set_policy(api, asking, answers_per_query=3, reliability=query_pb2.RELIABILITY_SOURCE_ESTIMATED)
    for _ in range(3):
        for labeller, name in (("ann", "s"), ("bob", "s"), ("carl", "x")):
            (query,) = lease(api, asking, labeller).queries
            done = api.answer(query, label=label(name))
            if labeller == "ann":
                first = done.reliability
            assert api.answer(query, label=label(name)).committed_sequence == done.committed_sequence
        if not done.wants_more:
            continue
        (query,) = lease(api, asking, "dora").queries
        api.answer(query, label=label("s"))
    assert first > 0.8 > done.reliability
    request = query_pb2.ListLabellersRequest(model=f"models/{asking}")
    found = {each.name: each for each in api.queries.ListLabellers(request).labellers}
    assert found["ann"].answered == 3
    assert found["ann"].agreement > found["carl"].agreement == 0.0
    assert found["ann"].reliability > found["carl"].reliability
    assert found["ann"].HasField("median")


def test_the_same_correction_again_changes_nothing(api: Any, asking: str) -> None:
    """Although the reliability that it counts with is estimated anew, from the first correction too."""
    set_policy(api, asking, answers_per_query=2, reliability=query_pb2.RELIABILITY_SOURCE_ESTIMATED)
    for _ in range(2):
        for labeller in ("ann", "bob"):
            (query,) = lease(api, asking, labeller).queries
            api.answer(query, label=label("s"))
    api.queries.CorrectAnswer(correction(query, "bob", "x"))
    once = instance(api, query.instance).history
    api.queries.CorrectAnswer(correction(query, "bob", "x"))
    assert instance(api, query.instance).history == once


def test_a_correction_reaches_the_tree(api: Any, tools: Any, asking: str) -> None:
    (query,) = lease(api, asking, "ann").queries
    done = api.answer(query, label=label("o"))
    before = api.grown(asking, done.committed_sequence)
    fixed = api.queries.CorrectAnswer(correction(query, "ann", "s", comment="wrong key"))
    assert api.queries.CorrectAnswer(correction(query, "ann", "s")) == fixed
    after = api.grown(asking, fixed.committed_sequence)
    assert before.nodes.theta != after.nodes.theta
    found = instance(api, query.instance)
    assert list(found.contour.plausibilities) == [0.0, 1.0, 0.0]
    assert found.history[-1].comment == "wrong key"
    with tools.refused(grpc.StatusCode.FAILED_PRECONDITION, "bob did not answer it"):
        api.queries.CorrectAnswer(correction(query, "bob", "x"))
    undone = api.queries.UndoAnswer(query_pb2.UndoAnswerRequest(name=query.name, labeller="ann"))
    api.grown(asking, undone.committed_sequence)
    again = {each.instance: each.name for each in lease(api, asking, "ann", max_queries=20).queries}
    assert again[query.instance] != query.name


def test_filters(api: Any, tools: Any, asking: str) -> None:
    free = lease(api, asking, "eve", max_queries=12)
    rows = {each.instance: each for each in free.queries}
    for each in free.queries:
        api.queries.ReturnQuery(query_pb2.ReturnQueryRequest(name=each.name, lease_token=each.lease_token))
    able = query_pb2.QueryFilter(classes=["o", "s"])
    told = lease(api, asking, "bob", max_queries=12, filter=able).queries
    fit = {n for n, q in rows.items() if q.contour.plausibilities[2] == 0.0}
    assert {each.instance for each in told} == fit
    assert set() < fit < set(rows)
    for each in told:
        api.queries.ReturnQuery(query_pb2.ReturnQueryRequest(name=each.name, lease_token=each.lease_token))
    wanted = query_pb2.QueryFilter(values={"Y": "d"})
    found = lease(api, asking, "ann", max_queries=12, filter=wanted).queries
    assert {each.instance for each in found} == {
        n for n, q in rows.items() if q.values.values["Y"].nominal == "d"
    }
    for nothing, words in (
        ({"Z": "d"}, "'Z' is not an attribute"),
        ({"Y": "so"}, "'so' is not a value of Y"),
    ):
        with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, words, field="filter.values"):
            lease(api, asking, "cleo", filter=query_pb2.QueryFilter(values=nothing))
    with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, "'nobody' is not a class", field="filter.classes"):
        lease(api, asking, "cleo", filter=query_pb2.QueryFilter(classes=["nobody"]))
    with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, "models/-", field="filter.tags"):
        lease(api, asking, "ann", filter=query_pb2.QueryFilter(tags=["a"]))


def test_any_model_comes_in_turn(api: Any, tools: Any) -> None:
    models = [f"turn-{k}" for k in range(3)]
    for model in models:
        api.create(model, budget=12)
        api.push(tools.table_t(model))
        api.grown(model, 21)
        set_policy(api, model, tags=["turn", "odd" if model == "turn-1" else "even"])
    wanted = query_pb2.QueryFilter(tags=["turn"])
    came = []
    for _ in range(6):
        (query,) = lease(api, "-", "ann", filter=wanted).queries
        came.append(query.name.split("/")[1])
        api.queries.ReturnQuery(
            query_pb2.ReturnQueryRequest(name=query.name, lease_token=query.lease_token, how=How.HOW_SKIP)
        )
    assert came == models * 2
    (odd,) = lease(api, "-", "bob", filter=query_pb2.QueryFilter(tags=["turn", "odd"])).queries
    assert odd.name.startswith("models/turn-1/")
    nobody = query_pb2.LeaseQueriesRequest(
        model="models/-", labeller="cleo", filter=query_pb2.QueryFilter(tags=["nobody has this"])
    )
    assert api.queries.LeaseQueries(nobody).idle == Idle.IDLE_NOTHING_TO_ASK


def test_of_any_model_a_labeller_gets_those_of_models_that_name_it(api: Any, tools: Any) -> None:
    models = [f"named-{k}" for k in range(2)]
    for model in models:
        api.create(model, budget=12)
        api.push(tools.table_t(model))
        api.grown(model, 21)
        set_policy(api, model, tags=["named"], labellers=["ann", "bob"] if model == "named-1" else ["ann"])
    wanted = query_pb2.QueryFilter(tags=["named"])
    for _ in models:
        (query,) = lease(api, "-", "bob", filter=wanted).queries
        assert query.name.startswith("models/named-1/")
    other = query_pb2.LeaseQueriesRequest(model="models/-", labeller="carl", filter=wanted)
    assert api.queries.LeaseQueries(other).idle == Idle.IDLE_NOT_ASSIGNED


def test_the_policy_is_read_and_checked(api: Any, tools: Any, asking: str) -> None:
    name = f"models/{asking}"
    default = api.queries.GetLabellingPolicy(query_pb2.GetLabellingPolicyRequest(model=name))
    assert (default.answers_per_query, default.max_held, default.corrections) == (1, 20, 1)
    changed = set_policy(api, asking, per_hour=7, per_labeller=3, tags=["a", "b", "a"])
    assert (changed.per_hour, changed.per_labeller, list(changed.tags)) == (7, 3, ["a", "b"])
    for field, fields in (
        ("policy.answers_per_query", {"answers_per_query": 21}),
        ("policy.max_conflict", {"max_conflict": np.nan}),
        ("policy.per_hour", {"per_hour": -1}),
        ("policy.corrections", {"corrections": 9}),
    ):
        with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, field=field):
            set_policy(api, asking, **fields)
    wrong = query_pb2.UpdateLabellingPolicyRequest(model=name, update_mask={"paths": ["per_hour", "mood"]})
    with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, "'mood'", field="update_mask.paths[1]"):
        api.queries.UpdateLabellingPolicy(wrong)


def test_the_share_of_a_labeller_and_what_it_holds(api: Any, asking: str) -> None:
    set_policy(api, asking, per_labeller=3, max_held=2)
    first = lease(api, asking, "ann", max_queries=9).queries
    assert len(first) == 2
    request = query_pb2.LeaseQueriesRequest(model=f"models/{asking}", labeller="ann")
    assert api.queries.LeaseQueries(request).idle == Idle.IDLE_HANDS_FULL
    for each in first:
        api.answer(each)
    (third,) = lease(api, asking, "ann", max_queries=9).queries
    api.answer(third)
    assert api.queries.LeaseQueries(request).idle == Idle.IDLE_SHARE_SPENT


def test_the_history_of_a_query(api: Any, tools: Any, asking: str) -> None:
    (query,) = lease(api, asking, "ann").queries
    later = query_pb2.ReturnQueryRequest(
        name=query.name, lease_token=query.lease_token, how=How.HOW_POSTPONE, comment="a colleague knows"
    )
    later.delay.FromSeconds(1)
    api.queries.ReturnQuery(later)
    (again,) = lease(api, asking, "bob", filter=query_pb2.QueryFilter(), max_queries=1).queries
    request = query_pb2.ListQueryHistoryRequest(name=query.name)
    steps = api.queries.ListQueryHistory(request).steps
    kinds = [query_pb2.QueryStepKind.Name(step.kind).removeprefix("QUERY_STEP_KIND_") for step in steps]
    assert kinds[:3] == ["OPENED", "LEASED", "POSTPONED"]
    assert (steps[2].labeller, steps[2].why) == ("ann", "a colleague knows")
    assert steps[2].until == pytest.approx(steps[2].clock + 1)
    assert again.lease_left.seconds in {59, 60}
    paged: list[Any] = []
    every = query_pb2.ListQueryHistoryRequest(name=f"models/{asking}", page_size=2)
    while True:
        page = api.queries.ListQueryHistory(every)
        paged += page.steps
        if not page.next_page_token:
            break
        every.page_token = page.next_page_token
    assert len(paged) >= len(steps) + 1
    with tools.refused(grpc.StatusCode.NOT_FOUND):
        api.queries.ListQueryHistory(query_pb2.ListQueryHistoryRequest(name=f"models/{asking}/queries/999"))
    with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, field="how"):
        bad = query_pb2.ReturnQueryRequest(name=again.name, lease_token=again.lease_token)
        bad.how = 9  # type: ignore[assignment]
        api.queries.ReturnQuery(bad)
