import numpy as np
import pytest
from support import words

from quercus.belief.errors import InvalidInput
from quercus.storage import (
    AgendaEntry,
    AlreadyExists,
    EventKind,
    FailedPrecondition,
    NewValue,
    NotFound,
    Policy,
    Push,
    Store,
)


def test_a_new_model_is_empty(store, clock):
    made = store.create_model("wine", b"\x00spec", budget=3)
    assert made == store.get_model("wine")
    assert (made.name, made.specification, made.initial_specification) == ("wine", b"\x00spec", b"\x00spec")
    assert (made.budget, made.created_at) == (3, clock.now)
    assert made.sequence_committed == made.sequence_grown == made.tree_version == made.instance_count == 0
    assert made.queries_answered == made.queries_leased == made.queries_refused == made.queries_open == 0


def test_the_lag_is_the_age_of_the_oldest_event_that_no_tree_knows(store, helper, clock):
    helper.create()
    assert helper.store.get_model("m").lag_s == 0.0
    for name in ("a", "b", "c"):
        helper.push(name)
        clock.now += 10.0
    assert [m.lag_s for m in store.list_models()] == [30.0]
    helper.publish(as_of=1)
    assert store.get_model("m").lag_s == 20.0
    helper.publish(as_of=3)
    assert store.get_model("m").lag_s == 0.0


def test_the_lag_does_not_follow_the_wall_clock(store_url):
    """It may be set by hours while events wait, also where the store is opened anew or the machine was restarted."""
    wall, steady = [1_000_000.0], [50.0]

    def opened(boot: str = "one") -> Store:
        return Store.open(store_url, clock=lambda: wall[0], steady=lambda: steady[0], boot=boot)

    def lags() -> tuple[float, float]:
        return store.get_model("m").lag_s, store.get_model("read").lag_s

    with opened() as store:
        store.create_model("m", b"", budget=9)
        store.append_instances("m", ["a"], np.ones((1, 1)), [words.ANYTHING])
        wall[0] -= 3600.0
        steady[0] += 10.0
        store.append_instances("m", ["b"], np.ones((1, 1)), [words.ANYTHING])
        store.load(list(store.dump("m")), "read")
        assert lags() == (10.0, 0.0)
        wall[0] += 7200.0
        steady[0] += 5.0
        assert lags() == (15.0, 5.0)
        store.publish("m", as_of=1, snapshot=b"", agenda=[AgendaEntry(1, b"", b"")])
        assert lags() == (5.0, 5.0)
    with opened() as store:
        steady[0] += 1.0
        assert lags() == (6.0, 6.0)
        wall[0] -= 9000.0
        (asked,) = store.lease("m", "ann", 1, 60.0).queries
        words.answer(store, "m", asked.number, asked.token, words.A, 1.0)
        store.respecify("m", b"", budget=8)
        steady[0] += 1.0
        for as_of, lag in ((2, 1.0), (3, 1.0), (4, 0.0)):
            store.publish("m", as_of=as_of, snapshot=b"", agenda=[])
            assert lags() == (lag, 7.0)
        store.append_instances("m", ["c"], np.ones((1, 1)), [words.ANYTHING])
    steady[0] = 3.0  # since the next boot: the clock goes on from the newest event when the store is opened
    with opened("two") as store:
        assert store.get_model("m").lag_s == 0.0
        steady[0] += 2.0
        assert store.get_model("m").lag_s == 2.0


def test_a_taken_name_is_refused(store):
    store.create_model("wine", b"one", budget=0)
    with pytest.raises(AlreadyExists, match="model wine already exists") as caught:
        store.create_model("wine", b"two", budget=0)
    assert (caught.value.resource, caught.value.name) == ("model", "wine")
    assert store.get_model("wine").specification == b"one"


@pytest.mark.parametrize(
    ("name", "budget", "field"),
    [("", 0, "name"), ("x" * 201, 0, "name"), ("\ud800", 0, "name"), ("x", -1, "budget")],
)
def test_bad_arguments_are_named(store, name, budget, field):
    with pytest.raises(InvalidInput) as caught:
        store.create_model(name, b"", budget=budget)
    assert caught.value.field == field
    assert store.list_models() == []


def test_models_are_listed_in_order_of_name_by_pages(store):
    for name in ("b", "d", "a", "c"):
        store.create_model(name, b"", budget=0)
    assert [m.name for m in store.list_models(limit=3)] == ["a", "b", "c"]
    assert [m.name for m in store.list_models(after="c", limit=3)] == ["d"]
    with pytest.raises(InvalidInput, match="limit: is 0, must be at least 1"):
        store.list_models(limit=0)


def test_everything_of_an_unknown_model_is_not_found(store):
    calls = [
        lambda: store.get_model("no"),
        lambda: store.delete_model("no"),
        lambda: store.respecify("no", b"", budget=0),
        lambda: store.append_instances("no", ["a"], np.ones((1, 1)), [b""]),
        lambda: store.vocabulary("no"),
        lambda: store.read_events("no"),
        lambda: store.get_instance("no", "a"),
        lambda: store.list_instances("no"),
        lambda: store.history("no", [1]),
        lambda: store.snapshot("no"),
        lambda: store.lease("no", "ann", 1, 60),
        lambda: words.answer(store, "no", 1, "t", words.A, 1.0),
        lambda: words.refuse(store, "no", 1, "t"),
        lambda: store.extend("no", 1, "t", 60),
        lambda: store.release("no", 1, "t"),
        lambda: store.get_query("no", 1),
        lambda: store.list_queries("no"),
        lambda: store.next_change_s("no"),
        lambda: store.skip("no", 1, "t"),
        lambda: store.postpone("no", 1, "t", 60),
        lambda: words.amend(store, "no", 1, "ann", None),
        lambda: store.query_history("no"),
        lambda: store.labellers("no"),
        lambda: store.opinions("no"),
        lambda: store.policy("no"),
        lambda: store.set_policy("no", Policy()),
    ]
    for call in calls:
        with pytest.raises(NotFound, match="model no does not exist"):
            call()


def test_delete_removes_everything_and_the_next_of_that_name_is_another(store, helper):
    helper.create()
    helper.push("a", "b")
    helper.publish(1, 2)
    query = store.lease("m", "ann", 1, 60).queries[0]
    words.answer(store, "m", query.number, query.token, words.A, 1.0)
    first = store.get_model("m").key
    store.delete_model("m")
    assert store.list_models() == []
    helper.create()
    again = store.get_model("m")
    assert again.key != first
    assert again.sequence_committed == again.queries_answered == again.queries_open == 0
    assert store.read_events("m") == []
    assert store.list_queries("m") == []
    assert helper.push("a").stored == 1


def test_deleting_one_model_leaves_the_other(store, helper):
    for name in ("m", "n"):
        helper.create(name=name)
        helper.push("a", name=name)
        helper.publish(1, name=name)
    store.delete_model("m")
    assert [event.id for event in store.read_events("n")] == ["a"]
    assert len(store.list_queries("n")) == 1


def test_respecify_is_an_event_of_the_log(store, helper):
    helper.create(budget=1)
    helper.push("a")
    changed = store.respecify("m", b"new", budget=7)
    assert (changed.specification, changed.initial_specification) == (b"new", b"specification")
    assert (changed.budget, changed.sequence_committed, changed.instance_count) == (7, 2, 1)
    event = store.read_events("m")[-1]
    assert (event.kind, event.specification, event.sequence) == (EventKind.SPECIFICATION, b"new", 2)
    assert (event.label, event.values, event.instance, event.id) == (None, None, 0, "")


def test_a_budget_below_what_is_out_is_refused(store, helper, clock):
    helper.create(budget=3)
    helper.push("a", "b")
    helper.publish(1, 2)
    first, second = store.lease("m", "ann", 2, 60).queries
    words.answer(store, "m", first.number, first.token, words.A, 1.0)
    with pytest.raises(FailedPrecondition, match=r"cannot become 1, below its queries: 1 answered, 1 leased"):
        store.respecify("m", b"new", budget=1)
    assert store.get_model("m").specification == b"specification"
    clock.now += 60  # the lease is over, its budget is free
    assert store.respecify("m", b"new", budget=1).budget == 1
    with pytest.raises(FailedPrecondition, match="budget of 1 is used up"):
        words.answer(store, "m", second.number, second.token, words.A, 1.0)


def test_a_clock_that_steps_back_revives_no_lease_whose_budget_was_given_away(store, helper, clock):
    helper.create(budget=2)
    helper.push("a", "b")
    helper.publish(1, 2)
    answered, _ = store.lease("m", "ann", 2, 60).queries
    words.answer(store, "m", answered.number, answered.token, words.A, 1.0)
    clock.now += 60
    store.respecify("m", b"new", budget=1)
    clock.now -= 30
    model = store.get_model("m")
    assert (model.queries_answered, model.queries_leased, model.budget) == (1, 0, 1)


def test_a_push_for_a_former_model_of_the_name_is_refused(store, helper):
    helper.create()
    former = store.get_model("m").key
    store.delete_model("m")
    helper.create()
    values = np.ones((1, 3))
    key = store.get_model("m").key
    for_former = Push("m", ["a"], values, [words.ANYTHING], [NewValue(0, 0, "new")], former)
    refused, taken = store.append_group([for_former, Push("m", ["b"], values, [words.ANYTHING], (), key)])
    assert isinstance(refused, FailedPrecondition)
    assert str(refused) == "model m was deleted, and another has its name: start again"
    assert taken.stored == 1
    assert [event.id for event in store.read_events("m")] == ["b"]
    assert store.vocabulary("m") == {}


def test_what_is_written_is_there_after_reopening(store_url, clock):
    with Store.open(store_url, clock=clock, steady=clock) as first:
        made = first.create_model("m", b"spec", budget=1)
    with Store.open(store_url, clock=clock, steady=clock) as second:
        assert second.get_model("m") == made


def test_a_grower_that_comes_after_another_of_its_server_says_where_it_runs(store: Store) -> None:
    """They are one member, of which status and logs tell the process."""
    for place in ("web-1, process 7", "web-1, process 8"):
        store.renew_grower("member", place, 60.0)
    assert [(each.member, each.place) for each in store.live_growers()] == [("member", "web-1, process 8")]
