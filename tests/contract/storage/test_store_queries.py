import numpy as np
import pytest
from support import words

from quercus.belief.codec import encode
from quercus.belief.errors import InvalidInput
from quercus.belief.label import ClassSet
from quercus.storage import (
    AgendaEntry,
    AnswerOutcome,
    EventKind,
    FailedPrecondition,
    Idle,
    NotFound,
    QueryState,
    Snapshot,
    growth_mark,
)


@pytest.fixture
def asking(store, helper):
    """A model with instances a..e (1..5), budget 3, that asks 4, 2, 5, 1 (queries 1, 2, 3, 4)."""
    helper.create(budget=3)
    helper.push("a", "b", "c", "d", "e", label=encode(ClassSet(3)))  # C contradicts it
    helper.publish(4, 2, 5, 1)
    return store


def take(store, labeller="ann", limit=1, duration_s=60.0):
    return store.lease("m", labeller, limit, duration_s).queries


def test_leases_follow_the_agenda_within_the_budget(asking, clock):
    leased = asking.lease("m", "ann", 2, 60)
    assert [(q.number, q.instance, q.instance_id, q.position) for q in leased.queries] == [
        (1, 4, "d", 0),
        (2, 2, "b", 1),
    ]
    assert (leased.idle, leased.budget_left) == (Idle.NOT_IDLE, 1)
    first = leased.queries[0]
    assert (first.asked, first.reason, first.tree_version) == (b"asked 4", b"reason 4", 1)
    assert (first.labeller, first.state, first.expires_at) == ("ann", QueryState.LEASED, clock.now + 60)
    assert len({q.token for q in leased.queries}) == 2
    assert all(len(q.token) >= 20 for q in leased.queries)
    rest = asking.lease("m", "bob", 5, 60)
    assert [q.number for q in rest.queries] == [3]
    assert rest.budget_left == 0
    model = asking.get_model("m")
    assert (model.queries_leased, model.queries_open, model.queries_answered) == (3, 1, 0)


def test_why_nothing_is_leased(store, helper, clock):
    helper.create(budget=2)
    assert store.lease("m", "ann", 1, 60).idle is Idle.NOTHING_TO_ASK
    helper.push("a", "b", "c")
    assert store.lease("m", "ann", 1, 60).idle is Idle.GROWING  # these may be asked about
    helper.publish(1, 2, 3)
    one, two = take(store, limit=2)
    assert store.lease("m", "bob", 1, 60).idle is Idle.ALL_LEASED  # the budget may come back
    words.answer(store, "m", one.number, one.token, words.A, 1.0)
    assert store.lease("m", "bob", 1, 60).idle is Idle.ALL_LEASED
    assert store.lease("m", "ann", 1, 60).idle is Idle.GROWING  # her answer is not in the tree yet
    words.answer(store, "m", two.number, two.token, words.A, 1.0)
    spent = store.lease("m", "bob", 1, 60)
    assert (spent.idle, spent.budget_left, spent.queries) == (Idle.BUDGET_SPENT, 0, [])


def test_all_leased_to_others(store, helper):
    helper.create(budget=9)
    helper.push("a")
    helper.publish(1)
    take(store)
    assert store.lease("m", "bob", 1, 60).idle is Idle.ALL_LEASED


def test_a_labeller_reads_the_own_writes(asking, helper):
    one, two = take(asking, limit=2)
    words.answer(asking, "m", one.number, one.token, words.A, 1.0)
    growing = asking.lease("m", "ann", 1, 60)
    assert growing.idle is Idle.GROWING
    assert growing.awaits_growth == growth_mark(asking.get_model("m"))
    assert asking.lease("m", "bob", 1, 60, min_sequence=6).idle is Idle.GROWING
    helper.publish(2, 5, 1, as_of=6)
    assert growing.awaits_growth != growth_mark(asking.get_model("m"))
    third = asking.lease("m", "ann", 1, 60, min_sequence=6).queries[0]
    assert third.instance == 5
    words.refuse(asking, "m", two.number, two.token)
    assert asking.lease("m", "ann", 1, 60).idle is Idle.GROWING


def test_another_labeller_does_not_wait_for_my_answer(asking):
    (one,) = take(asking)
    words.answer(asking, "m", one.number, one.token, words.A, 1.0)
    assert [q.number for q in take(asking, "bob")] == [2]


@pytest.mark.parametrize(
    ("labeller", "limit", "duration_s", "field"),
    [
        ("", 1, 60, "labeller"),
        ("a", 0, 60, "limit"),
        ("a", 1, 0.0, "duration_s"),
        ("a", 1, float("nan"), "duration_s"),
    ],
)
def test_bad_leases_are_named(asking, labeller, limit, duration_s, field):
    with pytest.raises(InvalidInput) as caught:
        asking.lease("m", labeller, limit, duration_s)
    assert caught.value.field == field


def test_an_answer_is_an_event_with_what_was_asked(asking):
    (query,) = take(asking)
    assert words.answer(asking, "m", query.number, query.token, words.C) == AnswerOutcome(6, False, True)
    event = asking.read_events("m", after=5)[0]
    assert (event.kind, event.instance, event.id, event.author) == (EventKind.ANSWER, 4, "d", "ann")
    assert (event.label, event.reliability, event.asked, event.conflict) == (words.C, 1.0, b"asked 4", True)
    model = asking.get_model("m")
    assert (model.queries_answered, model.queries_leased, model.conflicts) == (1, 0, 1)
    assert (model.sequence_committed, model.instance_count) == (6, 5)
    settled = asking.get_query("m", query.number)
    assert (settled.state, settled.sequence, settled.labeller) == (QueryState.ANSWERED, 6, "ann")
    assert (settled.token, settled.expires_at) == ("", None)


def test_a_repeated_answer_is_acknowledged_again(asking, clock):
    (query,) = take(asking)
    words.answer(asking, "m", query.number, query.token, words.C)
    clock.now += 1e6
    # The conflict is the stored one: what is known has changed by the answer itself.
    assert words.answer(asking, "m", query.number, query.token, words.C) == AnswerOutcome(6, True, True)
    assert asking.get_model("m").queries_answered == 1
    for label, reliability in ((words.B, 1.0), (words.C, 0.9)):
        with pytest.raises(FailedPrecondition, match="already answered, with another label or reliability"):
            words.answer(asking, "m", query.number, query.token, label, reliability)
    with pytest.raises(FailedPrecondition, match=r"already answered$"):
        words.refuse(asking, "m", query.number, query.token)


def test_a_refusal_costs_no_budget(asking):
    (query,) = take(asking)
    assert words.refuse(asking, "m", query.number, query.token) == AnswerOutcome(6, False)
    assert words.refuse(asking, "m", query.number, query.token) == AnswerOutcome(6, True)
    with pytest.raises(FailedPrecondition, match=r"already refused$"):
        words.answer(asking, "m", query.number, query.token, words.A, 1.0)
    leased = asking.lease("m", "bob", 9, 60)
    assert [q.number for q in leased.queries] == [2, 3, 4]
    model = asking.get_model("m")
    assert (model.queries_refused, model.queries_answered, model.queries_leased) == (1, 0, 3)


@pytest.mark.parametrize("reliability", [0.0, -0.5, 1.5, float("nan")])
def test_a_reliability_out_of_range_is_named(asking, reliability):
    (query,) = take(asking)
    with pytest.raises(InvalidInput, match=r"reliability: is .*, must lie in \(0, 1\]"):
        words.answer(asking, "m", query.number, query.token, words.A, reliability)


def test_a_made_up_token_is_refused(asking):
    one, two = take(asking, limit=2)
    for call in (
        lambda: words.answer(asking, "m", one.number, two.token, words.A, 1.0),
        lambda: words.refuse(asking, "m", one.number, ""),
        lambda: asking.extend("m", one.number, "guess", 60),
        lambda: asking.release("m", one.number, two.token),
        lambda: words.answer(asking, "m", 4, two.token, words.A, 1.0),
    ):
        with pytest.raises(FailedPrecondition, match="token is not one that was given for query m/"):
            call()
    with pytest.raises(NotFound, match="query m/99 does not exist"):
        words.answer(asking, "m", 99, one.token, words.A, 1.0)
    with pytest.raises(NotFound, match="query m/99 does not exist"):
        asking.get_query("m", 99)


def test_an_expired_lease_goes_to_the_next(asking, clock):
    (mine,) = take(asking, duration_s=30)
    assert asking.next_change_s("m") == asking.next_change_s() == 30
    clock.now += 30
    assert asking.next_change_s("m") is None
    assert asking.get_query("m", mine.number).state is QueryState.OPEN
    assert asking.get_query("m", mine.number).labeller == ""
    assert asking.get_model("m").queries_leased == 0
    (theirs,) = take(asking, "bob")
    assert theirs.number == mine.number
    assert theirs.token != mine.token
    for call in (
        lambda: words.answer(asking, "m", mine.number, mine.token, words.A, 1.0),
        lambda: words.refuse(asking, "m", mine.number, mine.token),
        lambda: asking.extend("m", mine.number, mine.token, 60),
    ):
        lost = r"it was yours until 1970-01-12T13:47:10\+00:00, and another labeller has it now"
        with pytest.raises(FailedPrecondition, match=lost):
            call()
    asking.release("m", mine.number, mine.token)  # gives up nothing of the other's
    assert asking.get_query("m", mine.number).labeller == "bob"
    words.answer(asking, "m", theirs.number, theirs.token, words.A, 1.0)
    with pytest.raises(FailedPrecondition, match="already answered by another labeller"):
        words.answer(asking, "m", mine.number, mine.token, words.A, 1.0)


def test_a_late_answer_counts_while_nobody_else_holds_the_query(asking, clock):
    (mine,) = take(asking, duration_s=30)
    clock.now += 1000
    assert words.answer(asking, "m", mine.number, mine.token, words.A, 1.0) == AnswerOutcome(6, False)
    assert words.answer(asking, "m", mine.number, mine.token, words.A, 1.0) == AnswerOutcome(6, True)


def test_a_late_answer_by_the_first_of_two_holders(asking, clock):
    (mine,) = take(asking, duration_s=30)
    clock.now += 30
    (theirs,) = take(asking, "bob", duration_s=30)
    clock.now += 30
    assert words.answer(asking, "m", mine.number, mine.token, words.A, 1.0).repeated is False
    assert asking.get_query("m", mine.number).labeller == "ann"
    with pytest.raises(FailedPrecondition, match="already answered by another labeller"):
        words.refuse(asking, "m", theirs.number, theirs.token)


def test_a_late_answer_keeps_within_the_budget(asking, clock):
    (late,) = take(asking, duration_s=30)
    clock.now += 30
    asking.publish("m", as_of=5, snapshot=b"", agenda=[AgendaEntry(i, b"", b"") for i in (2, 5, 1, 4)])
    others = take(asking, "bob", limit=9)
    assert [q.instance for q in others] == [2, 5, 1]
    spent = "the budget of 3 is used up since by queries: 0 answered, 3 held"
    with pytest.raises(FailedPrecondition, match=spent):
        words.answer(asking, "m", late.number, late.token, words.A, 1.0)
    asking.release("m", others[2].number, others[2].token)
    assert words.answer(asking, "m", late.number, late.token, words.A, 1.0).sequence == 6
    assert asking.lease("m", "bob", 1, 60).budget_left == 0


def test_a_late_refusal_needs_no_budget(asking, clock):
    (late,) = take(asking, duration_s=30)
    clock.now += 30
    asking.publish("m", as_of=5, snapshot=b"", agenda=[AgendaEntry(i, b"", b"") for i in (2, 5, 1, 4)])
    take(asking, "bob", limit=9)
    assert words.refuse(asking, "m", late.number, late.token).sequence == 6


def test_a_late_answer_to_a_withdrawn_query_is_refused(asking, helper, clock):
    (late,) = take(asking, duration_s=30)
    clock.now += 30
    helper.publish(2)
    with pytest.raises(
        FailedPrecondition, match=r"^withdrawn: it was yours until .*the model does not want this label"
    ):
        words.answer(asking, "m", late.number, late.token, words.A, 1.0)
    assert asking.get_query("m", late.number).state is QueryState.WITHDRAWN


def test_extending_a_lease(asking, clock):
    (query,) = take(asking, duration_s=30)
    clock.now += 20
    assert asking.extend("m", query.number, query.token, 30) == clock.now + 30
    assert asking.extend("m", query.number, query.token, 5) == clock.now + 30  # takes nothing
    clock.now += 29
    assert asking.get_query("m", query.number).state is QueryState.LEASED
    clock.now += 1
    with pytest.raises(
        FailedPrecondition,
        match=r"yours until .*; it cannot be extended, but you may still answer if nobody else holds the query",
    ):
        asking.extend("m", query.number, query.token, 30)
    with pytest.raises(InvalidInput, match="duration_s"):
        asking.extend("m", query.number, query.token, -1)
    words.answer(asking, "m", query.number, query.token, words.A, 1.0)
    with pytest.raises(FailedPrecondition, match="already answered"):
        asking.extend("m", query.number, query.token, 30)


def test_releasing_a_lease(asking):
    (query,) = take(asking)
    asking.release("m", query.number, query.token)
    asking.release("m", query.number, query.token)
    assert asking.get_query("m", query.number).state is QueryState.OPEN
    assert asking.get_model("m").queries_leased == 0
    with pytest.raises(FailedPrecondition, match="it was given back"):
        words.answer(asking, "m", query.number, query.token, words.A, 1.0)
    (again,) = take(asking, "bob")
    assert (again.number, again.position) == (query.number, 0)
    words.answer(asking, "m", again.number, again.token, words.A, 1.0)
    with pytest.raises(FailedPrecondition, match=r"already answered$"):
        asking.release("m", again.number, again.token)


def test_publish_makes_the_queries_follow_the_agenda(asking, helper):
    (held,) = take(asking)  # instance 4
    assert helper.publish(5, 3, 2) == 2
    found = {q.instance: q for q in asking.list_queries("m")}
    assert {i: (q.number, q.state, q.position, q.tree_version) for i, q in found.items()} == {
        4: (1, QueryState.LEASED, 0, 1),  # leased: stays, though the agenda dropped it
        2: (2, QueryState.OPEN, 2, 2),  # keeps its number
        5: (3, QueryState.OPEN, 0, 2),
        1: (4, QueryState.WITHDRAWN, 3, 1),
        3: (5, QueryState.OPEN, 1, 2),
    }
    assert [q.instance for q in take(asking, "bob", limit=9)] == [5, 3]
    words.answer(asking, "m", held.number, held.token, words.A, 1.0)
    assert helper.publish(1) == 3  # wanted again: a new query
    again = asking.list_queries("m", after=5)
    assert [(q.number, q.instance, q.state) for q in again] == [(6, 1, QueryState.OPEN)]


def test_publish_updates_the_reason_of_an_open_query(asking):
    asking.publish("m", as_of=5, snapshot=b"", agenda=[AgendaEntry(4, b"new asked", b"new reason")])
    query = asking.get_query("m", 1)
    assert (query.asked, query.reason, query.tree_version) == (b"new asked", b"new reason", 2)


def test_publish_does_not_ask_again_what_was_answered_meanwhile(asking, helper):
    one, two = take(asking, limit=2)
    words.answer(asking, "m", one.number, one.token, words.A, 1.0)  # event 6
    words.refuse(asking, "m", two.number, two.token)  # event 7
    helper.publish(4, 2, 5, as_of=6)  # a tree that has seen the answer, not the refusal
    assert [(q.number, q.instance) for q in asking.list_queries("m", [QueryState.OPEN])] == [(3, 5), (5, 4)]


def test_publish_refuses_what_makes_no_sense(asking, helper):
    before = asking.list_queries("m")
    asking.respecify("m", b"", budget=3)
    with pytest.raises(FailedPrecondition, match="as of event 7 of a log with 6 events"):
        helper.publish(as_of=7)
    for instances, refusal in (
        ((1, 1), "names an instance twice"),
        ((6,), "event 6 is not an instance of model m"),
    ):
        with pytest.raises(InvalidInput, match=refusal):
            helper.publish(*instances)
    assert asking.get_model("m").tree_version == 1
    assert asking.list_queries("m") == before


def test_an_agenda_of_numpy_integers(asking):
    agenda = [AgendaEntry(instance, b"", b"") for instance in np.array([3, 2])]
    asking.publish("m", as_of=5, snapshot=b"", agenda=agenda)
    assert [(q.number, q.instance) for q in asking.list_queries("m", [QueryState.OPEN])] == [(2, 2), (5, 3)]


def test_publish_ignores_a_tree_that_is_behind_and_a_model_that_is_gone(asking, helper):
    assert helper.publish(2, as_of=4) == 1
    assert asking.snapshot("m").as_of == 5
    assert len(asking.list_queries("m", [QueryState.OPEN])) == 4
    key = asking.get_model("m").key
    assert asking.publish("no", as_of=0, snapshot=b"", agenda=[]) == 0
    assert asking.publish("m", as_of=5, snapshot=b"", agenda=[], key=key + 1) == 0
    assert asking.publish("m", as_of=5, snapshot=b"", agenda=[], key=key) == 2


def test_snapshots_are_kept_by_version(store, helper, clock):
    helper.create()
    with pytest.raises(NotFound, match="tree version m/0 does not exist"):
        store.snapshot("m")
    assert store.publish("m", as_of=0, snapshot=b"root", agenda=[]) == 1
    helper.push("a")
    clock.now += 5
    assert store.publish("m", as_of=1, snapshot=b"grown\x00", agenda=[]) == 2
    assert store.snapshot("m") == store.snapshot("m", 2) == Snapshot(2, 1, b"grown\x00", clock.now)
    assert store.snapshot("m", 1) == Snapshot(1, 0, b"root", clock.now - 5)
    with pytest.raises(NotFound, match="tree version m/3 does not exist"):
        store.snapshot("m", 3)
    model = store.get_model("m")
    assert (model.tree_version, model.sequence_grown) == (2, 1)


def test_queries_are_listed_by_state_and_page(asking, helper, clock):
    one, two = take(asking, limit=2, duration_s=30)
    words.answer(asking, "m", one.number, one.token, words.A, 1.0)
    helper.publish(2, 5)
    numbers = lambda *states, **page: [q.number for q in asking.list_queries("m", states, **page)]  # noqa: E731
    assert numbers() == [1, 2, 3, 4]
    assert numbers(after=1, limit=2) == [2, 3]
    assert numbers(QueryState.LEASED) == [two.number]
    assert numbers(QueryState.OPEN, QueryState.WITHDRAWN) == [3, 4]
    assert numbers(QueryState.ANSWERED) == [1]
    assert numbers(QueryState.REFUSED) == []
    clock.now += 30
    assert numbers(QueryState.LEASED) == []
    assert numbers(QueryState.OPEN) == [2, 3]
    with pytest.raises(InvalidInput):
        numbers(limit=0)


def test_a_clock_that_steps_back_revives_no_lease(asking, clock):
    (mine,) = take(asking, duration_s=30)
    clock.now += 30
    take(asking, "bob")
    clock.now -= 30
    assert asking.get_query("m", mine.number).labeller == "bob"
    with pytest.raises(FailedPrecondition, match="another labeller has it now"):
        words.answer(asking, "m", mine.number, mine.token, words.A, 1.0)
