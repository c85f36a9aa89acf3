"""Skipping, postponing, correcting; several answers; policies and budgets; the history; the lease clock."""

import platform

import numpy as np
import pytest
from support import words
from support.histories import check_history

from quercus.belief.codec import decode, encode
from quercus.belief.errors import InvalidInput
from quercus.belief.label import Masses
from quercus.belief.mass import MassFunction
from quercus.labelling.crowds.labellers import crowd_of
from quercus.labelling.errors import UnreadableLabel
from quercus.labelling.leasing import LONGEST_HOLD_S
from quercus.labelling.policy import Combination
from quercus.storage import (
    Amendment,
    AnswerRequest,
    Corrections,
    EventKind,
    FailedPrecondition,
    Idle,
    KnownModel,
    LeaseClaim,
    Leased,
    LeaseRequest,
    NotFound,
    Policy,
    QueryState,
    Reliability,
    Statement,
    StatementBatch,
    Step,
    Store,
    Words,
    host_clocks,
)


@pytest.fixture
def asking(store, helper):
    """A model with instances a..e (1..5), budget 9, that asks 4, 2, 5, 1 (queries 1, 2, 3, 4)."""
    helper.create(budget=9)
    helper.push("a", "b", "c", "d", "e")
    helper.publish(4, 2, 5, 1)
    yield store
    check_history(store.query_history("m"))


def take(store, labeller="ann", limit=1, duration_s=60.0):
    return store.lease("m", labeller, limit, duration_s).queries


def numbers(store, labeller="ann", limit=9):
    return [query.number for query in take(store, labeller, limit)]


def answer(store, query, label=words.A, **more):
    return words.answer(store, "m", query.number, query.token, label, **more)


def steps(store, number):
    return [(row.step, row.labeller, row.state) for row in store.query_history("m", number)]


# Skipping and postponing


def test_a_skipped_query_comes_back_for_others(asking):
    (mine,) = take(asking)
    asking.skip("m", mine.number, mine.token, "too blurred")
    asking.skip("m", mine.number, mine.token)
    assert numbers(asking) == [2, 3, 4]
    assert asking.lease("m", "ann", 1, 60).idle is Idle.NOT_FOR_YOU
    assert numbers(asking, "bob") == [1]
    row = asking.query_history("m", 1)[2]
    assert (row.step, row.labeller, row.why) == (Step.SKIPPED, "ann", "too blurred")
    with pytest.raises(FailedPrecondition, match="given back"):
        answer(asking, mine)


def test_a_skip_outlives_the_query(asking, helper):
    (mine,) = take(asking)
    asking.skip("m", mine.number, mine.token)
    helper.publish(2)
    helper.publish(4, 2)  # asked again, as another query
    assert [query.instance for query in take(asking, "ann", 9)] == [2]
    assert [query.instance for query in take(asking, "bob", 9)] == [4]


def test_a_postponed_query_comes_back_later_for_anybody(asking, clock):
    (mine,) = take(asking)
    asking.postpone("m", mine.number, mine.token, 100.0)
    assert numbers(asking, "bob") == [2, 3, 4]
    leased = asking.lease("m", "cleo", 1, 60)
    assert (leased.idle, leased.again_s) == (Idle.NOT_FOR_YOU, 60.0)  # bob's leases end before
    clock.now += 100
    assert asking.get_query("m", 1).state is QueryState.OPEN
    assert numbers(asking, "ann", 1) == [1]
    with pytest.raises(InvalidInput, match="delay_s"):
        asking.postpone("m", 1, "token", 0.0)


def test_what_has_ended_needs_no_giving_back(asking, clock):
    (mine,) = take(asking, duration_s=10)
    clock.now += 10
    asking.release("m", mine.number, mine.token)
    asking.postpone("m", mine.number, mine.token, 100.0)
    assert answer(asking, mine).settled


def test_a_leased_query_that_growth_does_not_want_is_withdrawn_when_it_comes_back(asking, helper, clock):
    first, second = take(asking, limit=2, duration_s=10)
    helper.publish(5)
    asking.release("m", first.number, first.token)
    clock.now += 10
    assert [asking.get_query("m", n).state for n in (1, 2)] == [QueryState.WITHDRAWN] * 2
    assert asking.get_model("m").queries_open == 1
    assert numbers(asking, "bob") == [3]
    assert {q.number for q in asking.list_queries("m", [QueryState.WITHDRAWN])} == {1, 2, 4}
    with pytest.raises(FailedPrecondition, match="withdrawn"):
        answer(asking, second)


# Comments, times, history


def test_comment_and_time_are_kept(asking, clock):
    first, second = take(asking, limit=2)
    answer(asking, first, comment="a twin of b", took_s=3.5, shown="tree=1")
    clock.now += 7
    words.refuse(asking, "m", second.number, second.token, comment="out of focus")
    said, refused = asking.read_events("m", after=5)
    assert (said.query, said.comment, said.took_s, said.shown) == (first.number, "a twin of b", 3.5, "tree=1")
    assert (refused.query, refused.comment, refused.took_s) == (second.number, "out of focus", 7.0)
    (ann,) = asking.labellers("m")
    assert (ann.labeller, ann.answered, ann.refused, ann.times_s) == ("ann", 1, 1, (3.5,))
    for bad in ({"comment": "x" * 2001}, {"took_s": -1.0}, {"shown": "x" * 201}):
        with pytest.raises(InvalidInput, match=next(iter(bad)).removesuffix("_s")):
            answer(asking, first, **bad)


def test_every_step_is_in_the_history(asking, clock):
    (query,) = take(asking, duration_s=10)
    clock.now += 10
    (again,) = take(asking, "bob")
    asking.release("m", again.number, again.token)
    (last,) = take(asking, "cleo")
    answer(asking, last)
    opened, leased, answered = QueryState.OPEN, QueryState.LEASED, QueryState.ANSWERED
    assert steps(asking, query.number) == [
        (Step.OPENED, "", opened),
        (Step.LEASED, "ann", leased),
        (Step.EXPIRED, "ann", opened),
        (Step.LEASED, "bob", leased),
        (Step.RELEASED, "bob", opened),
        (Step.LEASED, "cleo", leased),
        (Step.ANSWERED, "cleo", answered),
    ]
    rows = asking.query_history("m", query.number)
    assert [row.clock - rows[0].clock for row in rows] == [0, 0, 10, 10, 10, 10, 10]
    assert (rows[-1].sequence, rows[1].until) == (6, rows[1].clock + 10)
    assert all(last.token not in str(row) for row in rows)  # it tells nobody how to answer
    everything = asking.query_history("m")
    assert [asking.query_history("m", after=row.id, limit=1) for row in everything[:-1]] == [
        [row] for row in everything[1:]
    ]


def test_the_history_of_what_somebody_held_is_kept_for_ever(asking, helper, monkeypatch):
    monkeypatch.setattr("quercus.storage.queries.agenda.KEPT_WITHDRAWN", 0)
    (mine,) = take(asking)
    asking.release("m", mine.number, mine.token)
    helper.publish()
    assert [query.number for query in asking.list_queries("m")] == [1]
    assert {row.query for row in asking.query_history("m")} == {1}
    with pytest.raises(NotFound, match="any more"):
        asking.get_query("m", 2)


# Corrections


def test_a_correction_is_an_event_that_supersedes(asking):
    (query,) = take(asking)
    answer(asking, query)
    change = Amendment("ann", words.B, 0.5, comment="wrong key")
    done = asking.amend("m", query.number, change, words.KNOWN)
    assert (done.sequence, done.repeated) == (7, False)
    assert asking.amend("m", query.number, change, words.KNOWN).repeated
    said, corrected = asking.read_events("m", after=5)
    assert (said.kind, said.label) == (EventKind.ANSWER, words.A)  # untouched
    assert (corrected.kind, corrected.label, corrected.reliability) == (EventKind.CORRECTION, words.B, 0.5)
    assert (corrected.instance, corrected.author, corrected.comment) == (4, "ann", "wrong key")
    assert steps(asking, query.number)[-1] == (Step.CORRECTED, "ann", QueryState.ANSWERED)
    assert asking.get_model("m").queries_answered == 1


def test_an_answer_taken_back_may_be_asked_again(asking, helper):
    (query,) = take(asking)
    answer(asking, query)
    undo = Amendment("ann", None)
    done = asking.amend("m", query.number, undo, words.KNOWN)
    assert asking.amend("m", query.number, undo, words.KNOWN) == type(done)(done.sequence, repeated=True)
    assert asking.get_query("m", query.number).state is QueryState.WITHDRAWN
    assert asking.get_model("m").queries_answered == 1  # the budget stays spent
    helper.publish(4)
    (again,) = take(asking)
    assert (again.instance, again.number) == (4, 5)
    with pytest.raises(FailedPrecondition, match="not answered"):
        words.amend(asking, "m", query.number, "ann", words.B)


def test_a_refusal_can_be_taken_back_and_not_turned_into_an_answer(asking):
    (query,) = take(asking)
    words.refuse(asking, "m", query.number, query.token)
    with pytest.raises(FailedPrecondition, match="undo the refusal"):
        words.amend(asking, "m", query.number, "ann", words.B)
    assert asking.get_model("m").queries_refused == 1
    assert words.amend(asking, "m", query.number, "ann", None).sequence == 7
    assert asking.read_events("m", after=6)[0].kind is EventKind.CORRECTION
    assert asking.get_model("m").queries_refused == 0


@pytest.mark.parametrize(
    ("who", "labeller", "refusal"),
    [
        (Corrections.OWN, "bob", "bob did not answer it"),
        (Corrections.NOBODY, "ann", "allows no corrections"),
        (Corrections.ANYONE, "bob", None),
    ],
)
def test_the_policy_decides_who_may_correct(asking, who, labeller, refusal):
    asking.set_policy("m", Policy(corrections=who))
    (query,) = take(asking)
    answer(asking, query)
    change = Amendment(labeller, words.B)
    if refusal is None:
        assert asking.amend("m", query.number, change, words.KNOWN).sequence == 7
        return
    with pytest.raises(FailedPrecondition, match=refusal):
        asking.amend("m", query.number, change, words.KNOWN)
    assert asking.get_model("m").sequence_committed == 6


def test_anyone_is_whom_the_policy_names(asking):
    (query,) = take(asking)
    answer(asking, query)
    asking.set_policy("m", Policy(corrections=Corrections.ANYONE, labellers=("bob",)))
    with pytest.raises(FailedPrecondition, match="cid did not answer it, and is not one of the labellers"):
        words.amend(asking, "m", query.number, "cid", words.B)
    for who in ("ann", "bob"):  # whoever gave it, and whoever is named
        words.amend(asking, "m", query.number, who, words.B)
    words.amend(asking, "m", query.number, "cid", words.C, trusted=True)


def test_what_is_not_answered_cannot_be_corrected(asking):
    with pytest.raises(FailedPrecondition, match="did not answer"):
        words.amend(asking, "m", 1, "ann", words.B)
    with pytest.raises(NotFound, match="query m/99"):
        words.amend(asking, "m", 99, "ann", words.B)


# Several answers


def test_several_answers_settle_with_what_they_say_together(asking):
    asking.set_policy("m", Policy(answers_per_query=2, max_conflict=1.0))
    (mine,) = take(asking)
    first = answer(asking, mine)
    assert (first.sequence, first.settled) == (6, False)
    assert answer(asking, mine).repeated
    with pytest.raises(FailedPrecondition, match="already answered"):
        answer(asking, mine, words.B)
    assert numbers(asking) == [2, 3, 4]  # not the same once more
    (theirs,) = take(asking, "bob")
    assert (theirs.number, theirs.answers) == (1, 1)
    last = words.answer(asking, "m", 1, theirs.token, words.B, 1, took_s=3)  # whole numbers too
    assert (last.sequence, last.settled) == (7, True)
    events = asking.read_events("m", after=5)
    assert [(e.kind, e.author, e.query) for e in events] == [
        (EventKind.OPINION, "ann", 1),
        (EventKind.OPINION, "bob", 1),
        (EventKind.ANSWER, "ann + bob", 1),
    ]
    assert [e.label for e in events[:2]] == [words.A, words.B]
    both = decode(events[2].label, 8)  # of two that contradict each other, each at most .99 reliable
    np.testing.assert_allclose(both.mass.contour()[:3], [0.01 / 0.0199, 0.01 / 0.0199, 0.0001 / 0.0199])
    assert [e.asked for e in events] == [None, None, b"asked 4"]
    assert asking.opinions("m") == events[:2]
    assert asking.get_model("m").queries_answered == 2  # both were asked for
    assert answer(asking, theirs, words.B).repeated


@pytest.mark.parametrize("with_others", [False, True])
def test_an_answer_whose_consequence_is_refused_is_not_stored(asking, helper, with_others):
    """It was stored where the refusal came after it, though the labeller was told that it was not."""
    helper.create(budget=3, name="n")  # the third answer spends it, which settles the first two
    helper.push("a", "b", "c", name="n")
    helper.publish(1, 2, 3, name="n")
    asking.set_policy("n", Policy(answers_per_query=2))
    broken = Words(encode(Masses(MassFunction(17, ((1 << 16, 1.0),)))), 1.0)  # not of eight classes
    first, second, third = asking.lease("n", "ann", 3, 60.0).queries
    asking.answer("n", first.number, first.token, broken, KnownModel(17))
    answer_one = words.answer(asking, "n", second.number, second.token)
    before = asking.get_model("n")
    claim = LeaseClaim("n", third.number, third.token)
    calls = [AnswerRequest(claim, Words(words.A, 1.0), words.KNOWN)]
    if with_others:
        calls += [LeaseRequest("n", "bob", 1, 60.0)]
    outcome, *others = asking.run_group(calls)
    assert isinstance(outcome, UnreadableLabel)
    assert all(isinstance(other, Leased) for other in others)
    assert answer_one.sequence == before.sequence_committed
    after = asking.get_model("n")
    assert after.sequence_committed == before.sequence_committed
    assert asking.get_query("n", third.number).state is QueryState.LEASED
    answered = asking.answer("n", third.number, third.token, Words(words.A, 1.0), KnownModel(17))
    assert answered.sequence == before.sequence_committed + 1


def test_a_budget_that_is_lowered_to_what_is_used_settles_what_has_some_of_its_answers(asking):
    asking.set_policy("m", Policy(answers_per_query=2))
    (mine,) = take(asking)
    answer(asking, mine)
    told = asking.revise("m", lambda _: (b"", 1), words.KNOWN)
    assert told == asking.get_model("m")  # what is told knows it already
    assert (told.sequence_committed, told.queries_open) == (8, 3)
    assert asking.get_query("m", mine.number).state is QueryState.ANSWERED
    (settled,) = [event for event in asking.read_events("m") if event.kind is EventKind.ANSWER]
    assert (settled.author, settled.query, decode(settled.label, 8).mass.focal) == (
        "ann",
        mine.number,
        ((1, 1.0),),
    )


def test_labellers_are_estimated_by_the_store_where_the_policy_wants_it_and_none_were_sent(asking):
    said = [Statement(each, name, words.A) for each in "abce" for name in ("ann", "bob", "cleo")]
    said += [Statement(each, "eve", words.B) for each in "abce"]
    asking.set_policy("m", Policy(reliability=Reliability.ESTIMATED))
    asking.state("m", StatementBatch("r", said), words.KNOWN)
    crowd = crowd_of(asking.opinions("m"), 8)
    assert crowd.reliability_of("eve") < 0.5 < crowd.reliability_of("ann")
    (query,) = take(asking)
    sent = KnownModel(8, crowd=crowd)
    first = answer(asking, query, reliability=None)
    assert first.reliability == crowd.reliability_of("ann")
    assert first.estimated
    assert words.answer(asking, "m", query.number, query.token, words.A, None, known=sent).repeated
    asking.set_policy("m", Policy())  # those that are sent do not count any more
    words.amend(asking, "m", query.number, "ann", words.B, None, known=sent)
    assert asking.read_events("m")[-1].reliability == 1.0


def test_what_has_some_of_its_answers_comes_first_and_is_not_withdrawn(asking, helper):
    asking.set_policy("m", Policy(answers_per_query=2))
    _, second = take(asking, limit=2)
    answer(asking, second)
    helper.publish(5, 1)
    assert asking.get_query("m", 2).state is QueryState.OPEN
    assert numbers(asking, "bob", 1) == [2]


def test_an_opinion_can_be_corrected_before_there_is_an_answer(asking):
    asking.set_policy("m", Policy(answers_per_query=2))
    (mine,) = take(asking)
    answer(asking, mine)
    done = words.amend(asking, "m", 1, "ann", words.B)
    assert (done.sequence, asking.read_events("m", after=6)[0].kind) == (7, EventKind.OPINION)
    words.amend(asking, "m", 1, "ann", None)
    assert asking.get_query("m", 1).answers == 0
    with pytest.raises(FailedPrecondition, match="not answered"):
        words.amend(asking, "m", 1, "ann", words.C)


# Policies and budgets


def test_a_policy_is_kept_and_checked(asking):
    policy = Policy(
        3,
        0.25,
        Reliability.ESTIMATED,
        7,
        100,
        5,
        Corrections.ANYONE,
        ("x-ray", "urgent"),
        ("ann", "Björn B."),
        Combination.CAUTIOUS,
    )
    asking.set_policy("m", policy)
    assert asking.policy("m") == policy
    asking.set_policy("m", Policy())
    assert asking.policy("m") == Policy()
    for bad, field in (
        (Policy(answers_per_query=0), "answers_per_query"),
        (Policy(max_conflict=float("nan")), "max_conflict"),
        (Policy(per_hour=-1), "per_hour"),
        (Policy(max_held=101), "max_held"),
        (Policy(tags=("",)), r"tags\[0\]"),
        (Policy(tags=("a\nb",)), r"tags\[0\]"),
        (Policy(labellers=("ann", "")), r"labellers\[1\]"),
        (Policy(labellers=("ann\nbob",)), r"labellers\[0\]"),
        (Policy(labellers=tuple(f"l{k}" for k in range(1001))), "labellers: are 1,001, at most 1,000"),
    ):
        with pytest.raises(InvalidInput, match=field):
            asking.set_policy("m", bad)


def test_nobody_holds_more_than_the_policy_allows(asking):
    asking.set_policy("m", Policy(max_held=2))
    first, _ = take(asking, limit=9)
    assert asking.lease("m", "ann", 1, 60).idle is Idle.HANDS_FULL
    assert numbers(asking, "bob") == [3, 4]
    asking.release("m", first.number, first.token)
    assert numbers(asking) == [1]


def test_only_those_whom_the_policy_names_are_asked(asking):
    """A query that somebody holds when the policy changes may still be answered."""
    (held,) = take(asking, "carl", limit=1)
    asking.set_policy("m", Policy(labellers=("ann", "bob")))
    before = asking.get_model("m").times_opened
    refused = asking.lease("m", "carl", 5, 60)
    assert (refused.queries, refused.idle) == ([], Idle.NOT_ASSIGNED)
    assert asking.lease("m", "Ann", 5, 60).idle is Idle.NOT_ASSIGNED  # names are compared exactly
    assert len(numbers(asking, "ann", 1)) == 1
    answer(asking, held)
    asking.set_policy("m", Policy())
    assert asking.get_model("m").times_opened > before  # who waits is asked again
    assert len(numbers(asking, "Ann", 1)) == 1


def test_the_share_of_a_labeller(asking, clock, helper):
    asking.set_policy("m", Policy(per_labeller=2))
    late, second = take(asking, limit=9, duration_s=30)
    clock.now += 30
    words.answer(asking, "m", second.number, second.token, words.A, 1.0)
    helper.publish(4, 5, 1)
    (third,) = take(asking)  # given + held is her share
    assert third.number == 1
    assert asking.lease("m", "ann", 1, 60).idle is Idle.SHARE_SPENT
    words.answer(asking, "m", third.number, third.token, words.A, 1.0)
    (_,) = take(asking, "bob")
    with pytest.raises(FailedPrecondition, match=r"already answered"):
        answer(asking, late, words.B)


def test_a_late_answer_keeps_within_the_share(asking, clock, helper):
    asking.set_policy("m", Policy(per_labeller=1))
    (late,) = take(asking, duration_s=30)
    clock.now += 30
    helper.publish(2, 4)
    (other,) = take(asking)
    assert other.instance == 2
    with pytest.raises(
        FailedPrecondition, match="the share of one labeller in the labelling policy is used up"
    ):
        answer(asking, late)


def test_answers_within_an_hour(asking, clock, helper):
    asking.set_policy("m", Policy(per_hour=2))
    first, _ = take(asking, limit=9)
    answer(asking, first)
    clock.now += 20
    nothing = asking.lease("m", "bob", 1, 60)
    assert (nothing.idle, nothing.again_s) == (Idle.HOUR_SPENT, 3580.0)
    clock.now += 3580
    assert len(take(asking, "bob", limit=9)) == 2  # the first answer, and her expired lease, count no more


# The lease clock


def test_the_wall_clock_may_be_set_at_will(store_url):
    wall, steady = [5000.0], [100.0]
    with Store.open(store_url, clock=lambda: wall[0], steady=lambda: steady[0], boot="one") as store:
        store.create_model("m", b"", budget=5)
        push_and_ask(store)
        take(store, duration_s=30)
        for jump in (1e6, -1e6, 0.0):
            wall[0] = 5000.0 + jump
            steady[0] += 9
            found = store.get_query("m", 1)
            assert found.state is QueryState.LEASED
            assert found.expires_at == pytest.approx(wall[0] + found.left_s)
        steady[0] += 3
        assert store.get_query("m", 1).state is QueryState.OPEN
        assert store.query_history("m")[-1].clock < 6000.0


def test_leases_go_on_after_a_restart_of_the_server_and_of_the_machine(store_url):
    clocks = {"clock": lambda: 5000.0, "boot": "one"}
    with Store.open(store_url, steady=lambda: 100.0, **clocks) as store:
        store.create_model("m", b"", budget=5)
        push_and_ask(store)
        (query,) = take(store, duration_s=30)
    with Store.open(store_url, steady=lambda: 120.0, **clocks) as store:
        assert store.get_query("m", 1).left_s == pytest.approx(10.0)
    clocks["boot"] = (
        "two"  # how long the machine was down, and where the store was meanwhile, nobody can know
    )
    with Store.open(store_url, steady=lambda: 7.0, **clocks) as store:
        assert store.get_query("m", 1).left_s == pytest.approx(30.0)
        store.extend("m", 1, query.token, 31.0)
        store.release("m", 1, query.token)
    with Store.open(store_url, steady=lambda: 8.0, **clocks) as store:
        check_history(store.query_history("m"))


@pytest.mark.parametrize("uptime", [7.0, 17_280_000.0])
@pytest.mark.parametrize("boots", [("one", "two"), ("of here", "of elsewhere")])
def test_leases_never_end_early_on_another_host(store_url, uptime, boots):
    """However long that has been up, for the store may have lived elsewhere until a moment ago."""
    steady = [100.0]
    with Store.open(store_url, clock=lambda: 5000.0, steady=lambda: steady[0], boot=boots[0]) as store:
        store.create_model("m", b"", budget=5)
        push_and_ask(store)
        for query in (*take(store), *take(store, "bob", duration_s=30)):
            if query.number == 1:
                answer(store, query)
        store.set_policy("m", Policy(per_hour=1))
    steady[0] = uptime
    with Store.open(store_url, clock=lambda: 5000.0, steady=lambda: steady[0], boot=boots[1]) as store:
        assert store.get_model("m").lag_s == pytest.approx(0.0)
        assert store.get_query("m", 2).left_s == pytest.approx(30.0)
        steady[0] += 29.0
        with Store.open(store_url, clock=lambda: 5000.0, steady=lambda: steady[0], boot=boots[1]) as other:
            assert other.get_query("m", 2).left_s == pytest.approx(1.0)
            waiting = other.lease("m", "cid", 1, 30.0)
    assert (waiting.idle, waiting.again_s) == (Idle.HOUR_SPENT, pytest.approx(3571.0))


def test_a_system_that_does_not_name_its_boots(store_url):
    """It is known by its machine: a clock that is behind was started since, another may run on as long as it is up."""
    clocks = {"clock": lambda: 5000.0, "boot": "of here"}
    with Store.open(store_url, steady=lambda: 900.0, **clocks) as store:
        store.create_model("m", b"", budget=5)
        push_and_ask(store)
        take(store, duration_s=30)
    with Store.open(store_url, steady=lambda: 5.0, **clocks) as store:
        assert store.get_query("m", 1).left_s == pytest.approx(30.0)
    with Store.open(store_url, steady=lambda: 17.0, **clocks) as store:
        assert store.get_query("m", 1).left_s == pytest.approx(18.0)


def test_a_boot_without_a_name_has_the_name_of_its_machine(tmp_path, monkeypatch):
    assert host_clocks.boot_id() == host_clocks.BOOT_ID.read_text().strip()
    monkeypatch.setattr(host_clocks, "BOOT_ID", tmp_path / "none")
    assert host_clocks.boot_id() == f"of {platform.node()}"[:64]


def push_and_ask(store):
    import numpy as np

    from quercus.storage import AgendaEntry

    store.append_instances("m", ["a", "b"], np.zeros((2, 1)), [words.ANYTHING] * 2)
    store.publish("m", as_of=2, snapshot=b"", agenda=[AgendaEntry(1, b"", b""), AgendaEntry(2, b"", b"")])


def test_nobody_has_two_voices_by_two_leases(asking, clock):
    asking.set_policy("m", Policy(answers_per_query=3))
    (first,) = take(asking, duration_s=10)
    clock.now += 10
    (second,) = take(asking, duration_s=10)
    assert second.number == first.number
    answer(asking, second)
    with pytest.raises(FailedPrecondition, match="already answered"):
        answer(asking, first, words.B)
    assert answer(asking, second).repeated
    assert asking.get_model("m").queries_answered == 1


def test_however_often_it_is_extended_a_lease_ends(asking, clock):
    (mine,) = take(asking, duration_s=600.0)
    given_at = clock.now
    ends = given_at + 600
    while clock.now < ends:
        ends = asking.extend("m", mine.number, mine.token, 3600.0)
        clock.now += 1800
    assert ends == given_at + LONGEST_HOLD_S
    assert asking.get_query("m", mine.number).state is QueryState.OPEN
    (long,) = take(asking, "bob", duration_s=LONGEST_HOLD_S + 100)  # given for longer, it lasts for longer
    assert asking.extend("m", long.number, long.token, 60.0) == clock.now + LONGEST_HOLD_S + 100
